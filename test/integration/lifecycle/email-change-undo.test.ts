import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { freshEmail } from '../../rig/servers/address.ts';
import {
  browser,
  DAY_MS,
  ELSEWHERE,
  type EmbeddedAccounts,
  openAccounts,
  refused,
  refusedField,
  request,
} from '../rig/accounts.ts';
import { askFor, confirm, moved } from '../rig/email-changes.ts';

/** Changes of address and their undo, on embedded parts. */
let service: EmbeddedAccounts;
let limited: EmbeddedAccounts;
beforeAll(async () => {
  service = await openAccounts();
  limited = await openAccounts({
    LIMIT_MAIL_REQUEST: '1/900',
    LIMIT_TOKEN: '1/900',
    REGISTRATION: 'domains',
    REGISTRATION_DOMAINS: 'example.test',
  });
});
afterAll(() => Promise.all([service.close(), limited.close()]));
afterEach(() => {
  vi.restoreAllMocks();
});

const undo = (of: EmbeddedAccounts, token: string, by = request()) =>
  of.accounts.lifecycle.emailChange.undoEmailChange(token, by);

describe('a change of address', () => {
  test('takes effect with the confirmation: the former address is mailed, and older links end', async () => {
    const who = await service.loggedIn();
    const email = freshEmail();
    const token = await askFor(service, who, email);
    await service.database.change((tables) => service.mail.tokens.issue(tables, who.user as never, 'reset-password'));
    expect(await service.userOf(who.user.email)).not.toBeNull();
    await confirm(service, who, token);
    expect(await service.userOf(email)).toMatchObject({ id: who.user.id, emailVerified: true });
    expect((await service.eventsOf(who.user.id)).slice(1)).toEqual([
      { kind: 'email-change-requested', email },
      { kind: 'email-changed', from: who.user.email, to: email },
    ]);
    expect((await service.mailsTo(who.user.email)).at(-1)).toMatchObject({ kind: 'email-changed', detail: email });
    expect(await service.rowsOf('one_time_tokens', who.user)).toEqual([]);
    // Repeated, it is no error and no other event.
    await confirm(service, who, token);
    expect(await service.kindsOf(who.user.id)).toHaveLength(3);
  });

  test('is refused to the same address, and to a domain that is not allowed', async () => {
    const who = await limited.loggedIn();
    await expect(askFor(limited, who, who.user.email)).rejects.toEqual(refusedField('email', 'unchanged'));
    await expect(askFor(limited, who, 'ada@other.test')).rejects.toEqual(refusedField('email', 'domain_not_allowed'));
  });

  test('counts as a mail of the client', async () => {
    const { session } = await limited.loggedIn();
    const by = { caller: request(), browser };
    const ask = () => limited.accounts.lifecycle.emailChange.changeEmail(session, freshEmail(), by);
    await ask();
    await expect(ask()).rejects.toEqual(refused('RATE_LIMITED'));
  });

  test('is confirmed in the browser that asked, and a wrong one leaves the link usable', async () => {
    const who = await service.loggedIn();
    const email = freshEmail();
    const token = await askFor(service, who, email);
    const elsewhere = confirm(service, who, token, { ...request(), browser: ELSEWHERE });
    await expect(elsewhere).rejects.toEqual(refused('FORBIDDEN'));
    await confirm(service, who, token);
    expect(await service.userOf(email)).not.toBeNull();
  });

  test('is not confirmed by another user or an expired link, which count as guesses', async () => {
    const [who, other] = [await limited.loggedIn(), await limited.loggedIn()];
    const token = await askFor(limited, who, freshEmail());
    const by = request();
    await expect(confirm(limited, other, token, by)).rejects.toEqual(refused('INVALID_TOKEN'));
    await expect(confirm(limited, other, token, by)).rejects.toEqual(refused('RATE_LIMITED'));
    await limited.database.write((tables) => tables.updateTable('email_changes').set({ expires_at: 1 }).execute());
    await expect(confirm(limited, who, token)).rejects.toEqual(refused('INVALID_TOKEN'));
  });

  test('that was confirmed is not confirmed again once the address is another', async () => {
    const who = await service.loggedIn();
    const token = await askFor(service, who, freshEmail());
    await confirm(service, who, token);
    await service.change(who.user, { email: freshEmail() });
    await expect(confirm(service, who, token)).rejects.toEqual(refused('INVALID_TOKEN'));
  });

  test.each<[string, object, boolean]>([
    ['a verified', {}, false],
    ['a blocked', { emailVerified: false, blockedAt: 1 }, false],
    ['an unverified', { emailVerified: false }, true],
  ])('to the address of %s account (%j) succeeds: %s', async (_state, values, succeeds) => {
    const who = await service.loggedIn();
    const holder = await service.insertUser((user) => void Object.assign(user, values));
    const token = await askFor(service, who, freshEmail());
    // The holder takes the address after the request: a mail to a proven one has no link.
    const email = String((await service.rowsOf('email_changes', who.user))[0]?.email);
    await service.change(holder, { email });
    if (succeeds) await confirm(service, who, token);
    else await expect(confirm(service, who, token)).rejects.toEqual(refused('EMAIL_TAKEN'));
    expect((await service.userOf(email))?.id).toBe(succeeds ? who.user.id : holder.id);
  });

  test('to an address that another user can still undo to is EMAIL_TAKEN', async () => {
    const [who, other] = [await service.loggedIn(), await service.loggedIn()];
    const email = other.user.email;
    const token = await askFor(service, who, email);
    await moved(service, other, freshEmail());
    await expect(confirm(service, who, token)).rejects.toEqual(refused('EMAIL_TAKEN'));
  });
});

describe('the undo of a change of address', () => {
  test('restores the address, ends sessions, password and unproven methods, and mails both addresses', async () => {
    const who = await service.loggedIn((user) => {
      user.language = 'de';
    });
    const email = freshEmail();
    const token = await moved(service, who, email);
    const link = (proven: boolean, createdAt: number) =>
      service.addIdentity(who.user, (identity) => {
        identity.createdAt = createdAt;
        if (proven) identity.prove();
      });
    const now = Date.now();
    await link(true, now - 8 * DAY_MS);
    await link(true, now - 6 * DAY_MS);
    await link(false, now - 9 * DAY_MS);
    const wake = vi.spyOn(service.accounts.mail.outbox, 'wake');
    const { kept } = await undo(service, token);
    expect(wake).toHaveBeenCalledOnce();
    expect(kept).toEqual([{ method: 'acme', addedAt: now - 8 * DAY_MS }]);
    const user = await service.userOf(who.user.email);
    expect(user).toMatchObject({ id: who.user.id, emailVerified: true, hasPassword: false, language: null });
    expect(user?.sessionEpoch).toBe(1);
    expect(await service.isOpen(who.token)).toBe(false);
    expect((await service.eventsOf(who.user.id)).at(-1)).toEqual({
      kind: 'email-change-undone',
      from: email,
      to: who.user.email,
      methods: 'password,acme',
    });
    for (const address of [email, who.user.email])
      expect((await service.mailsTo(address)).at(-1)).toMatchObject({
        kind: 'email-change-undone',
        detail: who.user.email,
      });
    await expect(undo(service, token)).rejects.toEqual(refused('INVALID_TOKEN'));
  });

  test('names no methods if none was removed', async () => {
    const who = await service.loggedIn((user) => user.removePassword());
    const email = freshEmail();
    await undo(service, await moved(service, who, email));
    const event = { kind: 'email-change-undone', from: email, to: who.user.email };
    expect((await service.eventsOf(who.user.id)).at(-1)).toEqual(event);
  });

  test.each([
    ['requested after the change is undone', { deleted_at: Number.MAX_SAFE_INTEGER }, false],
    ['requested before the change stays', { deleted_at: 1 }, true],
    ['of a blocked user stays', { deleted_at: Number.MAX_SAFE_INTEGER, blocked_at: 1 }, true],
  ])('a deletion %s', async (_what, columns, isDeleted) => {
    const who = await service.loggedIn();
    const token = await moved(service, who, freshEmail());
    await service.change(who.user, columns);
    await undo(service, token);
    expect((await service.userOf(who.user.email))?.isDeleted).toBe(isDeleted);
    expect((await service.kindsOf(who.user.id)).includes('deletion-undone')).toBe(!isDeleted);
  });

  test('by an unknown or expired link is INVALID_TOKEN, and counts as a guess', async () => {
    const by = request();
    await expect(undo(limited, 'x'.repeat(43), by)).rejects.toEqual(refused('INVALID_TOKEN'));
    await expect(undo(limited, 'x'.repeat(43), by)).rejects.toEqual(refused('RATE_LIMITED'));
    const who = await limited.loggedIn();
    const token = await moved(limited, who, freshEmail());
    await limited.database.write((tables) => tables.updateTable('email_changes').set({ expires_at: 1 }).execute());
    await expect(undo(limited, token)).rejects.toEqual(refused('INVALID_TOKEN'));
  });
});
