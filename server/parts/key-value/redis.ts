import { RateLimiterRedis } from 'rate-limiter-flexible';
import type { TextStore } from './contract.ts';
import { counterOf } from './counter.ts';
import type { RedisConnection } from './redis-connection.ts';

/** The store in Redis. No command's validity depends on input, so every rejection is an outage. */
export function redisStore({ commands, run, get, ping, close }: RedisConnection): TextStore {
  return {
    get,

    async set(key, value, { ttlMs, ifExists }) {
      const stored = await run(() =>
        ifExists ? commands.set(key, value, 'PX', ttlMs, 'XX') : commands.set(key, value, 'PX', ttlMs),
      );
      return stored === 'OK';
    },

    take: (key) => run(() => commands.getdel(key)),

    async delete(key) {
      await run(() => commands.del(key));
    },

    counter({ name, points, seconds }) {
      const limiter = new RateLimiterRedis({ storeClient: commands, keyPrefix: name, points, duration: seconds });
      return counterOf(limiter, run);
    },

    ping,

    async close() {
      close();
    },
  };
}
