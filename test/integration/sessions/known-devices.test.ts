import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { User } from '../../../entities/index.ts';
import { accountOf } from '../../../server/accounts/users/index.ts';
import { firstIdOf, type NewEvent } from '../../../server/activity/index.ts';
import type { LoginMethod } from '../../../server/shared/method-names.ts';
import type { Language } from '../../../server/shared/texts/languages.ts';
import { DAY_MS, type EmbeddedAccounts, marksIn, openAccounts, refused, request } from '../rig/accounts.ts';

/** Which logins are reported by mail, and which devices they make known. On embedded parts. */
let service: EmbeddedAccounts;
beforeAll(async () => {
  service = await openAccounts();
});
afterAll(() => service.close());

const HOUR_MS = 60 * 60_000;

interface LoginOf {
  method?: string;
  address?: string;
  device?: string;
  deviceCookie?: string | undefined;
  language?: Language;
}

/** Logs in, by default with the same method from the same address and device. */
const logIn = (user: User, login: LoginOf = {}) => {
  const { method = 'password', address = '192.0.2.1', device = 'curl', deviceCookie, language } = login;
  const from = { ...request({ clientAddress: address, deviceCookie }), userAgent: device, language: () => language };
  return service.accounts.sessions.openSession(accountOf(user), { method: method as LoginMethod }, from);
};
const reportsTo = async ({ email }: User) => (await service.mailsTo(email)).filter(({ kind }) => kind === 'new-device');
/** Lets the events of a user have happened this much earlier. */
const age = ({ id: userId }: User, ms: number) =>
  service.database.change(async (tables) => {
    const events = await tables
      .selectFrom('activity')
      .select(['id', 'created_at'])
      .where('user_id', '=', userId)
      .execute();
    for (const { id, created_at } of events) {
      const earlier = created_at - ms;
      const change = { id: firstIdOf(earlier).slice(0, 13) + id.slice(13), created_at: earlier };
      await tables.updateTable('activity').set(change).where('id', '=', id).execute();
    }
  });

describe('a login from an unknown device', () => {
  test('is mailed with its time, address and device, and makes the device known', async () => {
    const user = await service.insertUser();
    const { deviceCookie } = await logIn(user);
    const [mail] = await reportsTo(user);
    expect(mail).toMatchObject({ user_id: user.id });
    expect(JSON.parse(mail?.detail ?? '')).toEqual({ at: expect.any(Number), address: '192.0.2.1', device: 'curl' });
    expect(marksIn(deviceCookie)).toBe(1);
    await logIn(user, { deviceCookie, address: '192.0.2.2' });
    expect(await reportsTo(user)).toHaveLength(1);
    expect(await service.eventsOf(user.id)).toEqual([
      { kind: 'logged-in', method: 'password', device: 'new', session: expect.any(String) },
      { kind: 'logged-in', method: 'password', session: expect.any(String) },
    ]);
  });

  test.each<[string, LoginOf, number]>([
    ['alike', {}, 1],
    ['by another method', { method: 'acme' }, 2],
    ['from another address', { address: '192.0.2.2' }, 2],
    ['from another device', { device: 'wget' }, 2],
  ])('after one that was reported, another %s: %j is reported if it is not alike', async (_what, other, reports) => {
    const user = await service.insertUser();
    await logIn(user);
    const { deviceCookie } = await logIn(user, other);
    expect(await reportsTo(user)).toHaveLength(reports);
    // Only a reported login makes its device known.
    expect(marksIn(deviceCookie)).toBe(reports - 1);
  });

  test('is reported again a day later', async () => {
    const user = await service.insertUser();
    await logIn(user);
    await age(user, DAY_MS - HOUR_MS);
    await logIn(user);
    expect(await reportsTo(user)).toHaveLength(1);
    await age(user, 2 * HOUR_MS);
    await logIn(user);
    expect(await reportsTo(user)).toHaveLength(2);
  });

  test.each([
    'not-me',
    'password-changed',
    'totp-enabled',
    'sessions-ended',
    'blocked',
    'role-changed',
    'email-change-undone',
    'login-methods-removed',
    'deletion-requested',
  ])('is reported again after %s', async (kind) => {
    const user = await service.insertUser();
    await logIn(user);
    await service.database.write((tables) => service.activity.record(tables, user.id, { kind } as NewEvent, request()));
    await logIn(user);
    expect(await reportsTo(user)).toHaveLength(2);
  });

  test('is reported at most ten times an hour for a method, and fifty for all', async () => {
    const user = await service.insertUser();
    let address = 0;
    const attempt = (method: string) => logIn(user, { method, address: `192.0.2.${++address}` });
    for (let i = 0; i < 10; i++) await attempt('password');
    const { deviceCookie } = await attempt('password');
    expect([marksIn(deviceCookie), (await reportsTo(user)).length]).toEqual([0, 10]);
    for (const method of ['a', 'b', 'c', 'd', 'e']) for (let i = 0; i < 9; i++) await attempt(method);
    expect(await reportsTo(user)).toHaveLength(50);
    await attempt('f');
    expect(await reportsTo(user)).toHaveLength(50);
  });

  test('is reported again an hour after ten', async () => {
    const user = await service.insertUser();
    for (let i = 0; i < 10; i++) await logIn(user, { address: `192.0.2.${i}` });
    await age(user, HOUR_MS + 60_000);
    await logIn(user, { address: '192.0.2.10' });
    expect(await reportsTo(user)).toHaveLength(11);
  });

  test('is mailed in the language of former logins, else of this one', async () => {
    const [first, former] = [
      await service.insertUser(),
      await service.insertUser((user) => {
        user.browserLanguage = 'fr';
      }),
    ];
    await logIn(first, { language: 'de' });
    await logIn(former, { language: 'de' });
    expect((await reportsTo(first))[0]?.language).toBe('de');
    expect((await reportsTo(former))[0]?.language).toBe('fr');
    expect((await service.userOf(former.email))?.browserLanguage).toBe('de');
    await logIn(first);
    expect((await service.userOf(first.email))?.browserLanguage).toBe('de');
  });
});

test.each<[string, object, string]>([
  ['deleted', { deleted_at: 1 }, 'INVALID_CREDENTIALS'],
  ['blocked', { blocked_at: 1 }, 'ACCOUNT_BLOCKED'],
])('a user %s since the credential was checked opens no session', async (_state, columns, code) => {
  const user = await service.insertUser();
  await service.change(user, columns);
  await expect(logIn(user)).rejects.toEqual(refused(code));
  expect(await service.eventsOf(user.id)).toEqual([]);
});

test('a login whose sessions have ended since is not recorded, and changes no language', async () => {
  const user = await service.insertUser();
  await service.change(user, { session_epoch: 1 });
  const { deviceCookie } = await logIn(user, { language: 'de' });
  expect([marksIn(deviceCookie), await service.eventsOf(user.id)]).toEqual([0, []]);
  expect((await service.userOf(user.email))?.browserLanguage).toBeNull();
});

describe('the device cookie', () => {
  const knownBy = async (user: User, deviceCookie: string | undefined) =>
    service.accounts.sessions.devices.knownBy(await service.accounts.users.findCredential(user.email), {
      deviceCookie,
    });

  test('has a mark for each of the ten latest users', async () => {
    const users = await Promise.all(Array.from({ length: 11 }, () => service.insertUser()));
    let deviceCookie: string | undefined;
    for (const user of users) ({ deviceCookie } = await logIn(user, { deviceCookie }));
    expect(marksIn(deviceCookie)).toBe(10);
    const [device] = deviceCookie?.split('.') ?? [];
    const known = await Promise.all(users.map((user) => knownBy(user, deviceCookie)));
    expect(known).toEqual([undefined, ...Array(10).fill(device)]);
  });

  test('is of no use to others, without a cookie, or for an unknown account', async () => {
    const [user, other] = [await service.insertUser(), await service.insertUser()];
    const { deviceCookie } = await logIn(user);
    const { devices } = service.accounts.sessions;
    expect(await knownBy(user, deviceCookie)).toBe(deviceCookie.split('.')[0]);
    expect(await knownBy(other, deviceCookie)).toBeUndefined();
    expect(await knownBy(user, undefined)).toBeUndefined();
    expect(devices.knownBy(undefined, { deviceCookie })).toBeUndefined();
  });

  test('does not matter in a session, which is known to its own user', async () => {
    const [{ user, session, deviceCookie }, other] = [await service.loggedIn(), await service.insertUser()];
    const { devices } = service.accounts.sessions;
    const of = async ({ email }: User) => service.accounts.users.findCredential(email);
    expect(devices.knownBy(await of(user), { session, deviceCookie })).toBe(session.id);
    expect(devices.knownBy(await of(other), { session, deviceCookie })).toBeUndefined();
  });

  test('of the device that ends all sessions stays known, and no other', async () => {
    const user = await service.insertUser();
    const { deviceCookie } = await logIn(user);
    const elsewhere = await logIn(user, { address: '192.0.2.2' });
    const { sessions } = service.accounts;
    const ended = await sessions.endAll(user.id, request({ deviceCookie }));
    expect(await knownBy(user, ended?.deviceCookie)).toBe(deviceCookie.split('.')[0]);
    expect(await knownBy(user, deviceCookie)).toBeUndefined();
    expect(await knownBy(user, elsewhere.deviceCookie)).toBeUndefined();
    expect(await sessions.endAll(user.id, request({ deviceCookie }))).toEqual({ deviceCookie: undefined });
    expect(await sessions.endAll('user_none', request())).toBeUndefined();
  });

  test('of a device that becomes known without a login has one mark', async () => {
    const user = await service.insertUser();
    const cookie = service.accounts.sessions.devices.mark(undefined, user);
    expect([marksIn(cookie), await knownBy(user, cookie)]).toEqual([1, cookie.split('.')[0]]);
    expect(service.accounts.sessions.devices.mark(cookie, user)).toBe(cookie);
  });
});

test('reported logins are listed from a time on, latest first, until one is disowned', async () => {
  const user = await service.insertUser();
  for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) await logIn(user, { address });
  const list = (from: number, part: object = {}) =>
    service.database.change((tables) => service.accounts.sessions.devices.reportedLogins(tables, user.id, from, part));
  const addresses = (logins: Awaited<ReturnType<typeof list>>) => logins.map(({ address }) => address);
  expect(await list(0)).toMatchObject(
    ['192.0.2.3', '192.0.2.2', '192.0.2.1'].map((address) => ({ address, method: 'password', device: 'curl' })),
  );
  expect(addresses(await list(0, { most: 1, order: 'asc' }))).toEqual(['192.0.2.1']);
  await age(user, DAY_MS);
  expect(await list(Date.now() - HOUR_MS)).toEqual([]);
  expect(await list(Date.now() - DAY_MS - HOUR_MS)).toHaveLength(3);
  await service.accounts.lifecycle.notMe.disown(await service.linkFor(user, 'new-device'), request());
  expect(await list(0)).toEqual([]);
});
