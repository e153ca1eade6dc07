import { afterAll, beforeAll, expect, test } from 'vitest';
import { User } from '../../entities/index.ts';
import { createKnownDevices, isDeviceCookie } from '../../server/accounts/known-devices.ts';
import { accountOf } from '../../server/accounts/users.ts';
import { backgroundJob } from '../../server/activity/caller.ts';
import { createActivity } from '../../server/activity/index.ts';
import type { Database } from '../../server/parts/database/contract.ts';
import { openDatabase } from '../../server/parts/database/index.ts';
import { createSecrets, type SecretParts } from '../../server/secrets.ts';
import { temporaryDirectory } from '../rig/custodian.ts';

const dataDir = temporaryDirectory('devices');
const user = User.register({ email: 'ada@example.test', name: 'Ada', passwordHash: 'x' });
let database: Database;

beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir });
  await database.migrate();
  await database.transaction(async (em) => {
    await em.insert(user);
  });
});
afterAll(async () => {
  await database.close();
});

let logins = 0;
/** A login under these secrets, each from an address of its own. */
const logIn = (secrets: SecretParts, deviceCookie?: string) => {
  const devices = createKnownDevices({
    database,
    activity: createActivity(database, { keptDays: 1 }),
    secrets: createSecrets(secrets),
    outbox: { enqueue: async () => undefined },
  });
  const clientAddress = `192.0.2.${++logins}`;
  const login = { method: 'password', address: clientAddress, device: 'curl' };
  return database.change((tables) =>
    devices.recordLogin(tables, accountOf(user), login, { ...backgroundJob, clientAddress, deviceCookie }),
  );
};

test('a mark is good under a former secret, and made again under the current one', async () => {
  const { deviceCookie: before } = await logIn(['old']);
  const { deviceCookie: after, isNews } = await logIn(['new', 'old'], before);
  expect(isNews).toBe(false);
  expect([before, after].map((cookie) => cookie.split('.').length)).toEqual([2, 2]);
  expect(after).not.toBe(before);
  expect(after.split('.')[0]).toBe(before.split('.')[0]);
  expect(await logIn(['new'], after)).toEqual({ deviceCookie: after, isNews: false });
  expect((await logIn(['new'], before)).isNews).toBe(true);
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
])('%.20s… has the shape of the cookie: %s', (text, is) => {
  expect(isDeviceCookie(text)).toBe(is);
});
