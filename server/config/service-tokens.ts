import { createHash, timingSafeEqual } from 'node:crypto';
import type { Config } from './index.ts';

/** The form of a token in SERVICE_TOKENS: a leaked configuration gives no access. */
export const hashServiceToken = (token: string): string => createHash('sha256').update(token).digest('hex');

/**
 * Recognizes other services by their tokens; each may have several for rotation. Compares with all tokens in
 * constant time, so that timing reveals nothing.
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

export type ServiceTokens = ReturnType<typeof createServiceTokens>;
