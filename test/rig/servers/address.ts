import { randomBytes, randomInt } from 'node:crypto';

/** A fresh public-looking IPv4 address for X-Forwarded-For: tests must not share rate limits. */
export function clientAddress(): string {
  // 20 to 99: no private, shared, loopback, documentation or multicast range starts with these.
  return [randomInt(20, 100), randomInt(1, 255), randomInt(1, 255), randomInt(1, 255)].join('.');
}

/** A fresh email address in a domain that cannot exist (RFC 2606). */
export const freshEmail = (prefix = 'user'): string => `${prefix}-${randomBytes(6).toString('hex')}@example.test`;
