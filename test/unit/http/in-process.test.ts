import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { User } from '../../../entities/index.ts';
import { inProcessCaller } from '../../../routers/in-process.ts';
import { createAccess } from '../../../server/access/index.ts';
import { createAccounts } from '../../../server/accounts/index.ts';
import { accountOf } from '../../../server/accounts/users/users.ts';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { createActivity } from '../../../server/activity/index.ts';
import { createApplications } from '../../../server/applications/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import { createEvents } from '../../../server/events/index.ts';
import { createLimits } from '../../../server/limits/index.ts';
import { createOAuth } from '../../../server/oauth/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { KeyValueStore } from '../../../server/parts/key-value/contract.ts';
import { openKeyValueStore } from '../../../server/parts/key-value/index.ts';
import { openMail } from '../../../server/parts/mail/index.ts';
import { openObjectStorage } from '../../../server/parts/object-storage/index.ts';
import { createWebhookSender } from '../../../server/parts/webhook-sender/index.ts';
import { createSecrets } from '../../../server/secrets.ts';
import { createLog } from '../../../server/telemetry/log.ts';
import { readTexts } from '../../../server/texts/index.ts';
import { createUploads } from '../../../server/uploads/index.ts';
import { createDeliveries, createLogoutAddresses, createWebhooks } from '../../../server/webhooks/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

const DAY = 24 * 60 * 60 * 1000;
const dataDir = temporaryDirectory('in-process');
const person = (name: string) => User.register({ email: `${name}@example.test`, name, passwordHash: 'x' });
const [ada, charles] = [person('ada'), person('charles')];
let database: Database;
let store: KeyValueStore;
let accounts: ReturnType<typeof createAccounts>;
let caller: ReturnType<typeof inProcessCaller>;

beforeAll(async () => {
  const config = parseConfig({ DATA_DIR: dataDir, LOG_LEVEL: 'silent' });
  const log = await createLog(config);
  const secrets = createSecrets(['x'.repeat(32)]);
  database = await openDatabase(config);
  await database.migrate();
  await database.transaction(async (em) => {
    await em.insertMany([ada, charles]);
  });
  store = await openKeyValueStore(config, log);
  const activity = createActivity(database, { keptDays: 1 });
  const objects = await openObjectStorage(config, secrets);
  const uploads = createUploads(config, { database, activity, objects, log });
  const { avatarChanged, removeAllOf: removeUploads } = uploads;
  const deliveries = createDeliveries(database);
  const events = createEvents(config, { database, log });
  const mail = await openMail(config);
  const limits = createLimits(store, config.rates);
  accounts = createAccounts(config, {
    database,
    activity,
    store,
    transport: mail,
    limits,
    avatarChanged,
    removeUploads,
    removeDeliveries: deliveries.removeAllOf,
    publicUrl: objects.publicUrl,
    identityProviders: new Map(),
    secrets,
    texts: readTexts(undefined),
    log,
  });
  const sender = createWebhookSender(config);
  const setLogoutAddress = createLogoutAddresses(database);
  const applications = createApplications(config, { database, activity, limits, sender, setLogoutAddress });
  const oauth = createOAuth(config, { database, store, activity, accounts, applications, limits, secrets, log });
  caller = inProcessCaller('worker', {
    accounts,
    access: createAccess({ database, users: accounts.users, ...accounts.mail }),
    applications,
    oauth,
    events,
    limits,
    uploads,
    webhooks: createWebhooks(config, {
      database,
      activity,
      accounts,
      events,
      limits,
      deliveries,
      logoutMessages: oauth.logoutMessages,
      sender,
      secrets,
      log,
    }),
    pingDatabase: () => database.ping(),
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});
afterAll(async () => {
  await Promise.all([database.close(), store.close()]);
});

/** A session in the current epoch: another test may have raised it. */
const open = async () =>
  accounts.sessions.openSession(
    (await accounts.users.find(ada.id)) ?? accountOf(ada),
    { method: 'password' },
    {
      ...backgroundJob,
      formerToken: undefined,
      deviceCookie: undefined,
    },
  );

test('a session is read without HTTP; in its second half it is renewed and fresh', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
  const { token, expiresAt } = await open();
  expect(await caller.service.session({ token })).toMatchObject({
    user: { id: ada.id },
    session: { expiresAt: Math.floor(expiresAt / 1000) },
    fresh: false,
  });
  vi.setSystemTime(Date.now() + 4 * DAY);
  const prolonged = Math.floor((Date.now() + 7 * DAY) / 1000);
  expect(await caller.service.session({ token })).toMatchObject({ session: { expiresAt: prolonged }, fresh: true });
  expect(await caller.service.session({ token })).toMatchObject({ session: { expiresAt: prolonged }, fresh: false });
});

test('any number of users takes one query; none takes no query', async () => {
  const query = vi.spyOn(database, 'query');
  const { users } = await caller.service.users({ ids: [charles.id, 'unknown', ada.id, charles.id] });
  expect(users.map(({ id }) => id)).toEqual([charles.id, ada.id]);
  expect(query).toHaveBeenCalledTimes(1);
  await caller.service.users({ ids: [] });
  expect(query).toHaveBeenCalledTimes(1);
});

test('sessions can be ended, with the usual refusals', async () => {
  const { token } = await open();
  await caller.service.endSessions({ userId: ada.id });
  expect(await caller.service.session({ token })).toBeNull();
  await expect(caller.service.endSessions({ userId: 'nobody' })).rejects.toMatchObject({
    cause: { code: 'NOT_FOUND', message: 'User not found' },
  });
  await expect(caller.profile.get()).rejects.toMatchObject({ cause: { code: 'UNAUTHENTICATED' } });
});
