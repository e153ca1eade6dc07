import { type RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';
import type { Counter } from './contract.ts';

/**
 * Counts one use of a key; `run` runs each command. Beyond the allowance the library rejects with the record to which
 * it otherwise resolves.
 */
export const counterOf = (limiter: RateLimiterAbstract, run: <T>(command: () => Promise<T>) => Promise<T>): Counter => {
  const use = async (key: string) => {
    const outcome = await run(() =>
      limiter.consume(key).catch((rejected: unknown) => {
        if (rejected instanceof RateLimiterRes) return rejected;
        throw rejected;
      }),
    );
    return {
      allowed: outcome.consumedPoints <= limiter.points,
      used: outcome.consumedPoints,
      msBeforeNext: outcome.msBeforeNext,
      async refund() {
        await run(() => limiter.reward(key));
      },
    };
  };
  const read = async (key: string) => (await run(() => limiter.get(key)))?.consumedPoints ?? 0;
  const clear = async (key: string) => {
    await run(() => limiter.delete(key));
  };
  return Object.assign(use, { clear, read });
};
