import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { createPool, type RowDataPacket } from 'mysql2/promise';

const SQLITE_BUSY = 5;
const MAX_TRIES = 1000;

type Parameter = string | number | bigint | null | Uint8Array;

/** Runs a statement and resolves to its rows, none for a change; `?` marks a parameter. */
export type Query = <Row extends object = Record<string, unknown>>(
  sql: string,
  parameters?: Parameter[],
) => Promise<Row[]>;

/** Direct access to the service's database. */
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
 * The SQLite file of the embedded form, opened at the first query: the service creates it. Waits for its lock without
 * blocking this thread, in which the service that holds it may run too.
 */
export function viewSqlite(dataDir: string): DatabaseView {
  let database: DatabaseSync | undefined;
  return {
    async query<Row extends object>(sql: string, parameters: Parameter[] = []) {
      database ??= new DatabaseSync(join(dataDir, 'database.sqlite'), { timeout: 0 });
      for (let tries = 0; ; tries++) {
        try {
          // Copied: rows of node:sqlite have no prototype, so they equal no plain object.
          return database
            .prepare(sql)
            .all(...parameters)
            .map((row) => ({ ...row })) as Row[];
        } catch (error) {
          if ((error as { errcode?: number }).errcode !== SQLITE_BUSY || tries >= MAX_TRIES) throw error;
          await pause(2);
        }
      }
    },
    close: async () => database?.close(),
  };
}
