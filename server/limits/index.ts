/*
 * While the store is down, a limit refuses if nothing works without the store anyway, and allows if it only slows calls
 * down: an outage must not stop those. The numbers are configuration (`LIMIT_…`). The outbox itself limits mails per
 * recipient.
 */

import ipaddr from 'ipaddr.js';
import { limitVariable, type Rate, type RateName } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import type { Consumption, Counter, KeyValueStore } from '../parts/key-value/contract.ts';
import { ignored } from '../telemetry/background.ts';

/**
 * Every limit with its key (client address, user id, or as its entry says) and its behaviour while the store is down.
 */
const limits = {
  /** Every attempt at a credential, right or wrong: at a login, or in a session before a sensitive change. */
  login: { per: 'address', whenDown: 'refuse' },
  /** Wrong authenticator codes of a user (each known device or session has its own count) and wrong codes for a device. */
  code: { per: 'user', whenDown: 'refuse' },
  /** Wrong passwords for one account, existing or not, from devices that are not known to it. */
  account: { per: 'account', whenDown: 'refuse' },
  /** Wrong passwords for an account from each device known to it, or in each of its sessions. */
  device: { per: 'device', whenDown: 'refuse' },
  register: { per: 'address', whenDown: 'allow' },
  /** Requests for a mail. */
  mailRequest: { per: 'address', whenDown: 'allow' },
  /** Mailed tokens that were refused, and wrong codes for a device. */
  token: { per: 'address', whenDown: 'allow' },
  /** Presigned addresses and images. Without the store there is no session either. */
  upload: { per: 'user', whenDown: 'refuse' },
  /** Calls that ask the object storage about an upload. */
  uploadCheck: { per: 'user', whenDown: 'refuse' },
  /** Calls for addresses of parts: a client makes one for each part. */
  uploadParts: { per: 'user', whenDown: 'refuse' },
  /** Exports, which read all stored data. */
  export: { per: 'user', whenDown: 'refuse' },
  /** Changes by an administrator to users, and invitations: most of them send mail. */
  administration: { per: 'user', whenDown: 'refuse' },
  /** Provider logins begun: each occupies the store for ten minutes. */
  idpStart: { per: 'address', whenDown: 'refuse' },
  /** Authorization requests of applications: each occupies the store for half an hour. */
  authorizationStart: { per: 'address', whenDown: 'refuse' },
  /** Requests that applications send themselves: of devices, and pushed ones. Each occupies the store for minutes. */
  directStart: { per: 'address', whenDown: 'refuse' },
  /**
   * Refreshes of an application's grant: each used token stays for a month, so that its second use is noticed. A user has a
   * grant for each session.
   */
  refresh: { per: 'grant', whenDown: 'refuse' },
  /** Passkey challenges: each occupies the store for five minutes. */
  passkeyStart: { per: 'address', whenDown: 'refuse' },
  /** Secrets for an authenticator app: each is drawn as a QR code and occupies the store for ten minutes. */
  totpStart: { per: 'user', whenDown: 'refuse' },
  /** Values for a unique field of a profile: a refusal tells that another account has the value. */
  uniqueField: { per: 'user', whenDown: 'refuse' },
  /** Public reads of users. Off unless configured. */
  read: { per: 'address', whenDown: 'allow' },
} as const satisfies Record<
  string,
  { per: 'address' | 'user' | 'account' | 'device' | 'grant'; whenDown: 'refuse' | 'allow' }
>;

/**
 * Prefix lengths of IPv6 networks, and the multiple of the allowance that a network shares. A customer gets a /64, /56
 * or /48 and can use every address in it.
 */
const IPV6_NETWORKS = [
  { bits: 64, times: 1 },
  { bits: 56, times: 4 },
  { bits: 48, times: 16 },
];

/**
 * The multiple of the allowance that all known devices and sessions of an account share, and all grants of a user for an
 * application: their number is not limited, or high.
 */
const KNOWN_TIMES = 4;

export type LimitName = keyof typeof limits;

/** The limits that a client address uses while it logs in. */
const loginLimits = ['login', 'idpStart', 'passkeyStart'] as const satisfies LimitName[];

/** The key of a known device, session or grant, and the key that all of them share. */
export interface KnownKey {
  own: string;
  shared: string;
}

/**
 * Each call of `enforce` counts one use and rejects with RATE_LIMITED past the limit. The key of a client is its plain
 * address.
 */
export function createLimits(store: KeyValueStore, rates: Record<LimitName, Rate>) {
  const counterOf = (name: LimitName, times: number) =>
    store.counter({ name: `limit:${name}`, points: rates[name].points * times, seconds: rates[name].seconds });
  const multiples = new Set([...IPV6_NETWORKS.map(({ times }) => times), KNOWN_TIMES]);
  const counters = Object.fromEntries(
    Object.keys(limits).map((name) => [
      name,
      new Map([...multiples].map((times) => [times, counterOf(name as LimitName, times)])),
    ]),
  ) as Record<LimitName, Map<number, Counter>>;

  /** Resolves to a function that refunds the use, for limits on an outcome that is known only later. */
  const enforce = async (name: LimitName, given: string | KnownKey): Promise<() => Promise<void>> => {
    const counted: Consumption[] = [];
    const refund = async () => {
      await Promise.all(counted.map((consumption) => consumption.refund()));
    };
    if (rates[name].points === 0) return refund;
    const { per, whenDown } = limits[name];
    // Narrowest key first, stopping at a refusal: one customer or device cannot use up the wider allowance of others.
    for (const { key, times } of sharesOf(per, given)) {
      const consumption = await counters[name]
        .get(times)?.(key)
        .catch((error: unknown) => {
          if (whenDown === 'refuse') throw error;
          return ignored('count_limit')();
        });
      if (!consumption) break;
      if (!consumption.allowed)
        throw exceeded(name, { rate: rates[name], times, msBeforeNext: consumption.msBeforeNext });
      counted.push(consumption);
    }
    return refund;
  };

  return {
    enforce,

    /** Counts work as one use, and refunds it if a part was away or busy. `onLimited` is called past the limit. */
    async attempt<Result>(
      name: LimitName,
      given: string | KnownKey,
      work: (refund: () => Promise<void>) => Promise<Result>,
      onLimited?: () => void,
    ): Promise<Result> {
      const refund = await enforce(name, given).catch((error: unknown) => {
        if (error instanceof ServiceError && error.code === 'RATE_LIMITED') onLimited?.();
        throw error;
      });
      return work(refund).catch(refundUndecided(refund));
    },

    /** Counts a use silently: the response must not reveal the limit. Returns true within the limit. */
    async allows(name: LimitName, key: string): Promise<boolean> {
      try {
        await enforce(name, key);
        return true;
      } catch (error) {
        if (error instanceof ServiceError && error.code === 'RATE_LIMITED') return false;
        throw error;
      }
    },

    /** Resets the login limits of a client address, for IPv6 also those of its networks. */
    async forgetLogins(clientAddress: string): Promise<void> {
      const deletions = loginLimits.flatMap((name) =>
        networksOf(clientAddress).map(({ key, times }) => counters[name].get(times)?.clear(key)),
      );
      await Promise.all(deletions);
    },

    /** Counts a refused mailed token. Returns the refusal; rejects with RATE_LIMITED past the limit. */
    async refuseToken(clientAddress: string): Promise<ServiceError> {
      await enforce('token', clientAddress);
      return new ServiceError('INVALID_TOKEN');
    },
  };
}

/** For a failed attempt: refunds its use if a part was away or busy, so that nothing was decided. */
export const refundUndecided =
  (refund: () => Promise<void>) =>
  async (error: unknown): Promise<never> => {
    const isDecided = error instanceof ServiceError && error.code !== 'SERVICE_UNAVAILABLE';
    if (!isDecided) await refund().catch(ignored('refund_attempt'));
    throw error;
  };

/** The error of a use past a limit. */
export function exceeded(
  name: RateName,
  { rate: { points, seconds }, times, msBeforeNext }: { rate: Rate; times: number; msBeforeNext: number },
): ServiceError {
  return new ServiceError('RATE_LIMITED', {
    message: `Too many attempts. Please retry after ${inWords(seconds)}.`,
    retryAfter: Math.max(1, Math.ceil(msBeforeNext / 1000)),
    limit: { points: points * times, seconds, variable: limitVariable(name) },
  });
}

type Share = { key: string; times: number };

function sharesOf(per: (typeof limits)[LimitName]['per'], key: string | KnownKey): Share[] {
  if (typeof key !== 'string') {
    return [
      { key: key.own, times: 1 },
      { key: key.shared, times: KNOWN_TIMES },
    ];
  }
  return per === 'address' ? networksOf(key) : [{ key, times: 1 }];
}

/** Whether calls go on uncounted while the store is down. */
export const allowsWhenDown = (name: LimitName): boolean => limits[name].whenDown === 'allow';

/** The keys of an address: an IPv4 address itself, or each network of an IPv6 address. */
export function networksOf(address: string): Share[] {
  if (!ipaddr.IPv6.isValid(address)) return [{ key: address, times: 1 }];
  const bytes = ipaddr.IPv6.parse(address).toByteArray();
  return IPV6_NETWORKS.map(({ bits, times }) => {
    const network = ipaddr.fromByteArray([...bytes].fill(0, bits / 8));
    return { key: `${network.toString()}/${bits}`, times };
  });
}

/** The key of all addresses that one customer may have. */
export const widestNetworkOf = (address: string): string => networksOf(address).at(-1)?.key ?? address;

export type Limits = ReturnType<typeof createLimits>;

function inWords(seconds: number): string {
  if (seconds % 60 !== 0) return `${seconds} seconds`;
  return seconds === 60 ? '1 minute' : `${seconds / 60} minutes`;
}
