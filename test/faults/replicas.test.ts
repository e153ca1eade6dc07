import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { loggedIn, PASSWORD } from '../contract/rig/scenario.ts';
import { type DatabaseView, viewMysql } from '../rig/observe/database-view.ts';
import { type Service, startService } from '../rig/process/service.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { findFlavour, primaryArguments, startMysql, startReplica } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** One service on a primary and its replica, another on the primary alone. */
let primary: PrivateServer;
let replica: PrivateServer;
let stack: Stack;
let service: Service;
let call: Call;
/** The service's own database, in the replica. */
let view: DatabaseView;

beforeAll(async () => {
  primary = await startMysql({ args: primaryArguments });
  replica = await startReplica(primary);
  stack = await startStack('real', { mysqlUrl: primary.url });
  const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
  const url = new URL(env['DATABASE_URL'] ?? '');
  url.port = String(replica.port);
  view = viewMysql(url.href);
  await until(caughtUp);
  service = await startService({ env: { ...env, DATABASE_REPLICA_URLS: url.href } });
  call = callerOf('rest', service.url);
});
afterAll(async () => {
  await service?.stop();
  await view?.close();
  await stack?.stop();
  await Promise.all([primary?.stop(), replica?.stop()]);
});

const idsIn = (query: DatabaseView['query']) =>
  query<{ id: string }>('select id from users where email_verified = 1 order by id').catch(() => undefined);
/** Whether the replica has the primary's users, whatever their names. */
const caughtUp = async () => {
  const [there, here] = await Promise.all([idsIn(stack.database), idsIn(view.query)]);
  return there !== undefined && JSON.stringify(there) === JSON.stringify(here);
};

const someone = async () => {
  const person = await loggedIn({ stack, call });
  await until(caughtUp);
  return person;
};

/** Changes a row in the replica only: a result with this name was read there. */
const markInReplica = (id: string) => view.query("update users set name = 'Replica' where id = ?", [id]);

const nameOf = async (id: string, session?: string) => {
  const { status, data } = await call('users.get', { id }, session === undefined ? {} : { session });
  return status === 200 ? (data as { data: { name: string } }).data.name : status;
};
const listed = async (query: { q?: string } = {}) => {
  const { data } = await call('users.list', query);
  return (data as { data: { name: string }[] }).data.map(({ name }) => name);
};

test('public reads use the replica; reads of logged-in users use the primary', async () => {
  const { id, name, session } = await someone();
  await markInReplica(id);
  expect(await nameOf(id)).toBe('Replica');
  expect(await listed()).toContain('Replica');
  expect(await listed({ q: name })).toContain('Replica');
  expect(await nameOf(id, session)).toBe(name);
  expect((await call('profile.get', undefined, { session })).data).toMatchObject({ user: { name } });
});

test('with a lagging replica, users see their own changes, and everyone finds the newest users', async () => {
  const { id, name, session } = await someone();
  await view.query('stop replica sql_thread');
  try {
    await call('profile.update', { name: 'Grace' }, { session });
    expect(await nameOf(id, session)).toBe('Grace');
    expect(await nameOf(id)).toBe(name);
    const newest = await loggedIn({ stack, call });
    expect(await nameOf(newest.id)).toBe(newest.name);
    expect(await nameOf('user_00000000-0000-7000-8000-000000000000')).toBe(404);
  } finally {
    await view.query('start replica sql_thread');
  }
  await until(async () => (await nameOf(id)) === 'Grace');
});

test('with a permanently stale replica, users read their own changes immediately, and others in order', async () => {
  const { isMysql } = await findFlavour();
  const delayedBy = async (seconds: number) => {
    await view.query('stop replica');
    await view.query(
      isMysql ? `change replication source to source_delay = ${seconds}` : `change master to master_delay = ${seconds}`,
    );
    await view.query('start replica');
  };
  const { id, session, name } = await someone();
  const names = [name];
  const seen: number[] = [];
  const lookFromOutside = async () => {
    seen.push(names.indexOf(String(await nameOf(id))));
    return seen.at(-1) === names.length - 1;
  };
  await delayedBy(2);
  try {
    for (let i = 0; i < 10; i++) {
      names.push(`Ada ${i}`);
      expect((await call('profile.update', { name: `Ada ${i}` }, { session })).status).toBe(200);
      expect(await nameOf(id, session)).toBe(`Ada ${i}`);
      expect(await lookFromOutside()).toBe(false);
      const newcomer = await call('auth.register', { name: 'New', email: freshEmail(), password: PASSWORD });
      expect(newcomer.status).toBe(201);
    }
    await until(lookFromOutside);
  } finally {
    await delayedBy(0);
  }
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  expect(seen).not.toContain(-1);
});

describe('a replica that', () => {
  let id: string;
  let name: string;
  beforeEach(async () => {
    ({ id, name } = await someone());
    await markInReplica(id);
    await until(async () => (await nameOf(id)) === 'Replica');
  });

  test.each([
    { what: 'is down', begin: () => replica.down({ kill: true }), end: () => replica.up() },
    {
      what: 'lacks a column',
      begin: () => view.query('alter table users rename column location to place'),
      end: () => view.query('alter table users rename column place to location'),
    },
    { what: 'hangs', begin: () => replica.pause(), end: () => replica.resume() },
  ])('that $what is skipped, and used again once it is back', async ({ begin, end }) => {
    await begin();
    try {
      const replies = await Promise.all(Array.from({ length: 20 }, () => nameOf(id)));
      expect(new Set(replies)).toEqual(new Set([name]));
      const since = performance.now();
      for (let i = 0; i < 10; i++) expect(await nameOf(id)).toBe(name);
      // Retrying it for every read would cost a second each.
      expect(performance.now() - since).toBeLessThan(1000);
    } finally {
      await end();
    }
    await until(async () => (await nameOf(id)) === 'Replica');
    expect(service.output()).toContain('a database replica failed');
    expect(service.output()).toContain('a database replica is back');
  });
});
