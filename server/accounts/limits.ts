import type { Rate } from '../config.ts';
import { ServiceError } from '../errors.ts';
import type { Consumption, KeyValueStore } from '../parts/key-value/index.ts';

/**
 * Every limit counted per caller, with what happens while the store that counts is down: `refuse` where nothing could be
 * done without it anyway, `allow` where an outage must not stop what the limit only slows. The numbers are configuration
 * (`LIMIT_…`). Mails to one address are limited too, in the outbox itself.
 */
const limits = {
  /** Every login attempt, right or wrong, per client address. */
  login: { whenDown: 'refuse' },
  /** Registrations per client address. */
  register: { whenDown: 'allow' },
  /** Requests for a mail, per client address. */
  mailRequest: { whenDown: 'allow' },
  /** Tokens that nobody was ever sent, per client address. */
  token: { whenDown: 'allow' },
  /** Addresses and images, per user. Without the store there is no session either. */
  upload: { whenDown: 'refuse' },
  /** Public reads of users, per client address. Off unless it is configured. */
  read: { whenDown: 'allow' },
} as const satisfies Record<string, { whenDown: 'refuse' | 'allow' }>;

export type LimitName = keyof typeof limits;

/** Counts one use per call of `enforce`, which rejects with RATE_LIMITED past the limit. */
export function createLimits(store: KeyValueStore, rates: Record<LimitName, Rate>) {
  const counters = Object.fromEntries(
    Object.keys(limits).map((name) => [name, store.counter({ name: `limit:${name}`, ...rates[name as LimitName] })]),
  ) as Record<LimitName, (key: string) => Promise<Consumption>>;

  return {
    async enforce(name: LimitName, key: string): Promise<void> {
      if (rates[name].points === 0) return;
      const consumption = await counters[name](key).catch((error: unknown) => {
        if (limits[name].whenDown === 'refuse') throw error;
        return undefined;
      });
      if (consumption?.allowed !== false) return;
      const { points, seconds } = rates[name];
      const reset = Math.max(1, Math.ceil(consumption.msBeforeNext / 1000));
      throw new ServiceError('RATE_LIMITED', {
        message: `Too many attempts. Please retry after ${inWords(seconds)}.`,
        retryAfter: reset,
        limit: { points, seconds },
      });
    },
  };
}

export type Limits = ReturnType<typeof createLimits>;

function inWords(seconds: number): string {
  if (seconds % 60 !== 0) return `${seconds} seconds`;
  return seconds === 60 ? '1 minute' : `${seconds / 60} minutes`;
}
