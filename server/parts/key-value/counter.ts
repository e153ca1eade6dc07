import { type RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';
import type { Consumption } from './contract.ts';

/**
 * Counts one use under a key. Once the allowance is used up, the library rejects with the same record it resolves with.
 */
export const counterOf =
  (limiter: RateLimiterAbstract) =>
  async (key: string): Promise<Consumption> => {
    const outcome = await limiter.consume(key).catch((rejected: unknown) => {
      if (rejected instanceof RateLimiterRes) return rejected;
      throw rejected;
    });
    return {
      allowed: outcome.consumedPoints <= limiter.points,
      remaining: outcome.remainingPoints,
      msBeforeNext: outcome.msBeforeNext,
    };
  };
