import { createCipheriv } from 'node:crypto';
import { base64, fromBase64, isSameHash, isWholeKey } from './bytes.ts';
import type { HashFamily } from './foreign-hash.ts';
import { deriveScrypt, isScryptTooCostly } from './scrypt.ts';

const form = new RegExp(
  `^\\$fbscrypt\\$v=1,n=(\\d{1,2}),r=(\\d{1,3}),p=1(?:,ss=(${base64}))?,sk=(${base64})\\$(${base64})\\$(${base64})$`,
);

const KEY_BYTES = 32;

/**
 * Firebase's modified scrypt (github.com/firebase/scrypt), in the form that Supabase gives it: a key derived from the password
 * encrypts the signer key of the project, by AES in counter mode. `n` is its `mem_cost`, `r` its `rounds`, `ss` its
 * `base64_salt_separator`, `sk` its `base64_signer_key`.
 */
export const firebaseScrypt: HashFamily = (stored) => {
  const [, logN, r, separator = '', signerKey = '', salt = '', hash = ''] = form.exec(stored) ?? [];
  if (logN === undefined || Number(logN) < 1 || Number(r) < 1 || !isWholeKey(fromBase64(hash))) return undefined;
  const cost = { logN: Number(logN), r: Number(r), p: 1 };
  return {
    isTooCostly: isScryptTooCostly(cost),
    async matches(password) {
      const salted = Buffer.concat([fromBase64(salt), fromBase64(separator)]);
      const key = await deriveScrypt(password, salted, cost, KEY_BYTES);
      const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
      return isSameHash(cipher.update(fromBase64(signerKey)), fromBase64(hash));
    },
  };
};
