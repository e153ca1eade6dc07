import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createPool, type RowDataPacket } from 'mysql2/promise';

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

/** The SQLite file of the embedded form, opened at the first query: the service creates it. */
export function viewSqlite(dataDir: string): DatabaseView {
  let database: DatabaseSync | undefined;
  return {
    async query<Row extends object>(sql: string, parameters: Parameter[] = []) {
      database ??= new DatabaseSync(join(dataDir, 'database.sqlite'), { timeout: 5_000 });
      // Copied: node:sqlite makes rows without a prototype, which equal no plain object.
      return database
        .prepare(sql)
        .all(...parameters)
        .map((row) => ({ ...row })) as Row[];
    },
    close: async () => database?.close(),
  };
}
