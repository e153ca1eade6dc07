import { createClient, type ErrorCode, isNetworkError, isServiceError, isTimeoutError } from 'account-client';
import { textIfAny } from '../../server/shared/texts/template.ts';
import { announceChallenge } from './challenge-progress.tsx';
import { text } from './language/texts.ts';
import { isActing } from './session/draft.ts';

export type { Profile, ProfileUpdateInput } from 'account-client';

/** Sent with every call. Has the id of the shown user once it is known: another tab may log in another one. */
export const headers: Record<string, string> = {};

/** Calls the service that serves these pages; the browser sends its cookies. */
export const api = createClient({ url: '', headers, onChallenge: announceChallenge });

/** The browser did not use or create a passkey. The message is for users. */
export class PasskeyError extends Error {}

/** A failed call: the service refused it, did not answer, or the browser had no passkey for it. */
export interface Refusal {
  /** Undefined if the service did not answer. */
  code: ErrorCode | undefined;
  /** In the language of the page. */
  message: string;
  /** Messages by field, in the language of the page. */
  details: Record<string, string>;
  /** The earliest time for a retry. */
  retryAt: Date | undefined;
}

/** Describes a failed call. Rethrows any other error, which is a bug of these pages. */
export function refusalIn(error: unknown): Refusal {
  if (isServiceError(error)) {
    const { code, retryAfter } = error;
    const broken = Object.entries(error.details ?? {}).flatMap(([field, one]) => (one ? [{ field, ...one }] : []));
    // A message that repeats the one of a field is dropped: the text of the field says more than that of the code.
    const own = broken.find(({ message }) => message === error.message);
    const message = own ? sentenceOf(own) : (textIfAny(text, keyOf(code)) ?? error.message);
    const details = Object.fromEntries(broken.map((one) => [one.field, sentenceOf(one)]));
    const retryAt = retryAfter === undefined ? undefined : new Date(Date.now() + retryAfter * 1000);
    return { code, message, details, retryAt };
  }
  if (error instanceof PasskeyError) {
    return { code: undefined, message: error.message, details: {}, retryAt: undefined };
  }
  if (!isNetworkError(error) && !isTimeoutError(error)) throw error;
  return { code: undefined, message: text('common.unreachable.noAnswer'), details: {}, retryAt: undefined };
}

/** Only the user can log in again: an administrator who acts for the user cannot. */
const keyOf = (code: ErrorCode): string =>
  code === 'REAUTHENTICATION_REQUIRED' && isActing() ? 'common.rules.impersonation' : `common.codes.${code}`;

/**
 * The text of a broken rule in the language of the page, with the limit from the service's message. Unknown rules keep
 * that message.
 */
function sentenceOf({ rule, message }: { rule: string; message: string }): string {
  const [limit] = message.match(/\d+/) ?? [];
  return textIfAny(text, `common.rules.${rule}`, limit === undefined ? {} : { limit: Number(limit) }) ?? message;
}
