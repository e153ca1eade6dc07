import { argon2 } from './argon2.ts';
import { bcrypt } from './bcrypt.ts';
import { firebaseScrypt } from './firebase-scrypt.ts';
import type { ForeignHash, HashFamily } from './foreign-hash.ts';
import { pbkdf2Families } from './pbkdf2.ts';
import { scryptFamilies } from './scrypt.ts';
import { shaCrypt } from './sha-crypt.ts';

export type { ForeignHash } from './foreign-hash.ts';

const families: readonly HashFamily[] = [
  bcrypt,
  argon2,
  ...scryptFamilies,
  firebaseScrypt,
  ...pbkdf2Families,
  shaCrypt,
];

/** PBKDF2 with SHA-256 and 32 bytes, the only hash created here. */
interface OwnHash {
  rounds: number;
  salt: Buffer;
  hash: Buffer;
}

type StoredHash = OwnHash | ForeignHash;

export const isOwn = (hash: StoredHash): hash is OwnHash => 'rounds' in hash;

/** One to two seconds of computation. */
const MAX_ROUNDS = 10_000_000;

const ownForm = /^([1-9]\d{0,9}):([A-Za-z0-9+/]+={0,2}):([A-Za-z0-9+/]{43}=)$/;

function parse(stored: string): StoredHash | undefined {
  const [, rounds, salt = '', hash = ''] = ownForm.exec(stored) ?? [];
  if (rounds !== undefined) {
    return { rounds: Number(rounds), salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') };
  }
  for (const family of families) {
    const hash = family(stored);
    if (hash) return hash;
  }
  return undefined;
}

/** Parses a stored hash, or returns why it is unusable, without quoting it. */
export function readHash(stored: string): { hash: StoredHash } | { problem: string } {
  const hash = parse(stored);
  if (!hash) return { problem: 'it has an unknown form' };
  const isTooCostly = isOwn(hash) ? hash.rounds > MAX_ROUNDS : hash.isTooCostly;
  return isTooCostly ? { problem: 'it costs too much time or memory' } : { hash };
}
