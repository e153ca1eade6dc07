import { join } from 'node:path';
import { RateLimiterSQLite } from 'rate-limiter-flexible';
import { createOutage } from '../../lib/outage.ts';
import type { Log } from '../../telemetry/log.ts';
import { retryingConflicts, withinDeadline } from '../deadline.ts';
import type { SqliteFile } from '../sqlite.ts';
import type { TextStore } from './contract.ts';
import { counterOf } from './counter.ts';
import { openWhenPossible } from './local-file.ts';

const SWEEP_EVERY_MS = 60_000;
/** The maximum wait of an operation for another process's lock. */
const DEADLINE = { ms: 1000, what: 'the embedded key-value store', isOutage: () => true };

type Run = <T>(work: (opened: SqliteFile) => T | Promise<T>) => Promise<T>;

/** The embedded store: a SQLite file in DATA_DIR, so that sessions and counters survive a restart. */
export function localStore(dataDir: string, log: Pick<Log, 'warn'>): TextStore {
  const { file, close } = openWhenPossible(join(dataDir, 'key-value.sqlite'));

  /**
   * Runs one statement, or several that need not be atomic. No statement's validity depends on input, so every error is
   * an outage.
   */
  const run: Run = (work) => withinDeadline(DEADLINE, (signal) => retryingConflicts(signal, async () => work(file())));
  const sweeper = startSweeper(run, log);

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
      const limiter = new RateLimiterSQLite({
        storeType: 'better-sqlite3',
        // node:sqlite with the interface that the library expects; each of its transactions is a single statement.
        storeClient: { prepare: (sql: string) => file().prepare(sql), transaction: <T>(work: T) => work },
        tableName: 'counters',
        tableCreated: true,
        // The library's own sweep would throw in its timer.
        clearExpiredByTimeout: false,
        keyPrefix: name,
        points,
        duration: seconds,
      });
      return counterOf(limiter, run);
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

/** Deletes expired entries every minute, until the timer is cleared. */
function startSweeper(run: Run, log: Pick<Log, 'warn'>): NodeJS.Timeout {
  const outage = createOutage({
    began: (error) => log.warn({ err: error }, 'expired sessions and counters could not be deleted'),
  });
  const sweep = () =>
    run((opened) => {
      opened.prepare('delete from entries where expires_at <= ?').run(Date.now());
      opened.prepare('delete from counters where expire <= ?').run(Date.now());
    }).then(outage.succeeded, outage.failed);
  return setInterval(() => void sweep(), SWEEP_EVERY_MS).unref();
}
