import { isSameHash } from './bytes.ts';
import type { HashFamily } from './foreign-hash.ts';
import { computeShaCrypt } from './sha-crypt-threads.ts';

/** The default of the specification if `rounds` is absent. */
const DEFAULT_ROUNDS = 5000;
const MIN_ROUNDS = 1000;
/** One to two seconds of computation. */
const MAX_ROUNDS = 1_000_000;
/** The limit of libxcrypt. */
const MAX_PASSWORD_BYTES = 512;
/** Rounds times password bytes, all read in every round: one to two seconds of computation. */
const MAX_WORK = 128 * MAX_ROUNDS;
/** The memory of a thread. */
const MEMORY = 10 * 2 ** 20;

const form = /^\$([56])\$(?:rounds=([1-9]\d{0,8})\$)?([!-#%-9;-~]{0,16})\$([./0-9A-Za-z]+)$/;

const kinds = { 5: { digest: 'sha256', length: 43 }, 6: { digest: 'sha512', length: 86 } } as const;

/** sha-crypt (akkadia.org/drepper/SHA-crypt.txt): `$5$` and `$6$`, used by Unix and mail servers. */
export const shaCrypt: HashFamily = (stored) => {
  const [, kind, given, salt = '', hash = ''] = form.exec(stored) ?? [];
  if (kind === undefined) return undefined;
  const { digest, length } = kinds[kind === '5' ? 5 : 6];
  const rounds = Number(given ?? DEFAULT_ROUNDS);
  if (hash.length !== length || rounds < MIN_ROUNDS) return undefined;
  return {
    isTooCostly: rounds > MAX_ROUNDS,
    memory: MEMORY,
    async matches(password) {
      const bytes = Buffer.byteLength(password);
      if (bytes > MAX_PASSWORD_BYTES || bytes * rounds > MAX_WORK) return false;
      return isSameHash(Buffer.from(await computeShaCrypt({ digest, password, salt, rounds })), Buffer.from(hash));
    },
  };
};
