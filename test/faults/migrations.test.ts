import { setTimeout as pause } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../server/parts/database/index.ts';
import { call as ask } from '../bench/client.ts';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { loggedIn } from '../contract/rig/scenario.ts';
import { startMysql } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** A running instance, and migrations that change the tables that it uses. */
const LAST = '0020-languages';
/** Each with a session and an event. More by MIGRATION_USERS. */
const USERS = Number(process.env['MIGRATION_USERS'] ?? 20_000);
const CALLERS = 16;

let mysql: PrivateServer;
let stack: Stack;
let call: Call;
let databaseUrl: string;
let person: Awaited<ReturnType<typeof loggedIn>>;

beforeAll(async () => {
  mysql = await startMysql();
  stack = await startStack('real', { mysqlUrl: mysql.url });
  call = callerOf('rest', stack.url);
  databaseUrl = stack.services[0]?.env['DATABASE_URL'] ?? '';
  person = await loggedIn({ stack, call });
  await stack.database(
    `insert into users (id, email, name, search_name, provider, role, email_verified, session_epoch, created_at)
     select concat('user_', left(sha2(n, 256), 36)), concat('many.', n, '@example.test'), 'Many', 'many', 'email', 'user', 1, 0, 0
     from (select row_number() over () as n from information_schema.columns a, information_schema.columns b limit ${USERS}) numbers`,
  );
  const now = Date.now();
  await stack.database(
    `insert into sessions (id, user_id, epoch, method, address, device, created_at, authenticated_at, last_used_at, expires_at)
     select left(sha2(id, 256), 36), id, 0, 'password', '', '', ${now}, ${now}, ${now}, ${now + 86_400_000} from users where name = 'Many'`,
  );
  await stack.database(
    `insert into activity (id, user_id, kind, actor, address, device, request_id, created_at)
     select left(sha2(id, 256), 36), id, 'registered', 'user', '', '', '', ${now} from users where name = 'Many'`,
  );
});
afterAll(async () => {
  await stack?.stop();
  await mysql?.stop();
});

const lines: string[] = [];
const note = (_: unknown, message: string) => lines.push(message);
const log = { debug: note, info: note, warn: note, error: note, fatal: note } as never;

/** What another instance does at its start. */
const migrate = async () => {
  const database = await openDatabase({ databaseUrl, dataDir: '' }, log);
  return database.migrate().finally(() => database.close());
};

const forget = (names: string[]) =>
  stack.database(`delete from mikro_orm_migrations where name in (${names.map((name) => `'${name}'`).join(', ')})`);

/** Reads and changes of users, sequentially per caller. `stop` returns the longest call and the longest time without an answer. */
function startCalls() {
  let isOver = false;
  let count = 0;
  let longest = 0;
  let gap = 0;
  const failures: string[] = [];
  const headers = { Cookie: `auth_session=${person.session}` };
  const calls = [
    () => ask(`${stack.url}/api/users?limit=5`),
    () => ask(`${stack.url}/api/profile`, { headers }),
    () => ask(`${stack.url}/api/profile`, { method: 'PUT', headers, body: { bio: `${count}` } }),
    () => ask(`${stack.url}/api/users/${person.id}`),
  ];
  let answered = performance.now();
  const callers = Array.from({ length: CALLERS }, async (_, i) => {
    while (!isOver) {
      const began = performance.now();
      await calls[(i + count) % calls.length]?.().catch((error) => failures.push(String(error)));
      const now = performance.now();
      longest = Math.max(longest, now - began);
      gap = Math.max(gap, now - answered);
      answered = now;
      count++;
    }
  });
  return {
    count: () => count,
    async stop() {
      isOver = true;
      await Promise.all(callers);
      return { count, longest, gap, failures };
    },
  };
}

test('a migration that waits for a reader delays other requests for at most a second', async () => {
  await stack.database('alter table users drop column language, drop column browser_language');
  await forget([LAST]);
  const reader = await createConnection(databaseUrl);
  await reader.query('begin');
  await reader.query('select id from users limit 1');
  const reads = Array.from({ length: 3 }, () => call('users.list', { limit: 5 }));
  expect((await Promise.all(reads)).map(({ status }) => status)).toEqual([200, 200, 200]);
  const migrated = migrate();
  const times: number[] = [];
  try {
    // Over several attempts.
    for (const since = performance.now(); performance.now() - since < 6000; await pause(50)) {
      const began = performance.now();
      const { status } = await call('users.list', { limit: 5 });
      expect(status).toBe(200);
      times.push(performance.now() - began);
    }
  } finally {
    await reader.query('commit');
    await reader.end();
  }
  expect(await migrated).toEqual([LAST]);
  // A second, and a margin for a loaded machine.
  expect(Math.max(...times)).toBeLessThan(1900);
  expect(times.filter((time) => time > 500).length).toBeGreaterThan(0);
  expect(lines.filter((line) => line === 'a migration waits for others that use its tables')).toHaveLength(1);
});

test(`three instances that migrate ${USERS} rows and index three tables concurrently fail no request`, async () => {
  // The schema before these, in which a running instance has everything it needs.
  await stack.database(
    'alter table users add index users_name (name), drop index users_search_name, drop index users_role',
  );
  await stack.database('alter table outbox drop index outbox_user');
  await stack.database('alter table activity drop index activity_topics');
  await stack.database('alter table sessions drop index sessions_of_epoch');
  await stack.database('update users set search_name = null');
  const names = ['0006-search', '0014-removals', '0017-administration', '0027-bounded-reads'];
  await forget(names);
  const load = startCalls();
  await until(() => load.count() > 100);
  const [began, before] = [performance.now(), load.count()];
  const applied = (await Promise.all([migrate(), migrate(), migrate()])).flat();
  const migratedMs = performance.now() - began;
  const beside = load.count() - before;
  await until(() => load.count() > 500);
  const { count, longest, gap, failures } = await load.stop();
  console.log(
    `Migrations: ${USERS} rows in ${Math.round(migratedMs)} ms beside ${beside} calls (${Math.round((1000 * beside) / migratedMs)}/s), of ` +
      `${count} in all; the longest took ${Math.round(longest)} ms, longest time without an answer ${Math.round(gap)} ms, failed ${failures.length}`,
  );
  expect(applied.sort()).toEqual(names);
  expect(failures).toEqual([]);
  expect(longest).toBeLessThan(3000);
  const [row] = await stack.database<{ missing: number }>(
    'select count(*) as missing from users where search_name is null',
  );
  expect(Number(row?.missing)).toBe(0);
});

/** Each of two transactions holds the row that the other wants next. */
test('after a deadlock one transaction is retried, and both commit', async () => {
  const databases = await Promise.all([0, 1].map(() => openDatabase({ databaseUrl, dataDir: '' })));
  await Promise.all(databases.map((database) => database.migrate()));
  const ids = [person.id, (await loggedIn({ stack, call })).id];
  const firstRows = Promise.withResolvers<void>();
  let held = 0;
  let attempts = 0;
  try {
    const change = (database: (typeof databases)[number], [first, second]: (string | undefined)[], text: string) =>
      database.change(async (tables) => {
        attempts++;
        const set = (id = '') =>
          tables.updateTable('users').set({ location: text }).where('id', '=', id).executeTakeFirstOrThrow();
        await set(first);
        held++;
        if (held === 2) firstRows.resolve();
        await firstRows.promise;
        await set(second);
      });
    await Promise.all([
      change(databases[0] as never, ids, 'one'),
      change(databases[1] as never, ids.toReversed(), 'other'),
    ]);
  } finally {
    await Promise.all(databases.map((database) => database.close()));
  }
  expect(attempts).toBeGreaterThan(2);
  const rows = await stack.database<{ location: string }>(
    'select location from users where id in (?, ?)',
    ids as string[],
  );
  // Both rows from the same transaction.
  expect(new Set(rows.map(({ location }) => location)).size).toBe(1);
});
