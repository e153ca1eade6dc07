import { type Upload, UploadUsage } from '../../entities/index.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';

export interface Usage {
  /** Bytes declared and stored. */
  used: number;
  files: number;
}

/** A reservation exceeds the quota. */
export class QuotaExceeded extends Error {}

/** `bytes` of all its objects. */
type File = Pick<Upload, 'userId'> & { bytes: number };

/** Counts the stored bytes of each user. `quota` is the maximum per user in bytes. */
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

    /** Inserts the user's missing counter. Not in a transaction that adds to it: two of these could deadlock. */
    async prepare(userId: string): Promise<void> {
      if (await find(userId)) return;
      const none = { userId, used: 0, files: 0 };
      await database.transaction((em) => em.upsert(UploadUsage, none, { onConflictAction: 'ignore' }), userId);
    },

    /**
     * Locks the users' counters until the transaction ends. Returns the free bytes of each user, without users who have
     * no counter or a locked one.
     */
    async lock(tables: AllTables, userIds: readonly string[]): Promise<Map<string, number>> {
      const rows = await tables
        .selectFrom('upload_usage')
        .select(['user_id as userId', 'used'])
        .where('user_id', 'in', userIds)
        .modifyEnd(database.skipLocked)
        .execute();
      return new Map(rows.map(({ userId, used }) => [userId, quota - Number(used)]));
    },

    /** Counts new files of users with locked counters. */
    async add(tables: AllTables, files: readonly File[]): Promise<void> {
      const byUser = Map.groupBy(files, ({ userId }) => userId);
      const users = [...byUser].map(([userId, own]) => ({
        userId,
        bytes: own.reduce((sum, { bytes }) => sum + bytes, 0),
        files: own.length,
      }));
      const ofEach = (count: 'bytes' | 'files') =>
        sql<number>`case user_id ${sql.join(
          users.map((user) => sql`when ${user.userId} then ${user[count]}`),
          sql` `,
        )} end`;
      await tables
        .updateTable('upload_usage')
        .set({ used: sql`used + ${ofEach('bytes')}`, files: sql`files + ${ofEach('files')}` })
        .where('user_id', 'in', [...byUser.keys()])
        .execute();
    },

    /** Counts one new file. Throws QuotaExceeded: the database compares and counts in one statement. */
    async addWithin(tables: AllTables, { userId, bytes }: File): Promise<void> {
      const { numUpdatedRows } = await tables
        .updateTable('upload_usage')
        .set({ used: sql`used + ${bytes}`, files: sql`files + 1` })
        .where('user_id', '=', userId)
        .where('used', '<=', quota - bytes)
        .executeTakeFirst();
      if (numUpdatedRows !== 1n) throw new QuotaExceeded();
    },

    /** Counts that the variants of a file have become larger by this number of bytes. It may be above the quota. */
    async grow(tables: AllTables, { userId, bytes }: File): Promise<void> {
      if (bytes === 0) return;
      await tables
        .updateTable('upload_usage')
        .set({ used: sql`used + ${bytes}` })
        .where('user_id', '=', userId)
        .execute();
    },

    /**
     * Stops counting a file that is being deleted: nothing adds to its row any more. Idempotent: a row counts as long
     * as its sizes are not 0. The version before sets only the first one to 0.
     */
    async release(tables: AllTables, { objectKey, userId }: Pick<Upload, 'objectKey' | 'userId'>): Promise<void> {
      const row = await tables
        .selectFrom('uploads')
        .select(['size', 'variants_size as variantsSize'])
        .where('object_key', '=', objectKey)
        .executeTakeFirst();
      if (!row) return;
      const [size, variantsSize] = [Number(row.size), Number(row.variantsSize)];
      const { numUpdatedRows } = await tables
        .updateTable('uploads')
        .set({ size: 0, variants_size: 0 })
        .where('object_key', '=', objectKey)
        .where('size', '=', size)
        .where('variants_size', '=', variantsSize)
        .where(sql<boolean>`size + variants_size > 0`)
        .executeTakeFirst();
      if (numUpdatedRows !== 1n) return;
      await tables
        .updateTable('upload_usage')
        .set({ used: sql`used - ${size + variantsSize}`, files: sql`files - ${size > 0 ? 1 : 0}` })
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
