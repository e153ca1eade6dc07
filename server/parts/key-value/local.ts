import { join } from 'node:path';
import { RateLimiterSQLite } from 'rate-limiter-flexible';
import { SqliteFile } from '../sqlite.ts';
import { counterOf } from './counter.ts';
import type { KeyValueStore } from './index.ts';

const SWEEP_EVERY_MS = 60_000;

/** The embedded form: a SQLite file in DATA_DIR, so that sessions and counters outlive a restart. */
export function localStore(dataDir: string): KeyValueStore {
  const file = new SqliteFile(join(dataDir, 'key-value.sqlite'));
  file.exec(`
    create table if not exists entries (key text primary key, value text not null, expires_at integer not null) without rowid;
    create table if not exists counters (key text primary key, points integer not null, expire integer) without rowid;
  `);
  const entry = (key: string) =>
    file.prepare('select value from entries where key = ? and expires_at > ?').get(key, Date.now())?.['value'];

  const sweep = setInterval(() => {
    file.prepare('delete from entries where expires_at <= ?').run(Date.now());
    file.prepare('delete from counters where expire <= ?').run(Date.now());
  }, SWEEP_EVERY_MS).unref();

  return {
    async get(key) {
      return (entry(key) as string | undefined) ?? null;
    },

    async set(key, value, { ttlMs, ifExists }) {
      if (ifExists && entry(key) === undefined) return false;
      file.prepare('insert or replace into entries values (?, ?, ?)').run(key, value, Date.now() + ttlMs);
      return true;
    },

    async take(key) {
      const row = file
        .prepare('delete from entries where key = ? and expires_at > ? returning value')
        .get(key, Date.now());
      return (row?.['value'] as string | undefined) ?? null;
    },

    async delete(key) {
      file.prepare('delete from entries where key = ?').run(key);
    },

    counter({ name, points, seconds }) {
      return counterOf(
        new RateLimiterSQLite({
          storeType: 'better-sqlite3',
          // node:sqlite in the shape the library knows; what it runs in a transaction is a single statement.
          storeClient: { prepare: (sql: string) => file.prepare(sql), transaction: <T>(run: T) => run },
          tableName: 'counters',
          tableCreated: true,
          keyPrefix: name,
          points,
          duration: seconds,
        }),
      );
    },

    async ping() {},

    async close() {
      clearInterval(sweep);
      file.close();
    },
  };
}
