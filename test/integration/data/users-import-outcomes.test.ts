import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { User } from '../../../entities/index.ts';
import { createUserImport, type ImportedUser, type UserImport } from '../../../server/accounts/data/users-import.ts';
import { createCustomFields } from '../../../server/accounts/users/index.ts';
import { createActivity } from '../../../server/activity/index.ts';
import { type AllTables, type Database, sql } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { ProviderName } from '../../../server/shared/method-names.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

/** What becomes of the users of a batch. */
let database: Database;
let users: UserImport;
const acme = 'acme' as ProviderName;
const owner = User.register({ email: 'owner@example.test', name: 'Owner', passwordHash: 'x' });
const field = { type: 'text', labels: { en: '' }, read: 'public', write: 'owner', required: false } as const;
const customFields = createCustomFields([
  { ...field, name: 'username', unique: true },
  { ...field, name: 'team', unique: false },
]);

beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('import-outcomes') });
  await database.migrate();
  await database.transaction(async (em) => {
    await em.insert(owner);
  });
});
// Not before the first test: a mutation run changes no function that was made earlier.
beforeEach(() => {
  users = createUserImport(database, createActivity(database, { keptDays: 1 }), customFields);
});
afterAll(() => database.close());

let count = 0;
const imported = (values: Partial<ImportedUser> = {}): ImportedUser => ({
  email: `user${++count}@example.test`,
  profile: { name: 'Bob Builder' },
  fields: {},
  emailVerified: true,
  passwordHash: null,
  passwordProven: true,
  isBlocked: false,
  language: null,
  createdAt: 1_600_000_000_000,
  identities: [],
  ...values,
});
const identity = (subject: string, values: Partial<ImportedUser['identities'][number]> = {}) => ({
  provider: acme,
  issuer: 'https://acme.test',
  subject,
  email: null,
  proven: true,
  ...values,
});

/** The user with an address, and what is stored of it elsewhere. */
const storedOf = (email: string) =>
  database.query(async (tables) => {
    const user = await tables.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst();
    const of = (table: 'identities' | 'activity' | 'unique_values') =>
      tables
        .selectFrom(table)
        .selectAll()
        .where('user_id', '=', user?.id ?? '')
        .execute();
    return {
      user,
      identities: await of('identities'),
      events: await of('activity'),
      uniqueValues: await of('unique_values'),
    };
  });

/** As if the owner had used this address and replaced it. */
const insertGivenUp = (tables: AllTables, email: string, { isConfirmed = true, openMs = 60_000 } = {}) =>
  tables
    .insertInto('email_changes')
    .values({
      id: crypto.randomUUID(),
      user_id: owner.id,
      email: owner.email,
      former: email,
      confirm_hash: crypto.randomUUID(),
      undo_hash: crypto.randomUUID(),
      created_at: database.now,
      confirmed_at: isConfirmed ? database.now : null,
      expires_at: sql`${database.now} + ${openMs}`,
    })
    .execute();

/** The outcomes of a batch, which a preview states as well. */
async function importAll(batch: ImportedUser[]) {
  const before = await database.query((tables) => tables.selectFrom('users').select('id').execute());
  const previewed = await users.preview(batch);
  expect(await database.query((tables) => tables.selectFrom('users').select('id').execute())).toEqual(before);
  const outcomes = await users.importAll(batch);
  expect(outcomes).toEqual(previewed);
  return outcomes;
}

test('a user has all imported fields, and the event of the import', async () => {
  const given = imported({
    profile: { name: 'Ada Lovelace', bio: 'engines', location: 'London', website: '', avatar: 'https://a.test/a.png' },
    fields: { username: 'ada', team: 'a', note: null },
    language: 'de',
    passwordHash: 'hash',
  });
  expect(await importAll([given])).toEqual(['imported']);
  const { user, events, identities, uniqueValues } = await storedOf(given.email);
  expect(user).toMatchObject({
    name: 'Ada Lovelace',
    bio: 'engines',
    location: 'London',
    website: null,
    avatar: 'https://a.test/a.png',
    fields: '{"username":"ada","team":"a"}',
    language: 'de',
    email_verified: 1,
    password_hash: 'hash',
    password_proven: 1,
    blocked_at: null,
    created_at: 1_600_000_000_000,
    provider: 'email',
    role: 'user',
  });
  expect(events).toMatchObject([{ kind: 'registered', actor: 'operator', details: '{"method":"import"}' }]);
  expect(identities).toEqual([]);
  expect(uniqueValues).toMatchObject([{ field: 'username' }]);
});

test('the words of the name find the user', async () => {
  const { email } = imported();
  await importAll([imported({ email, profile: { name: 'Grace Hopper' } })]);
  const { user } = await storedOf(email);
  const words = await database.query((tables) =>
    tables
      .selectFrom('name_words')
      .selectAll()
      .where('user_id', '=', user?.id ?? '')
      .execute(),
  );
  expect(words).toHaveLength(1);
});

test('users created at the same time have ids in the order of their import', async () => {
  const batch = Array.from({ length: 20 }, () => imported());
  await importAll(batch);
  const ids = await Promise.all(batch.map(async ({ email }) => (await storedOf(email)).user?.id ?? ''));
  expect(ids).toEqual(ids.toSorted());
});

test.each([
  ['has the account', { emailVerified: true, passwordProven: true }, 1, 1],
  ['with a method that is not proven', { emailVerified: true, passwordProven: false }, 0, 0],
  ['whose address is not verified', { emailVerified: false, passwordProven: true }, 0, 0],
] as const)('the methods of a user %s', async (_, values, password, linked) => {
  const [{ email }, subject] = [imported(), `methods ${++count}`];
  const identities = [identity(subject, { proven: values.passwordProven, email: 'there@example.test' })];
  await importAll([imported({ email, passwordHash: 'x', identities, ...values })]);
  const { user, ...stored } = await storedOf(email);
  expect(user).toMatchObject({ email_verified: values.emailVerified ? 1 : 0, password_proven: password });
  expect(stored.identities).toMatchObject([
    {
      issuer: 'https://acme.test',
      subject,
      provider: 'acme',
      email: 'there@example.test',
      proven: linked,
      created_at: 1_600_000_000_000,
    },
  ]);
});

test.each<[string, Partial<ImportedUser>, string]>([
  ['the password', { passwordHash: 'x', identities: [identity('first 1')] }, 'email'],
  ['else the first identity', { identities: [identity('first 2'), identity('first 3')] }, 'acme'],
  ['else the address', {}, 'email'],
])('the provider of a user is %s', async (_, values, provider) => {
  const given = imported(values);
  await importAll([given]);
  expect((await storedOf(given.email)).user).toMatchObject({ provider });
});

test('a blocked user is blocked', async () => {
  const given = imported({ isBlocked: true });
  await importAll([given]);
  expect((await storedOf(given.email)).user?.blocked_at).toBeGreaterThan(1_700_000_000_000);
});

test('a batch reports each user, in order, and stores only the imported ones', async () => {
  const [known, linked] = [imported({ fields: { username: 'known' } }), imported({ identities: [identity('known')] })];
  await importAll([known, linked]);
  const reserved = imported();
  await database.change((tables) => insertGivenUp(tables, reserved.email));
  const batch = [
    imported({ email: known.email, profile: { name: 'Changed' } }),
    imported(),
    reserved,
    imported({ fields: { username: 'KNOWN' } }),
    imported({ fields: { username: 'other' } }),
    imported({ identities: [identity('new'), identity('known')] }),
    // The same subject at another provider, and the same value of a field that is not unique.
    imported({ identities: [identity('known', { issuer: 'https://other.test' })], fields: { team: 'known' } }),
    // The address comes first.
    imported({ email: known.email, identities: [identity('known')], fields: { username: 'known' } }),
  ];
  const outcomes = [
    'exists',
    'imported',
    'reserved',
    'field-taken',
    'imported',
    'identity-linked',
    'imported',
    'exists',
  ];
  expect(await importAll(batch)).toEqual(outcomes);
  for (const [i, { email }] of batch.entries()) {
    const { user } = await storedOf(email);
    expect(user?.name).toBe(outcomes[i] === 'imported' || outcomes[i] === 'exists' ? 'Bob Builder' : undefined);
  }
});

test.each([
  ['a change that was not confirmed', { isConfirmed: false }],
  ['a change that can no longer be undone', { openMs: -1 }],
])('an address is not reserved by %s', async (_, change) => {
  const given = imported();
  await database.change((tables) => insertGivenUp(tables, given.email, change));
  expect(await importAll([given])).toEqual(['imported']);
});

test('a batch without users has no outcomes', async () => {
  expect(await importAll([])).toEqual([]);
});

test('a batch that fails is imported by no part', async () => {
  const batch = [imported({ identities: [identity('failing')] }), imported()];
  const activity = { recordAll: () => Promise.reject(new Error('down')) };
  await expect(createUserImport(database, activity, customFields).importAll(batch)).rejects.toThrow('down');
  for (const { email } of batch) expect((await storedOf(email)).user).toBeUndefined();
});

test('a batch with an address that is given up meanwhile is rolled back and checked again', async () => {
  const batch = [imported(), imported()];
  let batches = 0;
  const activity = {
    /** In the transaction of the import, because SQLite has one writer: the rollback takes the change along. */
    async recordAll(tables: AllTables) {
      if (++batches === 1) await insertGivenUp(tables, batch[0]?.email ?? '');
    },
  };
  const { importAll: importOnly } = createUserImport(database, activity, customFields);
  expect(await importOnly(batch)).toEqual(['imported', 'imported']);
  expect(batches).toBe(2);
  for (const { email } of batch) expect((await storedOf(email)).user).toMatchObject({ email });
});
