import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { User } from '../../../entities/index.ts';
import { createUserImport, type ImportedUser } from '../../../server/accounts/data/users-import.ts';
import { createCustomFields } from '../../../server/accounts/users/index.ts';
import { type Database, sql } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';

let databaseUrl: string;
let database: Database;
const owner = User.register({ email: 'ada@example.test', name: 'Ada', passwordHash: 'x' });
beforeAll(async () => {
  databaseUrl = await createDatabase(inject('mysqlUrl'));
  database = await openDatabase({ databaseUrl, dataDir: temporaryDirectory('user-import') });
  await database.migrate();
  await database.transaction(async (em) => {
    await em.insert(owner);
  });
});
afterAll(async () => {
  await database.close();
  await dropDatabase(databaseUrl);
});

const imported = (email: string): ImportedUser => ({
  email,
  profile: { name: 'Bob' },
  fields: {},
  emailVerified: true,
  passwordHash: null,
  passwordProven: true,
  isBlocked: false,
  language: null,
  createdAt: 1,
  identities: [],
});

/** As if the owner had used this address and replaced it. */
const giveUp = (email: string) =>
  database.write((tables) =>
    tables
      .insertInto('email_changes')
      .values({
        id: randomUUID(),
        user_id: owner.id,
        email: owner.email,
        former: email,
        confirm_hash: randomUUID(),
        undo_hash: randomUUID(),
        created_at: database.now,
        confirmed_at: database.now,
        expires_at: sql`${database.now} + 60000`,
      })
      .execute(),
  );

test('an email given up during its import stays reserved for its owner', async () => {
  const [kept, free] = [freshEmail(), freshEmail()];
  let batches = 0;
  const activity = {
    /** The events of the users just inserted. */
    async recordAll() {
      if (++batches === 1) await giveUp(kept);
    },
  };
  const { importAll } = createUserImport(database, activity, createCustomFields());
  expect(await importAll([kept, free].map(imported))).toEqual(['reserved', 'imported']);
  expect(batches).toBe(2);
  const users = await database.query((tables) =>
    tables.selectFrom('users').select('email').where('email', 'in', [kept, free]).execute(),
  );
  expect(users).toEqual([{ email: free }]);
});
