import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { freshEmail } from '../../rig/servers/address.ts';
import {
  BREACHED,
  type EmbeddedAccounts,
  type LoggedIn,
  openAccounts,
  refused,
  refusedField,
  request,
} from '../rig/accounts.ts';
import { askFor } from '../rig/email-changes.ts';

/** Changes of the password in a session, on embedded parts. */
let service: EmbeddedAccounts;
let limited: EmbeddedAccounts;
beforeAll(async () => {
  service = await openAccounts({}, { hasBreached: true });
  limited = await openAccounts({ LIMIT_LOGIN: '1/900' });
});
afterAll(() => Promise.all([service.close(), limited.close()]));
afterEach(() => {
  vi.restoreAllMocks();
});

describe('a change of the password', () => {
  const [current, next] = ['Difference-Engine-1822', 'Analytical-Engine-1843'];
  const withPassword = async (of = service) => {
    const hash = await of.accounts.credentials.passwords.hash(current);
    return of.loggedIn((user) => {
      user.passwordHash = hash;
    });
  };
  const changeTo = (
    of: EmbeddedAccounts,
    { session, token, deviceCookie }: LoggedIn,
    { currentPassword = current as string | undefined, newPassword = next } = {},
    by = request({ deviceCookie }),
  ) => of.accounts.lifecycle.passwordChange.changePassword({ session, token }, { currentPassword, newPassword }, by);
  /** Lets the last credential of a session be given too long ago. */
  const aged = ({ session }: LoggedIn) =>
    service.database.write((tables) =>
      tables
        .updateTable('sessions')
        .set({ authenticated_at: 1 })
        .where('id', '=', session.id ?? '')
        .execute(),
    );

  test('rotates this session, ends the others, and forgets other devices', async () => {
    const who = await withPassword();
    const other = await service.logIn(who.user);
    await service.database.change((tables) => service.mail.tokens.issue(tables, who.user as never, 'reset-password'));
    await askFor(service, who, freshEmail());
    const wake = vi.spyOn(service.accounts.mail.outbox, 'wake');
    const rotated = await changeTo(service, who);
    expect(wake).toHaveBeenCalledOnce();
    expect(await Promise.all([who.token, other.token, rotated.token].map((token) => service.isOpen(token)))).toEqual([
      false,
      false,
      true,
    ]);
    const stored = await service.accounts.users.findCredential(who.user.email);
    const knows = (deviceCookie: string | undefined) =>
      service.accounts.sessions.devices.knownBy(stored, { deviceCookie }) !== undefined;
    expect([rotated.deviceCookie, other.deviceCookie].map(knows)).toEqual([true, false]);
    expect(await service.accounts.credentials.passwords.verify(next, stored?.passwordHash ?? null)).toBe(true);
    expect((await service.eventsOf(who.user.id)).at(-1)).toEqual({ kind: 'password-changed', by: 'user' });
    expect(await service.mailKindsTo(who.user.email)).toContain('password-changed');
    expect(await service.rowsOf('one_time_tokens', who.user)).toEqual([]);
    expect(await service.rowsOf('email_changes', who.user)).toEqual([]);
  });

  test('ends the warning that the password is breached', async () => {
    const who = await withPassword();
    const { token } = await changeTo(service, { ...who, session: { ...who.session, hasBreachedPassword: true } });
    expect(await service.accounts.sessions.validate(token)).not.toHaveProperty('hasBreachedPassword');
  });

  test('needs the current password, if there is one', async () => {
    const who = await withPassword();
    const without = service.accounts.lifecycle.passwordChange.changePassword(
      { session: who.session, token: who.token },
      { currentPassword: undefined, newPassword: next },
      request(),
    );
    await expect(without).rejects.toEqual(refusedField('currentPassword', 'required'));
    await expect(changeTo(service, who, { currentPassword: 'Wrong-1822' })).rejects.toEqual(
      refused('INVALID_CREDENTIALS'),
    );
    await expect(changeTo(service, who, { newPassword: current })).rejects.toEqual(
      refusedField('newPassword', 'same_as_current'),
    );
    await expect(changeTo(service, who, { newPassword: BREACHED })).rejects.toEqual(
      refusedField('newPassword', 'breached'),
    );
    // With an old session too: the password is a credential.
    await aged(who);
    await changeTo(service, who);
  });

  const first = (of: EmbeddedAccounts, { session, token }: LoggedIn, by = request()) =>
    of.accounts.lifecycle.passwordChange.changePassword(
      { session, token },
      { currentPassword: undefined, newPassword: next },
      by,
    );
  const linked = async (proven: boolean) => {
    const who = await service.loggedIn((user) => user.removePassword());
    await service.addIdentity(who.user, (identity) => {
      if (proven) identity.prove();
    });
    return who;
  };

  test.each([true, false])('a first password is proven if the other methods are: %s', async (proven) => {
    const who = await linked(proven);
    await first(service, who);
    expect(await service.userOf(who.user.email)).toMatchObject({ hasPassword: true, passwordProven: proven });
  });

  test('a first password needs a recent credential in the session', async () => {
    const who = await linked(true);
    await aged(who);
    await expect(first(service, who)).rejects.toEqual(refused('REAUTHENTICATION_REQUIRED'));
    const without = { ...who, session: { ...who.session, id: undefined } };
    await expect(first(service, without)).rejects.toEqual(refused('REAUTHENTICATION_REQUIRED'));
  });

  test('with an authenticator app it needs a recent credential in the session too', async () => {
    const who = await withPassword();
    await service.database.write((tables) =>
      tables.insertInto('totps').values({ user_id: who.user.id, secret: '', last_step: 0, created_at: 1 }).execute(),
    );
    await aged(who);
    await expect(changeTo(service, who)).rejects.toEqual(refused('REAUTHENTICATION_REQUIRED'));
  });

  test('a first password counts as a login of the client', async () => {
    const by = request();
    const [one, other] = await Promise.all([1, 2].map(() => limited.loggedIn((user) => user.removePassword())));
    if (one && other) {
      await first(limited, one, by);
      await expect(first(limited, other, by)).rejects.toEqual(refused('RATE_LIMITED'));
    }
    expect.assertions(1);
  });

  test('in a session that has ended since is UNAUTHENTICATED', async () => {
    const who = await withPassword();
    await service.accounts.sessions.endAll(who.user.id, request());
    await expect(changeTo(service, who)).rejects.toEqual(refused('UNAUTHENTICATED'));
    const other = await withPassword();
    await service.accounts.sessions.end(other.token, request());
    await expect(changeTo(service, other)).rejects.toEqual(refused('UNAUTHENTICATED'));
    expect((await service.userOf(other.user.email))?.sessionEpoch).toBe(0);
  });

  test('in a session whose address is another user’s now is UNAUTHENTICATED', async () => {
    const [who, other] = [await withPassword(), await withPassword()];
    await service.change(who.user, { email: freshEmail() });
    await service.change(other.user, { email: who.user.email });
    await expect(changeTo(service, who)).rejects.toEqual(refused('UNAUTHENTICATED'));
  });
});
