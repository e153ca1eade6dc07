import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { createPool, type RowDataPacket } from 'mysql2/promise';

const SQLITE_BUSY = 5;
const MOST_TRIES = 1000;

type Parameter = string | number | bigint | null | Uint8Array;

/** Runs one statement and resolves to its rows, none for a statement that changes; `?` marks a parameter. */
export type Query = <Row extends object = Record<string, unknown>>(
  sql: string,
  parameters?: Parameter[],
) => Promise<Row[]>;

/** The service's database, seen past the service. */
export interface DatabaseView {
  query: Query;
  close(): Promise<void>;
}

export function viewMysql(url: string): DatabaseView {
  const pool = createPool({ uri: url, connectionLimit: 2 });
  return {
    async query<Row extends object>(sql: string, parameters: Parameter[] = []) {
      const [rows] = await pool.query<RowDataPacket[]>(sql, parameters);
      return (Array.isArray(rows) ? rows : []) as unknown as Row[];
    },
    close: () => pool.end(),
  };
}

/**
 * The SQLite file of the embedded form, opened at the first query: the service creates it. Its lock is waited for without
 * blocking this thread, where the service that holds it may run too.
 */
export function viewSqlite(dataDir: string): DatabaseView {
  let database: DatabaseSync | undefined;
  return {
    async query<Row extends object>(sql: string, parameters: Parameter[] = []) {
      database ??= new DatabaseSync(join(dataDir, 'database.sqlite'), { timeout: 0 });
      for (let tries = 0; ; tries++) {
        try {
          // Copied: node:sqlite makes rows without a prototype, which equal no plain object.
          return database
            .prepare(sql)
            .all(...parameters)
            .map((row) => ({ ...row })) as Row[];
        } catch (error) {
          if ((error as { errcode?: number }).errcode !== SQLITE_BUSY || tries >= MOST_TRIES) throw error;
          await pause(2);
        }
      }
    },
    close: async () => database?.close(),
  };
}
