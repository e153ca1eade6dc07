import type { UploadState } from '../../entities/index.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import { LEASE_MS, type UploadLeases } from './leases.ts';
import type { UploadRecord } from './records.ts';
import { isAddressValid, isLastCheck, msUntilNextCheck } from './schedule.ts';
import type { UsageCounter } from './usage.ts';

/** The most deletions that one transaction starts. */
const MOST_STARTED = 500;

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

  /** In a transaction that ends within its deadline, however many uploads the user has. Answers how many it started. */
  const startSomeOf = (userId: string): Promise<number> =>
    database.change(async (tables) => {
      const some = await tables
        .selectFrom('uploads')
        .select('object_key as key')
        .where('user_id', '=', userId)
        .where('state', '<>', 'doomed')
        .limit(MOST_STARTED)
        .execute();
      const keys = some.map(({ key }) => key);
      const doomed = { state: 'doomed' as const, size: 0, due_at: database.now };
      if (keys.length > 0) await tables.updateTable('uploads').set(doomed).where('object_key', 'in', keys).execute();
      return keys.length;
    });

  return {
    start,
    proceed,

    /** Deletes an upload that was never completed, unless it has been meanwhile. */
    async abandon(upload: UploadRecord): Promise<void> {
      if (await database.transaction((_em, tables) => start(tables, upload, ['expected']))) await proceed(upload);
    },

    /**
     * Starts the deletion of all uploads of a user who is being removed, which the inspection completes. May be repeated.
     * Answers whether none is left.
     */
    async removeAllOf(userId: string): Promise<boolean> {
      while ((await startSomeOf(userId)) === MOST_STARTED);
      await database.change((tables) => usage.remove(tables, userId));
      const left = await database.query((tables) =>
        tables.selectFrom('uploads').select('object_key').where('user_id', '=', userId).executeTakeFirst(),
      );
      return left === undefined;
    },
  };
}

export type Deletions = ReturnType<typeof createDeletions>;
