/** Proofs that the sender of a token has its key (RFC 9449 section 4.3). */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ServiceError } from '../errors.ts';
import { challengeOf, type Proof, proofAlgorithms } from '../lib/credential.ts';
import { hashOf } from '../lib/random-token.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import { createReplayCheck } from './short-lived.ts';

/** How far the clock of a client may be off. */
const TOLERANCE_SECONDS = 60;

interface CheckedProof {
  /** Of its key (RFC 7638). */
  thumbprint: string;
  id: string;
}

const invalidProof = (proof: Proof) =>
  new ServiceError('UNAUTHENTICATED', {
    message: 'The DPoP proof is not valid',
    challenge: challengeOf({ token: '', proof }, 'error="invalid_dpop_proof"'),
  });

const withoutQuery = (text: string): string | undefined => {
  const url = URL.parse(text);
  return url ? url.origin + url.pathname : undefined;
};

const claimsFor = ({ method, url }: Proof, token: string) =>
  z.object({
    jti: z.string().min(1),
    htm: z.literal(method),
    htu: z.string().refine((given) => withoutQuery(given) === withoutQuery(url)),
    iat: z.number().refine((seconds) => Math.abs(Date.now() / 1000 - seconds) <= TOLERANCE_SECONDS),
    ath: z.literal(createHash('sha256').update(token).digest('base64url')),
  });

export const createProofs = (store: KeyValueStore) => {
  const isFirst = createReplayCheck(store);
  const uses = new WeakMap<Proof, Promise<boolean>>();

  return {
    /** Everything but its use. Rejects with UNAUTHENTICATED. */
    async check(proof: Proof, token: string): Promise<CheckedProof> {
      const { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } = await import('jose');
      try {
        const verified = await jwtVerify(proof.jwt, EmbeddedJWK, {
          algorithms: [...proofAlgorithms],
          typ: 'dpop+jwt',
        });
        const { jti } = claimsFor(proof, token).parse(verified.payload);
        const thumbprint = await calculateJwkThumbprint(verified.protectedHeader.jwk ?? {});
        return { thumbprint, id: hashOf(`${thumbprint}${jti}`) };
      } catch {
        throw invalidProof(proof);
      }
    },

    /** Uses a checked proof: it works for one request, on all instances. Rejects with UNAUTHENTICATED. */
    async use(proof: Proof, { id }: CheckedProof): Promise<void> {
      const use = uses.get(proof) ?? isFirst(id);
      uses.set(proof, use);
      if (!(await use)) throw invalidProof(proof);
    },
  };
};
