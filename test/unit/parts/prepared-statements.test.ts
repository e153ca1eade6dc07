import type { CompiledQuery } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AllTables, type Database, prepared } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

let database: Database;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('prepared') });
  await database.migrate();
});
afterAll(() => database.close());

test('a compiled statement keeps no value of its first call', async () => {
  const usersById = prepared<{ id: string }>();
  const sent: string[] = [];
  const read = (id: string) =>
    database.change((tables) => {
      const spied = {
        executeQuery: (query: CompiledQuery<never>) => {
          sent.push(JSON.stringify(query));
          return tables.executeQuery(query);
        },
      } as unknown as AllTables;
      const build = () => tables.selectFrom('users').select('id').where('id', '=', id);
      return usersById(spied, { shape: 'one', build, parameters: [id] });
    });
  expect([await read('first'), await read('second')]).toEqual([[], []]);
  expect(sent.map((query) => [query.includes('first'), query.includes('second')])).toEqual([
    [true, false],
    [false, true],
  ]);
});

test('parameters in another order than the statement’s are refused', async () => {
  const page = prepared<{ id: string }>();
  const read = (parameters: (cursor: string, limit: number) => unknown[]) =>
    database.query((tables) =>
      page(tables, {
        shape: 'next',
        build: () => tables.selectFrom('users').select('id').where('id', '<', 'user_1').limit(3),
        parameters: parameters('user_1', 3),
      }),
    );
  await expect(read((cursor, limit) => [limit, cursor])).rejects.toThrow('not in the order');
  await expect(read((cursor) => [cursor])).rejects.toThrow('not in the order');
  expect(await read((cursor, limit) => [cursor, limit])).toEqual([]);
});
