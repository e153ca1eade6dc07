import { MikroORM } from '@mikro-orm/sql';
import { beforeAll, expect, inject, test } from 'vitest';
import { loadMigrations } from '../../../entities/migrations/index.ts';
import { migrationOptions } from '../../../server/parts/database/options.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';

/** The last migration before the rule, when versions never ran side by side. */
const LAST_BEFORE_RULE = '0008-no-update-time';

/** What breaks the previous version while it still runs. Each pattern is tested against a statement or `alter table` action. */
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

/** Commas within parentheses or quotes do not separate actions. */
const actionsOf = (list: string) => list.match(/(?:\([^()]*(?:\([^()]*\)[^()]*)*\)|'[^']*'|[^,('])+/g) ?? [];

function problemsIn(statement: string): string[] {
  const text = statement
    .toLowerCase()
    .replace(/, (?:algorithm|lock)=\w+/g, '')
    .replace(/[\s`]+/g, (found) => (found.includes('`') ? found.replaceAll('`', '') : ' '));
  const [, list] = /^alter table \S+ (.*)$/.exec(text) ?? [];
  const actions = list === undefined ? [text] : actionsOf(list);
  return actions.flatMap((action) =>
    forbidden
      .filter(([pattern]) => pattern.test(action.trim()))
      .map(([, why]) => `${action.trim()}: the version before still runs, and ${why}`),
  );
}

/** The objections to a migration, which may justify a removal by `contracts`. */
function objectionsTo({ contracts }: { contracts?: string | undefined }, statements: string[]): string[] {
  // A statement that the server cannot run in the requested way is sent again.
  const problems = [...new Set(statements.flatMap(problemsIn))];
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

test('only a migration that removes something has a reason, and must have one', () => {
  const contracts = 'v0.2.0 was the last to read it';
  expect(objectionsTo({}, ['drop table x'])).toHaveLength(1);
  expect(objectionsTo({ contracts }, ['create index a on b (c)', 'drop table x'])).toEqual([]);
  expect(objectionsTo({ contracts }, ['create index a on b (c)'])).toHaveLength(1);
});

/** The MySQL statements of each migration, by name. On SQLite a single instance stops before an upgrade. */
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

test('each migration keeps the previous version working', async () => {
  const objections = (await loadMigrations()).map(
    ({ name, class: { contracts } }) => [name, objectionsTo({ contracts }, sent.get(name) ?? [])] as const,
  );
  const isEarly = ([name]: (typeof objections)[number]) => name <= LAST_BEFORE_RULE;
  // Checks that the recording misses no statement.
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

test('a change of a table names its online algorithm, so no migration locks the table', () => {
  const changes = [...sent].flatMap(([name, statements]) =>
    statements
      .filter((statement) => /^(?:alter table|(?:create|drop) (?:unique )?index)\b/i.test(statement.trim()))
      .map((statement) => ({ name, statement })),
  );
  expect(changes.filter(({ name, statement }) => name > LAST_BEFORE_RULE && !statement.includes('algorithm='))).toEqual(
    [],
  );
  expect(changes.filter(({ statement }) => statement.includes('algorithm=')).length).toBeGreaterThan(5);
});
