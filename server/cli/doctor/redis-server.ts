import { randomUUID } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { Redis } from 'ioredis';
import type { RedisNode } from '../../config/index.ts';
import { isRefused } from '../../parts/refusal.ts';
import { isLoopback } from '../../shared/loopback.ts';
import { sentenceOf } from '../../telemetry/log.ts';
import { clockFinding, type Finding, isAboutTls, ok, problem, warning } from './finding.ts';

/** The first version with GETDEL. */
const OLDEST = 6.2;
const TIMEOUT_MS = 3000;

export const nameOf = ({ host, port }: RedisNode): string => `${host}:${port}`;

/** The URL of another server, with the scheme, user, password and database of this one. */
export const addressOf = (url: string, { host, port }: RedisNode): string =>
  Object.assign(new URL(url), { hostname: isIPv6(host) ? `[${host}]` : host, port: String(port) }).href;

/** Connects, and turns errors into findings. `variable` is the one with the URL or its password. */
export async function* withServer(
  { url, variable }: { url: string; variable: 'REDIS_URL' | 'REDIS_SENTINEL' },
  look: (redis: Redis) => AsyncIterable<Finding>,
): AsyncGenerator<Finding> {
  let connectionError: unknown;
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: TIMEOUT_MS,
    commandTimeout: TIMEOUT_MS,
    retryStrategy: () => null,
  });
  redis.on('error', (error) => {
    connectionError = error;
  });
  try {
    await redis.connect().catch((error: unknown) => {
      throw connectionError ?? error;
    });
    yield* look(redis);
  } catch (error) {
    yield problem((error as Error).message, remedyFor(error, variable));
  } finally {
    redis.disconnect();
  }
}

function remedyFor(error: unknown, variable: string): string {
  if (isRefused(error)) return `${variable} must name a user and its password`;
  return isAboutTls(sentenceOf(error))
    ? `CA_FILE must have the authority of its certificate, and ${variable} the name that it is for`
    : `${variable} must name a running server`;
}

interface Place {
  /** True for a node of a Cluster. */
  node?: boolean;
  /** True for one of several servers. Each of them may become a replica. */
  inGroup?: boolean;
  mayBeReplica?: boolean;
}

export async function* serverFindings(
  redis: Redis,
  { node = false, inGroup = node, mayBeReplica = node }: Place = {},
): AsyncGenerator<Finding> {
  const info = factsIn(await redis.info());
  const version = info['redis_version'] ?? '';
  yield Number.parseFloat(version) < OLDEST
    ? problem(`Redis ${version} is too old`, `use Redis ${OLDEST} or later`)
    : ok(`Redis ${version} answers`);
  yield encryptionFinding(redis);
  const mode = info['redis_mode'];
  if (mode === 'cluster' && !node) {
    yield problem('it is a node of a Cluster', 'name several of its nodes in REDIS_URL: redis://host1:6379,host2:6379');
  } else if (mode === 'sentinel') {
    yield problem('it is a Sentinel', 'REDIS_SENTINEL must name it; REDIS_URL has what the master wants');
    return;
  }

  const asked = Date.now();
  const [seconds, microseconds] = await redis.time();
  yield clockFinding({ theirs: Number(seconds) * 1000 + Number(microseconds) / 1000, asked, answered: Date.now() });

  const isReplica = info['role'] === 'slave';
  if (isReplica && !mayBeReplica) yield problem('it is a replica', 'REDIS_URL must name the master');
  if (isReplica && info['master_link_status'] !== 'up') {
    yield problem(
      'it does not reach its master: it cannot take over, or would lack sessions',
      'see its log; after a change of the password: CONFIG SET masterauth PASSWORD',
    );
  }
  if (inGroup) yield* masterauthFindings(redis);
  if (info['role'] === 'master' && node && info['connected_slaves'] === '0') {
    yield warning(
      'this master has no replica: when it fails, its keys are unavailable to their users',
      'add one: redis-cli --cluster add-node … --cluster-slave',
    );
  }

  if (inGroup && !node) yield* replicaFindings(info);

  const policy = info['maxmemory_policy'];
  yield policy === 'noeviction'
    ? ok('it evicts nothing')
    : problem(
        `it may evict sessions and limits (maxmemory-policy ${policy})`,
        'set maxmemory-policy noeviction, and maxmemory to what the machine has',
      );

  if (info['aof_enabled'] !== '1') {
    yield warning('it keeps no append-only file: users are logged out when it restarts', 'set appendonly yes');
  } else if (info['aof_last_write_status'] !== 'ok') {
    yield problem('it cannot write its append-only file', 'look at its disk and its log');
  } else yield ok('it keeps an append-only file');

  // A replica accepts no writes.
  if (node || !isReplica) yield await rightsFinding(redis, { node });
}

function encryptionFinding({ options }: Redis): Finding {
  if (options.tls) return ok('the connection is encrypted');
  const host = options.host ?? '';
  return isLoopback(isIPv6(host) ? `[${host}]` : host)
    ? ok('the connection stays on this machine')
    : warning('the connection is not encrypted', 'use rediss:// in REDIS_URL, and its authority in CA_FILE');
}

/** A replica that was refused the command with its port follows its master, but no Sentinel can name it as the next one. */
function* replicaFindings(info: Record<string, string>): Generator<Finding> {
  for (const replica of Object.values(info)) {
    const [, address] = /^ip=(.*),port=0,state=online,/.exec(replica) ?? [];
    if (address === undefined) continue;
    yield warning(
      `its replica at ${address} has told no port: the Sentinels do not know it, and it cannot take over`,
      'on this master: CLIENT KILL TYPE replica; the replicas connect again at once',
    );
  }
}

/**
 * Checks that a server could follow another one with its password. A working link proves nothing: it was opened with
 * the password of that time.
 */
async function* masterauthFindings(redis: Redis): AsyncGenerator<Finding> {
  // An account may lack the right to read it.
  const settings = await redis.call('CONFIG', 'GET', 'master*').catch(() => []);
  const { masteruser, masterauth } = factsOf(settings as string[]);
  if (masterauth === undefined) return;
  yield (await opens(redis, { username: masteruser, password: masterauth }))
    ? ok('its masterauth is the password of its group')
    : problem(
        'its masterauth is not the password of its group: it cannot follow another master',
        'CONFIG SET masterauth PASSWORD, then CONFIG REWRITE',
      );
}

/** True if a server accepts this login. */
async function opens(server: Redis, { username, password }: Record<string, string | undefined>): Promise<boolean> {
  const redis = server.duplicate({ username: username || undefined, password: password || undefined });
  let refusal: unknown;
  redis.on('error', (error) => {
    refusal = error;
  });
  try {
    await redis.connect();
    await redis.ping();
    return true;
  } catch (error) {
    const reason = isRefused(refusal) ? refusal : error;
    if (isRefused(reason)) return false;
    throw reason;
  } finally {
    redis.disconnect();
  }
}

/** Runs the service's own commands on a temporary key. */
async function rightsFinding(redis: Redis, { node }: { node: boolean }): Promise<Finding> {
  const key = `doctor:${randomUUID()}`;
  const commands: [name: string, ...rest: string[]][] = [
    ['SET', key, '1', 'PX', '60000'],
    node ? ['GET', key] : ['MGET', key],
    ['EVAL', "return redis.call('pttl', KEYS[1])", '1', key],
    ['GETDEL', key],
    ['DEL', key],
    ...(node ? [['CLUSTER', 'SLOTS'] as [string, string]] : []),
  ];
  const refused: string[] = [];
  for (const [name, ...rest] of commands) {
    await redis.call(name, ...rest).catch((error: Error) => {
      // A node checks the rights first, then the slot of the key.
      if (!/^(?:MOVED|CLUSTERDOWN) /.test(error.message)) refused.push(`${name} (${error.message})`);
    });
  }
  return refused.length === 0
    ? ok('it takes the commands of the service')
    : problem(
        `it refuses ${refused.join(', ')}`,
        'allow the user of REDIS_URL these commands on every key (ACL SETUSER)',
      );
}

/** The lines `name:value` of INFO and CLUSTER INFO. */
export const factsIn = (info: string): Record<string, string> =>
  Object.fromEntries(
    info.split('\r\n').flatMap((line) => {
      const colon = line.indexOf(':');
      return colon > 0 ? [[line.slice(0, colon), line.slice(colon + 1)]] : [];
    }),
  );

/** A list of alternating names and values, the format of SENTINEL and CONFIG GET. */
export const factsOf = (list: string[]): Record<string, string> =>
  Object.fromEntries(list.flatMap((name, i) => (i % 2 === 0 ? [[name, list[i + 1] ?? '']] : [])));
