import type { UploadRecord } from './records.ts';

/**
 * A storage admits a PUT by the time it begins. The first check runs this long after an address has expired; the final
 * one when a slow PUT begun in the last second has ended.
 */
export const FIRST_CHECK_MS = 5 * 60_000;
const LAST_CHECK_MS = 60 * 60_000;

export const msUntilNextCheck = ({ purpose, expiredForMs }: UploadRecord): number => {
  if (purpose !== 'direct') return -expiredForMs;
  return (expiredForMs < FIRST_CHECK_MS ? FIRST_CHECK_MS : LAST_CHECK_MS) - expiredForMs;
};

/** True if nothing can arrive any more. An image that is still being stored may be deleted before it is there. */
export const isLastCheck = ({ purpose, state, expiredForMs }: UploadRecord): boolean => {
  if (purpose === 'direct') return expiredForMs >= LAST_CHECK_MS;
  return state === 'kept' || state === 'replaced' || expiredForMs >= 0;
};

/** True if a client may still begin to upload to its address: storages cannot revoke an address. */
export const isAddressValid = ({ purpose, expiredForMs }: UploadRecord): boolean =>
  purpose === 'direct' && expiredForMs < 0;
