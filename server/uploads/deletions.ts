import type { UploadState } from '../../entities/index.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import { LEASE_MS, type UploadLeases } from './leases.ts';
import type { UploadRecord } from './records.ts';
import { isAddressValid, isLastCheck, msUntilNextCheck } from './schedule.ts';
import type { UsageCounter } from './usage.ts';

interface Parts {
  database: Database;
  objects: ObjectStorage;
  usage: UsageCounter;
  leases: UploadLeases;
}

/** Deletes uploads in two steps, of which the first cannot be undone and the second may be repeated by any process. */
export function createDeletions({ database, objects, usage, leases }: Parts) {
  /**
   * Marks the row as being deleted. The file stops counting against the quota at once, or, where a client may still
   * upload to its address, when that has expired. Answers false where the row was in none of the states `from`. The
   * caller continues after commit; where that fails, the inspection does once the lease has ended.
   */
  const start = async (tables: AllTables, upload: UploadRecord, from: UploadState[]): Promise<boolean> => {
    const { numUpdatedRows } = await tables
      .updateTable('uploads')
      .set({ state: 'doomed', due_at: sql`${database.now} + ${LEASE_MS}` })
      .where('object_key', '=', upload.objectKey)
      .where('state', 'in', from)
      .executeTakeFirst();
    if (numUpdatedRows !== 1n) return false;
    if (!isAddressValid(upload)) await usage.release(tables, upload);
    return true;
  };

  /**
   * Deletes the object, then the row, which stays as long as something may still arrive under its key. `upload` may
   * have the state that it had before the deletion started.
   */
  const proceed = async (upload: UploadRecord): Promise<void> => {
    const { objectKey, userId } = upload;
    await objects.delete(objectKey);
    if (!isAddressValid(upload)) await database.transaction((_em, tables) => usage.release(tables, upload), userId);
    if (!isLastCheck(upload)) return leases.postpone({ objectKey, state: 'doomed' }, msUntilNextCheck(upload));
    await database.write((tables) =>
      tables.deleteFrom('uploads').where('object_key', '=', objectKey).where('state', '=', 'doomed').execute(),
    );
  };

  return {
    start,
    proceed,

    /** Deletes an upload that was never completed, unless it has been meanwhile. */
    async abandon(upload: UploadRecord): Promise<void> {
      if (await database.transaction((_em, tables) => start(tables, upload, ['expected']))) await proceed(upload);
    },

    /** Starts the deletion of all uploads of a user, in the transaction that deletes the user. */
    async startAllOf(tables: AllTables, userId: string): Promise<void> {
      await tables
        .updateTable('uploads')
        .set({ state: 'doomed', size: 0, due_at: database.now })
        .where('user_id', '=', userId)
        .execute();
      await usage.remove(tables, userId);
    },
  };
}

export type Deletions = ReturnType<typeof createDeletions>;
