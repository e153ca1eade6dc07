import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { unavailable } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { isRefused } from '../refusal.ts';
import type { KeyValueStore } from './contract.ts';
import { counterOf } from './counter.ts';

/**
 * Redis through ioredis. Its defaults wait for ever on a server that hangs; with these a command fails within half a
 * second, and a lost connection is retried twice a second, for as long as it takes.
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
  /** Why there is no connection: the error of a command only says that there is none. */
  let trouble: Error | undefined;
  redis.on('ready', () => {
    if (trouble) log.info('Redis is back');
    trouble = undefined;
  });
  redis.on('error', (error: Error) => {
    if (!trouble && isRefused(error)) {
      log.warn(`Redis refuses us (${error.message}), trying until it accepts us: see user and password in REDIS_URL`);
    } else if (!trouble) log.warn({ err: error }, 'Redis does not answer, looking for it until it does');
    trouble = error;
  });

  /** The commands here are right by construction: a rejection means that Redis cannot work now. */
  const orUnavailable = <T>(command: Promise<T>): Promise<T> =>
    command.catch((error: unknown) => {
      throw unavailable(trouble ?? error);
    });

  return {
    get: (key) => orUnavailable(redis.get(key)),

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
