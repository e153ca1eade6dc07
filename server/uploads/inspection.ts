import { ServiceError } from '../errors.ts';
import type { Log } from '../log.ts';
import { fits, isUploadType, START_BYTES } from '../media-types.ts';
import type { Database } from '../parts/database/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import { createWorker } from '../workers/worker.ts';
import type { Avatars } from './avatars.ts';
import { isOpen, type Records, type UploadRecord } from './records.ts';

/**
 * A PUT is admitted by when it begins. The first look comes so long after an address has expired; the second, which decides
 * for good, when also a client that began in the last second and sends drop by drop is through.
 */
export const FIRST_LOOK_MS = 5 * 60_000;
const LAST_LOOK_MS = 60 * 60_000;
const AT_ONCE = 10;

type Finding = 'absent' | 'as declared' | 'not as declared';

interface Parts {
  database: Database;
  objects: ObjectStorage;
  records: Records;
  avatars: Avatars;
  log: Log;
}

/** Deletes objects that are not as they were declared, and those that no row needs any more. */
export function createInspection({ database, objects, records, avatars, log }: Parts) {
  const look = async ({ objectKey, contentType, size }: UploadRecord): Promise<Finding> => {
    const found = await objects.find(objectKey, START_BYTES);
    if (!found) return 'absent';
    const isRight = found.size === size && (!isUploadType(contentType) || fits(contentType, found.start));
    return isRight ? 'as declared' : 'not as declared';
  };

  const untilNextLook = ({ purpose, expiredForMs }: UploadRecord) => {
    if (purpose !== 'direct') return -expiredForMs;
    return (expiredForMs < FIRST_LOOK_MS ? FIRST_LOOK_MS : LAST_LOOK_MS) - expiredForMs;
  };

  /** Whether nothing can come any more: an image that is still being stored may be deleted before it is there. */
  const isLastLook = ({ purpose, state, expiredForMs }: UploadRecord) => {
    if (purpose === 'direct') return expiredForMs >= LAST_LOOK_MS;
    return state === 'kept' || state === 'replaced' || expiredForMs >= 0;
  };

  /** Of a doomed row, by what it was before. It stays as long as something may still come under its key. */
  const discard = async (upload: UploadRecord) => {
    await objects.delete(upload.objectKey);
    if (!isOpen(upload)) await records.free(upload);
    if (isLastLook(upload)) await records.remove(upload.objectKey);
    else await records.postpone({ ...upload, state: 'doomed' }, untilNextLook(upload));
  };

  const giveUp = async (upload: UploadRecord) => {
    if (await database.transaction((_em, tables) => records.doom(tables, upload, ['expected']))) await discard(upload);
  };

  const inspectDirect = async (due: UploadRecord) => {
    const finding = await look(due);
    if (finding === 'not as declared') {
      log.info({ key: due.objectKey, userId: due.userId }, 'an upload is not what was declared, it is deleted');
      await objects.delete(due.objectKey);
    }
    if (!isLastLook(due)) await records.postpone(due, untilNextLook(due));
    else if (finding === 'as declared') await records.keep(due.objectKey);
    else await giveUp(due);
  };

  const inspect = async (due: UploadRecord): Promise<void> => {
    switch (due.state) {
      case 'expected':
        // An image that was never stored completely: no user was told its address.
        return due.purpose === 'direct' ? inspectDirect(due) : giveUp(due);
      case 'replaced':
        if (await avatars.condemn(due.objectKey)) await discard(due);
        return;
      case 'doomed':
        return discard(due);
      case 'kept':
    }
  };

  const worker = createWorker({ name: 'uploads', atOnce: AT_ONCE, leases: records.leases, work: inspect, log });

  const ownUpload = async (userId: string, objectKey: string): Promise<UploadRecord> => {
    const upload = await records.find(objectKey);
    if (upload?.userId !== userId || upload.state === 'doomed') throw notFound();
    return upload;
  };

  return {
    /**
     * The same look at once, for the user who asked for the address. Rejects with NOT_FOUND what is none of that user's, and
     * with VALIDATION_FAILED what is not there, or was not as declared and is now deleted. The address stays usable as
     * long as it was given for, so the job looks again.
     */
    async confirm(userId: string, objectKey: string): Promise<UploadRecord> {
      const record = await ownUpload(userId, objectKey);
      const finding = await look(record);
      if (finding === 'as declared') return record;
      if (finding === 'absent')
        throw new ServiceError('VALIDATION_FAILED', { message: 'Nothing has been uploaded here' });
      if (record.state === 'expected') await objects.delete(objectKey);
      throw new ServiceError('VALIDATION_FAILED', { message: 'The upload was not what was declared, it is deleted' });
    },

    /**
     * Deletes a user's upload, and takes it from the user's own profile. Rejects with NOT_FOUND. Crash-safe: once this has
     * begun, the job completes it. What is still sent to its address is deleted when that has expired.
     */
    async remove(userId: string, objectKey: string): Promise<void> {
      const upload = await ownUpload(userId, objectKey);
      if (!(await avatars.withdraw(upload))) throw notFound();
      await discard(upload).catch((err: unknown) => log.warn({ err, key: objectKey }, 'an upload is deleted later'));
    },

    start: worker.start,
    stop: worker.stop,
  };
}

const notFound = () => new ServiceError('NOT_FOUND', { message: 'You have no such upload' });

export type Inspection = ReturnType<typeof createInspection>;
