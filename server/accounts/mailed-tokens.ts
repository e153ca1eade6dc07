import { createHash } from 'node:crypto';
import type { Secrets } from '../secrets.ts';
import type { MailKind } from './mail-kinds.ts';

/** Whether a text has the form of a mailed token; any other text needs no query. */
export const isMailedToken = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text);

/** The form in which a token is stored. */
export const hashOf = (token: string) => createHash('sha256').update(token).digest('base64url');

/**
 * A mailed token is the HMAC of its row's random id under the application secret: it can be derived when its mail is sent,
 * and neither a table nor the mail queue contains it. Its purpose is the kind of its mail.
 */
export const createMailedTokens = (secrets: Secrets) => {
  const deriveAll = (purpose: MailKind, id: string) => secrets.derive(`one-time-token:${purpose}:${id}`);

  return {
    derive: (purpose: MailKind, id: string): string => deriveAll(purpose, id)[0],

    /** The token under the secret that it was issued with; `foreign` if this process does not have that. */
    deriveStored(purpose: MailKind, { id, hash }: { id: string; hash: string }): { token: string } | 'foreign' {
      const token = deriveAll(purpose, id).find((each) => hashOf(each) === hash);
      return token === undefined ? 'foreign' : { token };
    },
  };
};
