/*
 * A direct upload is sent to a key under `pending/`, which nobody can read. Once it is there the scanner looks at it, and
 * exactly the version that was looked at is copied to the key of the upload. Each step is idempotent: after a crash
 * another process repeats it when the lease has ended. What is still sent to the address is deleted after its last check.
 */

import { backgroundJob } from '../activity/caller.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import type { Log } from '../telemetry/log.ts';
import { gauges } from '../telemetry/metrics.ts';
import { createWorker } from '../workers/worker.ts';
import { countUpTo } from './count.ts';
import type { Deletions } from './deletions.ts';
import type { Examination } from './examination.ts';
import { check } from './inspection.ts';
import type { UploadLeases } from './leases.ts';
import { pendingKeyOf } from './names.ts';
import type { Records, UploadRecord } from './records.ts';
import { isLastCheck, msUntilNextLook } from './schedule.ts';

const AT_ONCE = 4;
/** The others are for other users: the scanner may take half a minute for each file of one. */
export const MAX_OF_USER = 2;
/** After it the sweep deletes the file. */
const QUARANTINE_DAYS = 30;
const QUARANTINE_MS = QUARANTINE_DAYS * 24 * 60 * 60_000;
/** A file that the scanner does not take waits for other settings of the scanner. */
const UNKNOWN_MS = 10 * 60_000;

/** Records the event of a quarantine and queues its mail, in the caller's transaction. */
export interface QuarantineNotices {
  record(
    tables: AllTables,
    user: { id: string; email: string },
    event: { kind: 'upload-quarantined'; details: { key: string; finding: string; deletedAfter: string } },
    caller: typeof backgroundJob,
  ): Promise<void>;
  wake(): void;
}

interface Parts {
  database: Database;
  objects: ObjectStorage;
  records: Records;
  deletions: Deletions;
  /** Of uploads that are `pending`. */
  leases: UploadLeases;
  examination: Examination;
  notices: QuarantineNotices;
  log: Log;
}

export function createScans({ database, objects, records, deletions, leases, examination, notices, log }: Parts) {
  const countOf = (state: 'pending' | 'infected'): Promise<number> =>
    // Both have a time: a range of its index.
    database.query((tables) =>
      countUpTo(tables, tables.selectFrom('uploads').where('due_at', 'is not', null).where('state', '=', state)),
    );
  gauges(async () => ({
    account_uploads_pending: await countOf('pending'),
    account_uploads_quarantined: await countOf('infected'),
  }));

  /** Moves the version that was looked at. A deletion waits for `beginMove`, and then deletes what still arrives. */
  const release = async (upload: UploadRecord, version: string | undefined, scan: 'clean' | 'allowed') => {
    const { objectKey, contentType } = upload;
    const pending = pendingKeyOf(objectKey);
    if (!(await records.beginMove(objectKey))) return;
    if (upload.multipartId !== null) await objects.deleteParts(pending);
    if (!(await objects.copy(pending, objectKey, contentType, { version }))) return lookLater(upload, 0);
    if (await records.commit(upload, backgroundJob, scan)) return objects.delete(pending);
    // Another process may have moved it, after the lease of one that was stopped for long.
    const current = await records.find(objectKey);
    // Only a stored file may be at its key: it may be in quarantine.
    if (current?.state !== 'kept' && current?.state !== 'replaced') await objects.delete(objectKey);
  };

  const quarantine = async (upload: UploadRecord, finding: string): Promise<void> => {
    const { objectKey: key, userId } = upload;
    if (upload.multipartId !== null) await objects.deleteParts(pendingKeyOf(key));
    const deletedAfter = new Date(Date.now() + QUARANTINE_MS).toISOString();
    const isNew = await database.change(async (tables) => {
      const { numUpdatedRows } = await tables
        .updateTable('uploads')
        .set({ state: 'infected', scan: 'infected', finding, due_at: sql`${database.now} + ${QUARANTINE_MS}` })
        .where('object_key', '=', key)
        .where('state', '=', 'pending')
        .executeTakeFirst();
      if (numUpdatedRows !== 1n) return false;
      const user = await tables.selectFrom('users').select(['id', 'email']).where('id', '=', userId).executeTakeFirst();
      const event = { kind: 'upload-quarantined', details: { key, finding, deletedAfter } } as const;
      if (user) await notices.record(tables, user, event, backgroundJob);
      return true;
    });
    if (!isNew) return;
    // A process that was stopped may have copied it, when the scanner knew less.
    await objects.delete(key);
    notices.wake();
    log.warn({ key, userId, finding }, 'an upload is not clean and is in quarantine');
  };

  const lookLater = (upload: UploadRecord, ms: number): Promise<void> => leases.postpone(upload, ms, { scan: 'due' });

  const examine = async (key: string, found: string | undefined): Promise<void> => {
    const upload = await records.beginLook(key);
    if (!upload) return;
    const object = await objects.open(pendingKeyOf(key));
    if (!object) return lookLater(upload, 0);
    if (found !== undefined && object.version !== found) {
      object.bytes.destroy();
      return lookLater(upload, 0);
    }
    const examined = await examination.file(object);
    switch (examined.result) {
      case 'clean':
      case 'allowed':
        return release(upload, object.version, examined.result);
      case 'infected':
        return quarantine(upload, examined.finding);
      case 'unknown':
        log.warn({ key, answer: examined.answer }, 'the scanner did not look at an upload: it waits');
        return lookLater(upload, UNKNOWN_MS);
    }
  };

  const look = async (upload: UploadRecord): Promise<void> => {
    const { objectKey: key, userId } = upload;
    const { result, version } = await check(objects, upload);
    if (result === 'as declared') return examine(key, version);
    if (result === 'not as declared') {
      log.info({ key, userId }, 'an upload does not match its declaration and is deleted');
      await objects.delete(pendingKeyOf(key));
    }
    if (isLastCheck(upload)) await deletions.abandon(upload);
    else await lookLater(upload, msUntilNextLook(upload));
  };

  const worker = createWorker({ name: 'scans', atOnce: AT_ONCE, leases, work: look, log });

  return {
    start: worker.start,
    stop: worker.stop,

    /** Looks at an upload that has arrived. */
    async hasten(upload: UploadRecord): Promise<void> {
      await leases.bringForward(upload, 0, { unlessLooked: true });
      worker.wake();
    },
  };
}

export type Scans = ReturnType<typeof createScans>;
