import type { Upload } from '../../entities/index.ts';

type Scheduled = Pick<Upload, 'purpose' | 'state' | 'createdAt' | 'multipartId'> & { expiredForMs: number };

/**
 * A storage admits a PUT by the time it begins. The first check runs this long after an address has expired; the final
 * one when a slow PUT begun in the last second has ended.
 */
export const FIRST_CHECK_MS = 5 * 60_000;
export const LAST_CHECK_MS = 60 * 60_000;

/** Parts may be sent for so long after the address of the whole file has expired. */
export const PARTS_MS = 24 * 60 * 60_000;
/** The only check of a file with unjoined parts runs this long after that address has expired. */
export const PARTS_CHECK_MS = PARTS_MS + LAST_CHECK_MS;

/** A file that waits for the scanner is looked for while its address is valid: nobody reports its arrival. */
export const FIRST_LOOK_MS = 5000;

const lastCheckMs = ({ state, multipartId }: Scheduled): number =>
  multipartId !== null && (state === 'expected' || state === 'pending') ? PARTS_CHECK_MS : LAST_CHECK_MS;

export const msUntilNextCheck = (upload: Scheduled): number => {
  const { purpose, expiredForMs } = upload;
  if (purpose !== 'direct') return -expiredForMs;
  return (expiredForMs < FIRST_CHECK_MS ? FIRST_CHECK_MS : lastCheckMs(upload)) - expiredForMs;
};

/** Doubles from look to look, by this machine's clock. */
export const msUntilNextLook = (upload: Scheduled): number => {
  const ageMs = Math.max(Date.now() - upload.createdAt, FIRST_LOOK_MS);
  return isAddressValid(upload) ? Math.min(ageMs, FIRST_CHECK_MS) : msUntilNextCheck(upload);
};

/** True if nothing can arrive any more. An image that is still being stored may be deleted before it is there. */
export const isLastCheck = (upload: Scheduled): boolean => {
  const { purpose, state, expiredForMs } = upload;
  if (purpose === 'direct') return expiredForMs >= lastCheckMs(upload);
  return state === 'kept' || state === 'replaced' || expiredForMs >= 0;
};

/** True if a client may still begin to upload to its address: storages cannot revoke an address. */
export const isAddressValid = ({ purpose, expiredForMs }: Pick<Scheduled, 'purpose' | 'expiredForMs'>): boolean =>
  purpose === 'direct' && expiredForMs < 0;
