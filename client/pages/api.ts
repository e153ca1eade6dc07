import {
  createClient,
  type ErrorCode,
  isNetworkError,
  isServiceError,
  isTimeoutError,
  uploadImage,
} from 'account-client';
import { textIfAny } from '../../server/texts/template.ts';
import { text } from './texts.ts';

export type { Profile, ProfileUpdateInput } from 'account-client';

/** The service that serves these pages; the browser sends its cookie along. */
export const api = createClient({ url: '' });

/** Stores a picture and resolves to its address. `onProgress` gets the share that has been sent, 0 to 1. */
export async function uploadAvatar(file: File, onProgress: (share: number) => void): Promise<string> {
  const shareOf = ({ loaded, total }: { loaded: number; total: number }) => onProgress(total > 0 ? loaded / total : 0);
  return (await uploadImage(api, file, { type: 'avatar', onProgress: shareOf })).url;
}

/** The browser has not used or made a passkey: the message is for users. */
export class PasskeyError extends Error {}

/** A failed call: the service refused it, its answer did not arrive, or the browser had no passkey for it. */
export interface Refusal {
  /** Undefined where the service did not answer. */
  code: ErrorCode | undefined;
  /** In the language of the page. */
  message: string;
  /** By field, in the language of the page. */
  details: Record<string, string>;
  /** The earliest time for a retry. */
  retryAt: Date | undefined;
}

/** Reads a failed call. Any other error is a fault of these pages, and is rethrown. */
export function refusalIn(error: unknown): Refusal {
  if (isServiceError(error)) {
    const { code, retryAfter } = error;
    const broken = Object.entries(error.details ?? {}).flatMap(([field, one]) => (one ? [{ field, ...one }] : []));
    // One that repeats the sentence of a field is no more than that: its text says more than that of the code.
    const own = broken.find(({ message }) => message === error.message);
    const message = own ? sentenceOf(own) : (textIfAny(text, `common.codes.${code}`) ?? error.message);
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

/** A broken rule in the language of the page, with the limit that the service's sentence names; that sentence where the rule is unknown here. */
function sentenceOf({ rule, message }: { rule: string; message: string }): string {
  const [limit] = message.match(/\d+/) ?? [];
  return textIfAny(text, `common.rules.${rule}`, limit === undefined ? {} : { limit: Number(limit) }) ?? message;
}
