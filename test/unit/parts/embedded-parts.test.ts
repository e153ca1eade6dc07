import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CompiledQuery } from 'kysely';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { User } from '../../../entities/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { TextStore } from '../../../server/parts/key-value/contract.ts';
import { localStore } from '../../../server/parts/key-value/local.ts';
import { SqliteFile } from '../../../server/parts/sqlite.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { until } from '../../rig/until.ts';

const unavailable = { code: 'SERVICE_UNAVAILABLE', status: 503 };
const warn = vi.fn();
let dataDir: string;
let closers: (() => unknown)[];

beforeEach(() => {
  dataDir = temporaryDirectory('embedded');
  closers = [];
  warn.mockReset();
});
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  for (const close of closers.reverse()) await close();
});

/** To SQLite, another process: holds its lock on the file until `release`. */
function lock(file: string, how: 'exclusive' | 'whole file') {
  const other = new DatabaseSync(join(dataDir, file));
  // In WAL mode an exclusive transaction blocks writers; with this setting, readers too.
  if (how === 'whole file') other.exec('pragma locking_mode = exclusive');
  other.exec('begin exclusive');
  let isOpen = true;
  const release = () => {
    if (isOpen) other.close();
    isOpen = false;
  };
  closers.push(release);
  return release;
}

/** Runs the work and counts the turns of the event loop until it ends. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  const timer = setInterval(() => turns++, 5);
  await work.catch(() => undefined);
  clearInterval(timer);
  return turns;
}

describe('the embedded key-value store', () => {
  const opened = (): TextStore => {
    const store = localStore(dataDir, { warn });
    closers.push(() => store.close());
    return store;
  };
  const allowance = { name: 'limit:test', points: 1, seconds: 60 };
  const operations: [string, (store: TextStore) => Promise<unknown>][] = [
    ['set', (store) => store.set('a', '2', { ttlMs: 60_000 })],
    ['set if it exists', (store) => store.set('a', '2', { ttlMs: 60_000, ifExists: true })],
    ['take', (store) => store.take('a')],
    ['delete', (store) => store.delete('a')],
    ['count', (store) => store.counter(allowance)('a')],
    ['forget a count', (store) => store.counter(allowance).clear('a')],
    ['give back', async (store) => (await store.counter(allowance)('a')).refund()],
  ];

  test.each(operations)(
    '%s waits for the lock of another process without blocking the event loop',
    async (_, operation) => {
      const store = opened();
      await store.set('a', '1', { ttlMs: 60_000 });
      const release = lock('key-value.sqlite', 'exclusive');
      const outcome = operation(store);
      setTimeout(release, 100);
      await outcome;
    },
  );

  test.each([
    ...operations,
    ['get', (store) => store.get('a')],
    ['ping', (store) => store.ping()],
  ] as typeof operations)(
    '%s on a locked file is SERVICE_UNAVAILABLE after a while, without blocking the event loop',
    async (_, operation) => {
      const before = opened();
      await before.set('a', '1', { ttlMs: 60_000 });
      await before.close();
      const release = lock('key-value.sqlite', 'whole file');
      // Opened while it is locked.
      const store = opened();
      const outcome = operation(store);
      expect(await turnsDuring(outcome)).toBeGreaterThan(5);
      await expect(outcome).rejects.toMatchObject(unavailable);
      release();
      expect(await store.get('a')).toBe('1');
    },
  );

  test('a failed sweep is logged once and does not stop later ones', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const store = opened();
    await store.set('old', '1', { ttlMs: 1 });
    const release = lock('key-value.sqlite', 'exclusive');
    vi.advanceTimersByTime(60_000);
    await until(() => warn.mock.calls.length > 0);
    vi.advanceTimersByTime(60_000);
    release();
    const seen = new DatabaseSync(join(dataDir, 'key-value.sqlite'), { readOnly: true });
    closers.push(() => seen.close());
    await until(() => {
      vi.advanceTimersByTime(60_000);
      return seen.prepare('select 1 from entries').all().length === 0;
    });
    expect(warn).toHaveBeenCalledTimes(1);
  });

  test('on a full disk calls that need space are SERVICE_UNAVAILABLE, and others work', async () => {
    const exec = SqliteFile.prototype.exec;
    vi.spyOn(SqliteFile.prototype, 'exec').mockImplementation(function (this: SqliteFile, sql: string) {
      exec.call(this, `${sql}; pragma max_page_count = 8;`);
    });
    const store = opened();
    await store.set('a', '1', { ttlMs: 60_000 });
    const large = store.set('b', 'x'.repeat(100_000), { ttlMs: 60_000 });
    await expect(large).rejects.toMatchObject(unavailable);
    expect(await store.get('a')).toBe('1');
    expect(await store.get('b')).toBeNull();
    await store.delete('a');
    expect(await store.counter(allowance)('a')).toMatchObject({ allowed: true });
  });

  test('a conditional store is a single statement', async () => {
    const store = opened();
    expect(await store.set('a', '2', { ttlMs: 60_000, ifExists: true })).toBe(false);
    await store.set('a', '1', { ttlMs: 60_000 });
    const prepare = vi.spyOn(SqliteFile.prototype, 'prepare');
    expect(await store.set('a', '2', { ttlMs: 60_000, ifExists: true })).toBe(true);
    expect(prepare).toHaveBeenCalledTimes(1);
    expect(await store.get('a')).toBe('2');
    await store.set('a', '3', { ttlMs: -1 });
    expect(await store.set('a', '4', { ttlMs: 60_000, ifExists: true })).toBe(false);
  });
});

describe('the embedded database', () => {
  const user = () => User.register({ email: `${Math.random()}@example.test`, name: 'Ada', passwordHash: null });
  const opened = async (): Promise<Database> => {
    const database = await openDatabase({ databaseUrl: undefined, dataDir });
    closers.push(() => database.close());
    return database;
  };
  const migrated = async () => {
    const database = await opened();
    await database.migrate();
    return database;
  };
  const count = async (database: Database) =>
    (await database.query((tables) => tables.selectFrom('users').select('id').execute())).length;

  test('a change waits for the lock of another process, and reads continue', async () => {
    const database = await migrated();
    const release = lock('database.sqlite', 'exclusive');
    const outcome = database.transaction((em) => em.insert(user()));
    for (let i = 0; i < 20; i++) expect(await count(database)).toBe(0);
    release();
    await outcome;
    expect(await count(database)).toBe(1);
  });

  test('a locked file is SERVICE_UNAVAILABLE without blocking the event loop, and recovers', async () => {
    const database = await migrated();
    const ada = user();
    await database.transaction((em) => em.insert(ada));
    const release = lock('database.sqlite', 'exclusive');
    const outcomes = [
      database.transaction((em) => em.insert(user())),
      database.write((tables) => tables.updateTable('users').set({ bio: 'x' }).where('id', '=', ada.id).execute()),
    ];
    expect(await turnsDuring(Promise.allSettled(outcomes))).toBeGreaterThan(5);
    for (const outcome of outcomes) await expect(outcome).rejects.toMatchObject(unavailable);
    release();
    expect(await count(database)).toBe(1);
    await database.transaction((em) => em.insert(user()));
    expect(await count(database)).toBe(2);
  });

  test('a file that is locked at opening can be migrated later', async () => {
    const before = await opened();
    await before.migrate();
    await before.close();
    const release = lock('database.sqlite', 'whole file');
    const database = await opened();
    await expect(database.migrate()).rejects.toThrow(/locked/);
    release();
    await database.migrate();
    expect(await count(database)).toBe(0);
  });

  test('on a full disk a change is SERVICE_UNAVAILABLE and leaves nothing; with free space it works', async () => {
    const database = await migrated();
    const pages = (most: number) =>
      database.query((tables) => tables.executeQuery(CompiledQuery.raw(`pragma max_page_count = ${most}`)));
    await pages(1);
    const many = database.transaction(async (em) => {
      for (let i = 0; i < 500; i++) await em.insert(user());
    });
    await expect(many).rejects.toMatchObject(unavailable);
    expect(await count(database)).toBe(0);
    await pages(100_000);
    await database.transaction((em) => em.insert(user()));
    expect(await count(database)).toBe(1);
  });
});
