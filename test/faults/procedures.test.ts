import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { createConnection } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { loggedIn, logIn, type Scenario, verified } from '../contract/rig/scenario.ts';
import { loadClient, procedureOf } from '../rig/client/client.ts';
import { type Deployment, startDeployment } from '../rig/process/deployment.ts';
import { codeBlocks } from '../rig/process/document.ts';
import { root, type Service } from '../rig/process/service.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { startRedisServer } from '../rig/servers/redis.ts';
import { type RedisCluster, startClusterNode, startRedisCluster } from '../rig/servers/redis-cluster.ts';
import { type RedisSentinels, startRedisSentinels } from '../rig/servers/redis-sentinel.ts';
import type { Stack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** docs/operations.md, executed: its own code blocks, in a root shell, on parts of this test alone. */

const PASSWORD = 'redis-password-of-the-rig';

/** What users and other services see of a deployment, in the words of the scenarios. */
function scenarioOf(deployment: Deployment): Scenario & { instances: () => Service[] } {
  // The instances that the document restarts; a test adds another one.
  const instances = () => [...deployment.instances.values()].slice(0, 2);
  const call: Call = (...args) => callerOf('rest', instances()[0]?.url ?? '')(...args);
  const stack = { waitForMail: deployment.smtp.waitFor } as unknown as Stack;
  return { stack, call, instances };
}

const statusOf = async (call: Call, session: string): Promise<number> =>
  (await call('profile.get', undefined, { session })).status;

const rejects = (attempt: Promise<unknown>) =>
  attempt.then(
    () => false,
    () => true,
  );

const askRedis = async ({ port }: PrivateServer, password: string, ...command: [string, ...string[]]) => {
  const redis = new Redis({ port, password, lazyConnect: true, retryStrategy: () => null });
  redis.on('error', () => undefined);
  return redis.call(...command).finally(() => redis.disconnect());
};
const opensRedis = async (server: PrivateServer, password: string) =>
  !(await rejects(askRedis(server, password, 'PING')));

const addresses = (servers: PrivateServer[]) => servers.map(({ port }) => `127.0.0.1:${port}`).join(' ');

describe('with one Redis', () => {
  let deployment: Deployment;
  let scenario: ReturnType<typeof scenarioOf>;
  let redis: PrivateServer;
  beforeAll(async () => {
    redis = await startRedisServer({ requirepass: PASSWORD, appendonly: 'yes', 'maxmemory-policy': 'noeviction' });
    deployment = await startDeployment({ REDIS_URL: redis.url });
    scenario = scenarioOf(deployment);
  });
  afterAll(async () => {
    await deployment?.stop();
    await redis?.stop();
  });

  const setting = (name: string) => deployment.setting(name);
  /** An earlier session still works at each instance, and a user can log in. */
  const stillServes = async (session: string, person: { email: string; password: string }) => {
    for (const { url } of scenario.instances()) {
      expect(await statusOf(callerOf('rest', url), session)).toBe(200);
      await logIn(callerOf('rest', url), { ...person, name: '' });
    }
  };
  const entryOf = (token: string, name: string) => `${name}:${createHash('sha256').update(token).digest('hex')}`;

  test('a backup restores accounts, but no deleted ones and no sessions', async () => {
    const [kept, left] = [await loggedIn(scenario), await loggedIn(scenario)];
    await deployment.run('Back up');
    await scenario.call('account.delete', { currentPassword: left.password }, { session: left.session });
    const later = await verified(scenario);

    const printed = await deployment.run('Restore', {
      values: { "DELETED=''": `DELETED='${left.id}'`, '-p 6379': `-p ${redis.port}` },
    });
    expect(printed).toContain('Dump completed');
    expect(await statusOf(scenario.call, kept.session)).toBe(401);
    await logIn(scenario.call, kept);
    for (const { email, password } of [left, later])
      expect((await scenario.call('auth.login', { email, password })).status).not.toBe(200);
  });

  test('a failing backup reports it and keeps earlier ones', async () => {
    await deployment.run('Back up');
    const contents = () =>
      readdirSync(deployment.backups).map((name) => [name, readFileSync(join(deployment.backups, name)).length]);
    const before = contents();
    const failure = deployment.run('Back up', { values: { '--routines accounts': '--routines nowhere' } });
    await expect(failure).rejects.toThrow('nowhere');
    // Cut off in the middle, by a server that exits.
    const cut = deployment.run('Back up', { values: { '| gzip': '| head --bytes 3000 | gzip' } });
    expect(await rejects(cut)).toBe(true);
    expect(contents()).toEqual(before);
    for (const [name] of before) expect(name).toMatch(/^accounts-[\dT-]+\.sql\.gz$/);
  });

  test('APP_SECRET', async () => {
    const { session, ...person } = await loggedIn(scenario);
    const old = await setting('APP_SECRET');
    await deployment.run('`APP_SECRET`', { blocks: [0, 1] });
    const [fresh = '', ...others] = (await setting('APP_SECRET')).split(',');
    expect([fresh.length >= 32, others]).toEqual([true, [old]]);
    await stillServes(session, person);
    const connection = await createConnection({ uri: await setting('DATABASE_URL'), multipleStatements: true });
    const [parts] = codeBlocks('docs/operations.md', '`APP_SECRET`', 'sql');
    expect((await connection.query(parts ?? ''))[0]).toHaveLength(3);
    await connection.end();
    await deployment.run('`APP_SECRET`', { blocks: [1] });
    expect(await setting('APP_SECRET')).toBe(fresh);
    await stillServes(session, person);
  });

  test('SERVICE_TOKENS', async () => {
    const [old, fresh] = [entryOf('old-token', 'billing'), entryOf('new-token', 'billing')];
    const isKnown = async (token: string) => {
      const { createServiceClient } = await loadClient();
      const client = createServiceClient({ url: (scenario.instances()[0] as Service).url, token });
      return !(await rejects(procedureOf(client, 'service.session').mutate({ token: 'none' })));
    };
    const printed = await deployment.run('`SERVICE_TOKENS`', {
      blocks: [0, 1],
      values: { NAME: 'billing' },
      edits: [(text) => `${text}SERVICE_TOKENS=${old},${fresh}\n`],
    });
    expect(printed).toMatch(/SERVICE_TOKENS=billing:[\da-f]{64}/);
    expect([await isKnown('old-token'), await isKnown('new-token')]).toEqual([true, true]);
    await deployment.run('`SERVICE_TOKENS`', { blocks: [1], edits: [(text) => text.replace(`${old},`, '')] });
    expect([await isKnown('old-token'), await isKnown('new-token')]).toEqual([false, true]);
  });

  test('the database password', async () => {
    const { session, ...person } = await loggedIn(scenario);
    const old = await setting('DATABASE_URL');
    await deployment.run('Database password');
    expect(await rejects(createConnection(old))).toBe(true);
    await stillServes(session, person);
    await deployment.run('Database password');
    await stillServes(session, person);
  });

  test('the password of a single Redis survives its restart', async () => {
    const { session, ...person } = await loggedIn(scenario);
    await deployment.run('Redis password', {
      values: { "REDIS_SERVERS='127.0.0.1:6379'": `REDIS_SERVERS=127.0.0.1:${redis.port}` },
    });
    await redis.restart();
    const { password } = new URL(await setting('REDIS_URL'));
    expect([await opensRedis(redis, password), await opensRedis(redis, PASSWORD)]).toEqual([true, false]);
    const isBack = () => stillServes(session, person).then(() => true);
    await until(isBack, { every: 200, what: 'the instances on the restarted Redis' });
  });

  test('keys of S3, SMTP and providers', async () => {
    const printed = await deployment.run('Keys of S3, SMTP and providers', {
      edits: [(text) => text.replace('USER:PASSWORD@', 'USER:ANOTHER@')],
    });
    expect(printed).toContain('ok');
    await loggedIn(scenario);
  });

  test('adding an instance', async () => {
    await deployment.run('Add a node', { blocks: [0, 1] });
    const isBalanced = async () => (await deployment.proxy.instances())?.size === 3;
    await until(isBalanced, { what: 'HAProxy with three instances' });
    expect(deployment.instances.size).toBe(3);
  });

  test('an upgrade and its rollback', async () => {
    const { session, ...person } = await loggedIn(scenario);
    const repository = temporaryDirectory('repository');
    const git = (...args: string[]) => execFileSync('git', args, { cwd: repository, stdio: 'pipe' });
    git('clone', '--bare', '--no-local', '--depth=1', `file://${root}`, '.');
    git('tag', 'v9.9.9');
    const treesOf = () => scenario.instances().map(({ pid }) => readlinkSync(`/proc/${pid}/cwd`));
    const before = treesOf();
    const values = { 'X.Y.Z': '9.9.9', REPOSITORY: repository };
    await deployment.run('Upgrade, and back', { blocks: [0, 1], values });
    await stillServes(session, person);
    expect(treesOf()).toEqual(before.map(() => join(deployment.opt, 'accounts-9.9.9')));
    await deployment.run('Upgrade, and back', { blocks: [1], values: { '"$FORMER"': root } });
    await stillServes(session, person);
    expect(treesOf()).toEqual(before);
  });
});

describe('with Redis Sentinel', () => {
  let deployment: Deployment;
  let scenario: ReturnType<typeof scenarioOf>;
  let redis: RedisSentinels;
  beforeAll(async () => {
    redis = await startRedisSentinels({ password: PASSWORD });
    deployment = await startDeployment({ REDIS_URL: redis.url, REDIS_SENTINEL: redis.sentinel });
    scenario = scenarioOf(deployment);
  });
  afterAll(async () => {
    await deployment?.stop();
    await redis?.stop();
  });

  test('after the password rotation a replica takes over, and the former master follows it', async () => {
    const person = await loggedIn(scenario);
    await deployment.run('Redis password', {
      values: {
        "REDIS_SERVERS='127.0.0.1:6379'": `REDIS_SERVERS='${addresses(redis.nodes)}'`,
        "SENTINELS=''": `SENTINELS='${addresses(redis.sentinels)}'`,
      },
    });
    const { password } = new URL(await deployment.setting('REDIS_URL'));
    const former = await redis.master();
    await former.down({ kill: true });
    await until(async () => (await redis.master()) !== former, { what: 'another master' });
    const logsIn = () => logIn(scenario.call, person);
    await until(logsIn, { every: 200, what: 'a login at the new master' });
    await former.up();
    const follows = async () =>
      String(await askRedis(former, password, 'INFO', 'replication')).includes('master_link_status:up');
    await until(follows, { what: 'the former master as a replica' });

    const added = await startRedisServer({
      requirepass: password,
      appendonly: 'yes',
      'maxmemory-policy': 'noeviction',
    });
    try {
      await deployment.run('Add a node', {
        blocks: [1, 2],
        values: { '127.0.0.1:6380': addresses([added]), '127.0.0.1:6379': addresses([await redis.master()]) },
      });
    } finally {
      await added.down({ kill: true });
    }
  });
});

describe('with a Redis Cluster', () => {
  let deployment: Deployment;
  let scenario: ReturnType<typeof scenarioOf>;
  let redis: RedisCluster;
  beforeAll(async () => {
    redis = await startRedisCluster({ password: PASSWORD });
    deployment = await startDeployment({ REDIS_URL: redis.url });
    scenario = scenarioOf(deployment);
  });
  afterAll(async () => {
    await deployment?.stop();
    await redis?.stop();
  });

  test('after the rotation of the password a replica is added, and takes over from its master', async () => {
    const person = await loggedIn(scenario);
    await deployment.run('Redis password', {
      values: { "REDIS_SERVERS='127.0.0.1:6379'": `REDIS_SERVERS='${addresses(redis.nodes)}'` },
    });
    const { password } = new URL((await deployment.setting('REDIS_URL')).split(',')[0] ?? '');
    const ask = async (server: PrivateServer, ...command: [string, ...string[]]) =>
      String(await askRedis(server, password, ...command));
    const added = await startClusterNode({ requirepass: password, 'maxmemory-policy': 'noeviction' });
    try {
      await deployment.run('Add a node', {
        blocks: [2, 3],
        values: { '127.0.0.1:6380': addresses([added]), '127.0.0.1:6379': addresses(redis.nodes.slice(-1)) },
      });
      const masterPort = /master_port:(\d+)/.exec(await ask(added, 'INFO', 'replication'))?.[1];
      const isReplica = async (server: PrivateServer) =>
        (await ask(server, 'INFO', 'replication')).includes(`master_port:${masterPort}`);
      for (const node of redis.nodes) if (await isReplica(node)) await node.down({ kill: true });
      const master = redis.nodes.find(({ port }) => String(port) === masterPort);
      await master?.down({ kill: true });
      const hasTakenOver = async () => (await ask(added, 'INFO', 'replication')).includes('role:master');
      await until(hasTakenOver, { within: 30_000, what: 'the added node as a master' });
      const logsIn = () => logIn(scenario.call, person);
      await until(logsIn, { within: 30_000, every: 200, what: 'a login with the added node' });
    } finally {
      await added.down({ kill: true });
    }
  });
});
