import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { ObjectStorage } from '../parts/object-storage/index.ts';
import { type Avatars, REPLACED_MS } from './avatars.ts';
import { fits, isUploadType, START_BYTES } from './file-types.ts';
import type { Records, UploadRecord } from './records.ts';

/**
 * A PUT is admitted by when it begins. The first look comes so long after an address has expired; the second, which decides
 * for good, when also who began in the last second and sends drop by drop is through.
 */
export const FIRST_LOOK_MS = 5 * 60_000;
const LAST_LOOK_MS = 60 * 60_000;
/** Longer than a look can take; past it the row of a process that died is taken up by another. */
const LEASE_MS = 60_000;
const AT_ONCE = 10;
const POLL_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

type Finding = 'absent' | 'as declared' | 'not as declared';
type Due = Awaited<ReturnType<Records['lease']>>[number];

interface Parts {
  objects: ObjectStorage;
  records: Records;
  avatars: Avatars;
  log: Log;
}

/**
 * Holds what is stored to what was declared. A worker in each process looks at what is due; all share the work as the mail
 * outbox does. Every step may be repeated: after a crash another process does.
 */
export function createInspection({ objects, records, avatars, log }: Parts) {
  const stopping = new AbortController();
  let loop: Promise<void> | undefined;

  const look = async ({ objectKey, contentType, size }: UploadRecord): Promise<Finding> => {
    const found = await objects.find(objectKey, START_BYTES);
    if (!found) return 'absent';
    const isRight = found.size === size && (!isUploadType(contentType) || fits(contentType, found.start));
    return isRight ? 'as declared' : 'not as declared';
  };

  const discard = async ({ objectKey, purpose, expiredForMs }: Due) => {
    await objects.delete(objectKey);
    // As long as an upload to its address may still be under way, the object can come back.
    if (purpose === 'direct' && expiredForMs < LAST_LOOK_MS) {
      await records.postpone(objectKey, LAST_LOOK_MS - expiredForMs);
    } else await records.remove(objectKey);
  };

  const inspectDirect = async (due: Due) => {
    const finding = await look(due);
    const isLast = due.expiredForMs >= LAST_LOOK_MS;
    if (finding === 'not as declared') {
      log.info({ key: due.objectKey, userId: due.userId }, 'an upload is not what was declared, it is deleted');
      await objects.delete(due.objectKey);
    }
    if (!isLast) await records.postpone(due.objectKey, LAST_LOOK_MS - due.expiredForMs);
    else if (finding === 'as declared') await records.keep(due.objectKey);
    else await records.remove(due.objectKey);
  };

  const inspect = async (due: Due) => {
    if (due.state === 'kept') return;
    if (due.state === 'replaced' && !(await avatars.condemn(due.objectKey))) {
      await records.postpone(due.objectKey, REPLACED_MS);
      return;
    }
    if (due.state === 'expected' && due.purpose === 'direct') await inspectDirect(due);
    // A doomed upload, or an image whose storing was never finished: nobody was told its address.
    else await discard(due);
  };

  /** Answers how many rows were due. An outage is told once, not at every try. */
  let failing = false;
  const round = async (): Promise<number> => {
    try {
      const due = await records.lease(AT_ONCE, LEASE_MS);
      await Promise.all(due.map(inspect));
      failing = false;
      return due.length;
    } catch (error) {
      // What was leased comes up again when its lease has run out.
      if (!failing) log.warn({ err: error }, 'uploads cannot be inspected now');
      failing = true;
      return 0;
    }
  };

  const run = async () => {
    let pause = POLL_MS;
    while (!stopping.signal.aborted) {
      const count = await round();
      pause = failing ? Math.min(pause * 2, LONGEST_PAUSE_MS) : POLL_MS;
      if (count < AT_ONCE)
        await delay(pause, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined);
    }
  };

  return {
    /**
     * The same look at once, for the user who asked for the address. Rejects with NOT_FOUND what he never asked for, and
     * with VALIDATION_FAILED what is not there, or was not as declared and is now deleted. The address stays usable as
     * long as it was given for, so the job looks again.
     */
    async confirm(userId: string, objectKey: string): Promise<UploadRecord> {
      const record = await records.find(objectKey);
      if (record?.userId !== userId) throw new ServiceError('NOT_FOUND', { message: 'You have no such upload' });
      const finding = await look(record);
      if (finding === 'as declared') return record;
      if (finding === 'absent')
        throw new ServiceError('VALIDATION_FAILED', { message: 'Nothing has been uploaded here' });
      if (record.state === 'expected') await objects.delete(objectKey);
      throw new ServiceError('VALIDATION_FAILED', { message: 'The upload was not what was declared, it is deleted' });
    },

    start(): void {
      loop = run();
    },

    async stop(): Promise<void> {
      stopping.abort();
      await loop;
    },
  };
}

export type Inspection = ReturnType<typeof createInspection>;
