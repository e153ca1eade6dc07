/*
 * An address stays valid until it expires, so the job checks every upload again, also that no other content has
 * replaced the confirmed one.
 */

import { backgroundJob } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import { isUploadType, matchesSignature, START_BYTES } from '../lib/media-types.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import type { Log } from '../telemetry/log.ts';
import { createWorker } from '../workers/worker.ts';
import type { Avatars } from './avatars.ts';
import type { Deletions } from './deletions.ts';
import type { UploadLeases } from './leases.ts';
import { pendingKeyOf, sentTo } from './names.ts';
import type { Records, UploadRecord } from './records.ts';
import { isLastCheck, msUntilNextCheck } from './schedule.ts';

const AT_ONCE = 10;
const WITHOUT_SCANNER_MS = 10 * 60_000;

interface Parts {
  objects: ObjectStorage;
  records: Records;
  leases: UploadLeases;
  avatars: Avatars;
  deletions: Deletions;
  /** Called with a pending upload that has arrived. */
  arrived(upload: UploadRecord): Promise<void>;
  log: Log;
}

/** Deletes objects that do not match their declaration, and those that no row needs any more. */
export function createInspection({ objects, records, leases, avatars, deletions, arrived, log }: Parts) {
  const inspectDirect = async (upload: UploadRecord) => {
    const { objectKey, userId } = upload;
    const { result } = await check(objects, upload);
    if (result === 'not as declared') {
      log.info({ key: objectKey, userId }, 'an upload does not match its declaration and is deleted');
      await objects.delete(objectKey);
    }
    if (!isLastCheck(upload)) await leases.postpone(upload, msUntilNextCheck(upload));
    else if (result === 'as declared') {
      if (upload.multipartId !== null) await objects.deleteParts(objectKey);
      await records.commit(upload, backgroundJob);
    } else await deletions.abandon(upload);
  };

  const inspect = async (upload: UploadRecord): Promise<void> => {
    switch (upload.state) {
      case 'expected':
        // An image that was never stored completely: no user has received its address.
        return upload.purpose === 'direct' ? inspectDirect(upload) : deletions.abandon(upload);
      case 'replaced':
        if (await avatars.startDeletionIfUnused(upload.objectKey)) await deletions.proceed(upload);
        return;
      case 'doomed':
        return deletions.proceed(upload);
      case 'infected':
        return deletions.abandon(upload);
      case 'kept':
        // What was sent since it was stored is deleted.
        if (upload.multipartId !== null) await objects.deleteParts(sentTo(upload));
        if (upload.scan !== null) await objects.delete(pendingKeyOf(upload.objectKey));
        return records.finishMove(upload.objectKey);
      case 'pending':
        // Without SCAN_URL it waits until there is a scanner again.
        return leases.postpone(upload, WITHOUT_SCANNER_MS);
    }
  };

  const worker = createWorker({ name: 'uploads', atOnce: AT_ONCE, leases, work: inspect, log });

  /**
   * Checks an upload now, for its owner. Rejects with VALIDATION_FAILED if nothing was uploaded, or if it did not
   * match and is now deleted.
   */
  const confirm = async (upload: UploadRecord): Promise<void> => {
    if (upload.state === 'infected') throw new ServiceError('UPLOAD_QUARANTINED');
    const { result, version } = await check(objects, upload);
    if (result === 'absent' && upload.state === 'pending') {
      // It may have been moved since its row was read.
      const current = await records.find(upload.objectKey);
      if (current && current.state !== 'pending') return confirm(current);
    }
    if (result === 'as declared') {
      if (version !== undefined && upload.confirmedVersion === null) await records.confirm(upload.objectKey, version);
      if (upload.state === 'pending') await arrived(upload);
      return;
    }
    if (result === 'absent') throw new ServiceError('VALIDATION_FAILED', { message: 'Nothing has been uploaded here' });
    if (upload.state === 'expected' || upload.state === 'pending') await objects.delete(objectOf(upload));
    throw new ServiceError('VALIDATION_FAILED', {
      message: 'The upload did not match its declaration and was deleted',
    });
  };

  return {
    confirm,
    start: worker.start,
    stop: worker.stop,
  };
}

/** The key at which the object of an upload is, or to which it is sent. */
const objectOf = ({ objectKey, state }: UploadRecord): string =>
  state === 'pending' ? pendingKeyOf(objectKey) : objectKey;

/** Compares the stored object with its declaration and with the confirmed version. */
export async function check(objects: ObjectStorage, upload: UploadRecord) {
  const { contentType, size, confirmedVersion } = upload;
  const found = await objects.find(objectOf(upload), START_BYTES);
  if (!found) return { result: 'absent' } as const;
  const { version } = found;
  const hasType = !isUploadType(contentType) || matchesSignature(contentType, found.start);
  const isSame = confirmedVersion === null || version === undefined || version === confirmedVersion;
  return { result: hasType && isSame && found.size === size ? 'as declared' : 'not as declared', version } as const;
}
