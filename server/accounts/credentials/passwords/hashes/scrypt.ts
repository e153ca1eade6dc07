import { type BinaryLike, scrypt as deriveKey } from 'node:crypto';
import { promisify } from 'node:util';
import { base64, fromBase64, isSameHash, isWholeKey } from './bytes.ts';
import type { ForeignHash, HashFamily } from './foreign-hash.ts';

export interface ScryptCost {
  /** The logarithm of N. */
  logN: number;
  r: number;
  p: number;
}

/** N times r: 256 MiB. */
const MOST_BLOCKS = 2 ** 21;
/** N times r times p: about a second of work. */
const MOST_WORK = 2 ** 22;

/** RFC 7914 section 2 and what the library takes. */
const isValid = ({ logN, r, p }: ScryptCost): boolean => logN >= 1 && logN < 64 && r >= 1 && p >= 1;

export const isScryptTooCostly = ({ logN, r, p }: ScryptCost): boolean =>
  2 ** logN * r > MOST_BLOCKS || 2 ** logN * r * p > MOST_WORK;

const deriveBytes = promisify<BinaryLike, BinaryLike, number, object, Buffer>(deriveKey);

export const deriveScrypt = (
  password: string,
  salt: BinaryLike,
  { logN, r, p }: ScryptCost,
  length: number,
): Promise<Buffer> => {
  const N = 2 ** logN;
  // What it needs, and the room that OpenSSL asks for beside.
  return deriveBytes(password, salt, length, { N, r, p, maxmem: 128 * r * (N + p + 2) + 2 ** 20 });
};

const hashOf = (cost: ScryptCost, salt: BinaryLike, hash: Buffer): ForeignHash | undefined =>
  isValid(cost) && isWholeKey(hash)
    ? {
        isTooCostly: isScryptTooCostly(cost),
        matches: async (password) => isSameHash(await deriveScrypt(password, salt, cost, hash.length), hash),
      }
    : undefined;

const phcForm = new RegExp(`^\\$scrypt\\$ln=(\\d{1,2}),r=(\\d{1,7}),p=(\\d{1,7})\\$(${base64})\\$(${base64})$`);

/** The PHC string format, as passlib and others write it. */
const phc: HashFamily = (stored) => {
  const [, logN, r, p, salt = '', hash = ''] = phcForm.exec(stored) ?? [];
  return logN === undefined
    ? undefined
    : hashOf({ logN: Number(logN), r: Number(r), p: Number(p) }, fromBase64(salt), fromBase64(hash));
};

const djangoForm = new RegExp(`^scrypt\\$(\\d{1,9})\\$([!-#%-~]{1,128})\\$(\\d{1,7})\\$(\\d{1,7})\\$(${base64})$`);

/** `scrypt$N$salt$r$p$hash` of Django, whose salt is a text. */
const django: HashFamily = (stored) => {
  const [, N, salt = '', r, p, hash = ''] = djangoForm.exec(stored) ?? [];
  const logN = Math.log2(Number(N));
  return Number.isInteger(logN) ? hashOf({ logN, r: Number(r), p: Number(p) }, salt, fromBase64(hash)) : undefined;
};

/** What better-auth writes always has these. */
const betterAuthCost: ScryptCost = { logN: 14, r: 16, p: 1 };

/** `salt:hash` of better-auth, both hexadecimal: the salt is its text, the password is normalized. */
const betterAuth: HashFamily = (stored) => {
  const [, salt = '', hash] = /^([0-9a-f]{32}):([0-9a-f]{128})$/.exec(stored) ?? [];
  if (hash === undefined) return undefined;
  const plain = hashOf(betterAuthCost, salt, Buffer.from(hash, 'hex'));
  return plain && { ...plain, matches: (password) => plain.matches(password.normalize('NFKC')) };
};

export const scryptFamilies: HashFamily[] = [phc, django, betterAuth];
