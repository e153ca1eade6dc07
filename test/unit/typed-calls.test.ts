import { expect, test } from 'vitest';
import { User } from '../../entities/index.ts';
import { removeMethods } from '../../server/accounts/credentials/index.ts';
import type { OneTimeTokens } from '../../server/accounts/mail/index.ts';
import type { MailContent } from '../../server/accounts/mail/outbox-rows.ts';
import { deleteSessions, endSessionsOf } from '../../server/accounts/sessions/index.ts';
import { lockUser } from '../../server/accounts/users/index.ts';
import type { NewEvent } from '../../server/activity/index.ts';
import type { AllTables, EntityManager } from '../../server/parts/database/contract.ts';
import type { LoginMethod, ProviderName } from '../../server/shared/method-names.ts';

/** What the compiler refuses: without its error, a line below is an error of `npm run typecheck`. */

const record = (event: NewEvent) => event.kind;
const enqueue = (mail: MailContent) => mail.kind;

test('an event has the details of its kind', () => {
  const neverCalled = () => {
    record({ kind: 'verified' });
    record({ kind: 'unlocked' });
    record({ kind: 'email-changed', details: { from: 'a@b.test', to: 'c@d.test' } });
    // @ts-expect-error: a kind that does not exist
    record({ kind: 'renamed' });
    // @ts-expect-error: details of a kind without any
    record({ kind: 'verified', details: { email: 'a@b.test' } });
    // @ts-expect-error: no details of a kind with some
    record({ kind: 'email-changed' });
    // @ts-expect-error: one of two details
    record({ kind: 'email-changed', details: { from: 'a@b.test' } });
    // @ts-expect-error: the detail of another kind
    record({ kind: 'password-changed', details: { method: 'password' } });
    // @ts-expect-error: another value
    record({ kind: 'password-changed', details: { by: 'administrator' } });
  };
  expect(neverCalled).toBeTypeOf('function');
});

test('a mail has the detail of its kind', () => {
  const neverCalled = () => {
    enqueue({ kind: 'passkey-added' });
    enqueue({ kind: 'reset-password' });
    enqueue({ kind: 'role-changed', detail: 'admin' });
    // @ts-expect-error: no detail of a kind with one
    enqueue({ kind: 'email-changed' });
    // @ts-expect-error: a detail of a kind without one
    enqueue({ kind: 'passkey-added', detail: 'My key' });
    // @ts-expect-error: another value
    enqueue({ kind: 'role-changed', detail: 'owner' });
    // @ts-expect-error: text in place of a reported login
    enqueue({ kind: 'new-device', detail: 'Firefox on Linux' });
  };
  expect(neverCalled).toBeTypeOf('function');
});

test('what needs the lock on a user takes a locked one', () => {
  const neverCalled = async (em: EntityManager, tables: AllTables, tokens: OneTimeTokens) => {
    const locked = await lockUser(em, { id: 'user_1' });
    const read = await em.findOneOrFail(User, { id: 'user_1' });
    if (locked) await endSessionsOf(tables, locked);
    // @ts-expect-error: maybe nobody
    await endSessionsOf(tables, locked);
    // @ts-expect-error: read without the lock
    await endSessionsOf(tables, read);
    // @ts-expect-error: read without the lock
    await removeMethods(em, read, { password: true, added: () => true });
    // @ts-expect-error: an id alone
    await deleteSessions(tables, { id: read.id });
    // @ts-expect-error: an id alone
    await tokens.issue(tables, { id: read.id }, 'reset-password');
  };
  expect(neverCalled).toBeTypeOf('function');
});

test('a login method is one of the service, or the name of a provider', () => {
  const neverCalled = (provider: ProviderName, text: string): LoginMethod[] => [
    'password',
    provider,
    // @ts-expect-error: any text
    text,
    // @ts-expect-error: a name that no configuration has given
    'github',
  ];
  expect(neverCalled).toBeTypeOf('function');
});
