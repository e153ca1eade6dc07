import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { User } from '../../../entities/index.ts';
import { deleteSessionsThrough, isSessionOpen, lockOwner } from '../../../server/accounts/sessions/index.ts';
import { accountOf, lockUser } from '../../../server/accounts/users/index.ts';
import type { LoginMethod, ProviderName } from '../../../server/shared/method-names.ts';
import { type EmbeddedAccounts, type LoggedIn, openAccounts, refused, request } from '../rig/accounts.ts';

/** What sessions tell and how they end, on embedded parts. */
let service: EmbeddedAccounts;
let without: EmbeddedAccounts;
beforeAll(async () => {
  service = await openAccounts({ IMPERSONATION: 'on' });
  without = await openAccounts({ IMPERSONATION: 'off' });
});
afterAll(() => Promise.all([service.close(), without.close()]));

const MINUTE_MS = 60_000;
const sessions = () => service.accounts.sessions;
const open = (user: User, change: object = {}, by = request()) =>
  sessions().openSession(accountOf(user), { method: 'password', ...change }, by);
const validated = async (token: string) => {
  const session = await sessions().validate(token);
  if (!session?.id) throw new Error('the session is not open');
  return { ...session, id: session.id };
};
const changeRow = ({ session }: Pick<LoggedIn, 'session'>, columns: object) =>
  service.database.write((tables) =>
    tables
      .updateTable('sessions')
      .set(columns)
      .where('id', '=', session.id ?? '')
      .execute(),
  );
const idsOf = async ({ id }: User) => {
  const rows = await service.database.query((tables) =>
    tables.selectFrom('sessions').select('id').where('user_id', '=', id).orderBy('id').execute(),
  );
  return rows.map((row) => row.id);
};

describe('a session', () => {
  test('is listed with address, device and method, newest first, until it expires', async () => {
    const user = await service.insertUser();
    const first = await validated((await open(user, {}, request({ clientAddress: 'a'.repeat(65) }))).token);
    const second = await validated((await open(user, { method: 'acme' as ProviderName })).token);
    const account = accountOf(user);
    const times = { createdAt: expect.any(Number), lastUsedAt: expect.any(Number) };
    expect(await sessions().list(account)).toEqual([
      { id: second.id, ...times, address: expect.any(String), device: 'curl', method: 'acme' },
      { id: first.id, ...times, address: 'a'.repeat(64), device: 'curl', method: 'password' },
    ]);
    await changeRow({ session: first }, { expires_at: Date.now() - 1000 });
    expect((await sessions().list(account)).map(({ id }) => id)).toEqual([second.id]);
    expect(await sessions().list({ ...account, sessionEpoch: 1 })).toEqual([]);
  });

  test('ends that of its request, and the logout names it', async () => {
    const user = await service.insertUser();
    const { token } = await open(user);
    const { id } = await validated(token);
    const { token: next } = await open(user, {}, { ...request(), formerToken: token } as never);
    expect([await service.isOpen(token), await service.isOpen(next)]).toEqual([false, true]);
    expect(await service.eventsOf(user.id)).toContainEqual({ kind: 'logged-out', session: id });
    await sessions().end(token, request());
    expect((await service.kindsOf(user.id)).filter((kind) => kind === 'logged-out')).toHaveLength(1);
  });

  test('is ended from another one of its user only', async () => {
    const [who, other] = [await service.loggedIn(), await service.loggedIn()];
    const id = who.session.id ?? '';
    expect(await sessions().endOf(accountOf(other.user), id, request())).toBe(false);
    expect(await service.isOpen(who.token)).toBe(true);
    expect(await sessions().endOf(accountOf(who.user), id, request())).toBe(true);
    expect(await service.isOpen(who.token)).toBe(false);
    expect(await sessions().endOf(accountOf(who.user), id, request())).toBe(false);
    expect((await service.eventsOf(who.user.id)).at(-1)).toEqual({
      kind: 'session-ended',
      device: 'curl',
      session: id,
    });
  });

  test('by an identity needs that identity', async () => {
    const user = await service.insertUser();
    const { id } = await service.addIdentity(user);
    const acme = { method: 'acme' as ProviderName };
    await open(user, { ...acme, identityId: id });
    await expect(open(user, { ...acme, identityId: crypto.randomUUID() })).rejects.toEqual(refused('UNAUTHENTICATED'));
    await expect(open(user, { method: 'passkey', passkeyId: id })).rejects.toEqual(refused('UNAUTHENTICATED'));
    const other = await service.insertUser();
    await expect(open(other, { ...acme, identityId: id })).rejects.toEqual(refused('UNAUTHENTICATED'));
  });

  test('remembers that its password is breached', async () => {
    const user = await service.insertUser();
    const { token } = await open(user, { isBreached: true });
    expect(await sessions().validate(token)).toMatchObject({ hasBreachedPassword: true });
    expect(await validated((await open(user)).token)).not.toHaveProperty('hasBreachedPassword');
  });

  test('of another token or an unknown one is none', async () => {
    expect(await sessions().validate('x'.repeat(43))).toBeNull();
  });
});

describe('a credential given in a session', () => {
  test.each([
    ['at its login', 0, true],
    ['nine minutes ago', 9 * MINUTE_MS, true],
    ['ten minutes ago', 10 * MINUTE_MS + 1000, false],
  ])('%s (%i ms) is recent: %s', async (_when, ageMs, isRecent) => {
    const user = await service.insertUser();
    const { id } = await validated((await open(user, { ageMs })).token);
    expect(await sessions().isRecent(id)).toBe(isRecent);
    expect((await sessions().authentication(id))?.at).toBeLessThanOrEqual(Date.now() - ageMs);
  });

  test('again is recorded, in an open session of this epoch', async () => {
    const who = await service.loggedIn();
    const id = who.session.id ?? '';
    await changeRow(who, { authenticated_at: 1 });
    expect(await sessions().isRecent(id)).toBe(false);
    const { user } = who.session;
    expect(await sessions().reauthenticate(id, { ...user, sessionEpoch: 1 }, 'totp', request())).toBe(false);
    expect(await sessions().reauthenticate(id, { ...user, id: 'user_other' }, 'totp', request())).toBe(false);
    expect(await sessions().isRecent(id)).toBe(false);
    expect(await sessions().reauthenticate(id, user, 'totp', request())).toBe(true);
    expect(await sessions().isRecent(id)).toBe(true);
    expect((await service.eventsOf(user.id)).at(-1)).toEqual({ kind: 'reauthenticated', method: 'totp' });
  });

  test.each<[LoginMethod, number, boolean]>([
    ['password', 0, true],
    ['password', 4 * MINUTE_MS, true],
    ['password', 5 * MINUTE_MS + 1000, false],
    ['passkey', 0, false],
  ])('by %s %i ms ago is a fresh login by password: %s', async (method, ageMs, isFresh) => {
    const user = await service.insertUser();
    const session = await validated((await open(user, { method })).token);
    await changeRow({ session }, { created_at: Date.now() - ageMs });
    expect(await sessions().isFreshPasswordLogin(session.id)).toBe(isFresh);
  });

  test.each<[LoginMethod, boolean, boolean]>([
    ['password', false, false],
    ['password', true, true],
    ['passkey', false, true],
  ])('by %s (with an app: %s) is multi-factor: %s', async (method, hasApp, isMultiFactor) => {
    const user = await service.insertUser();
    const { id } = await validated((await open(user, { method })).token);
    if (hasApp)
      await service.database.write((tables) =>
        tables.insertInto('totps').values({ user_id: user.id, secret: '', last_step: 0, created_at: 1 }).execute(),
      );
    expect(await sessions().authentication(id)).toEqual({ at: expect.any(Number), isMultiFactor });
    await sessions().endOf(accountOf(user), id, request());
    expect(await sessions().authentication(id)).toBeUndefined();
    expect(await sessions().isRecent(id)).toBe(false);
  });
});

describe('the sessions of a user', () => {
  test('all end at once, and none of another user', async () => {
    const [who, other] = [await service.loggedIn(), await service.loggedIn()];
    await sessions().endAll(who.user.id, request());
    expect([await service.isOpen(who.token), await service.isOpen(other.token)]).toEqual([false, true]);
    expect(await idsOf(who.user)).toEqual([]);
    expect((await service.kindsOf(who.user.id)).at(-1)).toBe('sessions-ended');
    const deleted = await service.insertUser((user) => user.delete(1));
    expect(await sessions().endAll(deleted.id, request())).toBeUndefined();
  });

  test('are forgotten with their keys when the user is removed', async () => {
    const who = await service.loggedIn();
    await service.logIn(who.user);
    await sessions().forgetAll(who.user.id);
    expect([await idsOf(who.user), await service.isOpen(who.token)]).toEqual([[], false]);
  });

  test('opened by one method end, except the given one', async () => {
    const user = await service.insertUser();
    const acme = { method: 'acme' as ProviderName };
    const tokens = [await open(user, acme), await open(user, acme), await open(user)].map(({ token }) => token);
    const { id: but } = await validated(tokens[1] ?? '');
    const through = (kept: string | undefined) =>
      service.database.transaction(async (em, tables) => {
        const locked = await lockUser(em, { id: user.id });
        if (locked) await deleteSessionsThrough(tables, locked, { ...acme, but: kept });
      });
    const areOpen = () => Promise.all(tokens.map(service.isOpen));
    await through(but);
    expect(await areOpen()).toEqual([false, true, true]);
    await through(undefined);
    expect(await areOpen()).toEqual([false, false, true]);
  });

  test('are swept once they have expired', async () => {
    const [who, other] = [await service.loggedIn(), await service.loggedIn()];
    await changeRow(who, { expires_at: Date.now() - 1000 });
    await sessions().sweep();
    expect([await idsOf(who.user), await idsOf(other.user)]).toEqual([[], [other.session.id]]);
  });
});

test('a change in a session locks its user, while the session is open', async () => {
  const who = await service.loggedIn();
  const lock = (session = who.session) =>
    service.database.transaction(async (em, tables) => (await lockOwner(em, tables, session)).id);
  const isOpen = (sessionId: string | undefined, userId = who.user.id) =>
    service.database.query((tables) => isSessionOpen(tables, { userId, sessionId }));
  expect(await lock()).toBe(who.user.id);
  expect(await Promise.all([isOpen(who.session.id), isOpen(undefined), isOpen(who.session.id, 'user_other')])).toEqual([
    true,
    false,
    false,
  ]);
  await expect(lock({ ...who.session, id: undefined })).rejects.toEqual(refused('UNAUTHENTICATED'));
  await service.change(who.user, { session_epoch: 1 });
  await expect(lock()).rejects.toEqual(refused('UNAUTHENTICATED'));
  await service.change(who.user, { session_epoch: 0 });
  await sessions().end(who.token, request());
  await expect(lock()).rejects.toEqual(refused('UNAUTHENTICATED'));
});

describe('a session in which an administrator acts', () => {
  const impersonated = async (of = service) => {
    const admin = await of.loggedIn((user) => {
      user.role = 'admin';
    });
    const user = await of.insertUser();
    const own = { id: admin.session.id ?? '', user: admin.session.user, token: admin.token };
    const acting = await of.database.transaction(async (em, tables) => {
      const locked = await lockUser(em, { id: user.id });
      if (!locked) throw new Error('the user is missing');
      return of.accounts.sessions.impersonate(tables, locked, own);
    });
    await of.accounts.sessions.retire(admin.token);
    return { admin, user, acting };
  };

  test('is the user’s for half an hour, and makes no credential recent', async () => {
    const { admin, user, acting } = await impersonated();
    expect(acting.expiresAt - Date.now()).toBeGreaterThan(29 * MINUTE_MS);
    expect(acting.expiresAt - Date.now()).toBeLessThanOrEqual(30 * MINUTE_MS);
    expect(await sessions().validate(acting.token)).toMatchObject({
      id: acting.id,
      user: { id: user.id },
      actor: { id: admin.user.id },
      fresh: false,
    });
    expect(await sessions().isRecent(acting.id)).toBe(false);
    expect(await service.isOpen(admin.token)).toBe(false);
    const [listed] = await sessions().list(accountOf(user));
    expect(listed).toMatchObject({ address: '', device: '' });
  });

  test.each<[string, object]>([
    ['demoted', { role: 'user' }],
    ['unverified', { email_verified: 0 }],
    ['logged out everywhere', { session_epoch: 1 }],
    ['blocked', { blocked_at: 1 }],
  ])('ends with an administrator who is %s', async (_state, columns) => {
    const { admin, acting } = await impersonated();
    expect(await service.isOpen(acting.token)).toBe(true);
    await service.change(admin.user, columns);
    expect(await service.isOpen(acting.token)).toBe(false);
  });

  test('ends the administrator’s session with its own, and names who acted', async () => {
    const { admin, user, acting } = await impersonated();
    await sessions().end(acting.token, request());
    expect([await idsOf(user), await idsOf(admin.user)]).toEqual([[], []]);
    const rows = await service.database.query((tables) =>
      tables.selectFrom('activity').select(['actor', 'actor_id']).where('user_id', '=', user.id).execute(),
    );
    expect(rows).toEqual([{ actor: 'administrator', actor_id: admin.user.id }]);
  });

  test('is none while the service allows none', async () => {
    expect(await without.isOpen((await impersonated(without)).acting.token)).toBe(false);
  });
});
