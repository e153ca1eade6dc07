import { randomBytes, randomInt } from 'node:crypto';

/** A fresh IPv4 address that looks public, for X-Forwarded-For: tests must not share each other's rate limits. */
export function clientAddress(): string {
  // 20 to 99: no private, shared, loopback, documentation or multicast range begins with these.
  return [randomInt(20, 100), randomInt(1, 255), randomInt(1, 255), randomInt(1, 255)].join('.');
}

/** A fresh email address under a domain that cannot exist (RFC 2606). */
export const freshEmail = (prefix = 'user'): string => `${prefix}-${randomBytes(6).toString('hex')}@example.test`;
