import { Redis } from 'ioredis';
import { inBatches } from '../../batches.ts';
import type { RedisSentinel } from '../../config/index.ts';
import { unavailable } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { createOutage } from '../../outage.ts';
import {
  COMMAND_MS,
  corking,
  type RedisConnection,
  reportOutage,
  retryDelay,
  serverOptions,
} from './redis-connection.ts';
import { traceCommands } from './redis-spans.ts';

/** The most keys of one MGET. */
const MOST_KEYS = 100;

/** One server; with `sentinel` the one that Sentinels name as master, asked for anew with each connection. */
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
  traceCommands(redis);
  const outage = createOutage({
    began: (error) => reportOutage(log, error, 'Redis'),
    ended: () => log.info('Redis is back'),
  });
  /** Why there is no connection: the error of a command only says that there is none. */
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
  // Of one Sentinel: it refuses us, or knows no such master.
  redis.on('sentinelError', failed);

  const run: RedisConnection['run'] = (command) =>
    command().catch((error: unknown) => {
      throw unavailable(connectionError ?? error);
    });
  const cork = corking(() => [redis]);

  return {
    commands: redis,
    run(command) {
      cork();
      return run(command);
    },
    get: inBatches((keys) => run(() => redis.mget(...keys)), { most: MOST_KEYS }),
    ping: async () => void (await run(() => redis.ping())),
    close: () => redis.disconnect(),
  };
}

/** A demoted master is noticed by its READONLY, and by Sentinel closing our connections to it. */
const sentinelOptions = ({ nodes, master, username, password }: RedisSentinel, url: string) => ({
  sentinels: nodes,
  name: master,
  sentinelUsername: username,
  sentinelPassword: password,
  sentinelCommandTimeout: COMMAND_MS,
  sentinelRetryStrategy: retryDelay,
  ...(new URL(url).protocol === 'rediss:' && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
});
