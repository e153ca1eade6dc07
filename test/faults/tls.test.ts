import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startService } from '../rig/process/service.ts';
import { type Authority, createAuthority } from '../rig/servers/certificates.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { createDatabase, startMysql } from '../rig/servers/mysql.ts';
import { freePort } from '../rig/servers/port.ts';
import { startRedis } from '../rig/servers/redis.ts';
import { until } from '../rig/until.ts';

/** Signed the certificates of the servers below; the other authority signed no certificate. */
let ours: Authority;
let others: Authority;
/** Both are reached as localhost; the certificates of one pair have another name. */
let named: Servers;
let misnamed: Servers;
type Servers = Awaited<ReturnType<typeof startServers>>;

/** A database and a Redis with certificates for `name`. */
async function startServers(name: string) {
  const { cert, key } = await ours.issue(name);
  const tlsPort = await freePort();
  const [mysql, redis] = await Promise.all([
    startMysql({ args: [`--ssl-ca=${ours.ca}`, `--ssl-cert=${cert}`, `--ssl-key=${key}`] }),
    startRedis({
      settings: {
        'tls-port': tlsPort,
        'tls-ca-cert-file': ours.ca,
        'tls-cert-file': cert,
        'tls-key-file': key,
        'tls-auth-clients': 'no',
      },
    }),
  ]);
  const databaseUrl = new URL(await createDatabase(mysql.url));
  databaseUrl.hostname = 'localhost';
  return {
    databaseUrl: databaseUrl.href,
    redisUrl: `rediss://localhost:${tlsPort}`,
    stop: () => Promise.all([mysql.stop(), redis.stop()]),
  };
}

beforeAll(async () => {
  [ours, others] = await Promise.all([createAuthority(), createAuthority()]);
  [named, misnamed] = await Promise.all([startServers('localhost'), startServers('elsewhere.test')]);
});
afterAll(() => Promise.all([named?.stop(), misnamed?.stop()]));

/** GET /readyz for both parts, once each works or the log has the reason, and the log. */
async function startOn({ databaseUrl, redisUrl }: Servers, mode: string, authority?: Authority) {
  const service = await startService({
    env: { DATABASE_URL: `${databaseUrl}?ssl-mode=${mode}`, REDIS_URL: redisUrl, CA_FILE: authority?.ca },
    ready: false,
  });
  const settled = async () => {
    const { database, keyValueStore } = (await (await fetch(`${service.url}/readyz`)).json()) as Record<string, string>;
    const output = service.output();
    const isKnown =
      (database === 'ok' || output.includes('the database does not answer')) &&
      (keyValueStore === 'ok' || output.includes('Redis does not answer'));
    return isKnown ? { database, keyValueStore, output } : undefined;
  };
  try {
    return await until(settled, { what: 'both parts, or why they cannot be used' });
  } finally {
    await service.stop({ by: 'SIGINT' });
  }
}

const databaseFailure = (output: string) => /the database does not answer \((.*?)\), waiting/.exec(output)?.[1];
const untrusted = /unable to verify|self-signed|signature failure/;

test('servers with certificates of the authority in CA_FILE are accepted', async () => {
  const state = await startOn(named, 'VERIFY_IDENTITY', ours);
  expect(state).toMatchObject({ database: 'ok', keyValueStore: 'ok' });
});

test.each([
  { title: 'without CA_FILE', at: () => [named, undefined] as const, reason: untrusted },
  { title: 'with the authority of others', at: () => [named, others] as const, reason: untrusted },
  { title: 'with a certificate for another name', at: () => [misnamed, ours] as const, reason: /does not match/ },
])('a server is refused $title, and the log says why', async ({ at, reason }) => {
  const [servers, authority] = at();
  const { output, ...state } = await startOn(servers, 'VERIFY_IDENTITY', authority);
  expect(state).toEqual({ database: 'unreachable', keyValueStore: 'unreachable' });
  expect(databaseFailure(output)).toMatch(reason);
});

test('VERIFY_CA accepts a certificate with another name, but not of another authority; REQUIRED accepts both', async () => {
  const databases = [
    (await startOn(misnamed, 'VERIFY_CA', ours)).database,
    (await startOn(misnamed, 'VERIFY_CA', others)).database,
    (await startOn(misnamed, 'REQUIRED', others)).database,
  ];
  expect(databases).toEqual(['ok', 'unreachable', 'ok']);
});

test('a CA_FILE without certificates stops the start', async () => {
  const CA_FILE = join(temporaryDirectory('authorities'), 'ca.pem');
  writeFileSync(CA_FILE, 'nonsense');
  await expect(startService({ env: { CA_FILE } })).rejects.toThrow('CA_FILE cannot be used');
});
