import { type Database, sql } from '../parts/database/contract.ts';
import { selectRecords, toRecord, type UploadRecord } from './records.ts';

/** Longer than an inspection or a deletion can take; after it another process takes up the row of one that died. */
export const LEASE_MS = 60_000;

/** Which rows of `uploads` are inspected when, and by which process: both are the column `due_at`. */
export const createLeases = (database: Database) => ({
  /** Leases up to `most` rows that are ready for inspection, each to one process only until the lease ends. */
  lease: (most: number): Promise<UploadRecord[]> =>
    database.transaction(async (_em, tables) => {
      const ready = await selectRecords(database, tables)
        .where('due_at', '<=', database.now)
        .orderBy('due_at')
        .limit(most)
        .modifyEnd(database.skipLocked)
        .execute();
      const keys = ready.map(({ objectKey }) => objectKey);
      if (keys.length > 0) {
        await tables
          .updateTable('uploads')
          .set({ due_at: sql`${database.now} + ${LEASE_MS}` })
          .where('object_key', 'in', keys)
          .execute();
      }
      return ready.map(toRecord);
    }),

  /** Schedules another inspection, unless the row has another state by now. */
  async postpone({ objectKey, state }: Pick<UploadRecord, 'objectKey' | 'state'>, ms: number): Promise<void> {
    await database.write((tables) =>
      tables
        .updateTable('uploads')
        .set({ due_at: sql`${database.now} + ${ms}` })
        .where('object_key', '=', objectKey)
        .where('state', '=', state)
        .execute(),
    );
  },
});

export type Leases = ReturnType<typeof createLeases>;
