import { join } from 'node:path';
import { RateLimiterSQLite } from 'rate-limiter-flexible';
import { ServiceError, unavailable } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { retryingConflicts, withinDeadline } from '../deadline.ts';
import { isOutage } from '../sql-errors.ts';
import { SqliteFile } from '../sqlite.ts';
import type { KeyValueStore } from './contract.ts';
import { counterOf } from './counter.ts';

const SWEEP_EVERY_MS = 60_000;
/** The longest an operation waits for another process's lock. */
const DEADLINE = { ms: 1000, what: 'the embedded key-value store' };

/** The embedded form: a SQLite file in DATA_DIR, so that sessions and counters outlive a restart. */
export function localStore(dataDir: string, log: Pick<Log, 'warn'>): KeyValueStore {
  const { file, close } = openLater(join(dataDir, 'key-value.sqlite'));

  /**
   * Runs one statement, or several that need not be atomic. The statements are right by construction: an error is an
   * outage.
   */
  const run = <T>(work: (opened: SqliteFile) => T | Promise<T>): Promise<T> =>
    withinDeadline(DEADLINE, (signal) => retryingConflicts(signal, async () => work(file()))).catch(
      (error: unknown) => {
        throw error instanceof ServiceError ? error : unavailable(error);
      },
    );

  let failing = false;
  const sweep = () =>
    run((opened) => {
      opened.prepare('delete from entries where expires_at <= ?').run(Date.now());
      opened.prepare('delete from counters where expire <= ?').run(Date.now());
    }).then(
      () => {
        failing = false;
      },
      (error: unknown) => {
        if (!failing) log.warn({ err: error }, 'expired sessions and counters cannot be removed now');
        failing = true;
      },
    );
  const sweeper = setInterval(() => void sweep(), SWEEP_EVERY_MS).unref();

  return {
    get: (key) =>
      run((opened) => {
        const row = opened.prepare('select value from entries where key = ? and expires_at > ?').get(key, Date.now());
        return (row?.['value'] as string | undefined) ?? null;
      }),

    set: (key, value, { ttlMs, ifExists }) =>
      run((opened) => {
        const now = Date.now();
        const { changes } = ifExists
          ? opened
              .prepare('update entries set value = ?, expires_at = ? where key = ? and expires_at > ?')
              .run(value, now + ttlMs, key, now)
          : opened.prepare('insert or replace into entries values (?, ?, ?)').run(key, value, now + ttlMs);
        return changes === 1;
      }),

    take: (key) =>
      run((opened) => {
        const row = opened
          .prepare('delete from entries where key = ? and expires_at > ? returning value')
          .get(key, Date.now());
        return (row?.['value'] as string | undefined) ?? null;
      }),

    delete: (key) =>
      run((opened) => {
        opened.prepare('delete from entries where key = ?').run(key);
      }),

    counter({ name, points, seconds }) {
      const count = counterOf(
        new RateLimiterSQLite({
          storeType: 'better-sqlite3',
          // node:sqlite in the shape the library expects; the work of its transactions is a single statement.
          storeClient: { prepare: (sql: string) => file().prepare(sql), transaction: <T>(work: T) => work },
          tableName: 'counters',
          tableCreated: true,
          // The library's own sweep would throw in its timer.
          clearExpiredByTimeout: false,
          keyPrefix: name,
          points,
          duration: seconds,
        }),
      );
      return (key) => run(() => count(key));
    },

    ping: () =>
      run((opened) => {
        opened.prepare('select 1 from entries limit 1').get();
      }),

    async close() {
      clearInterval(sweeper);
      close();
    },
  };
}

/**
 * The file with its tables. A permanent error is thrown at once; a file that cannot be opened now, locked or on a full
 * disk, is opened by the first operation that can.
 */
function openLater(path: string) {
  let opened: SqliteFile | undefined;
  let isClosed = false;

  const file = (): SqliteFile => {
    if (isClosed) throw new Error('the store is closed');
    opened ??= openWithTables(path);
    return opened;
  };
  try {
    file();
  } catch (error) {
    if (!isOutage(error)) throw error;
  }
  return {
    file,
    close() {
      isClosed = true;
      opened?.close();
    },
  };
}

function openWithTables(path: string): SqliteFile {
  const file = new SqliteFile(path);
  try {
    file.exec(`
      create table if not exists entries (key text primary key, value text not null, expires_at integer not null) without rowid;
      create table if not exists counters (key text primary key, points integer not null, expire integer) without rowid;
    `);
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}
