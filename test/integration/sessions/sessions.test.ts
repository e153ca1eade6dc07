import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { User } from '../../../entities/index.ts';
import { createSessionRows, type SessionRows } from '../../../server/accounts/sessions/rows.ts';
import { createSessionStore, type SessionStore } from '../../../server/accounts/sessions/sessions.ts';
import { accountOf, createUserStore, type UserStore } from '../../../server/accounts/users/users.ts';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { type Activity, createActivity } from '../../../server/activity/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import { unavailable } from '../../../server/errors.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { KeyValueStore } from '../../../server/parts/key-value/contract.ts';
import { openKeyValueStore } from '../../../server/parts/key-value/index.ts';
import { createLog } from '../../../server/telemetry/log.ts';
import { cases } from '../../rig/client/random.ts';
import { isMutationRun } from '../../rig/mutation-run.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { nextDatabase } from '../../rig/servers/redis.ts';
import { until } from '../../rig/until.ts';

const DAY = 24 * 60 * 60 * 1000;
const request = { ...backgroundJob, formerToken: undefined, deviceCookie: undefined };
/** Mails about logins are tested over HTTP. */
const withoutNews = {
  devices: { recordLogin: async () => ({ deviceCookie: '', isNews: false }), keep: () => () => undefined },
  outbox: { wake: () => undefined },
};

/** A session over weeks: the process clock is moved; database and store are real. */
describe.each(isMutationRun ? ['embedded'] : ['embedded', 'Redis'])('sessions in the %s store', (kind) => {
  const dataDir = temporaryDirectory('sessions');
  const user = User.register({ email: 'ada@example.test', name: 'Ada', passwordHash: 'x' });
  let database: Database;
  let activity: Activity;
  let store: KeyValueStore;
  let sessions: SessionStore;

  beforeAll(async () => {
    const redisUrl = kind === 'Redis' ? await nextDatabase(inject('redisUrl')) : undefined;
    const config = parseConfig({ DATA_DIR: dataDir, LOG_LEVEL: 'silent', REDIS_URL: redisUrl });
    database = await openDatabase(config);
    activity = createActivity(database, { keptDays: 1 });
    await database.migrate();
    await database.transaction(async (em) => {
      await em.insert(user);
    });
    store = await openKeyValueStore(config, await createLog(config));
    await until(() => store.ping().then(() => true));
    sessions = createSessionStore({
      store,
      users: createUserStore({ database, activity }),
      rows: createSessionRows(database, activity),
      ...withoutNews,
    });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  afterAll(async () => {
    await Promise.all([database.close(), store.close()]);
  });

  /** A session in the user's current epoch: another test may have raised it. */
  const open = async () =>
    sessions.openSession(
      (await createUserStore({ database, activity }).find(user.id)) ?? accountOf(user),
      { method: 'password' },
      request,
    );
  const startAt = (time: number) => vi.useFakeTimers({ toFake: ['Date'], now: time });
  const daysLater = (days: number) => vi.setSystemTime(Date.now() + days * DAY);

  test('in the first half of its life a session is not renewed', async () => {
    startAt(Date.now());
    const { token, expiresAt } = await open();
    expect(expiresAt - Date.now()).toBe(7 * DAY);
    daysLater(3.4);
    expect(await sessions.validate(token)).toMatchObject({ fresh: false, expiresAt, user: { id: user.id } });
  });

  test('in the second half of its life a session is renewed for a whole life, once', async () => {
    startAt(Date.now());
    const { token } = await open();
    daysLater(3.6);
    const expiresAt = Date.now() + 7 * DAY;
    expect(await sessions.validate(token)).toMatchObject({ fresh: true, expiresAt });
    expect(await sessions.validate(token)).toMatchObject({ fresh: false, expiresAt });
    daysLater(6.9);
    expect(await sessions.validate(token)).toMatchObject({ fresh: true });
  });

  test('unused for seven days it expires', async () => {
    startAt(Date.now());
    const { token } = await open();
    daysLater(7);
    expect(await sessions.validate(token)).toBeNull();
  });

  test('in daily use it ends thirty days after the login', async () => {
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

  // checks: 23
  test('a renewal does not restore a session that ends concurrently', async () => {
    startAt(Date.now());
    const { token } = await open();
    daysLater(3.6);
    const set: KeyValueStore['set'] = async (...session) => {
      await sessions.end(token, backgroundJob);
      return store.set(...session);
    };
    const overtaken = createSessionStore({
      store: { ...store, set },
      users: createUserStore({ database, activity }),
      rows: createSessionRows(database, activity),
      ...withoutNews,
    });
    expect(await overtaken.validate(token)).toBeNull();
    expect(await sessions.validate(token)).toBeNull();
  });

  test('a session that cannot be renewed stays valid until it expires', async () => {
    startAt(Date.now());
    const { token, expiresAt } = await open();
    daysLater(3.6);
    const rows = createSessionRows(database, activity);
    const recordUse = () => Promise.reject(unavailable(new Error('a full disk')));
    const readOnly = createSessionStore({
      store,
      users: createUserStore({ database, activity }),
      rows: { ...rows, recordUse },
      ...withoutNews,
    });
    expect(await readOnly.validate(token)).toMatchObject({ fresh: false, expiresAt });
    expect(await sessions.validate(token)).toMatchObject({ fresh: true });
  });

  test('ending a session requires the store to find it, and not to fail afterwards', async () => {
    const { token } = await open();
    const refused = () => Promise.reject(unavailable(new Error('a replica')));
    const parts = {
      users: createUserStore({ database, activity }),
      rows: createSessionRows(database, activity),
      ...withoutNews,
    };
    await expect(
      createSessionStore({ ...parts, store: { ...store, get: refused } }).end(token, backgroundJob),
    ).rejects.toMatchObject({
      code: 'SERVICE_UNAVAILABLE',
    });
    expect(await sessions.validate(token)).not.toBeNull();
    await createSessionStore({ ...parts, store: { ...store, delete: refused } }).end(token, backgroundJob);
    expect(await sessions.validate(token)).toBeNull();
  });

  test('a higher epoch of the user ends it', async () => {
    const { token } = await open();
    expect(await sessions.validate(token)).not.toBeNull();
    await sessions.endAll(user.id, backgroundJob);
    expect(await sessions.validate(token)).toBeNull();
  });
});

describe('over weeks of random use', () => {
  const step = fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record({
        act: fc.constant('wait' as const),
        days: fc.noBias(
          fc
            .oneof({ weight: 7, arbitrary: fc.integer({ min: 20, max: 60 }) }, fc.integer({ min: 0, max: 75 }))
            .map((tenths) => tenths / 10),
        ),
      }),
    },
    { weight: 12, arbitrary: fc.record({ act: fc.constant('use' as const), one: fc.constantFrom(0, 0, 0, 1) }) },
    fc.record({ act: fc.constantFrom('open' as const, 'end' as const), one: fc.nat(2) }),
    fc.record({ act: fc.constant('endAll' as const) }),
  );
  afterEach(() => {
    vi.useRealTimers();
  });

  test('a session lives seven days from its last renewal, thirty at most, or until it or its epoch ends', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40, size: 'max' }), async (steps) => {
        vi.useFakeTimers({ toFake: ['Date'], now: 1_700_000_000_000 });
        const stored = new Map<string, { value: object; until: number }>();
        const read = (key: string) => {
          const { value, until } = stored.get(key) ?? { value: null, until: 0 };
          return until > Date.now() ? value : null;
        };
        const store = {
          get: async (key: string) => read(key),
          set: async (key: string, value: object, { ttlMs, ifExists }: { ttlMs: number; ifExists?: boolean }) => {
            if (ifExists && read(key) === null) return false;
            stored.set(key, { value, until: Date.now() + ttlMs });
            return true;
          },
          delete: async (key: string) => void stored.delete(key),
        };
        const user = { id: 'user', sessionEpoch: 0 };
        const inTable = new Set<string>();
        const rows = {
          find: async ({ id }: { id: string }) =>
            inTable.has(id) ? { ...user, sessionId: id, isUseDue: 1 } : undefined,
          insert: async (_: unknown, { id }: { id: string }) => {
            inTable.add(id);
            return { recorded: await withoutNews.devices.recordLogin(), ended: [] };
          },
          recordUse: async (id: string) => inTable.has(id),
          logOut: async ({ id }: { id: string }) => void inTable.delete(id),
        };
        const sessions = createSessionStore({
          store: store as never,
          users: {} as never,
          rows: rows as never,
          ...withoutNews,
        });
        const known: { token: string; createdAt: number; expiresAt: number; ended: boolean }[] = [];
        const open = async (former?: string) => {
          const { token, expiresAt } = await sessions.openSession(
            { ...user } as never,
            { method: 'password' },
            {
              ...request,
              formerToken: former,
            },
          );
          expect(expiresAt).toBe(Date.now() + 7 * DAY);
          known.push({ token, createdAt: Date.now(), expiresAt, ended: false });
        };
        await open();
        for (const each of steps) {
          const session = 'one' in each ? known.at(-1 - (each.one % known.length)) : undefined;
          if (each.act === 'wait') vi.setSystemTime(Date.now() + Math.round(each.days * DAY));
          else if (each.act === 'endAll') {
            user.sessionEpoch++;
            for (const session of known) session.ended = true;
          } else if (session && each.act === 'open') {
            await open(session.token);
            session.ended = true;
          } else if (session && each.act === 'end') {
            await sessions.end(session.token, backgroundJob);
            session.ended = true;
          } else if (session) {
            const { createdAt, expiresAt, ended } = session;
            const now = Date.now();
            const found = await sessions.validate(session.token);
            if (ended || now >= expiresAt) {
              expect(found).toBeNull();
              continue;
            }
            const isSecondHalf = expiresAt - now < 3.5 * DAY;
            session.expiresAt = isSecondHalf ? Math.min(now + 7 * DAY, createdAt + 30 * DAY) : expiresAt;
            const fresh = session.expiresAt !== expiresAt;
            expect(found).toMatchObject({ createdAt, expiresAt: session.expiresAt, fresh, user: { id: 'user' } });
          }
        }
        expect(new Set(known.map(({ token }) => token)).size).toBe(known.length);
        for (const { token } of known) {
          expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
          expect(JSON.stringify([...stored])).not.toContain(token);
        }
      }),
      cases(100),
    );
  });
});

describe('a stored session of the previous version, without a row', () => {
  afterEach(() => {
    vi.useRealTimers();
  });
  const token = 'x'.repeat(43);
  const user = accountOf(User.register({ email: 'ada@example.test', name: 'Ada', passwordHash: 'x' }));
  /** The result `now` for a session that ends at `expiresAt`. */
  const validateAt = (now: number, expiresAt: number) => {
    vi.useFakeTimers({ toFake: ['Date'], now });
    const stored = { userId: user.id, epoch: user.sessionEpoch, createdAt: 0, expiresAt };
    const store = { get: async () => stored, set: async () => true } as unknown as KeyValueStore;
    const users = { find: async () => user } as unknown as UserStore;
    return createSessionStore({ store, users, rows: {} as SessionRows, ...withoutNews }).validate(token);
  };

  test('ends at its time, even if the clock of the store is behind', async () => {
    expect(await validateAt(4 * DAY, 4 * DAY)).toBeNull();
    expect(await validateAt(4 * DAY, 4 * DAY + 1)).toMatchObject({ user: { id: user.id } });
  });

  test('is renewed in its second half', async () => {
    expect(await validateAt(DAY, DAY + 3.5 * DAY)).toMatchObject({ fresh: false, expiresAt: 4.5 * DAY });
    expect(await validateAt(DAY, DAY + 3.5 * DAY - 1)).toMatchObject({ fresh: true, expiresAt: 8 * DAY });
  });
});
