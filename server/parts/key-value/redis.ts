import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { inBatches } from '../../batches.ts';
import { unavailable } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { createOutage } from '../../outage.ts';
import { isRefused } from '../refusal.ts';
import type { KeyValueStore } from './contract.ts';
import { counterOf } from './counter.ts';

/** The most keys of one MGET. */
const MOST_KEYS = 100;

/**
 * Redis through ioredis. Its defaults wait for ever on a server that hangs; with these a command fails within half a
 * second, and a lost connection is retried twice a second, without an end.
 */
export function redisStore(url: string, log: Log): KeyValueStore {
  const redis = new Redis(url, {
    connectTimeout: 1000,
    commandTimeout: 500,
    socketTimeout: 2000,
    keepAlive: 10_000,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    retryStrategy: (attempt) => Math.min(50 * attempt, 500),
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
  const outage = createOutage({
    began: (error) => {
      if (error instanceof Error && isRefused(error)) {
        log.warn(`Redis refuses us (${error.message}), it is retried: check user and password in REDIS_URL`);
      } else log.warn({ err: error }, 'Redis does not answer, it is retried');
    },
    ended: () => log.info('Redis is back'),
  });
  /** Why there is no connection: the error of a command only says that there is none. */
  let connectionError: Error | undefined;
  redis.on('ready', () => {
    outage.succeeded();
    connectionError = undefined;
  });
  redis.on('error', (error: Error) => {
    outage.failed(error);
    connectionError = error;
  });

  /** No command depends on input for its validity, so every rejection is an outage. */
  const orUnavailable = <T>(command: Promise<T>): Promise<T> =>
    command.catch((error: unknown) => {
      throw unavailable(connectionError ?? error);
    });

  return {
    get: inBatches((keys) => orUnavailable(redis.mget(...keys)), { most: MOST_KEYS }),

    async set(key, value, { ttlMs, ifExists }) {
      const stored = ifExists ? redis.set(key, value, 'PX', ttlMs, 'XX') : redis.set(key, value, 'PX', ttlMs);
      return (await orUnavailable(stored)) === 'OK';
    },

    take: (key) => orUnavailable(redis.getdel(key)),

    async delete(key) {
      await orUnavailable(redis.del(key));
    },

    counter({ name, points, seconds }) {
      const count = counterOf(new RateLimiterRedis({ storeClient: redis, keyPrefix: name, points, duration: seconds }));
      return (key) => orUnavailable(count(key));
    },

    async ping() {
      await orUnavailable(redis.ping());
    },

    async close() {
      redis.disconnect();
    },
  };
}
