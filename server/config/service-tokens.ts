import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Config } from '../config/index.ts';

/** 256 random bits. We keep only their SHA-256: a leaked configuration gives no access. */
export const newServiceToken = (): string => randomBytes(32).toString('base64url');

/** The form in which SERVICE_TOKENS holds a token. */
export const hashServiceToken = (token: string): string => createHash('sha256').update(token).digest('hex');

/**
 * Recognizes other services by their tokens. A service may have several at once, so that a new one can be in use
 * everywhere before the old one is removed. A token is compared in constant time, and always with all of them, so
 * that the time reveals nothing.
 */
export function createServiceTokens(known: Config['serviceTokens']) {
  const hashes = known.map(({ name, sha256 }) => ({ name, hash: Buffer.from(sha256, 'hex') }));

  return {
    nameOf(token: string): string | undefined {
      const presented = createHash('sha256').update(token).digest();
      return hashes.filter(({ hash }) => timingSafeEqual(hash, presented)).at(0)?.name;
    },
  };
}
