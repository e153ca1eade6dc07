import { afterAll, beforeAll, expect, test } from 'vitest';
import { dropField } from '../../../server/accounts/users/dropped-fields.ts';
import { parseConfig } from '../../../server/config/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

let database: Database;
beforeAll(async () => {
  database = await openDatabase(parseConfig({ DATA_DIR: temporaryDirectory('fields') }));
  await database.migrate();
});
afterAll(() => database.close());

const idOf = (n: number) => `user_${String(n).padStart(4, '0')}`;

test('a field is dropped from all users, and no statement reads more than a page of them', async () => {
  const withField = [3, 700, 1200];
  const users = Array.from({ length: 1201 }, (_, n) => ({
    id: idOf(n),
    email: `${idOf(n)}@example.com`,
    name: 'Ada',
    provider: 'email',
    role: 'user' as const,
    email_verified: 1,
    password_proven: 1,
    session_epoch: 0,
    created_at: 1,
    fields: withField.includes(n) ? '{"team":"a","city":"b"}' : null,
  }));
  for (let from = 0; from < users.length; from += 500)
    await database.write((tables) =>
      tables
        .insertInto('users')
        .values(users.slice(from, from + 500))
        .execute(),
    );

  let reads = 0;
  const counting: Database = {
    ...database,
    query(read) {
      reads++;
      return database.query(read);
    },
  };
  expect(await dropField(counting, 'team')).toBe(withField.length);
  expect(reads).toBe(3);
  const left = await database.query((tables) =>
    tables.selectFrom('users').select(['id', 'fields']).where('fields', 'is not', null).orderBy('id').execute(),
  );
  expect(left).toEqual(withField.map((n) => ({ id: idOf(n), fields: '{"city":"b"}' })));
});
