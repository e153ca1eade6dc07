import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { User } from '../../../entities/index.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import {
  BREACHED,
  DAY_MS,
  type EmbeddedAccounts,
  marksIn,
  openAccounts,
  refused,
  refusedField,
  request,
  unverified,
} from '../rig/accounts.ts';

/** Resets of passwords, on embedded parts. */
let service: EmbeddedAccounts;
let limited: EmbeddedAccounts;
beforeAll(async () => {
  service = await openAccounts({}, { hasBreached: true });
  limited = await openAccounts({ LIMIT_TOKEN: '1/900', LIMIT_MAIL_REQUEST: '1/900' });
});
afterAll(() => Promise.all([service.close(), limited.close()]));
afterEach(() => {
  vi.restoreAllMocks();
});

const password = 'Analytical-Engine-1843';
const dead: [string, object][] = [
  ['expired', { expires_at: 1 }],
  ['used', { used: 1 }],
];

describe('a password reset', () => {
  const reset = (of: EmbeddedAccounts, user: User, token: string, change: { email?: string; password?: string } = {}) =>
    of.accounts.lifecycle.passwordReset.resetPassword(
      { token, email: change.email ?? user.email },
      change.password ?? password,
      request(),
    );

  test('sets a proven password once, ends every session and mails about it', async () => {
    const user = await service.insertUser();
    const { token: session } = await service.logIn(user);
    const token = await service.linkFor(user, 'reset-password');
    const wake = vi.spyOn(service.accounts.mail.outbox, 'wake');
    const { deviceCookie, returnTo } = await reset(service, user, token);
    expect(wake).toHaveBeenCalledOnce();
    expect([returnTo, marksIn(deviceCookie), await service.isOpen(session)]).toEqual(['/there', 1, false]);
    const stored = await service.userOf(user.email);
    expect(stored).toMatchObject({ passwordProven: true, sessionEpoch: 1 });
    expect(stored?.passwordHash).toMatch(/^1:/);
    expect(await service.kindsOf(user.id)).toEqual(['logged-in', 'password-changed']);
    expect((await service.eventsOf(user.id)).at(-1)).toEqual({ kind: 'password-changed', by: 'reset' });
    expect(await service.mailKindsTo(user.email)).toContain('password-changed');
    await expect(reset(service, user, token)).rejects.toEqual(refused('INVALID_TOKEN'));
  });

  test('gives an unverified account to the owner of its inbox', async () => {
    const user = await service.insertUser(unverified);
    await service.linkFor(user, 'verify-email');
    await reset(service, user, await service.linkFor(user, 'reset-password'));
    expect(await service.userOf(user.email)).toMatchObject({
      emailVerified: true,
      passwordProven: true,
      name: user.email.split('@')[0],
    });
    expect(await service.kindsOf(user.id)).toEqual(['profile-changed', 'verified', 'password-changed']);
    const tokens = await service.rowsOf('one_time_tokens', user);
    expect(tokens).toMatchObject([{ purpose: 'reset-password' }]);
  });

  test('removes unproven methods, and keeps proven ones without a reported login', async () => {
    const user = await service.insertUser();
    await service.addIdentity(user, (identity) => identity.prove());
    await service.addIdentity(user);
    await reset(service, user, await service.linkFor(user, 'reset-password'));
    expect(await service.rowsOf('identities', user)).toHaveLength(1);
    expect(await service.eventsOf(user.id)).toContainEqual({ kind: 'login-methods-removed', methods: 'acme' });
  });

  test('removes proven methods that were added since a reported login', async () => {
    const user = await service.insertUser();
    await service.addIdentity(user, (identity) => {
      identity.createdAt = Date.now() - DAY_MS;
      identity.prove();
    });
    await service.logIn(user);
    await service.addIdentity(user, (identity) => {
      identity.createdAt = Date.now() + 1000;
      identity.prove();
    });
    await reset(service, user, await service.linkFor(user, 'reset-password'));
    expect(await service.rowsOf('identities', user)).toHaveLength(1);
    expect(await service.eventsOf(user.id)).toContainEqual({ kind: 'login-methods-removed', methods: 'acme' });
  });

  test('ends a requested change of address', async () => {
    const user = await service.insertUser();
    await service.database.change((tables) =>
      service.mail.emailChanges.ask(tables, user as never, { email: freshEmail(), browser: null }),
    );
    await reset(service, user, await service.linkFor(user, 'reset-password'));
    const changes = service.database.query((tables) =>
      tables.selectFrom('email_changes').select('id').where('user_id', '=', user.id).execute(),
    );
    expect(await changes).toEqual([]);
  });

  test('with a breached password is refused, and its link stays usable', async () => {
    const user = await service.insertUser();
    const token = await service.linkFor(user, 'reset-password');
    const breached = reset(service, user, token, { password: BREACHED });
    await expect(breached).rejects.toEqual(refusedField('password', 'breached'));
    await service.accounts.lifecycle.passwordReset.checkResetToken({ token, email: user.email }, '192.0.2.1');
    await reset(service, user, token);
  });

  test('of two concurrent ones with one link, one succeeds', async () => {
    const user = await service.insertUser();
    const token = await service.linkFor(user, 'reset-password');
    const results = await Promise.allSettled([reset(service, user, token), reset(service, user, token)]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect((await service.userOf(user.email))?.sessionEpoch).toBe(1);
  });

  test.each<[string, object]>([
    ['used', { used: 1 }],
    ['expired', { expires_at: 1 }],
  ])('whose link has been %s while its password was hashed is INVALID_TOKEN', async (_state, columns) => {
    const user = await service.insertUser();
    const token = await service.linkFor(user, 'reset-password');
    const { passwords } = service.accounts.credentials;
    const { hash } = passwords;
    vi.spyOn(passwords, 'hash').mockImplementationOnce(async (given) => {
      await service.database.write((tables) =>
        tables.updateTable('one_time_tokens').set(columns).where('user_id', '=', user.id).execute(),
      );
      return hash(given);
    });
    await expect(reset(service, user, token)).rejects.toEqual(refused('INVALID_TOKEN'));
    expect((await service.userOf(user.email))?.passwordHash).toBe('x');
  });

  test('that fails leaves its link usable', async () => {
    const user = await service.insertUser();
    const token = await service.linkFor(user, 'reset-password');
    vi.spyOn(service.accounts.credentials.passwords, 'hash').mockRejectedValueOnce(new Error('a full queue'));
    await expect(reset(service, user, token)).rejects.toThrow('a full queue');
    await reset(service, user, token);
  });

  test.each([...dead, ['of another purpose', undefined] as const])(
    'by a link that is %s is INVALID_TOKEN, and counts as a guess',
    async (_state, change) => {
      const user = await limited.insertUser();
      const token = await limited.linkFor(user, change ? 'reset-password' : 'verify-email', change);
      const { clientAddress } = request();
      const check = () =>
        limited.accounts.lifecycle.passwordReset.checkResetToken({ token, email: user.email }, clientAddress);
      await expect(check()).rejects.toEqual(refused('INVALID_TOKEN'));
      await expect(check()).rejects.toEqual(refused('RATE_LIMITED'));
      await expect(reset(limited, user, token)).rejects.toEqual(refused('INVALID_TOKEN'));
    },
  );

  test('needs the address of its link', async () => {
    const user = await service.insertUser();
    const token = await service.linkFor(user, 'reset-password');
    await expect(reset(service, user, token, { email: freshEmail() })).rejects.toEqual(refused('INVALID_TOKEN'));
  });

  test('is mailed on request, and silently not past the limit or without an address', async () => {
    const forgot = limited.accounts.lifecycle.passwordReset.forgotPassword;
    const [by, email, late] = [request(), freshEmail(), freshEmail()];
    await forgot(email, '/there', by);
    await forgot(late, '/there', by);
    await forgot(undefined, '/there', request());
    expect([await limited.mailKindsTo(email), await limited.mailKindsTo(late)]).toEqual([['reset-password'], []]);
  });
});
