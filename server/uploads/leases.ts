import { type Database, sql } from '../parts/database/contract.ts';
import { createLeases } from '../workers/leases.ts';
import { selectRecords, toRecord, type UploadRecord } from './records.ts';

/** Longer than an inspection or a deletion takes; after a crash another process takes the row this much later. */
export const LEASE_MS = 60_000;

/** When the rows of `uploads` are inspected, and by which process: both are the column `due_at`. */
export const createUploadLeases = (database: Database) => ({
  ...createLeases(database, {
    table: 'uploads',
    key: 'object_key',
    keyOf: ({ objectKey }: UploadRecord) => objectKey,
    leaseMs: LEASE_MS,
    select: (tables) => selectRecords(database, tables),
    toRow: toRecord,
  }),

  /** How many rows may be taken now, and are not. */
  async due(): Promise<number> {
    const row = await database.query((tables) =>
      tables
        .selectFrom('uploads')
        .select(sql<number>`count(*)`.as('rows'))
        .where('due_at', '<=', database.now)
        .executeTakeFirstOrThrow(),
    );
    return Number(row.rows);
  },

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

export type UploadLeases = ReturnType<typeof createUploadLeases>;
