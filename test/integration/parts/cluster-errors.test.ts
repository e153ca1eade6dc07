import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type AllTables, type Database, sql } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';

let databaseUrl: string;
let database: Database;
beforeAll(async () => {
  databaseUrl = await createDatabase(inject('mysqlUrl'));
  database = await openDatabase({ databaseUrl, dataDir: '' });
  await database.migrate();
});
afterAll(async () => {
  await database.close();
  await dropDatabase(databaseUrl);
});

/**
 * A transaction that writes a row and gets a server error in its first `failures` tries. Returns the connections of its
 * tries, and the number of rows afterwards.
 */
async function meet(
  errno: number,
  { by, failures = 2 }: { by: (work: (tables: AllTables) => Promise<void>) => Promise<unknown>; failures?: number },
) {
  const connections: number[] = [];
  const user_id = `${Math.random()}`;
  const failure = await by(async (tables) => {
    const { rows } = await sql<{ id: number }>`select connection_id() as id`.execute(tables);
    connections.push(rows[0]?.id as number);
    await tables.insertInto('upload_usage').values({ user_id, used: 1, files: 1 }).execute();
    if (connections.length <= failures) {
      await sql.raw(`signal sqlstate '45000' set mysql_errno = ${errno}, message_text = 'test'`).execute(tables);
    }
  }).catch((error: { code: string }) => error.code);
  const rows = await database.query((tables) =>
    tables.selectFrom('upload_usage').select('used').where('user_id', '=', user_id).execute(),
  );
  return { connections, failure, rows: rows.length };
}

describe.each<[string, (work: (tables: AllTables) => Promise<void>) => Promise<unknown>]>([
  ['of statements', (work) => database.change(work)],
  ['of entities', (work) => database.transaction((_em, tables) => work(tables))],
])('a transaction %s', (_, by) => {
  test.each([1205, 1213, 3101, 8002, 8022, 8028, 9007])('is retried after conflict %i', async (errno) => {
    const { connections, ...end } = await meet(errno, { by });
    expect(connections).toHaveLength(3);
    expect(end).toEqual({ failure: undefined, rows: 1 });
  });

  test.each([1047, 1290, 1792, 1836, 3100])(
    'refused by a server with %i is retried on a new connection',
    async (errno) => {
      const { connections, ...end } = await meet(errno, { by });
      expect(new Set(connections).size).toBe(3);
      expect(end).toEqual({ failure: undefined, rows: 1 });
    },
  );

  test('refused by every server fails', async () => {
    const { connections, ...end } = await meet(1047, { by, failures: Infinity });
    expect(connections).toHaveLength(4);
    expect(end).toEqual({ failure: 'SERVICE_UNAVAILABLE', rows: 0 });
  });

  test('with an uncertain commit is not retried', async () => {
    const { connections, failure } = await meet(1180, { by });
    expect(connections).toHaveLength(1);
    expect(failure).toBe('SERVICE_UNAVAILABLE');
  });
});
