import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { User } from '../../../entities/index.ts';
import { accountOf } from '../../../server/accounts/users/index.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import {
  DAY_MS,
  type EmbeddedAccounts,
  type LoggedIn,
  openAccounts,
  refused,
  request,
  unverified,
} from '../rig/accounts.ts';
import { askFor, moved } from '../rig/email-changes.ts';

/** Deletions of accounts, on embedded parts. */
let service: EmbeddedAccounts;
let limited: EmbeddedAccounts;
beforeAll(async () => {
  service = await openAccounts({ DELETION_GRACE_DAYS: '40' });
  limited = await openAccounts({ DELETION_GRACE_DAYS: '1' });
});
afterAll(() => Promise.all([service.close(), limited.close()]));
afterEach(() => {
  vi.restoreAllMocks();
});

describe('a deletion', () => {
  const deleteAccount = (of: EmbeddedAccounts, { session }: LoggedIn) =>
    of.accounts.lifecycle.deletion.deleteAccount(session, request());

  test('hides the user, ends sessions and links, and mails the address and a former one', async () => {
    const who = await service.loggedIn();
    const email = freshEmail();
    await moved(service, who, email);
    for (const purpose of ['verify-email', 'reset-password', 'new-device'] as const)
      await service.database.change((tables) => service.mail.tokens.issue(tables, who.user as never, purpose));
    await askFor(service, who, freshEmail());
    const wake = vi.spyOn(service.accounts.mail.outbox, 'wake');
    const deletion = await deleteAccount(service, who);
    expect(wake).toHaveBeenCalledOnce();
    expect(deletion.removedAfter - deletion.deletedAt).toBe(40 * DAY_MS);
    const user = await service.userOf(email);
    expect(user).toMatchObject({ deletedAt: deletion.deletedAt, sessionEpoch: 1 });
    expect(await service.isOpen(who.token)).toBe(false);
    expect(await service.rowsOf('removals', who.user)).toMatchObject([
      { due_at: deletion.removedAfter, begun_at: null, email: null },
    ]);
    expect((await service.rowsOf('one_time_tokens', who.user)).map(({ purpose }) => purpose)).toEqual(['new-device']);
    expect(await service.rowsOf('email_changes', who.user)).toHaveLength(1);
    const detail = new Date(deletion.removedAfter).toISOString();
    expect((await service.eventsOf(who.user.id)).at(-1)).toEqual({ kind: 'deletion-requested', removedAfter: detail });
    for (const address of [email, who.user.email])
      expect((await service.mailsTo(address)).at(-1)).toMatchObject({ kind: 'account-deleted', detail });
  });

  test('of an unverified user is mailed to nobody, and that by an administrator as closed', async () => {
    const user = await service.insertUser(unverified);
    const closed = await service.insertUser();
    const deleted = (email: string, actor: 'user' | 'operator') =>
      service.database.transaction(async (em, tables) => {
        const stored = await em.findOneOrFail(User, { email });
        return service.accounts.lifecycle.deletion.requestDeletion(
          { em, tables, user: stored as never },
          { ...request(), actor },
        );
      });
    await deleted(user.email, 'user');
    const first = await deleted(closed.email, 'operator');
    expect([await service.mailKindsTo(user.email), await service.mailKindsTo(closed.email)]).toEqual([
      [],
      ['account-closed'],
    ]);
    // Repeated, it changes nothing.
    expect(await deleted(closed.email, 'operator')).toEqual(first);
    expect(await service.kindsOf(closed.id)).toEqual(['deletion-requested']);
  });

  test('can be undone at least as long as the links that undo another person’s acts work', () => {
    expect(service.accounts.lifecycle.deletion.restorableDays).toBe(40);
    expect(limited.accounts.lifecycle.deletion.restorableDays).toBe(7);
  });

  test('in a session that has ended since is UNAUTHENTICATED', async () => {
    const who = await service.loggedIn();
    await service.accounts.sessions.end(who.token, request());
    await expect(deleteAccount(service, who)).rejects.toEqual(refused('UNAUTHENTICATED'));
    expect((await service.userOf(who.user.email))?.isDeleted).toBe(false);
  });

  test('of the last administrator is refused', async () => {
    const who = await limited.loggedIn((user) => {
      user.role = 'admin';
    });
    await expect(deleteAccount(limited, who)).rejects.toEqual(refused('LAST_ADMINISTRATOR'));
  });

  test('is undone by a login, unless sessions have ended since', async () => {
    const who = await service.loggedIn();
    await deleteAccount(service, who);
    const restore = (user: User | null) =>
      service.accounts.lifecycle.deletion.restoreAccount(accountOf(user as User), request());
    await expect(restore(who.user)).rejects.toEqual(refused('INVALID_CREDENTIALS'));
    const restored = await restore(await service.userOf(who.user.email));
    expect(restored).toMatchObject({ id: who.user.id, sessionEpoch: 1 });
    expect((await service.userOf(who.user.email))?.isDeleted).toBe(false);
    expect(await service.rowsOf('removals', who.user)).toEqual([]);
    expect((await service.kindsOf(who.user.id)).at(-1)).toBe('deletion-undone');
    expect(await service.mailKindsTo(who.user.email)).toContain('account-restored');
    await restore(await service.userOf(who.user.email));
    expect((await service.kindsOf(who.user.id)).filter((kind) => kind === 'deletion-undone')).toHaveLength(1);
  });
});
