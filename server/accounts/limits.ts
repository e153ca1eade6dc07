import ipaddr from 'ipaddr.js';
import type { Rate } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import type { Consumption, KeyValueStore } from '../parts/key-value/contract.ts';

/**
 * Every limit, with the key it counts by (a client's address or a user's id) and what happens while the store that
 * counts is down: `refuse` where nothing could be done without the store anyway, `allow` where an outage must not stop
 * calls that the limit only slows down. The numbers are configuration (`LIMIT_…`). Mails to one address are limited
 * too, in the outbox itself.
 */
const limits = {
  /** Every login attempt, right or wrong. */
  login: { per: 'address', whenDown: 'refuse' },
  /** Registrations. */
  register: { per: 'address', whenDown: 'allow' },
  /** Requests for a mail. */
  mailRequest: { per: 'address', whenDown: 'allow' },
  /** Mailed tokens that were refused. */
  token: { per: 'address', whenDown: 'allow' },
  /** Addresses and images. Without the store there is no session either. */
  upload: { per: 'user', whenDown: 'refuse' },
  /** Logins begun at the identity provider: each is kept in the store for ten minutes. */
  idpStart: { per: 'address', whenDown: 'refuse' },
  /** Public reads of users. Off unless it is configured. */
  read: { per: 'address', whenDown: 'allow' },
} as const satisfies Record<string, { per: 'address' | 'user'; whenDown: 'refuse' | 'allow' }>;

/**
 * Leading bits of an IPv6 address, and the multiple of the allowance that all addresses with these bits share. One
 * customer is given a /64, a /56 or a /48, and can use every address in it.
 */
const IPV6_NETWORKS = [
  { bits: 64, times: 1 },
  { bits: 56, times: 4 },
  { bits: 48, times: 16 },
];

type LimitName = keyof typeof limits;

/**
 * Counts one use per call of `enforce`, which rejects with RATE_LIMITED past the limit. Its key is a user's id, or a
 * client's address as it is.
 */
export function createLimits(store: KeyValueStore, rates: Record<LimitName, Rate>) {
  const counterOf = (name: LimitName, times: number) =>
    store.counter({ name: `limit:${name}`, points: rates[name].points * times, seconds: rates[name].seconds });
  const counters = Object.fromEntries(
    Object.keys(limits).map((name) => [
      name,
      new Map(IPV6_NETWORKS.map(({ times }) => [times, counterOf(name as LimitName, times)])),
    ]),
  ) as Record<LimitName, Map<number, (key: string) => Promise<Consumption>>>;

  return {
    async enforce(name: LimitName, key: string): Promise<void> {
      if (rates[name].points === 0) return;
      const { per, whenDown } = limits[name];
      const shares = per === 'address' ? networksOf(key) : [{ key, times: 1 }];
      // The narrowest first, and no further once it refuses: one customer cannot use up what a wider network has for
      // others.
      for (const { key, times } of shares) {
        const consumption = await counters[name]
          .get(times)?.(key)
          .catch((error: unknown) => {
            if (whenDown === 'refuse') throw error;
            return undefined;
          });
        if (!consumption) return;
        if (!consumption.allowed) throw exceeded(rates[name], times, consumption.msBeforeNext);
      }
    },

    /**
     * Counts a mailed token that is refused. Answers the refusal; past the limit it rejects with RATE_LIMITED instead.
     */
    async refuseToken(clientAddress: string): Promise<ServiceError> {
      await this.enforce('token', clientAddress);
      return new ServiceError('INVALID_TOKEN');
    },
  };
}

function exceeded({ points, seconds }: Rate, times: number, msBeforeNext: number): ServiceError {
  return new ServiceError('RATE_LIMITED', {
    message: `Too many attempts. Please retry after ${inWords(seconds)}.`,
    retryAfter: Math.max(1, Math.ceil(msBeforeNext / 1000)),
    limit: { points: points * times, seconds },
  });
}

/** The keys under which an address is counted: an IPv4 address itself, an IPv6 address each of its networks. */
function networksOf(address: string): { key: string; times: number }[] {
  if (!ipaddr.IPv6.isValid(address)) return [{ key: address, times: 1 }];
  const bytes = ipaddr.IPv6.parse(address).toByteArray();
  return IPV6_NETWORKS.map(({ bits, times }) => {
    const network = ipaddr.fromByteArray([...bytes].fill(0, bits / 8));
    return { key: `${network.toString()}/${bits}`, times };
  });
}

export type Limits = ReturnType<typeof createLimits>;

function inWords(seconds: number): string {
  if (seconds % 60 !== 0) return `${seconds} seconds`;
  return seconds === 60 ? '1 minute' : `${seconds / 60} minutes`;
}
