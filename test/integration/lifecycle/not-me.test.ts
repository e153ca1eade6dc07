import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { User } from '../../../entities/index.ts';
import type { TokenPurpose } from '../../../server/accounts/mail/kinds.ts';
import type { ProviderName } from '../../../server/shared/method-names.ts';
import { DAY_MS, type EmbeddedAccounts, openAccounts, refused, request, unverified } from '../rig/accounts.ts';

/** The link “this was not me”, on embedded parts. */
let service: EmbeddedAccounts;
let limited: EmbeddedAccounts;
beforeAll(async () => {
  service = await openAccounts();
  limited = await openAccounts({ LIMIT_TOKEN: '1/900' });
});
afterAll(() => Promise.all([service.close(), limited.close()]));
afterEach(() => {
  vi.restoreAllMocks();
});

describe('“this was not me”', () => {
  const disown = (of: EmbeddedAccounts, token: string, by = request()) => of.accounts.lifecycle.notMe.disown(token, by);

  test.each([
    ['an account without a proven method is deleted', unverified, 'deleted'],
    [
      'a blocked account stays, without its methods',
      (user: User) => {
        unverified(user);
        user.block(1);
      },
      'secured',
    ],
  ])('of a verification mail: %s', async (_what, change, outcome) => {
    const user = await service.insertUser(change);
    expect(await disown(service, await service.linkFor(user, 'verify-email'))).toEqual({ outcome, kept: [] });
    const stored = await service.userOf(user.email);
    if (outcome === 'deleted') expect(stored).toBeNull();
    else expect(stored).toMatchObject({ hasPassword: false });
  });

  test('of a verification mail: an account with a proven method loses the others', async () => {
    const user = await service.insertUser();
    await service.addIdentity(user);
    const token = await service.linkFor(user, 'verify-email', { used: 1 });
    expect(await disown(service, token)).toEqual({ outcome: 'secured', kept: [] });
    expect(await service.rowsOf('identities', user)).toHaveLength(0);
    expect(await service.kindsOf(user.id)).toEqual(['login-methods-removed']);
    expect((await service.userOf(user.email))?.hasPassword).toBe(true);
  });

  test('of a verification mail: with proven methods only, the sessions end, and this is mailed once', async () => {
    const user = await service.insertUser();
    const { token: session } = await service.logIn(user);
    const token = await service.linkFor(user, 'verify-email');
    for (let i = 0; i < 2; i++) expect(await disown(service, token)).toEqual({ outcome: 'secured', kept: [] });
    expect(await service.isOpen(session)).toBe(false);
    expect(await service.kindsOf(user.id)).toEqual(['logged-in', 'sessions-ended']);
    expect(await service.mailKindsTo(user.email)).toEqual(['new-device', 'sessions-ended']);
    expect((await service.userOf(user.email))?.sessionEpoch).toBe(1);
  });

  test('of a login: sessions, password and later methods end, and a reset link is mailed', async () => {
    const user = await service.insertUser((stored) => {
      stored.language = 'de';
    });
    await service.addIdentity(user, (identity) => {
      identity.createdAt = Date.now() - DAY_MS;
      identity.prove();
    });
    const { token: session } = await service.logIn(user);
    const token = await service.linkFor(user, 'new-device', { covers_from: Date.now() });
    await service.addIdentity(user, (identity) => identity.prove());
    const wake = vi.spyOn(service.accounts.mail.outbox, 'wake');
    const { outcome, kept } = await disown(service, token);
    expect(wake).toHaveBeenCalledOnce();
    expect([outcome, kept.map(({ method }) => method)]).toEqual(['locked', ['acme']]);
    expect(await service.isOpen(session)).toBe(false);
    expect(await service.userOf(user.email)).toMatchObject({ hasPassword: false, language: null });
    expect((await service.eventsOf(user.id)).at(-1)).toEqual({ kind: 'not-me', methods: 'password,acme' });
    expect(await service.rowsOf('identities', user)).toHaveLength(1);
    const mail = (await service.mailsTo(user.email)).find(({ kind }) => kind === 'reset-password');
    expect(mail).toMatchObject({ user_id: user.id, detail: 'not-me', token_id: expect.any(String) });
    await expect(disown(service, token)).rejects.toEqual(refused('INVALID_TOKEN'));
    const reset = service.derive('reset-password', mail?.token_id ?? '');
    await service.accounts.lifecycle.passwordReset.checkResetToken({ token: reset, email: user.email }, '192.0.2.1');
  });

  test('of a login by a provider: its older identity ends too', async () => {
    const user = await service.insertUser();
    await service.addIdentity(user, (identity) => {
      identity.createdAt = Date.now() - DAY_MS;
      identity.prove();
    });
    await service.accounts.sessions.openSession(
      (await service.accounts.users.find(user.id)) as never,
      { method: 'acme' as ProviderName },
      request(),
    );
    const { kept } = await disown(service, await service.linkFor(user, 'new-device', { covers_from: Date.now() }));
    expect([kept, await service.rowsOf('identities', user)]).toEqual([[], []]);
  });

  test('of a login to an account without a password or later methods, no methods are named', async () => {
    const user = await service.insertUser((stored) => stored.removePassword());
    await disown(service, await service.linkFor(user, 'new-device', { covers_from: Date.now() }));
    expect(await service.eventsOf(user.id)).toEqual([{ kind: 'not-me' }]);
  });

  test.each<[string, TokenPurpose, object]>([
    ['of a verification mail, expired', 'verify-email', { expires_at: 1 }],
    ['of a login, expired', 'new-device', { expires_at: 1 }],
    ['of a login, used', 'new-device', { used: 1 }],
    ['of a reset', 'reset-password', {}],
  ])('a link %s is INVALID_TOKEN, and counts as a guess', async (_what, purpose, change) => {
    const user = await limited.insertUser();
    const token = await limited.linkFor(user, purpose, change);
    const by = request();
    await expect(disown(limited, token, by)).rejects.toEqual(refused('INVALID_TOKEN'));
    await expect(disown(limited, token, by)).rejects.toEqual(refused('RATE_LIMITED'));
    expect(await limited.kindsOf(user.id)).toEqual([]);
  });
});
