import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { createConnection } from 'mysql2/promise';
import { createTransport } from 'nodemailer';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { loggedIn, logIn, type Scenario, verified } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { put, sendImage } from '../contract/uploads/storage.ts';
import { Browser } from '../provider/browser.ts';
import { CLIENT_ID, namedEnvironmentFor, startHostileProvider } from '../provider/hostile.ts';
import { atInstance, begin, identityClaims } from '../provider/login.ts';
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
  let provider: Awaited<ReturnType<typeof startHostileProvider>>;
  beforeAll(async () => {
    redis = await startRedisServer({ requirepass: PASSWORD, appendonly: 'yes', 'maxmemory-policy': 'noeviction' });
    provider = await startHostileProvider();
    const variables = { ...namedEnvironmentFor(provider, 'acme'), IDP_ACME_CLIENT_SECRET: 'first-client-secret' };
    provider.accept(variables.IDP_ACME_CLIENT_SECRET);
    deployment = await startDeployment({ REDIS_URL: redis.url }, { variables });
    scenario = scenarioOf(deployment);
  });
  afterAll(async () => {
    await deployment?.stop();
    await provider?.close();
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

  test('a backup restores accounts, but no deleted ones, no sessions and no revoked keys', async () => {
    const [kept, left] = [await loggedIn(scenario), await loggedIn(scenario)];
    const { session } = kept;
    const { data: key } = await scenario.call('keys.create', { name: 'leaked', scopes: ['profile:read'] }, { session });
    await deployment.run('Back up');
    await scenario.call('account.delete', { currentPassword: left.password }, { session: left.session });
    expect((await scenario.call('keys.revoke', { id: key.key.id }, { session })).status).toBe(200);
    const later = await verified(scenario);

    const printed = await deployment.run('Restore', {
      values: { "DELETED=''": `DELETED='${left.id}'`, '-p 6379': `-p ${redis.port}` },
    });
    expect(printed).toContain('Dump completed');
    expect(await statusOf(scenario.call, session)).toBe(401);
    expect((await scenario.call('profile.get', undefined, { key: key.secret })).status).toBe(401);
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
    const [first, fresh = '', ...others] = (await setting('APP_SECRET')).split(',');
    expect([first, fresh.length >= 32, others]).toEqual([old, true, []]);
    await stillServes(session, person);
    await deployment.run('`APP_SECRET`', { blocks: [1, 2] });
    expect(await setting('APP_SECRET')).toBe(`${fresh},${old}`);
    await stillServes(session, person);
    const connection = await createConnection({ uri: await setting('DATABASE_URL'), multipleStatements: true });
    const [parts] = codeBlocks('docs/operations.md', '`APP_SECRET`', 'sql');
    expect((await connection.query(parts ?? ''))[0]).toHaveLength(3);
    await connection.end();
    await deployment.run('`APP_SECRET`', { blocks: [2] });
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
    const { s3, smtp } = deployment;
    const former = {
      S3_ACCESS_KEY: await setting('S3_ACCESS_KEY'),
      S3_SECRET_KEY: await setting('S3_SECRET_KEY'),
      SMTP_URL: await setting('SMTP_URL'),
      IDP_ACME_CLIENT_SECRET: await setting('IDP_ACME_CLIENT_SECRET'),
    };
    const fresh = () => randomBytes(16).toString('hex');
    const second: typeof former = {
      S3_ACCESS_KEY: fresh(),
      S3_SECRET_KEY: fresh(),
      SMTP_URL: former.SMTP_URL.replace(/:[^:]*@/, `:${fresh()}@`),
      IDP_ACME_CLIENT_SECRET: fresh(),
    };
    const accept = (...accepted: (typeof former)[]) => {
      s3.accept(...accepted);
      smtp.accept(...accepted.map(({ SMTP_URL }) => new URL(SMTP_URL).password));
      provider.accept(...accepted.map(({ IDP_ACME_CLIENT_SECRET }) => IDP_ACME_CLIENT_SECRET));
    };
    accept(former, second);
    const { session } = await loggedIn(scenario);
    const bytes = await png();
    const declared = { filename: 'a.png', contentType: 'image/png', size: bytes.length };
    const presign = async () =>
      (await scenario.call('upload.presign', declared, { session })).data.presignedUrl as string;
    const send = async (address: string) => (await put(address, bytes, { 'content-type': 'image/png' })).status;
    const presigned = [await presign(), await presign()] as const;

    const editor = (text: string) =>
      Object.entries(second).reduce(
        (edited, [name, value]) => edited.replace(new RegExp(`^${name}=.*`, 'm'), `${name}=${value}`),
        text,
      );
    await deployment.run('Keys of S3, SMTP and providers', { edits: [editor] });
    expect(await send(presigned[0])).toBe(200);

    accept(second);
    expect(await send(presigned[1])).toBe(403);
    await expect(createTransport(former.SMTP_URL).verify()).rejects.toThrow('535');
    const authorization = `Basic ${btoa(`${CLIENT_ID}:${former.IDP_ACME_CLIENT_SECRET}`)}`;
    expect((await fetch(`${provider.url}/token`, { method: 'POST', headers: { authorization } })).status).toBe(401);
    for (const instance of scenario.instances()) {
      expect(await sendImage({ stack: instance }, session, { bytes })).toMatchObject({ status: 200 });
      const { browser, request } = await begin(instance, new Browser(), 'acme');
      const callback = atInstance(instance, provider.authorize(request, identityClaims()));
      expect(await browser.redirectOf(callback)).toBe('/dashboard');
    }
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
