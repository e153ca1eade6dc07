import ipaddr from 'ipaddr.js';
import type { Rate } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import type { Consumption, Counter, KeyValueStore } from '../parts/key-value/contract.ts';
import type { LoginAccount } from './users.ts';

/**
 * Every limit, with the key it counts by (a client's address, a user's id, or what its entry says) and what happens
 * while the store that counts is down: `refuse` where nothing could be done without the store anyway, `allow` where an
 * outage must not stop calls that the limit only slows down. The numbers are configuration (`LIMIT_…`). Mails to one
 * address are limited too, in the outbox itself.
 */
const limits = {
  /** Every attempt at a credential, right or wrong: at a login, or in a session before a sensitive change. */
  login: { per: 'address', whenDown: 'refuse' },
  /** Wrong codes of a user's authenticator app; those of a known device, or of a session, apart. */
  code: { per: 'user', whenDown: 'refuse' },
  /** Wrong passwords for one account, whether there is such an account or not, from devices that are not known to it. */
  account: { per: 'account', whenDown: 'refuse' },
  /** Wrong passwords for an account from one device that is known to it, or in one session of it. */
  device: { per: 'device', whenDown: 'refuse' },
  /** Registrations. */
  register: { per: 'address', whenDown: 'allow' },
  /** Requests for a mail. */
  mailRequest: { per: 'address', whenDown: 'allow' },
  /** Mailed tokens that were refused. */
  token: { per: 'address', whenDown: 'allow' },
  /** Addresses and images. Without the store there is no session either. */
  upload: { per: 'user', whenDown: 'refuse' },
  /** Exports, which read all that is stored. */
  export: { per: 'user', whenDown: 'refuse' },
  /** Logins begun at the identity provider: each is kept in the store for ten minutes. */
  idpStart: { per: 'address', whenDown: 'refuse' },
  /** Challenges for passkeys: each is kept in the store for five minutes. */
  passkeyStart: { per: 'address', whenDown: 'refuse' },
  /** Public reads of users. Off unless it is configured. */
  read: { per: 'address', whenDown: 'allow' },
} as const satisfies Record<string, { per: 'address' | 'user' | 'account' | 'device'; whenDown: 'refuse' | 'allow' }>;

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

/** What a client address is counted for while it logs in. */
const loginLimits = ['login', 'idpStart', 'passkeyStart'] as const satisfies LimitName[];

/**
 * Under this key the wrong credentials of an account are counted until it is unlocked. Of addresses without an account the keys
 * stay as they are.
 */
export const untilUnlocked = (key: string, account: Pick<LoginAccount, 'limitEpoch'> | undefined): string =>
  account?.limitEpoch ? `${key}:${account.limitEpoch}` : key;

/**
 * Counts one use per call of `enforce`, which rejects with RATE_LIMITED past the limit. A client's address is its key as it
 * is.
 */
export function createLimits(store: KeyValueStore, rates: Record<LimitName, Rate>) {
  const counterOf = (name: LimitName, times: number) =>
    store.counter({ name: `limit:${name}`, points: rates[name].points * times, seconds: rates[name].seconds });
  const counters = Object.fromEntries(
    Object.keys(limits).map((name) => [
      name,
      new Map(IPV6_NETWORKS.map(({ times }) => [times, counterOf(name as LimitName, times)])),
    ]),
  ) as Record<LimitName, Map<number, Counter>>;

  return {
    /** Answers how to take the use back, for a limit on what turns out only later. */
    async enforce(name: LimitName, key: string): Promise<() => Promise<void>> {
      const counted: Consumption[] = [];
      const giveBack = async () => {
        await Promise.all(counted.map((consumption) => consumption.giveBack()));
      };
      if (rates[name].points === 0) return giveBack;
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
        if (!consumption) break;
        if (!consumption.allowed) throw exceeded(rates[name], times, consumption.msBeforeNext);
        counted.push(consumption);
      }
      return giveBack;
    },

    /** Forgets what a client address has used up by logging in; of an IPv6 address also what its networks have. */
    async forgetLogins(clientAddress: string): Promise<void> {
      const forgotten = loginLimits.flatMap((name) =>
        networksOf(clientAddress).map(({ key, times }) => counters[name].get(times)?.clear(key)),
      );
      await Promise.all(forgotten);
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
