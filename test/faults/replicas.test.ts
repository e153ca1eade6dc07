import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Call, callerOf } from '../contract/callers.ts';
import { loggedIn } from '../contract/scenario.ts';
import { type DatabaseView, viewMysql } from '../rig/database-view.ts';
import { primaryArguments, startMysql, startReplica } from '../rig/mysql.ts';
import type { PrivateServer } from '../rig/private-server.ts';
import { type Service, startService } from '../rig/service.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** One service on a primary and a replica of it, a second one on the primary alone. */
let primary: PrivateServer;
let replica: PrivateServer;
let stack: Stack;
let service: Service;
let call: Call;
/** Of the service's own database, in the replica. */
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
/** Whether the replica has the users that the primary has, whatever their names. */
const caughtUp = async () => {
  const [there, here] = await Promise.all([idsIn(stack.database), idsIn(view.query)]);
  return there !== undefined && JSON.stringify(there) === JSON.stringify(here);
};

const someone = async () => {
  const person = await loggedIn({ stack, call });
  await until(caughtUp);
  return person;
};

/** Changes a row in the replica only: what shows this name was read there. */
const markInReplica = (id: string) => view.query("update users set name = 'Replica' where id = ?", [id]);

const nameOf = async (id: string, session?: string) => {
  const { status, data } = await call('users.get', { id }, session === undefined ? {} : { session });
  return status === 200 ? (data as { data: { name: string } }).data.name : status;
};
const listed = async (query: { q?: string } = {}) => {
  const { data } = await call('users.list', query);
  return (data as { data: { name: string }[] }).data.map(({ name }) => name);
};

test('public reads come from the replica, those of a logged-in user from the primary', async () => {
  const { id, name, session } = await someone();
  await markInReplica(id);
  expect(await nameOf(id)).toBe('Replica');
  expect(await listed()).toContain('Replica');
  expect(await listed({ q: name })).toContain('Replica');
  expect(await nameOf(id, session)).toBe(name);
  expect((await call('profile.get', undefined, { session })).data).toMatchObject({ user: { name } });
});

test('with a replica that lags, users see their own changes, and everyone finds the newest users', async () => {
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
  ])(
    '$what is passed over, and read again once it is back',
    async ({ begin, end }) => {
      await begin();
      try {
        const replies = await Promise.all(Array.from({ length: 20 }, () => nameOf(id)));
        expect(new Set(replies)).toEqual(new Set([name]));
        const since = performance.now();
        for (let i = 0; i < 10; i++) expect(await nameOf(id)).toBe(name);
        // One that is asked again and again would cost a second each time.
        expect(performance.now() - since).toBeLessThan(1000);
      } finally {
        await end();
      }
      await until(async () => (await nameOf(id)) === 'Replica', { within: 15_000 });
      expect(service.output()).toContain('a database replica failed');
      expect(service.output()).toContain('a database replica is back');
    },
    40_000,
  );
});
