/*
 * A deleted file stops counting against the quota immediately, or, while a client may still upload to its address, when
 * that address has expired. The row of an upload stays until no process can store variants of it any more, and no part
 * that was being sent can arrive.
 */

import type { UploadState } from '../../entities/index.ts';
import { backgroundJob, type Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import { LEASE_MS, type UploadLeases } from './leases.ts';
import { sentTo } from './names.ts';
import { setAvatarVariants } from './profiles.ts';
import type { UploadRecord } from './records.ts';
import { isAddressValid, isLastCheck, LAST_CHECK_MS, msUntilNextCheck } from './schedule.ts';
import type { UsageCounter } from './usage.ts';

/** The maximum number of deletions that one transaction starts. */
const MAX_STARTED = 500;

/** True for the states of uploads that were recorded as stored. */
const isStored = (state: UploadState): boolean => state === 'kept' || state === 'replaced';

interface Parts {
  database: Database;
  activity: Activity;
  objects: ObjectStorage;
  usage: UsageCounter;
  leases: UploadLeases;
}

/** Deletes uploads in two steps: the first is irreversible, any process may repeat the second. */
export function createDeletions({ database, activity, objects, usage, leases }: Parts) {
  const mark = async (tables: AllTables, objectKey: string, from: readonly UploadState[]): Promise<boolean> => {
    if (from.length === 0) return false;
    const { numUpdatedRows } = await tables
      .updateTable('uploads')
      .set({ state: 'doomed', due_at: sql`${database.now} + ${LEASE_MS}` })
      .where('object_key', '=', objectKey)
      .where('state', 'in', from)
      .executeTakeFirst();
    return numUpdatedRows === 1n;
  };

  /**
   * Marks the row as being deleted; returns false unless its state is one of `from`. The caller continues after commit;
   * if that fails, the inspection does after the lease.
   */
  const start = async (
    tables: AllTables,
    upload: Pick<UploadRecord, 'objectKey' | 'userId' | 'purpose' | 'expiredForMs'>,
    from: readonly UploadState[],
    caller: Caller,
  ): Promise<boolean> => {
    const { objectKey, userId } = upload;
    // In this order: an expected upload may be stored between the statements.
    const wasExpected = await mark(
      tables,
      objectKey,
      from.filter((state) => !isStored(state)),
    );
    if (!wasExpected) {
      if (!(await mark(tables, objectKey, from.filter(isStored)))) return false;
      await activity.record(tables, userId, { kind: 'upload-removed', details: { key: objectKey } }, caller);
    }
    if (!isAddressValid(upload)) await usage.release(tables, upload);
    return true;
  };

  /** The keys of all objects beside the upload's own, and how long a process may still store such objects. */
  const besides = async (objectKey: string) => {
    const rows = await database.query((tables) =>
      tables
        .selectFrom('uploads')
        .leftJoin('upload_variants', 'upload_key', 'uploads.object_key')
        .select([
          'upload_variants.object_key as key',
          sql<number | null>`variants_until - ${database.now}`.as('leftMs'),
        ])
        .where('uploads.object_key', '=', objectKey)
        .execute(),
    );
    return { keys: rows.flatMap(({ key }) => key ?? []), leftMs: Number(rows[0]?.leftMs ?? 0) };
  };

  /**
   * Deletes the objects, then the row. The row stays while an upload under its key may still arrive. `upload` may have
   * the state from before the deletion.
   */
  const proceed = async (upload: UploadRecord): Promise<void> => {
    const { objectKey, userId, multipartId } = upload;
    // First: from here on nothing can be joined.
    if (multipartId !== null) await objects.deleteParts(sentTo(upload));
    const hasOthers = upload.purpose !== 'direct' || upload.scan !== null;
    const { keys, leftMs } = hasOthers ? await besides(objectKey) : { keys: [], leftMs: 0 };
    if (upload.purpose !== 'direct')
      await database.write((tables) => setAvatarVariants(tables, objects, objectKey, null));
    await Promise.all([...keys, objectKey].map((key) => objects.delete(key)));
    if (!isAddressValid(upload)) await database.transaction((_em, tables) => usage.release(tables, upload), userId);
    const whole = { ...upload, multipartId: null };
    const partsMs = multipartId ? LAST_CHECK_MS : 0;
    const nextMs = Math.max(isLastCheck(whole) ? 0 : msUntilNextCheck(whole), leftMs, partsMs);
    const deleting = { objectKey, state: 'doomed' } as const;
    if (nextMs > 0) return leases.postpone(deleting, nextMs, multipartId ? { multipart_id: '' } : {});
    await database.change(async (tables) => {
      if (keys.length > 0) await tables.deleteFrom('upload_variants').where('object_key', 'in', keys).execute();
      await tables
        .deleteFrom('uploads')
        .where('object_key', '=', objectKey)
        .where('state', '=', 'doomed')
        // Otherwise parts were started since; the inspection finds them.
        .where('multipart_id', multipartId === null ? 'is' : '=', multipartId)
        .execute();
    }, objectKey);
  };

  /**
   * One transaction that meets its deadline however many uploads the user has. Returns how many deletions it started.
   */
  const startSomeOf = (userId: string): Promise<number> =>
    database.change(async (tables) => {
      const some = await tables
        .selectFrom('uploads')
        .select('object_key as key')
        .where('user_id', '=', userId)
        .where('state', '<>', 'doomed')
        .limit(MAX_STARTED)
        .execute();
      const keys = some.map(({ key }) => key);
      const deleting = { state: 'doomed' as const, size: 0, variants_size: 0, due_at: database.now };
      if (keys.length > 0) await tables.updateTable('uploads').set(deleting).where('object_key', 'in', keys).execute();
      return keys.length;
    }, userId);

  return {
    start,
    proceed,

    /** Deletes an upload that is not to be stored. No-op if its state has changed meanwhile. */
    async abandon(upload: UploadRecord): Promise<void> {
      const startDeletion = (tables: AllTables) => start(tables, upload, [upload.state], backgroundJob);
      if (await database.change(startDeletion, upload.userId)) await proceed(upload);
    },

    /**
     * Starts the deletion of all uploads of a user who is being removed; the inspection completes it. Idempotent.
     * Returns true if none is left.
     */
    async removeAllOf(userId: string): Promise<boolean> {
      while ((await startSomeOf(userId)) === MAX_STARTED);
      await database.change((tables) => usage.remove(tables, userId), userId);
      const left = await database.query((tables) =>
        tables.selectFrom('uploads').select('object_key').where('user_id', '=', userId).executeTakeFirst(),
      );
      return left === undefined;
    },
  };
}

export type Deletions = ReturnType<typeof createDeletions>;
