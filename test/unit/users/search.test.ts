import { afterAll, beforeAll, expect, test } from 'vitest';
import { User } from '../../../entities/index.ts';
import { storeNameWords } from '../../../server/accounts/users/name-words.ts';
import { createSearch, createUserSearch, isSearchCursor } from '../../../server/accounts/users/search.ts';
import { parseConfig } from '../../../server/config/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

const dataDir = temporaryDirectory('user-search');
let database: Database;
let search: ReturnType<typeof createUserSearch>;

beforeAll(async () => {
  database = await openDatabase(parseConfig({ DATA_DIR: dataDir, LOG_LEVEL: 'silent' }));
  await database.migrate();
  const people: [name: string, email: string][] = [
    ['Ada Lovelace', 'ada@example.test'],
    ['Adam', 'zoe@example.test'],
    ['Charles', 'ada.c@example.test'],
    ['Dora', 'dora@example.test'],
    ...Array.from({ length: 6 }, (_, n): [string, string] => [`Erik ${n}`, `erik.${n}@example.test`]),
    ['Frieda', 'erik.z@example.test'],
    ['Georg', 'erik.zz@example.test'],
  ];
  await database.transaction(async (em) => {
    await em.insertMany(people.map(([name, email]) => User.register({ name, email, passwordHash: 'x' })));
  });
  search = createUserSearch(database);
});
afterAll(async () => {
  await database.close();
});

/** The names on each page. */
async function pages(q: string, limit: number): Promise<string[][]> {
  const all: string[][] = [];
  let cursor: string | undefined;
  do {
    const { users, nextCursor } = await search({ q, cursor, limit });
    all.push(users.map(({ name }) => name));
    cursor = nextCursor;
  } while (cursor !== undefined);
  return all;
}

test('lists users found by name first, then those found by email only, each once', async () => {
  expect(await pages('ada', 10)).toEqual([['Ada Lovelace', 'Adam', 'Charles']]);
  expect(await pages('ada', 1)).toEqual([['Ada Lovelace'], ['Adam'], ['Charles']]);
});

test.each([1, 2, 3, 5, 6, 7, 8, 9])('in pages of %i, emails of users found by name are skipped', async (limit) => {
  const names = [...Array.from({ length: 6 }, (_, n) => `Erik ${n}`), 'Frieda', 'Georg'];
  expect((await pages('erik', limit)).flat()).toEqual(names);
});

test('the page with the last user has no next page', async () => {
  expect(await pages('ada', 3)).toHaveLength(1);
  expect(await pages('adam', 1)).toEqual([['Adam']]);
  expect(await pages('dora', 1)).toEqual([['Dora']]);
});

test('a cursor works as returned, for its own search', async () => {
  const { nextCursor = '' } = await search({ q: 'ada', limit: 1 });
  expect(isSearchCursor(nextCursor, 'ada')).toBe(true);
  const position = Buffer.from(nextCursor, 'base64url').toString();
  const altered = [`${nextCursor}=`, `${nextCursor}!`, Buffer.from(` ${position}`).toString('base64url'), '', 'e30'];
  for (const cursor of altered) expect(isSearchCursor(cursor, 'ada'), cursor).toBe(false);
  expect(isSearchCursor(nextCursor, 'dora')).toBe(false);
});

/** As administrators search. */
const byWords = () =>
  createSearch(
    (read) => database.query(read),
    (tables) => tables.selectFrom('users').select(['id', 'email', 'name', 'search_name as searchName']),
    { byWord: true },
  );

test.each([1, 2, 3, 10])('later words find users for administrators, each once, in pages of %i', async (limit) => {
  const people = [
    ['Ortega Lucía', 'first@words.test'],
    ['Lucía Ortega', 'ortega.l@words.test'],
    ['María del Carmen Ortega-García', 'm@words.test'],
    ['Ana Ortega Ortega', 'a@words.test'],
    ['Nobody', 'ortega@words.test'],
  ].map(([name = '', email = '']) => User.register({ name, email, passwordHash: 'x' }));
  const found = async (q: string) => {
    const all: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await byWords()({ q, cursor, limit });
      expect(page.users.length).toBeLessThanOrEqual(limit);
      all.push(...page.users.map(({ name }) => name));
      cursor = page.nextCursor;
      if (cursor !== undefined) expect(isSearchCursor(cursor, q)).toBe(true);
    } while (cursor !== undefined);
    return all;
  };
  await database.transaction(async (em, tables) => {
    await em.insertMany(people);
    await storeNameWords(tables, people);
  });
  try {
    const [first = '', lucia = '', maria = '', ana = '', nobody = ''] = people.map(({ name }) => name);
    const all = await found('ORTEGA');
    expect(all[0]).toBe(first);
    expect(all.slice(1, -1).sort()).toEqual([ana, lucia, maria].sort());
    expect(all.at(-1)).toBe(nobody);
    expect(await found('carmen ort')).toEqual([maria]);
    expect(await found('garcia')).toEqual([maria]);
    expect(await found('rtega')).toEqual([]);
    expect(await pages('ortega', 10)).toEqual([[first, lucia, nobody]]);
  } finally {
    await database.write((tables) => tables.deleteFrom('users').where('email', 'like', '%@words.test').execute());
  }
  // They go with their users.
  expect(await database.query((tables) => tables.selectFrom('name_words').selectAll().execute())).toEqual([]);
});
