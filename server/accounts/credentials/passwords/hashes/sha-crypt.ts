import { isSameHash } from './bytes.ts';
import type { HashFamily } from './foreign-hash.ts';
import { computeShaCrypt } from './sha-crypt-threads.ts';

/** What is left out is the default of the specification. */
const DEFAULT_ROUNDS = 5000;
const FEWEST_ROUNDS = 1000;
/** A second or two of work. */
const MOST_ROUNDS = 1_000_000;
/** As libxcrypt has it: every round reads the whole password. */
const MOST_PASSWORD_BYTES = 512;

const form = /^\$([56])\$(?:rounds=([1-9]\d{0,8})\$)?([!-#%-9;-~]{0,16})\$([./0-9A-Za-z]+)$/;

const kinds = { 5: { digest: 'sha256', length: 43 }, 6: { digest: 'sha512', length: 86 } } as const;

/** sha-crypt (akkadia.org/drepper/SHA-crypt.txt): `$5$` and `$6$` of Unix and of mail servers. */
export const shaCrypt: HashFamily = (stored) => {
  const [, kind, given, salt = '', hash = ''] = form.exec(stored) ?? [];
  if (kind === undefined) return undefined;
  const { digest, length } = kinds[kind === '5' ? 5 : 6];
  const rounds = Number(given ?? DEFAULT_ROUNDS);
  if (hash.length !== length || rounds < FEWEST_ROUNDS) return undefined;
  return {
    isTooCostly: rounds > MOST_ROUNDS,
    async matches(password) {
      if (Buffer.byteLength(password) > MOST_PASSWORD_BYTES) return false;
      return isSameHash(Buffer.from(await computeShaCrypt({ digest, password, salt, rounds })), Buffer.from(hash));
    },
  };
};
