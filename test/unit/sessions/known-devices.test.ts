import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { User } from '../../../entities/index.ts';
import { createKnownDevices, isDeviceCookie } from '../../../server/accounts/sessions/known-devices.ts';
import { accountOf } from '../../../server/accounts/users/users.ts';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { createActivity } from '../../../server/activity/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createSecrets, type SecretParts } from '../../../server/secrets.ts';
import type { ProviderName } from '../../../server/shared/method-names.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

const dataDir = temporaryDirectory('devices');
let database: Database;
let user: User;

beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir });
  await database.migrate();
});
beforeEach(async () => {
  user = User.register({ email: freshEmail(), name: 'Ada', passwordHash: 'x' });
  await database.transaction(async (em) => {
    await em.insert(user);
  });
});
afterAll(async () => {
  await database.close();
});

let logins = 0;
/** A login under these secrets, each by its own method and address and without one in the hour before: each is reported. */
const logIn = (secrets: SecretParts, deviceCookie?: string, account = accountOf(user)) => {
  const devices = createKnownDevices({
    database,
    activity: createActivity(database, { keptDays: 1 }),
    secrets: createSecrets(secrets),
    outbox: { enqueue: async () => undefined },
  });
  const clientAddress = `192.0.2.${++logins}`;
  const login = {
    method: `method-${logins}` as ProviderName,
    address: clientAddress,
    device: 'curl',
    session: 'session_a',
  };
  return database.change(async (tables) => {
    await tables.deleteFrom('activity').where('user_id', '=', account.id).execute();
    return devices.recordLogin(tables, account, login, { ...backgroundJob, clientAddress, deviceCookie });
  });
};

test('a mark of the first generation equals that of the previous release', async () => {
  const { deviceCookie } = await logIn(['key']);
  const [deviceId = ''] = deviceCookie.split('.');
  const label = `known-device:${deviceId}:${user.id}:0` as const;
  expect(deviceCookie).toBe(`${deviceId}.${createSecrets(['key']).derive(label)[0]}`);
});

test('a mark is valid under a former secret, and renewed under the current one', async () => {
  const { deviceCookie: before } = await logIn(['old']);
  const { deviceCookie: after, isNews } = await logIn(['new', 'old'], before);
  expect(isNews).toBe(false);
  expect([before, after].map((cookie) => cookie.split('.').length)).toEqual([2, 2]);
  expect(after).not.toBe(before);
  expect(after.split('.')[0]).toBe(before.split('.')[0]);
  expect(await logIn(['new'], after)).toEqual({ deviceCookie: after, isNews: false });
  expect((await logIn(['new'], before)).isNews).toBe(true);
});

// checks: 71
test('of many devices the most recent fifty to a hundred are known', async () => {
  const isNews = async (cookie: string | undefined) => (await logIn(['key'], cookie)).isNews;
  const { deviceCookie: unused } = await logIn(['key']);
  let { deviceCookie: inUse } = await logIn(['key']);
  const others: string[] = [];
  for (let i = 0; i < 110; i++) {
    others.push((await logIn(['key'])).deviceCookie);
    if (i % 20 === 0) {
      const again = await logIn(['key'], inUse);
      expect(again.isNews).toBe(false);
      inUse = again.deviceCookie;
    }
  }
  expect(await isNews(inUse)).toBe(false);
  expect(await Promise.all(others.slice(-45).map(isNews))).toEqual(Array(45).fill(false));
  expect(await isNews(unused)).toBe(true);
  expect(await isNews(others[0])).toBe(true);
});

test('marks created concurrently are counted one by one', async () => {
  const { deviceCookie: first } = await logIn(['key']);
  await Promise.all(Array.from({ length: 120 }, () => logIn(['key'])));
  expect((await logIn(['key'], first)).isNews).toBe(true);
});

test('a login that races with the end of all sessions makes no device known', async () => {
  const read = accountOf(user);
  await database.transaction(async (em) => {
    const stored = await em.findOneOrFail(User, { id: user.id });
    stored.endSessions();
  });
  const late = await logIn(['key'], undefined, read);
  expect(late.deviceCookie).toMatch(/^[^.]{43}$/);
  const { sessionEpoch } = read;
  const now = await logIn(['key'], undefined, { ...read, sessionEpoch: sessionEpoch + 1 });
  expect(now.deviceCookie.split('.')).toHaveLength(2);
});

test('a leaked part of APP_SECRET can mark devices while it is listed, and not once it is removed', async () => {
  const { deviceCookie: forged } = await logIn(['leaked']);
  expect((await logIn(['new', 'leaked'], forged)).isNews).toBe(false);
  expect((await logIn(['new'], forged)).isNews).toBe(true);
});

test.each([
  ['', false],
  ['x', false],
  ['x'.repeat(43), true],
  ['x'.repeat(44), false],
  [Array(11).fill('x'.repeat(43)).join('.'), true],
  [Array(12).fill('x'.repeat(43)).join('.'), false],
  [`${'x'.repeat(43)}.`, false],
  [`${'x'.repeat(42)}é`, false],
  ['x.'.repeat(50_000), false],
])('%.20s… has the format of the cookie: %s', (text, is) => {
  expect(isDeviceCookie(text)).toBe(is);
});
