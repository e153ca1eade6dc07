import { createHash, timingSafeEqual } from 'node:crypto';
import { hashOf } from '../../../lib/random-token.ts';
import type { Secrets } from '../../../secrets.ts';
import type { MailKind } from '../kinds.ts';

/**
 * Derives mailed tokens: a token is the HMAC of its row's random id under APP_SECRET, for the kind of its mail. It is
 * derived when the mail is sent, so no table and no queue contains it.
 */
export const createMailedTokens = (secrets: Secrets) => {
  const deriveAll = (purpose: MailKind, id: string) => secrets.derive(`one-time-token:${purpose}:${id}`);

  return {
    derive: (purpose: MailKind, id: string): string => deriveAll(purpose, id)[0],

    /** The token, by the secret that issued it; `otherKey` if this process does not have that secret. */
    deriveStored(purpose: MailKind, { id, hash }: { id: string; hash: string }): { token: string } | 'otherKey' {
      const token = deriveAll(purpose, id).find((each) => hashOf(each) === hash);
      return token === undefined ? 'otherKey' : { token };
    },
  };
};

const CODE_DIGITS = 6;

/** The six digits that stand for a mailed token. They follow from the token, so nothing stored tells them either. */
export function codeOf(token: string): string {
  const number = createHash('sha256').update(`code\n${token}`).digest().readUIntBE(0, 6);
  return String(number % 10 ** CODE_DIGITS).padStart(CODE_DIGITS, '0');
}

/** Compares in constant time. `code` has six digits. */
export const isCodeOf = (token: string, code: string): boolean =>
  timingSafeEqual(Buffer.from(codeOf(token)), Buffer.from(code));
