import { backgroundJob } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import type { Log } from '../log.ts';
import { isUploadType, matchesSignature, START_BYTES } from '../media-types.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import { createWorker } from '../workers/worker.ts';
import type { Avatars } from './avatars.ts';
import type { Deletions } from './deletions.ts';
import type { UploadLeases } from './leases.ts';
import type { Records, UploadRecord } from './records.ts';
import { isLastCheck, msUntilNextCheck } from './schedule.ts';

const AT_ONCE = 10;

interface Parts {
  objects: ObjectStorage;
  records: Records;
  leases: UploadLeases;
  avatars: Avatars;
  deletions: Deletions;
  log: Log;
}

/** Deletes objects that are not as they were declared, and those that no row needs any more. */
export function createInspection({ objects, records, leases, avatars, deletions, log }: Parts) {
  const inspectDirect = async (upload: UploadRecord) => {
    const { objectKey, userId } = upload;
    const result = await check(objects, upload);
    if (result === 'not as declared') {
      log.info({ key: objectKey, userId }, 'an upload is not what was declared, it is deleted');
      await objects.delete(objectKey);
    }
    if (!isLastCheck(upload)) await leases.postpone(upload, msUntilNextCheck(upload));
    else if (result === 'as declared') await records.commit(upload, backgroundJob);
    else await deletions.abandon(upload);
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
      case 'kept':
    }
  };

  const worker = createWorker({ name: 'uploads', atOnce: AT_ONCE, leases, work: inspect, log });

  return {
    /**
     * The same check at once, for the user who asked for the address. Rejects with VALIDATION_FAILED what is not there,
     * or was not as declared and is now deleted. The address stays valid until it expires, so the job checks again.
     */
    async confirm(upload: UploadRecord): Promise<void> {
      const result = await check(objects, upload);
      if (result === 'as declared') return;
      if (result === 'absent')
        throw new ServiceError('VALIDATION_FAILED', { message: 'Nothing has been uploaded here' });
      if (upload.state === 'expected') await objects.delete(upload.objectKey);
      throw new ServiceError('VALIDATION_FAILED', { message: 'The upload was not what was declared, it is deleted' });
    },

    start: worker.start,
    stop: worker.stop,
  };
}

/** Compares what is stored with what was declared. */
async function check(objects: ObjectStorage, { objectKey, contentType, size }: UploadRecord) {
  const found = await objects.find(objectKey, START_BYTES);
  if (!found) return 'absent';
  const hasType = !isUploadType(contentType) || matchesSignature(contentType, found.start);
  return hasType && found.size === size ? 'as declared' : 'not as declared';
}
