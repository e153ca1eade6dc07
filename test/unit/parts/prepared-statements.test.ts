import type { CompiledQuery } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AllTables, type Database, prepared } from '../../server/parts/database/contract.ts';
import { openDatabase } from '../../server/parts/database/index.ts';
import { temporaryDirectory } from '../rig/custodian.ts';

let database: Database;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('prepared') });
  await database.migrate();
});
afterAll(() => database.close());

test('a statement that stays compiled keeps no value of its first call', async () => {
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
