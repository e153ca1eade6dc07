import { constants } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { migrate } from '../process/command.ts';
import { temporaryDirectory } from './custodian.ts';
import { createDatabase, dropDatabase } from './mysql.ts';

/** What all migrations make of an empty database: made once for a run, because they take longer than most tests. */
export interface Schema {
  /** A file. */
  sqlite: string;
  /** The statements that make the same tables and rows. */
  mysql: string;
}

const SQLITE_FILE = 'database.sqlite';

export async function makeSchema(mysqlUrl: string): Promise<Schema> {
  const DATA_DIR = temporaryDirectory('schema');
  const DATABASE_URL = await createDatabase(mysqlUrl);
  await Promise.all([migrate({ DATA_DIR }), migrate({ DATABASE_URL, DATA_DIR: temporaryDirectory('none') })]);
  const mysql = await statementsOf(DATABASE_URL);
  await dropDatabase(DATABASE_URL);
  return { sqlite: join(DATA_DIR, SQLITE_FILE), mysql };
}

async function statementsOf(databaseUrl: string): Promise<string> {
  const connection = await createConnection({ uri: databaseUrl, rowsAsArray: true });
  const ask = async (sql: string) => (await connection.query<RowDataPacket[][]>(sql))[0];
  try {
    // Tables may refer to later ones.
    const statements = ['set foreign_key_checks = 0'];
    for (const [table] of await ask('show tables')) {
      const name = connection.escapeId(String(table));
      statements.push(String((await ask(`show create table ${name}`))[0]?.[1]));
      const rows = await ask(`select * from ${name}`);
      if (rows.length > 0) statements.push(connection.format(`insert into ${name} values ?`, [rows]));
    }
    return statements.join(';\n');
  } finally {
    await connection.end();
  }
}

/** To a directory that a service will have as its DATA_DIR. */
export const copyToSqlite = ({ sqlite }: Schema, dataDir: string): Promise<void> =>
  copyFile(sqlite, join(dataDir, SQLITE_FILE), constants.COPYFILE_FICLONE);

/** To an empty database. */
export async function copyToMysql({ mysql }: Schema, databaseUrl: string): Promise<void> {
  const connection = await createConnection({ uri: databaseUrl, multipleStatements: true });
  try {
    await connection.query(mysql);
  } finally {
    connection.destroy();
  }
}
