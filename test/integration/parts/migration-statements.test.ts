import { MikroORM } from '@mikro-orm/sql';
import { beforeAll, expect, inject, test } from 'vitest';
import { loadMigrations } from '../../entities/migrations/index.ts';
import { migrationOptions } from '../../server/parts/database/options.ts';
import { createDatabase, dropDatabase } from '../rig/mysql.ts';

/** The last migration from before the rule, when no two versions ran side by side. */
const LAST_BEFORE_RULE = '0008-no-update-time';

/** What the version before, which still runs, cannot live with. Each is held against a statement, or an action of `alter table`. */
const forbidden: [pattern: RegExp, why: string][] = [
  [/^(?:drop|truncate)\b/, 'it may use this: take it away one release after the last use'],
  [/^rename (?!index|key)/, 'it asks for the old name: add a new one, write both, drop the old one a release later'],
  [/^(?:modify|change)\b/, 'it reads and writes what was: add a column, write both, drop the old one a release later'],
  [/^alter (?:column )?\S+ drop default/, 'it inserts rows without this'],
  [/^convert to\b/, 'it compares as before'],
  [/^add (?:column )?(?!.*\bdefault\b).*\bnot null\b/, 'it inserts rows without this: allow null, or give a default'],
  [/^add .*\b(?:unique|primary key|foreign key|references|check)\b/, 'it does not know this rule'],
  [/^create unique\b/, 'it does not know this rule'],
  [
    /^create table .*\breferences \S+ \([^)]*\)(?! on delete (?:cascade|set null))/,
    'it deletes rows without regard to this',
  ],
];

/** Commas within parentheses or quotes separate no actions. */
const actionsOf = (list: string) => list.match(/(?:\([^()]*(?:\([^()]*\)[^()]*)*\)|'[^']*'|[^,('])+/g) ?? [];

function problemsIn(statement: string): string[] {
  const text = statement
    .toLowerCase()
    .replace(/[\s`]+/g, (found) => (found.includes('`') ? found.replaceAll('`', '') : ' '));
  const [, list] = /^alter table \S+ (.*)$/.exec(text) ?? [];
  const actions = list === undefined ? [text] : actionsOf(list);
  return actions.flatMap((action) =>
    forbidden
      .filter(([pattern]) => pattern.test(action.trim()))
      .map(([, why]) => `${action.trim()}: the version before still runs, and ${why}`),
  );
}

/** What speaks against a migration, which may say by `contracts` why it takes something away. */
function objectionsTo({ contracts }: { contracts?: string | undefined }, statements: string[]): string[] {
  const problems = statements.flatMap(problemsIn);
  if (contracts === undefined) return problems;
  return problems.length > 0 ? [] : ['says why it takes something away, and takes nothing away'];
}

test.each([
  'drop table users',
  'truncate table users',
  'rename table users to people',
  'alter table users drop column bio',
  'ALTER TABLE `users` DROP `bio`',
  'alter table users drop index users_email',
  'alter table users add column x int, drop column y',
  'alter table users rename column bio to about',
  'alter table users rename to people',
  'alter table users modify column bio text',
  'alter table users change bio about text',
  'alter table users alter column bio drop default',
  'alter table users convert to character set utf8mb4',
  'alter table users add column x int not null',
  'alter table users add x decimal(4, 2) not null',
  'alter table users add column x int default 1, add column y int not null',
  'alter table users add constraint users_name unique (name)',
  'alter table users add unique index users_name (name, id)',
  'alter table users add constraint users_x foreign key (x) references y (id) on delete cascade',
  'alter table users add column x int check (x > 0)',
  'create unique index users_name on users (name)',
  'create table x (user_id varchar(41), constraint x_user foreign key (user_id) references users (id))',
])('refused: %s', (statement) => {
  expect(problemsIn(statement)).toHaveLength(1);
});

test.each([
  'create table if not exists x (id int not null primary key, name text not null, constraint x_name unique (name))',
  'create table x (user_id varchar(41), constraint x_user foreign key (user_id) references users (id) on delete cascade)',
  'create index users_name on users (name)',
  "alter table users add column x varchar(9) not null default 'a, drop b', add index users_x (x, id)",
  'alter table users\n  add column x decimal(4, 2),\n  rename index a to b',
  "update users set x = 'drop table users'",
])('allowed: %s', (statement) => {
  expect(problemsIn(statement)).toEqual([]);
});

test('a reason allows a migration to take something away, and only such a one may have a reason', () => {
  const contracts = 'v0.2.0 was the last to read it';
  expect(objectionsTo({}, ['drop table x'])).toHaveLength(1);
  expect(objectionsTo({ contracts }, ['create index a on b (c)', 'drop table x'])).toEqual([]);
  expect(objectionsTo({ contracts }, ['create index a on b (c)'])).toHaveLength(1);
});

/** What each migration sends to MySQL, by its name. On SQLite there is one instance, which is stopped before an upgrade. */
const sent = new Map<string, string[]>();
beforeAll(async () => {
  const databaseUrl = await createDatabase(inject('mysqlUrl'));
  let statements: string[] = [];
  const isEnabled = () => true;
  const nothing = () => undefined;
  const orm = await MikroORM.init({
    ...(await migrationOptions({ databaseUrl, dataDir: '' })),
    loggerFactory: () => ({
      log: nothing,
      warn: nothing,
      error: nothing,
      setDebugMode: nothing,
      isEnabled,
      logQuery: ({ query = '' }) => statements.push(query),
    }),
  });
  try {
    for (const { name } of await loadMigrations()) {
      statements = [];
      await orm.migrator.up({ to: name });
      sent.set(name, statements);
    }
  } finally {
    await orm.close(true);
    await dropDatabase(databaseUrl);
  }
});

test('each migration leaves the version before it working', async () => {
  const objections = (await loadMigrations()).map(
    ({ name, class: { contracts } }) => [name, objectionsTo({ contracts }, sent.get(name) ?? [])] as const,
  );
  const isEarly = ([name]: (typeof objections)[number]) => name <= LAST_BEFORE_RULE;
  // What these were is seen here: nothing that is sent escapes.
  expect(objections.filter(isEarly).map(([name, found]) => [name, found.length])).toEqual([
    ['0001-accounts', 0],
    ['0002-identities', 0],
    ['0003-uploads', 0],
    ['0004-proven-methods', 0],
    ['0005-mail-requests', 3],
    ['0006-search', 1],
    ['0007-upload-usage', 0],
    ['0008-no-update-time', 1],
  ]);
  expect(objections.filter((one) => !isEarly(one) && one[1].length > 0)).toEqual([]);
});
