import { Redis } from 'ioredis';
import type { RedisSentinel } from '../../config/index.ts';
import { unavailable } from '../../errors.ts';
import { inBatches } from '../../lib/batch-loader.ts';
import { createOutage } from '../../lib/outage.ts';
import type { Log } from '../../telemetry/log.ts';
import { withinDeadline } from '../deadline.ts';
import {
  COMMAND_MS,
  prepareServer,
  type RedisConnection,
  reportOutage,
  retryDelay,
  serverOptions,
} from './redis-connection.ts';

const DEADLINE = { ms: COMMAND_MS, what: 'Redis' };
/** The maximum number of keys in one MGET. */
const MAX_KEYS = 100;

/** One server; with `sentinel` the master that Sentinels name, looked up again for each connection. */
export function connectToServer(
  { url, sentinel }: { url: string; sentinel?: RedisSentinel | undefined },
  log: Log,
): RedisConnection {
  const redis = new Redis(url, {
    ...serverOptions,
    ...(sentinel && sentinelOptions(sentinel, url)),
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: retryDelay,
  });
  prepareServer(redis);
  const outage = createOutage({
    began: (error) => reportOutage(log, error, 'Redis'),
    ended: () => log.info('Redis is back'),
  });
  /** Why there is no connection: the error of a command does not contain the cause. */
  let connectionError: Error | undefined;
  redis.on('ready', () => {
    outage.succeeded();
    connectionError = undefined;
  });
  const failed = (error: Error) => {
    outage.failed(error);
    connectionError = error;
  };
  redis.on('error', failed);
  // An error of one Sentinel: it refuses the service, or knows no such master.
  redis.on('sentinelError', failed);

  const run: RedisConnection['run'] = (command) =>
    withinDeadline(DEADLINE, command).catch((error: unknown) => {
      throw unavailable(connectionError ?? error);
    });

  return {
    commands: redis,
    run,
    get: inBatches((keys) => run(() => redis.mget(...keys)), { most: MAX_KEYS }),
    ping: async () => void (await run(() => redis.ping())),
    close: () => redis.disconnect(),
  };
}

/** A demoted master is detected by READONLY replies, or because Sentinel closes the connections to it. */
const sentinelOptions = ({ nodes, master, username, password }: RedisSentinel, url: string) => ({
  sentinels: nodes,
  name: master,
  sentinelUsername: username,
  sentinelPassword: password,
  sentinelCommandTimeout: COMMAND_MS,
  sentinelRetryStrategy: retryDelay,
  ...(new URL(url).protocol === 'rediss:' && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
});
