import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { User } from '../../entities/index.ts';
import { createSessionRows } from '../../server/accounts/session-rows.ts';
import { createUserSearch } from '../../server/accounts/user-search.ts';
import { type Account, createUsers, type Users } from '../../server/accounts/users.ts';
import { backgroundJob } from '../../server/activity/caller.ts';
import { createActivity } from '../../server/activity/index.ts';
import { type Database, sql } from '../../server/parts/database/contract.ts';
import { openDatabase } from '../../server/parts/database/index.ts';
import { type Call, callerOf } from '../contract/callers.ts';
import { loggedIn } from '../contract/scenario.ts';
import { type DatabaseView, viewMysql } from '../rig/database-view.ts';
import { createDatabase, startMysql } from '../rig/mysql.ts';
import type { PrivateServer } from '../rig/private-server.ts';
import { startSilentProxy } from '../rig/proxy.ts';
import { startService } from '../rig/service.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

const unavailable = { code: 'SERVICE_UNAVAILABLE', status: 503 };

/** A server of this file's own: it is frozen, and its counters of all clients are looked at. */
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

/** What the server is busy with for others than the one who asks. */
const running = () =>
  view.query<{ info: string }>(
    "select info from information_schema.processlist where command = 'Query' and id <> connection_id()",
  );

/** Another client that holds a user's row until `release`. */
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

/** As a session has read it, once changes are made by one statement: the database's clock is known then. */
const partsOf = (database: Database) => ({ database, activity: createActivity(database, { keptDays: 1 }) });

const readUser = async (users = createUsers(partsOf(database))): Promise<Account> => {
  const { id } = await addUser();
  return (await users.find(id)) as Account;
};

/** How many statements of each kind the server runs meanwhile. */
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

/** Would take for ever. */
const everyPairOfColumns = sql`select count(*) from information_schema.columns a, information_schema.columns b,
  information_schema.columns c, information_schema.columns d where a.column_name < b.column_comment`;

describe('what is given up ends in the database too', () => {
  test('a read that takes too long', async () => {
    const heavy = database.query((tables) =>
      tables.selectNoFrom(sql<number>`(${everyPairOfColumns})`.as('heavy')).execute(),
    );
    await until(async () => (await running()).some(({ info }) => info.includes('heavy')));
    await expect(heavy).rejects.toMatchObject(unavailable);
    await until(async () => (await running()).length === 0, { within: 5000 });
  }, 20_000);

  test('a change that waits too long for a row, which changes nothing later', async () => {
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
  }, 20_000);

  test('a profile that a frozen server has received, which changes nothing later', async () => {
    const read = await readUser();
    mysql.pause();
    await expect(createUsers(partsOf(database)).update(read, { name: 'Eve' }, backgroundJob)).rejects.toMatchObject(
      unavailable,
    );
    mysql.resume();
    await until(() => database.ping().then(() => true));
    await until(async () => (await running()).length === 0);
    expect(await nameOf(read.id)).toBe('Ada');
  }, 20_000);

  test('a change that a frozen server has received, which changes nothing later', async () => {
    const { id } = await addUser();
    mysql.pause();
    const change = rename(id, 'Eve');
    await expect(change).rejects.toMatchObject(unavailable);
    mysql.resume();
    // Whatever the server had still to do comes before this.
    await until(() => rename(id, 'Grace').then(() => true));
    await until(async () => (await running()).length === 0);
    expect(await nameOf(id)).toBe('Grace');
  }, 20_000);
});

test('connections that were dropped without a word are given up, and others take their place', async () => {
  const proxy = await startSilentProxy(mysql.port);
  const url = new URL(databaseUrl);
  url.port = String(proxy.port);
  const behind = await openDatabase({ databaseUrl: url.href, dataDir: '' });
  await behind.migrate();
  await Promise.all(Array.from({ length: 30 }, () => behind.ping()));
  proxy.silence();
  await expect(behind.ping()).rejects.toMatchObject(unavailable);
  await until(() => behind.ping().then(() => true), { within: 15_000 });
  await behind.close();
  await proxy.stop();
}, 40_000);

test('a single change that loses a deadlock is tried again', async () => {
  const [first, second] = [await addUser(), await addUser()];
  const { connection, release } = await holdRow(second.id);
  // More to undo than the other has: the other is who must give way.
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
}, 20_000);

describe('a change of a profile', () => {
  let own: Database;
  let users: Users;
  beforeAll(async () => {
    own = await openDatabase({ databaseUrl, dataDir: '' });
    await own.migrate();
    users = createUsers(partsOf(own));
  });
  afterAll(() => own.close());

  test('is one transaction of one update and its event', async () => {
    const read = await readUser(users);
    const work = () => users.update(read, { name: 'Grace', bio: 'x', website: '' }, backgroundJob);
    expect(await statementsOf(work)).toEqual({ Com_begin: 1, Com_update: 1, Com_select: 0, Com_commit: 1 });
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
  ])('answers what another has made of it since the session was read: %j', async (other) => {
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

test('reading and writing are two ways into the database: what reads cannot write', () => {
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

  /** How many rows and index entries the server has gone through for it. */
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

  test('costs what a page costs, whatever is searched for, on whichever page', async () => {
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

  test('shows all who share one name and the beginning of their email, each once', async () => {
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

  test('whose one row is held answers all who want other rows', async () => {
    const [held, other] = [await loggedIn({ stack, call }), await loggedIn({ stack, call })];
    const { release } = await holdRow(held.id, stack.services[0]?.env['DATABASE_URL']);
    const waiting = Array.from({ length: 200 }, (_, i) =>
      call('profile.update', { bio: `${i}` }, { session: held.session }),
    );
    // At most two of them wait in the database, however long one looks.
    for (let round = 0; round < 20; round++) {
      const { status } = await call('profile.update', { bio: `${round}` }, { session: other.session });
      expect(status).toBe(200);
      const [{ waits } = { waits: 0 }] = await stack.database<RowDataPacket & { waits: number }>(
        "select count(*) as waits from information_schema.innodb_trx where trx_state = 'LOCK WAIT'",
      );
      expect(Number(waits)).toBeLessThanOrEqual(2);
    }
    await release();
    const statuses = new Set((await Promise.all(waiting)).map(({ status }) => status));
    expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
    expect((await call('profile.update', { bio: 'free' }, { session: held.session })).status).toBe(200);
  }, 60_000);

  test('that has told its caller 503 makes no change when the row is free again', async () => {
    const { id, session, name } = await loggedIn({ stack, call });
    const { release } = await holdRow(id, stack.services[0]?.env['DATABASE_URL']);
    const reply = await call('profile.update', { name: 'Mallory' }, { session });
    expect(reply).toMatchObject(unavailable);
    // Its statement still waits for the row: it gets it now.
    await release();
    const open = () => stack.database('select 1 from information_schema.innodb_trx');
    // InnoDB answers from a cache while it is read more often than every 100 ms.
    await until(async () => (await open()).length === 0, { what: 'the end of all transactions', every: 200 });
    expect(await stack.database('select name from users where id = ?', [id])).toEqual([{ name }]);
  }, 20_000);

  test('that is refused by the database says what is wrong once, /readyz that it is refused, and it heals by itself', async () => {
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
      await until(async () => (await refusals()) - before >= 5, { within: 30_000 });
      const readyz = await fetch(`${service.url}/readyz`);
      expect([readyz.status, await readyz.json()]).toEqual([
        503,
        { status: 'error', database: 'refused', keyValueStore: 'ok' },
      ]);
      const told = service
        .output()
        .split('\n')
        .filter((line) => line.includes('the database'));
      expect(told).toEqual([
        expect.stringMatching(/the database refuses us \(Access denied for user 'late'.*DATABASE_URL/),
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
  }, 60_000);

  test('that is refused by Redis says what is wrong once, and /readyz that it is refused', async () => {
    const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
    const url = new URL(env['REDIS_URL'] ?? '');
    url.username = 'nobody';
    url.password = 'wrong-password';
    const service = await startService({ env: { ...env, REDIS_URL: url.href }, ready: false });
    try {
      const state = async () => (await fetch(`${service.url}/readyz`)).json() as Promise<Record<string, string>>;
      await until(async () => (await state())['database'] === 'ok');
      expect(await state()).toEqual({ status: 'error', database: 'ok', keyValueStore: 'refused' });
      const told = service
        .output()
        .split('\n')
        .filter((line) => line.includes('Redis'));
      expect(told).toEqual([expect.stringMatching(/Redis refuses us \(WRONGPASS.*REDIS_URL/)]);
      expect(service.output()).not.toContain('wrong-password');
    } finally {
      await service.stop();
    }
  }, 60_000);
});
