import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { User } from '../../entities/index.ts';
import { createSessions, isSessionToken, type Sessions } from '../../server/accounts/sessions.ts';
import { accountOf, createUsers, type Users } from '../../server/accounts/users.ts';
import { parseConfig } from '../../server/config/index.ts';
import { createLog } from '../../server/log.ts';
import type { Database } from '../../server/parts/database/contract.ts';
import { openDatabase } from '../../server/parts/database/index.ts';
import type { KeyValueStore } from '../../server/parts/key-value/contract.ts';
import { openKeyValueStore } from '../../server/parts/key-value/index.ts';
import { isMutationRun } from '../rig/mutation-run.ts';
import { nextDatabase } from '../rig/redis.ts';

const DAY = 24 * 60 * 60 * 1000;

/** A session over weeks: the clock of the process is moved, database and store are real. */
describe.each(isMutationRun ? ['embedded'] : ['embedded', 'Redis'])('sessions in the %s store', (kind) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'account-sessions-'));
  const user = User.register({ email: 'ada@example.test', name: 'Ada', passwordHash: 'x' });
  let database: Database;
  let store: KeyValueStore;
  let sessions: Sessions;

  beforeAll(async () => {
    const redisUrl = kind === 'Redis' ? await nextDatabase(inject('redisUrl')) : undefined;
    const config = parseConfig({ DATA_DIR: dataDir, LOG_LEVEL: 'silent', REDIS_URL: redisUrl });
    database = await openDatabase(config);
    await database.migrate();
    await database.transaction(async (em) => {
      await em.insert(user);
    });
    store = openKeyValueStore(config, await createLog(config));
    await vi.waitFor(() => store.ping());
    sessions = createSessions({ store, users: createUsers(database) });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  afterAll(async () => {
    await Promise.all([database.close(), store.close()]);
    rmSync(dataDir, { recursive: true });
  });

  /** A session in the user's epoch of now: another test may have raised it. */
  const open = async () =>
    sessions.openSession((await createUsers(database).find(user.id)) ?? accountOf(user), undefined);
  const startAt = (time: number) => vi.useFakeTimers({ toFake: ['Date'], now: time });
  const daysLater = (days: number) => vi.setSystemTime(Date.now() + days * DAY);

  test('in its first half it is left as it is', async () => {
    startAt(Date.now());
    const { token, expiresAt } = await open();
    expect(expiresAt - Date.now()).toBe(7 * DAY);
    daysLater(3.4);
    expect(await sessions.validate(token)).toMatchObject({ fresh: false, expiresAt, user: { id: user.id } });
  });

  test('in its second half it gets its whole life again, once', async () => {
    startAt(Date.now());
    const { token } = await open();
    daysLater(3.6);
    const expiresAt = Date.now() + 7 * DAY;
    expect(await sessions.validate(token)).toMatchObject({ fresh: true, expiresAt });
    expect(await sessions.validate(token)).toMatchObject({ fresh: false, expiresAt });
    daysLater(6.9);
    expect(await sessions.validate(token)).toMatchObject({ fresh: true });
  });

  test('unused for seven days it has expired', async () => {
    startAt(Date.now());
    const { token } = await open();
    daysLater(7);
    expect(await sessions.validate(token)).toBeNull();
  });

  test('used every day it ends thirty days after its login', async () => {
    startAt(Date.now());
    const start = Date.now();
    const { token } = await open();
    for (let day = 1; day < 30; day++) {
      daysLater(1);
      const session = await sessions.validate(token);
      expect(session?.expiresAt).toBeLessThanOrEqual(start + 30 * DAY);
    }
    daysLater(1);
    expect(await sessions.validate(token)).toBeNull();
  });

  test('renewing never brings back one that ends between being read and being written', async () => {
    startAt(Date.now());
    const { token } = await open();
    daysLater(3.6);
    const set: KeyValueStore['set'] = async (...session) => {
      await sessions.end(token);
      return store.set(...session);
    };
    const overtaken = createSessions({ store: { ...store, set }, users: createUsers(database) });
    expect(await overtaken.validate(token)).toBeNull();
    expect(await sessions.validate(token)).toBeNull();
  });

  test('a higher epoch of the user ends it', async () => {
    const users = createUsers(database);
    const { token } = await open();
    expect(await sessions.validate(token)).not.toBeNull();
    await users.endSessions(user.id);
    expect(await sessions.validate(token)).toBeNull();
  });
});

describe('a session that the store still has', () => {
  afterEach(() => {
    vi.useRealTimers();
  });
  const token = 'x'.repeat(43);
  const user = accountOf(User.register({ email: 'ada@example.test', name: 'Ada', passwordHash: 'x' }));
  /** What is answered `now`, for a session that ends at `expiresAt`. */
  const validateAt = (now: number, expiresAt: number) => {
    vi.useFakeTimers({ toFake: ['Date'], now });
    const stored = { userId: user.id, epoch: user.sessionEpoch, createdAt: 0, expiresAt };
    const store = { get: async () => JSON.stringify(stored), set: async () => true } as unknown as KeyValueStore;
    return createSessions({ store, users: { find: async () => user } as unknown as Users }).validate(token);
  };

  test('has ended at its end, also where the clock of the store is behind', async () => {
    expect(await validateAt(4 * DAY, 4 * DAY)).toBeNull();
    expect(await validateAt(4 * DAY, 4 * DAY + 1)).toMatchObject({ user: { id: user.id } });
  });

  test('is renewed once less than half of its life is left', async () => {
    expect(await validateAt(DAY, DAY + 3.5 * DAY)).toMatchObject({ fresh: false, expiresAt: 4.5 * DAY });
    expect(await validateAt(DAY, DAY + 3.5 * DAY - 1)).toMatchObject({ fresh: true, expiresAt: 8 * DAY });
  });
});

test('only what has the form of a token is looked up', () => {
  expect(['x'.repeat(43), 'A-z_09'.padEnd(43, 'x')].map(isSessionToken)).toEqual([true, true]);
  expect(
    ['', 'x'.repeat(42), 'x'.repeat(44), 'x'.repeat(42).concat('='), `${'x'.repeat(43)}\n`].some(isSessionToken),
  ).toBe(false);
});
