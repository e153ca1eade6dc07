import { type BinaryLike, pbkdf2 as deriveKey } from 'node:crypto';
import { promisify } from 'node:util';
import { base64, fromBase64, isSameHash, isWholeKey } from './bytes.ts';
import type { ForeignHash, HashFamily } from './foreign-hash.ts';

const derive = promisify(deriveKey);

/** Iterations of SHA-256 with 32 bytes: one to two seconds of computation. */
const MAX_WORK = 10_000_000;

/** `cost` of an iteration per block of `bytes`, relative to SHA-256 (measured: 0.8, 1 and 2.9). */
const digests = {
  sha1: { bytes: 20, cost: 1 },
  sha256: { bytes: 32, cost: 1 },
  sha512: { bytes: 64, cost: 3 },
};
type Digest = keyof typeof digests;

/** RFC 8018 section 5.2: each block of the derived key takes all iterations. */
const workOf = (digest: Digest, iterations: number, length: number): number =>
  iterations * Math.ceil(length / digests[digest].bytes) * digests[digest].cost;

const hashOf = (digest: Digest, iterations: number, salt: BinaryLike, hash: Buffer): ForeignHash | undefined =>
  iterations >= 1 && isWholeKey(hash)
    ? {
        isTooCostly: workOf(digest, iterations, hash.length) > MAX_WORK,
        memory: 0,
        matches: async (password) => isSameHash(await derive(password, salt, iterations, hash.length, digest), hash),
      }
    : undefined;

const phcForm = new RegExp(
  `^\\$pbkdf2(?:-(sha1|sha256|sha512))?\\$(?:i=)?(\\d{1,10})(?:,l=\\d{1,3})?\\$(${base64})\\$(${base64})$`,
);

/** `$pbkdf2-sha256$rounds$salt$hash`, as passlib writes it; also the PHC string format (`i=rounds,l=length`). */
const phc: HashFamily = (stored) => {
  const [, digest = 'sha1', iterations, salt = '', hash = ''] = phcForm.exec(stored) ?? [];
  return iterations === undefined
    ? undefined
    : hashOf(digest as Digest, Number(iterations), fromBase64(salt), fromBase64(hash));
};

const djangoForm = new RegExp(`^pbkdf2_(sha1|sha256)\\$(\\d{1,10})\\$([!-#%-~]{1,128})\\$(${base64})$`);

/** Django's `pbkdf2_sha256$iterations$salt$hash`, with the salt as text. */
const django: HashFamily = (stored) => {
  const [, digest = '', iterations, salt = '', hash = ''] = djangoForm.exec(stored) ?? [];
  return iterations === undefined ? undefined : hashOf(digest as Digest, Number(iterations), salt, fromBase64(hash));
};

export const pbkdf2Families: HashFamily[] = [phc, django];
