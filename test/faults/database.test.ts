import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { User } from '../../entities/index.ts';
import { createSessionRows } from '../../server/accounts/sessions/rows.ts';
import { createUserSearch } from '../../server/accounts/users/search.ts';
import { type Account, createUserStore, type UserStore } from '../../server/accounts/users/users.ts';
import { backgroundJob } from '../../server/activity/caller.ts';
import { createActivity } from '../../server/activity/index.ts';
import { type Database, sql } from '../../server/parts/database/contract.ts';
import { openDatabase } from '../../server/parts/database/index.ts';
import { type Call, callerOf, type Reply } from '../contract/rig/callers.ts';
import { loggedIn } from '../contract/rig/scenario.ts';
import { type DatabaseView, viewMysql } from '../rig/observe/database-view.ts';
import { startService } from '../rig/process/service.ts';
import { createDatabase, startMysql } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { startSilentProxy } from '../rig/servers/proxy.ts';
import { redisClient, startRedisServer } from '../rig/servers/redis.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

type LoggedIn = Awaited<ReturnType<typeof loggedIn>>;

const unavailable = { code: 'SERVICE_UNAVAILABLE', status: 503 };

/** A server of this file alone: it is frozen, and its global counters are read. */
let mysql: PrivateServer;
let databaseUrl: string;
let database: Database;
let view: DatabaseView;

beforeAll(async () => {
  mysql = await startMysql();
  databaseUrl = await createDatabase(mysql.url);
  database = await openDatabase({ databaseUrl, dataDir: '' });
  await database.migrate();
  view = viewMysql(databaseUrl);
});
afterAll(async () => {
  await Promise.all([database.close(), view.close()]);
  await mysql.stop();
});

/** The statements that run on the server, except this one. */
const running = () =>
  view.query<{ info: string }>(
    "select info from information_schema.processlist where command = 'Query' and id <> connection_id()",
  );

/** Another client that locks a user's row until `release`. */
async function holdRow(id: string, url = databaseUrl) {
  const connection = await createConnection(url);
  await connection.query('begin');
  await connection.query('select id from users where id = ? for update', [id]);
  return {
    connection,
    release: async () => {
      await connection.query('commit');
      await connection.end();
    },
  };
}

const addUser = async (name = 'Ada') => {
  const user = User.register({ email: `${Math.random()}@example.test`, name, passwordHash: null });
  await database.transaction((em) => em.insert(user));
  return user;
};

const nameOf = async (id: string) => {
  const [row] = await view.query<{ name: string }>('select name from users where id = ?', [id]);
  return row?.name;
};

const rename = (id: string, name: string) =>
  database.write((tables) => tables.updateTable('users').set({ name }).where('id', '=', id).execute());

/** As read by a session, once changes are single statements: then the clock of the database is known. */
const partsOf = (database: Database) => ({ database, activity: createActivity(database, { keptDays: 1 }) });

const readUser = async (users = createUserStore(partsOf(database))): Promise<Account> => {
  const { id } = await addUser();
  return (await users.find(id)) as Account;
};

/** The number of statements of each kind that the server runs during the call. */
const statementsOf = async (work: () => Promise<unknown>): Promise<Record<string, number>> => {
  const counted = async () => {
    const rows = await view.query<{ Variable_name: string; Value: string }>(
      "show global status where Variable_name in ('Com_begin', 'Com_update', 'Com_select', 'Com_commit')",
    );
    return rows.map(({ Variable_name, Value }) => [Variable_name, Number(Value)] as const);
  };
  const before = new Map(await counted());
  await work();
  return Object.fromEntries((await counted()).map(([name, count]) => [name, count - (before.get(name) ?? 0)]));
};

/** Would run forever. */
const everyPairOfColumns = sql`select count(*) from information_schema.columns a, information_schema.columns b,
  information_schema.columns c, information_schema.columns d where a.column_name < b.column_comment`;

describe('a cancelled statement also ends in the database', () => {
  test('a slow read', async () => {
    const heavy = database.query((tables) =>
      tables.selectNoFrom(sql<number>`(${everyPairOfColumns})`.as('heavy')).execute(),
    );
    await until(async () => (await running()).some(({ info }) => info.includes('heavy')));
    await expect(heavy).rejects.toMatchObject(unavailable);
    await until(async () => (await running()).length === 0, { within: 5000 });
  });

  test('a change that waited too long for a row, and makes no change later', async () => {
    const { id } = await addUser();
    const { release } = await holdRow(id);
    const changes = [
      rename(id, 'Eve'),
      database.transaction(async (em) => (await em.findOneOrFail(User, { id })).changeProfile({ name: 'Eve' })),
    ];
    for (const change of await Promise.allSettled(changes)) {
      expect(change).toMatchObject({ status: 'rejected', reason: unavailable });
    }
    await until(async () => (await running()).length === 0, { within: 5000 });
    await release();
    expect(await nameOf(id)).toBe('Ada');
  });

  // checks: F4
  test('a profile sent to a frozen server makes no change later', async () => {
    const read = await readUser();
    mysql.pause();
    await expect(createUserStore(partsOf(database)).update(read, { name: 'Eve' }, backgroundJob)).rejects.toMatchObject(
      unavailable,
    );
    mysql.resume();
    await until(() => database.ping().then(() => true));
    await until(async () => (await running()).length === 0);
    expect(await nameOf(read.id)).toBe('Ada');
  });

  // checks: F4
  test('a change sent to a frozen server makes no change later', async () => {
    const { id } = await addUser();
    mysql.pause();
    const change = rename(id, 'Eve');
    await expect(change).rejects.toMatchObject(unavailable);
    mysql.resume();
    // All pending work of the server precedes this.
    await until(() => rename(id, 'Grace').then(() => true));
    await until(async () => (await running()).length === 0);
    expect(await nameOf(id)).toBe('Grace');
  });
});

// checks: F4
test('silently dropped connections are detected and replaced', async () => {
  const proxy = await startSilentProxy(mysql.port);
  const url = new URL(databaseUrl);
  url.port = String(proxy.port);
  const behind = await openDatabase({ databaseUrl: url.href, dataDir: '' });
  await behind.migrate();
  await Promise.all(Array.from({ length: 30 }, () => behind.ping()));
  proxy.silence();
  await expect(behind.ping()).rejects.toMatchObject(unavailable);
  await until(() => behind.ping().then(() => true));
  await behind.close();
  await proxy.stop();
});

test('a single change is retried after a deadlock', async () => {
  const [first, second] = [await addUser(), await addUser()];
  const { connection, release } = await holdRow(second.id);
  // It has more to undo, so the other is the victim of the deadlock.
  await connection.query("update users set bio = 'x' where id = ?", [second.id]);
  await connection.query("update users set bio = 'y' where id = ?", [second.id]);
  const change = database.write((tables) =>
    tables.updateTable('users').set({ location: 'London' }).where('id', 'in', [first.id, second.id].sort()).execute(),
  );
  await until(async () => (await running()).some(({ info }) => info.includes('location')));
  await connection.query("update users set bio = 'z' where id = ?", [first.id]);
  await release();
  await change;
  const rows = await view.query('select location from users where id in (?, ?)', [first.id, second.id]);
  expect(rows).toEqual([{ location: 'London' }, { location: 'London' }]);
});

describe('a change of a profile', () => {
  let own: Database;
  let users: UserStore;
  beforeAll(async () => {
    own = await openDatabase({ databaseUrl, dataDir: '' });
    await own.migrate();
    users = createUserStore(partsOf(own));
  });
  afterAll(() => own.close());

  test('is one transaction: it locks, reads and updates the row, and inserts the event', async () => {
    const read = await readUser(users);
    const work = () => users.update(read, { name: 'Grace', bio: 'x', website: '' }, backgroundJob);
    expect(await statementsOf(work)).toEqual({ Com_begin: 1, Com_update: 1, Com_select: 1, Com_commit: 1 });
    expect(await view.query('select name, search_name, bio, website from users where id = ?', [read.id])).toEqual([
      { name: 'Grace', search_name: 'grace', bio: 'x', website: null },
    ]);
  });

  test.each([
    { name: 'Grace' },
    { name: 'ADA' },
    { bio: 'x' },
    { website: 'https://example.test' },
    { avatar: 'https://example.test/a.png' },
  ])('returns concurrent changes made since the session was read: %j', async (other) => {
    const read = await readUser(users);
    await users.update(read, other, backgroundJob);
    const answer = await users.update(read, { location: 'London' }, backgroundJob);
    expect(answer).toEqual({ ...read, ...other, location: 'London' });
    expect(answer).toEqual(await users.find(read.id));
  });

  test('is refused once its session has ended, and changes nothing', async () => {
    const read = await readUser(users);
    await createSessionRows(database, partsOf(database).activity).endAll(read.id, backgroundJob);
    await expect(users.update(read, { name: 'Eve' }, backgroundJob)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(await nameOf(read.id)).toBe('Ada');
  });
});

test('a read connection cannot write', () => {
  const neverCalled = () => [
    // @ts-expect-error: an insert
    database.query((tables) => tables.insertInto('users').execute()),
    // @ts-expect-error: an update
    database.query((tables) => tables.updateTable('users').set({ bio: 'x' }).execute()),
    // @ts-expect-error: a delete
    database.query((tables) => tables.deleteFrom('users').execute()),
    // @ts-expect-error: a statement of its own
    database.query((tables) => sql`delete from users`.execute(tables)),
    // @ts-expect-error: a delete behind a common table expression
    database.query((tables) => tables.with('x', (x) => x.deleteFrom('users')).execute()),
    // @ts-expect-error: a read
    database.write((tables) => tables.selectFrom('users').select('id').execute()),
  ];
  expect(neverCalled).toBeTypeOf('function');
});

describe('a search', () => {
  const SAME = 20_000;
  const search = () => createUserSearch(database);

  /** The number of rows and index entries that the server reads for it. */
  const readsOf = async (work: () => Promise<unknown>): Promise<number> => {
    const total = async () => {
      const rows = await view.query<{ Value: string }>("show global status like 'Handler_read%'");
      return rows.reduce((sum, { Value }) => sum + Number(Value), 0);
    };
    const idle = await total();
    const asking = (await total()) - idle;
    const before = await total();
    await work();
    return (await total()) - before - asking;
  };

  beforeAll(async () => {
    await view.query(
      `insert into users (id, email, name, search_name, provider, role, email_verified, session_epoch, created_at)
       select concat('user_', left(sha2(n, 256), 36)), concat('many.', n, '@example.test'), 'Many', 'many', 'email', 'user', 1, 0, 0
       from (select row_number() over () as n from information_schema.columns a, information_schema.columns b limit ${SAME}) numbers`,
    );
    await view.query('analyze table users');
  });

  test('costs the same for any query on any page', async () => {
    const limit = 20;
    const first = await search()({ q: 'many', limit });
    const deep = Buffer.from(JSON.stringify({ name: 'many', id: 'user_7' })).toString('base64url');
    const emails = Buffer.from(JSON.stringify({ email: 'many.2' })).toString('base64url');
    const reads = {
      first: await readsOf(() => search()({ q: 'many', limit })),
      second: await readsOf(() => search()({ q: 'm', limit, cursor: first.nextCursor })),
      deep: await readsOf(() => search()({ q: 'many', limit, cursor: deep })),
      byEmail: await readsOf(() => search()({ q: 'many', limit, cursor: emails })),
      nobody: await readsOf(() => search()({ q: 'nobody', limit })),
    };
    for (const [page, count] of Object.entries(reads)) expect([page, count <= 500]).toEqual([page, true]);
    expect(reads.first).toBeLessThan(3 * limit);
    expect(reads.second).toBeLessThan(3 * limit);
    expect(reads.deep).toBeLessThan(3 * limit);
    expect(reads.nobody).toBeLessThan(3 * limit);
  });

  test('lists each of the users who share a name and the start of their email once', async () => {
    const seen = new Set<string>();
    let pages = 0;
    for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
      const page = await search()({ q: 'MANY', limit: 100, cursor });
      for (const { id } of page.users) seen.add(id);
      cursor = page.nextCursor;
      pages++;
    }
    expect(seen.size).toBe(SAME);
    expect(pages).toBeLessThanOrEqual(2 * (SAME / 100));
  });
});

describe('a service', () => {
  let stack: Stack;
  let call: Call;
  beforeAll(async () => {
    stack = await startStack('real', { mysqlUrl: mysql.url });
    call = callerOf('rest', stack.url);
  });
  afterAll(() => stack.stop());

  // checks: F4
  test.each<[string, (held: LoggedIn, i: number) => Promise<Reply>]>([
    ['changes of a profile', ({ session }, i) => call('profile.update', { bio: `${i}` }, { session })],
    ['logins', ({ email, password }) => call('auth.login', { email, password })],
  ])('with one locked row serves all other rows while many %s wait', async (_, act) => {
    const [held, other] = [await loggedIn({ stack, call }), await loggedIn({ stack, call })];
    const { release } = await holdRow(held.id, stack.services[0]?.env['DATABASE_URL']);
    // Nine times the connections, and fewer than LIMIT_ACCOUNT counts at once.
    const waiting = Array.from({ length: 90 }, (_, i) => act(held, i));
    try {
      // At most two of them ever wait in the database.
      for (let round = 0; round < 20; round++) {
        const { status } = await call('profile.update', { bio: `${round}` }, { session: other.session });
        expect(status).toBe(200);
        const [{ waits } = { waits: 0 }] = await stack.database<RowDataPacket & { waits: number }>(
          "select count(*) as waits from information_schema.innodb_trx where trx_state = 'LOCK WAIT'",
        );
        expect(Number(waits)).toBeLessThanOrEqual(2);
      }
    } finally {
      await release();
    }
    const statuses = new Set((await Promise.all(waiting)).map(({ status }) => status));
    expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
    expect((await call('profile.update', { bio: 'free' }, { session: held.session })).status).toBe(200);
  });

  test('that answered 503 makes no change when the row is free', async () => {
    const { id, session, name } = await loggedIn({ stack, call });
    const { release } = await holdRow(id, stack.services[0]?.env['DATABASE_URL']);
    const reply = await call('profile.update', { name: 'Mallory' }, { session });
    expect(reply).toMatchObject(unavailable);
    // Its statement still waits for the row, and gets it now.
    await release();
    const open = () => stack.database('select 1 from information_schema.innodb_trx');
    // InnoDB answers from a cache if it is read more often than every 100 ms.
    await until(async () => (await open()).length === 0, { what: 'the end of all transactions', every: 200 });
    expect(await stack.database('select name from users where id = ?', [id])).toEqual([{ name }]);
  });

  // checks: F7
  test('refused by the database logs the error once, fails /readyz, and recovers by itself', async () => {
    const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
    const url = new URL(env['DATABASE_URL'] ?? '');
    url.username = 'late';
    url.password = 'late-password';
    const refusals = async () => {
      const [row] = await view.query<{ Value: string }>("show global status like 'Aborted_connects'");
      return Number(row?.Value);
    };
    const before = await refusals();
    const service = await startService({ env: { ...env, DATABASE_URL: url.href }, ready: false });
    try {
      await until(async () => (await refusals()) - before >= 5);
      const readyz = await fetch(`${service.url}/readyz`);
      expect([readyz.status, await readyz.json()]).toEqual([
        503,
        { status: 'error', database: 'refused', keyValueStore: 'ok' },
      ]);
      const warnings = service
        .output()
        .split('\n')
        .filter((line) => line.includes('the database'));
      expect(warnings).toEqual([
        expect.stringMatching(/the database refuses the connection \(Access denied for user 'late'.*DATABASE_URL/),
      ]);
      expect(service.output()).not.toContain('late-password');
      expect(service.output()).not.toMatch(/^\s+at /m);
      expect((await callerOf('rest', service.url)('health')).data).toMatchObject({
        status: 'error',
        db: 'disconnected',
      });

      await view.query("create user late@'127.0.0.1' identified by 'late-password'");
      await view.query(`grant all on ${url.pathname.slice(1)}.* to late@'127.0.0.1'`);
      await until(async () => (await fetch(`${service.url}/readyz`)).status === 200);
    } finally {
      await service.stop();
    }
  });

  // checks: F7
  test('refused by Redis logs the error once, and fails /readyz', async () => {
    const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
    const url = new URL(env['REDIS_URL'] ?? '');
    url.username = 'nobody';
    url.password = 'wrong-password';
    const service = await startService({ env: { ...env, REDIS_URL: url.href }, ready: false });
    try {
      const state = async () => (await fetch(`${service.url}/readyz`)).json() as Promise<Record<string, string>>;
      await until(async () => (await state())['database'] === 'ok');
      expect(await state()).toEqual({ status: 'error', database: 'ok', keyValueStore: 'refused' });
      const warnings = service
        .output()
        .split('\n')
        .filter((line) => line.includes('Redis'));
      expect(warnings).toEqual([expect.stringMatching(/Redis refuses the connection \(WRONGPASS.*REDIS_URL/)]);
      expect(service.output()).not.toContain('wrong-password');
    } finally {
      await service.stop();
    }
  });

  test.each([
    ['a full memory', ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']],
    [
      'too few replicas',
      ['CONFIG', 'SET', 'min-replicas-to-write', '1'],
      ['CONFIG', 'SET', 'min-replicas-to-write', '0'],
    ],
  ])('whose Redis takes no writes for %s reports it on /readyz, and sessions still work', async (_, begin, end) => {
    const redis = await startRedisServer({});
    const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
    const service = await startService({ env: { ...env, REDIS_URL: redis.url } });
    const client = redisClient(redis.url);
    try {
      const call = callerOf('rest', service.url);
      const { session, ...person } = await loggedIn({ stack, call });
      const readyz = async () => {
        const response = await fetch(`${service.url}/readyz`);
        return [response.status, ((await response.json()) as Record<string, string>)['keyValueStore']];
      };
      expect(await readyz()).toEqual([200, 'ok']);
      await client.call(begin[0] ?? '', ...begin.slice(1));
      await until(async () => (await readyz())[1] === 'read-only');
      expect(await readyz()).toEqual([200, 'read-only']);
      expect((await call('profile.get', undefined, { session })).status).toBe(200);
      expect((await call('auth.login', person)).status).toBe(503);
      await client.call(end[0] ?? '', ...end.slice(1));
      await until(async () => (await readyz())[1] === 'ok');
      expect((await call('auth.login', person)).status).toBe(200);
    } finally {
      client.disconnect();
      await service.stop();
      await redis.stop();
    }
  });

  test('whose Redis is a replica is not ready until a master exists', async () => {
    const redis = await startRedisServer({});
    const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
    const service = await startService({ env: { ...env, REDIS_URL: redis.url } });
    const client = redisClient(redis.url);
    try {
      const readyz = async () => {
        const response = await fetch(`${service.url}/readyz`);
        return [response.status, ((await response.json()) as Record<string, string>)['keyValueStore']];
      };
      await client.call('REPLICAOF', '127.0.0.1', '9');
      for (let i = 0; i < 20; i++) expect(await readyz()).toEqual([503, 'unreachable']);
      await client.call('REPLICAOF', 'NO', 'ONE');
      await until(async () => (await readyz())[0] === 200);
    } finally {
      client.disconnect();
      await service.stop();
      await redis.stop();
    }
  });
});
