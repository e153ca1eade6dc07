/**
 * Firebase's modified scrypt (github.com/firebase/scrypt), in Supabase's text form. A key derived from the password
 * encrypts the signer key of the project with AES in counter mode. `n` is its `mem_cost`, `r` its `rounds`, `ss` its
 * `base64_salt_separator`, `sk` its `base64_signer_key`.
 */
import { createCipheriv } from 'node:crypto';
import { base64, fromBase64, isSameHash, isWholeKey } from './bytes.ts';
import type { HashFamily } from './foreign-hash.ts';
import { deriveScrypt, isScrypt, isScryptTooCostly, memoryOfScrypt } from './scrypt.ts';

const form = new RegExp(
  `^\\$fbscrypt\\$v=1,n=(\\d{1,2}),r=(\\d{1,3}),p=1(?:,ss=(${base64}))?,sk=(${base64})\\$(${base64})\\$(${base64})$`,
);

const KEY_BYTES = 32;

export const firebaseScrypt: HashFamily = (stored) => {
  const [matched, logN, r, separator = '', signerKey = '', salt = '', hash = ''] = form.exec(stored) ?? [];
  if (matched === undefined) return undefined;
  const cost = { logN: Number(logN), r: Number(r), p: 1 };
  const [signer, encrypted] = [fromBase64(signerKey), fromBase64(hash)];
  if (!isScrypt(cost) || !isWholeKey(encrypted) || encrypted.length !== signer.length) return undefined;
  return {
    isTooCostly: isScryptTooCostly(cost),
    memory: memoryOfScrypt(cost),
    async matches(password) {
      const salted = Buffer.concat([fromBase64(salt), fromBase64(separator)]);
      const key = await deriveScrypt(password, salted, cost, KEY_BYTES);
      const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
      return isSameHash(cipher.update(signer), encrypted);
    },
  };
};
