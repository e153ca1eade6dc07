import { type BinaryLike, pbkdf2 as deriveKey } from 'node:crypto';
import { promisify } from 'node:util';
import { base64, fromBase64, isSameHash, isWholeKey } from './bytes.ts';
import type { ForeignHash, HashFamily } from './foreign-hash.ts';

const derive = promisify(deriveKey);

/** A second or two of work. */
const MOST_ITERATIONS = 10_000_000;

const hashOf = (digest: string, iterations: number, salt: BinaryLike, hash: Buffer): ForeignHash | undefined =>
  iterations >= 1 && isWholeKey(hash)
    ? {
        isTooCostly: iterations > MOST_ITERATIONS,
        matches: async (password) => isSameHash(await derive(password, salt, iterations, hash.length, digest), hash),
      }
    : undefined;

const phcForm = new RegExp(
  `^\\$pbkdf2(?:-(sha1|sha256|sha512))?\\$(?:i=)?(\\d{1,10})(?:,l=\\d{1,3})?\\$(${base64})\\$(${base64})$`,
);

/** `$pbkdf2-sha256$rounds$salt$hash`, as passlib writes it; also the PHC string format (`i=rounds,l=length`). */
const phc: HashFamily = (stored) => {
  const [, digest = 'sha1', iterations, salt = '', hash = ''] = phcForm.exec(stored) ?? [];
  return iterations === undefined ? undefined : hashOf(digest, Number(iterations), fromBase64(salt), fromBase64(hash));
};

const djangoForm = new RegExp(`^pbkdf2_(sha1|sha256)\\$(\\d{1,10})\\$([!-#%-~]{1,128})\\$(${base64})$`);

/** `pbkdf2_sha256$iterations$salt$hash` of Django, whose salt is a text. */
const django: HashFamily = (stored) => {
  const [, digest = '', iterations, salt = '', hash = ''] = djangoForm.exec(stored) ?? [];
  return iterations === undefined ? undefined : hashOf(digest, Number(iterations), salt, fromBase64(hash));
};

export const pbkdf2Families: HashFamily[] = [phc, django];
