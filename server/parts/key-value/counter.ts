import { type RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';
import type { Consumption } from './contract.ts';

/**
 * Counts one use under a key. Past the allowance the library rejects, with the record that it otherwise resolves to.
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
      msBeforeNext: outcome.msBeforeNext,
    };
  };
