import type { UploadRecord } from './records.ts';

/**
 * A storage admits a PUT by when it begins. The first check comes this long after an address has expired; the last one,
 * which is final, when also a client that began in the last second over a slow connection has finished.
 */
export const FIRST_CHECK_MS = 5 * 60_000;
const LAST_CHECK_MS = 60 * 60_000;

export const msUntilNextCheck = ({ purpose, expiredForMs }: UploadRecord): number => {
  if (purpose !== 'direct') return -expiredForMs;
  return (expiredForMs < FIRST_CHECK_MS ? FIRST_CHECK_MS : LAST_CHECK_MS) - expiredForMs;
};

/** Whether nothing can arrive any more: an image that is still being stored may be deleted before it is there. */
export const isLastCheck = ({ purpose, state, expiredForMs }: UploadRecord): boolean => {
  if (purpose === 'direct') return expiredForMs >= LAST_CHECK_MS;
  return state === 'kept' || state === 'replaced' || expiredForMs >= 0;
};

/** Whether a client may still begin to upload to its address: storages cannot revoke an address. */
export const isAddressValid = ({ purpose, expiredForMs }: UploadRecord): boolean =>
  purpose === 'direct' && expiredForMs < 0;
