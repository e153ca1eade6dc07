import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Config } from '../config.ts';

/** 256 random bits. We keep only their SHA-256: a configuration that leaks opens nothing. */
export const newServiceToken = (): string => randomBytes(32).toString('base64url');

/** In the form in which SERVICE_TOKENS holds it. */
export const hashServiceToken = (token: string): string => createHash('sha256').update(token).digest('hex');

/**
 * Knows other services by their tokens. A service may have several at once, so that a new one can be in use everywhere
 * before the old one goes. Compared in constant time and always with all: how long it takes tells nothing.
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
