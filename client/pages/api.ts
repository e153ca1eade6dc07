import {
  createClient,
  type ErrorCode,
  isNetworkError,
  isServiceError,
  isTimeoutError,
  uploadImage,
} from 'account-client';

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
  message: string;
  /** By field. */
  details: Record<string, string>;
  /** The earliest time for a retry. */
  retryAt: Date | undefined;
}

/** Reads a failed call. Any other error is a fault of these pages, and is rethrown. */
export function refusalIn(error: unknown): Refusal {
  if (isServiceError(error)) {
    const { code, message, retryAfter } = error;
    const entries = Object.entries(error.details ?? {}).map(([field, broken]) => [field, broken?.message ?? message]);
    const retryAt = retryAfter === undefined ? undefined : new Date(Date.now() + retryAfter * 1000);
    return { code, message, details: Object.fromEntries(entries), retryAt };
  }
  if (error instanceof PasskeyError) {
    return { code: undefined, message: error.message, details: {}, retryAt: undefined };
  }
  if (!isNetworkError(error) && !isTimeoutError(error)) throw error;
  const message = 'The service cannot be reached. Please check your connection and try again.';
  return { code: undefined, message, details: {}, retryAt: undefined };
}
