import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Database, sql } from '../../server/parts/database/contract.ts';
import { openDatabase } from '../../server/parts/database/index.ts';
import type { Log } from '../../server/telemetry/log.ts';
import { type DatabaseView, viewMysql } from '../rig/observe/database-view.ts';
import { createDatabase, startMysql } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { until } from '../rig/until.ts';

/** Two independent servers: the port shows which one a statement reached. */
let servers: [PrivateServer, PrivateServer];
let views: [DatabaseView, DatabaseView];
let open: Database[];
/** Of the database, on both servers. */
let name: string;

beforeAll(async () => {
  servers = await Promise.all([startMysql(), startMysql()]);
  const first = await createDatabase(servers[0].url);
  name = new URL(first).pathname.slice(1);
  const urls = servers.map(({ port }) => Object.assign(new URL(first), { port: String(port) }).href);
  for (const databaseUrl of urls) {
    const database = await openDatabase({ databaseUrl, dataDir: '' });
    await database.migrate();
    await database.close();
  }
  views = urls.map(viewMysql) as typeof views;
  // Without the right to write on a read-only server.
  for (const view of views) {
    await view.query("create user app@'127.0.0.1' identified by 'app-password'");
    await view.query(`grant all on ${name}.* to app@'127.0.0.1'`);
  }
});
afterAll(async () => {
  await Promise.all(views.map((view) => view.close()));
  await Promise.all(servers.map((server) => server.stop()));
});
beforeEach(() => {
  open = [];
});
afterEach(async () => {
  await Promise.all(open.map((database) => database.close()));
  for (const view of views) await view.query('set global read_only = 0');
});

const openOn = async (hosts: PrivateServer[], log?: Log) => {
  const list = hosts.map(({ port }) => `127.0.0.1:${port}`).join(',');
  const database = await openDatabase({ databaseUrl: `mysql://app:app-password@${list}/${name}`, dataDir: '' }, log);
  open.push(database);
  await database.migrate();
  return database;
};

const portOf = async (database: Database) => {
  const answer = await database.query((tables) => tables.selectNoFrom(sql<number>`@@port`.as('port')).execute());
  return answer[0]?.port;
};
/** The server on which a change was made. */
const write = (database: Database) =>
  database.change(async (tables) => {
    const row = { user_id: `${Math.random()}`, used: 1, files: 1 };
    await tables.insertInto('upload_usage').values(row).execute();
    return (await sql<{ port: number }>`select @@port as port`.execute(tables)).rows[0]?.port;
  });

test('the first available host is used', async () => {
  const [first, second] = servers;
  expect(await write(await openOn([first, second]))).toBe(first.port);
  expect(await write(await openOn([second, first]))).toBe(second.port);
});

test('a read-only host is skipped', async () => {
  await views[0].query('set global read_only = 1');
  const database = await openOn(servers);
  expect([await write(database), await portOf(database)]).toEqual([servers[1].port, servers[1].port]);
});

test('when a host becomes read-only, the refused change is made on the other', async () => {
  const database = await openOn(servers);
  expect(await write(database)).toBe(servers[0].port);
  await views[0].query('set global read_only = 1');
  expect(await Promise.all(Array.from({ length: 5 }, () => write(database)))).toEqual(Array(5).fill(servers[1].port));
});

test('a single read-only host answers reads and refuses changes until it is writable', async () => {
  const [server] = servers;
  const database = await openOn([server]);
  await views[0].query('set global read_only = 1');
  await expect(write(database)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect(await portOf(database)).toBe(server.port);
  await views[0].query('set global read_only = 0');
  expect(await write(database)).toBe(server.port);
});

test('while all hosts are down, each is logged once per kind of failure', async () => {
  const warnings: string[] = [];
  const warn = ({ host, err }: { host: string; err: { code: string } }) => warnings.push(`${host} ${err.code}`);
  const database = await openOn(servers, { warn } as never);
  await Promise.all(servers.map((server) => server.down({ kill: true })));
  try {
    for (let round = 0; round < 30; round++) {
      const pings = await Promise.allSettled(Array.from({ length: 10 }, () => database.ping()));
      expect(new Set(pings.map(({ status }) => status))).toEqual(new Set(['rejected']));
    }
  } finally {
    await Promise.all(servers.map((server) => server.up()));
  }
  expect(warnings.filter((line) => line.endsWith('ECONNREFUSED')).sort()).toEqual(
    servers.map(({ port }) => `127.0.0.1:${port} ECONNREFUSED`).sort(),
  );
  expect(new Set(warnings).size).toBe(warnings.length);
});

test.each([
  { what: 'is killed', begin: () => servers[0].down({ kill: true }), end: () => servers[0].up(), within: 3000 },
  { what: 'freezes', begin: () => servers[0].pause(), end: () => servers[0].resume(), within: 10_000 },
])('when a host $what, the other is used from then on', async ({ begin, end, within }) => {
  const database = await openOn(servers);
  const atWork = Promise.all(Array.from({ length: 20 }, () => write(database)));
  await atWork;
  await begin();
  try {
    await until(() => write(database).catch(() => undefined), { within, what: 'a change' });
    expect(await Promise.all(Array.from({ length: 20 }, () => write(database)))).toEqual(
      Array(20).fill(servers[1].port),
    );
  } finally {
    await end();
  }
  expect(await write(database)).toBe(servers[1].port);
});
