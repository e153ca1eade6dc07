import { type Database, sql } from '../parts/database/contract.ts';
import { createLeases } from '../workers/leases.ts';
import { countUpTo } from './count.ts';
import { selectRecords, toRecord, type UploadRecord } from './records.ts';

/** Longer than an inspection or a deletion takes; after a crash another process takes the row after this time. */
export const LEASE_MS = 60_000;

/** Schedules and leases the rows of `uploads` for inspection: the column `due_at` holds both. */
export const createUploadLeases = (
  database: Database,
  /** Which uploads `take` leases. With a scanner its job takes the pending ones, and only these. */
  taken: 'all' | 'pending' | 'others',
  /** The maximum number of one user's files in work in a process. */
  maxOfUser?: number,
) => ({
  ...createLeases(database, {
    table: 'uploads',
    key: 'object_key',
    keyOf: ({ objectKey }: UploadRecord) => objectKey,
    leaseMs: LEASE_MS,
    select: (tables) =>
      selectRecords(database, tables).$if(taken !== 'all', (uploads) =>
        uploads.where('state', taken === 'pending' ? '=' : '<>', 'pending'),
      ),
    toRow: toRecord,
    ...(maxOfUser && { shares: { column: 'user_id', valueOf: ({ userId }: UploadRecord) => userId, max: maxOfUser } }),
  }),

  /** The number of due rows that are not leased. */
  due: (): Promise<number> =>
    database.query((tables) => countUpTo(tables, tables.selectFrom('uploads').where('due_at', '<=', database.now))),

  /** Schedules another inspection, unless the state of the row has changed. */
  async postpone(
    { objectKey, state }: Pick<UploadRecord, 'objectKey' | 'state'>,
    ms: number,
    changes: { multipart_id?: '' | null; scan?: 'due' } = {},
  ): Promise<void> {
    await database.write(
      (tables) =>
        tables
          .updateTable('uploads')
          .set({ due_at: sql`${database.now} + ${ms}`, ...changes })
          .where('object_key', '=', objectKey)
          .where('state', '=', state)
          .execute(),
      objectKey,
    );
  },

  /** Like `postpone`, but never later than scheduled. With `unlessLooked` not while the scanner looks at the file. */
  async bringForward(
    { objectKey, state }: Pick<UploadRecord, 'objectKey' | 'state'>,
    ms: number,
    { unlessLooked = false, ...changes }: { multipart_id?: null; unlessLooked?: boolean } = {},
  ): Promise<void> {
    const at = sql`${database.now} + ${ms}`;
    await database.write(
      (tables) =>
        tables
          .updateTable('uploads')
          .set({ due_at: sql`case when due_at < ${at} then due_at else ${at} end`, ...changes })
          .where('object_key', '=', objectKey)
          .where('state', '=', state)
          .$if(unlessLooked, (uploads) => uploads.where('scan', '=', 'due'))
          .execute(),
      objectKey,
    );
  },
});

export type UploadLeases = ReturnType<typeof createUploadLeases>;
