import { type Upload, UploadUsage } from '../../entities/index.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';

export interface Usage {
  /** Bytes declared and kept. */
  used: number;
  files: number;
}

/** Thrown in the transaction of a reservation, to roll it back. */
export class QuotaExceeded extends Error {}

/** Counts what each user keeps. `quota`: bytes that one user may keep. */
export const createUsage = (database: Database, { quota }: { quota: number }) => {
  const find = (userId: string): Promise<Usage | undefined> =>
    database.query((tables) =>
      tables.selectFrom('upload_usage').select(['used', 'files']).where('user_id', '=', userId).executeTakeFirst(),
    );

  return {
    async of(userId: string): Promise<Usage> {
      const { used = 0, files = 0 } = (await find(userId)) ?? {};
      return { used: Number(used), files: Number(files) };
    },

    /** Inserts the user's counter where there is none, before the transaction that adds to it. */
    async prepare(userId: string): Promise<void> {
      if (await find(userId)) return;
      const none = { userId, used: 0, files: 0 };
      await database.transaction((em) => em.upsert(UploadUsage, none, { onConflictAction: 'ignore' }));
    },

    /** Counts a new file. Throws QuotaExceeded: the database compares and counts in one statement. */
    async add(tables: AllTables, { userId, size }: Pick<Upload, 'userId' | 'size'>): Promise<void> {
      const { numUpdatedRows } = await tables
        .updateTable('upload_usage')
        .set({ used: sql`used + ${size}`, files: sql`files + 1` })
        .where('user_id', '=', userId)
        .where('used', '<=', quota - size)
        .executeTakeFirst();
      if (numUpdatedRows !== 1n) throw new QuotaExceeded();
    },

    /** Stops counting a file. Idempotent: a row counts as long as its size is not 0. */
    async release(
      tables: AllTables,
      { objectKey, userId, size }: Pick<Upload, 'objectKey' | 'userId' | 'size'>,
    ): Promise<void> {
      const { numUpdatedRows } = await tables
        .updateTable('uploads')
        .set({ size: 0 })
        .where('object_key', '=', objectKey)
        .where('size', '>', 0)
        .executeTakeFirst();
      if (numUpdatedRows !== 1n) return;
      await tables
        .updateTable('upload_usage')
        .set({ used: sql`used - ${size}`, files: sql`files - 1` })
        .where('user_id', '=', userId)
        .execute();
    },

    /** Removes the counter of a user who is being deleted. */
    async remove(tables: AllTables, userId: string): Promise<void> {
      await tables.deleteFrom('upload_usage').where('user_id', '=', userId).execute();
    },
  };
};

export type UsageCounter = ReturnType<typeof createUsage>;
