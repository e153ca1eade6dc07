import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { isRefused } from '../../parts/refusal.ts';
import { type Check, clockFinding, type Finding, ok, problem, warning } from './finding.ts';

/** The first with GETDEL. */
const OLDEST = 6.2;

export const checkKeyValueStore: Check = async function* ({ redisUrl, dataDir }) {
  if (!redisUrl) {
    yield ok(`embedded: a file in ${dataDir}`);
    return;
  }
  let connectionError: unknown;
  const redis = new Redis(redisUrl, { lazyConnect: true, connectTimeout: 3000, retryStrategy: () => null });
  redis.on('error', (error) => {
    connectionError = error;
  });
  try {
    await redis.connect().catch((error: unknown) => {
      throw connectionError ?? error;
    });
    yield* serverFindings(redis);
    yield* rightsFindings(redis);
  } catch (error) {
    yield problem(
      (error as Error).message,
      isRefused(error) ? 'REDIS_URL must name a user and its password' : 'REDIS_URL must name a running server',
    );
  } finally {
    redis.disconnect();
  }
};

async function* serverFindings(redis: Redis): AsyncGenerator<Finding> {
  const info = factsIn(await redis.info());
  const version = info['redis_version'] ?? '';
  yield Number.parseFloat(version) < OLDEST
    ? problem(`Redis ${version} is too old`, `use Redis ${OLDEST} or later`)
    : ok(`Redis ${version} answers`);

  const asked = Date.now();
  const [seconds, microseconds] = await redis.time();
  yield clockFinding({ theirs: Number(seconds) * 1000 + Number(microseconds) / 1000, asked, answered: Date.now() });

  if (info['role'] === 'slave') yield problem('it is a replica', 'REDIS_URL must name the master');

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
}

/** The service's own commands, on a key that is gone afterwards. */
async function* rightsFindings(redis: Redis): AsyncGenerator<Finding> {
  const key = `doctor:${randomUUID()}`;
  const commands: [name: string, ...rest: string[]][] = [
    ['SET', key, '1', 'PX', '60000'],
    ['MGET', key],
    ['EVAL', "return redis.call('pttl', KEYS[1])", '1', key],
    ['GETDEL', key],
    ['DEL', key],
  ];
  const refused: string[] = [];
  for (const [name, ...rest] of commands) {
    await redis.call(name, ...rest).catch((error: Error) => refused.push(`${name} (${error.message})`));
  }
  yield refused.length === 0
    ? ok('it takes the commands of the service')
    : problem(
        `it refuses ${refused.join(', ')}`,
        'allow the user of REDIS_URL these commands on every key (ACL SETUSER)',
      );
}

const factsIn = (info: string): Record<string, string> =>
  Object.fromEntries(
    info.split('\r\n').flatMap((line) => {
      const colon = line.indexOf(':');
      return colon > 0 ? [[line.slice(0, colon), line.slice(colon + 1)]] : [];
    }),
  );
