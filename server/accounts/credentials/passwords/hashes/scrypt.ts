import { type BinaryLike, scrypt as deriveKey } from 'node:crypto';
import { promisify } from 'node:util';
import { base64, fromBase64, isSameHash, isWholeKey } from './bytes.ts';
import type { ForeignHash, HashFamily } from './foreign-hash.ts';

interface ScryptCost {
  /** The logarithm of N. */
  logN: number;
  r: number;
  p: number;
}

/** N times r: 256 MiB. */
const MAX_BLOCKS = 2 ** 21;
/** r times p: the data that PBKDF2 derives before and after, kept in memory. */
const MAX_LANE_BLOCKS = 2 ** 10;
/** N times r times p: about a second of computation. */
const MAX_WORK = 2 ** 22;

/** RFC 7914 section 2. */
export const isScrypt = ({ logN, r, p }: ScryptCost): boolean => logN >= 1 && logN < 16 * r && r >= 1 && p >= 1;

export const isScryptTooCostly = ({ logN, r, p }: ScryptCost): boolean =>
  2 ** logN * r > MAX_BLOCKS || r * p > MAX_LANE_BLOCKS || 2 ** logN * r * p > MAX_WORK;

/** In bytes: N blocks, p lanes, and two work blocks. */
export const memoryOfScrypt = ({ logN, r, p }: ScryptCost): number => 128 * r * (2 ** logN + p + 2);

const deriveBytes = promisify<BinaryLike, BinaryLike, number, object, Buffer>(deriveKey);

export const deriveScrypt = (password: string, salt: BinaryLike, cost: ScryptCost, length: number): Promise<Buffer> => {
  const { logN, r, p } = cost;
  // The memory for scrypt, and the margin that OpenSSL requires.
  return deriveBytes(password, salt, length, { N: 2 ** logN, r, p, maxmem: memoryOfScrypt(cost) + 2 ** 20 });
};

const hashOf = (cost: ScryptCost, salt: BinaryLike, hash: Buffer): ForeignHash | undefined =>
  isScrypt(cost) && isWholeKey(hash)
    ? {
        isTooCostly: isScryptTooCostly(cost),
        memory: memoryOfScrypt(cost),
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

/** Django's `scrypt$N$salt$r$p$hash`, with the salt as text. */
const django: HashFamily = (stored) => {
  const [, N, salt = '', r, p, hash = ''] = djangoForm.exec(stored) ?? [];
  const logN = Math.log2(Number(N));
  return Number.isInteger(logN) ? hashOf({ logN, r: Number(r), p: Number(p) }, salt, fromBase64(hash)) : undefined;
};

/** better-auth always uses these parameters. */
const betterAuthCost: ScryptCost = { logN: 14, r: 16, p: 1 };

/** Far more than better-auth accepts. Normalization runs on the event loop, and takes a second for 100 kB of accents. */
const MAX_NORMALIZED = 1024;

/** better-auth's `salt:hash` in hexadecimal. The salt is used as text; the password is normalized. */
const betterAuth: HashFamily = (stored) => {
  const [, salt = '', hash] = /^([0-9a-f]{32}):([0-9a-f]{128})$/.exec(stored) ?? [];
  if (hash === undefined) return undefined;
  const plain = hashOf(betterAuthCost, salt, Buffer.from(hash, 'hex'));
  return (
    plain && {
      ...plain,
      matches: async (password) => password.length <= MAX_NORMALIZED && plain.matches(password.normalize('NFKC')),
    }
  );
};

export const scryptFamilies: HashFamily[] = [phc, django, betterAuth];
