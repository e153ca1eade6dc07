import type { Kysely } from 'kysely';
import type { Upload, UploadPurpose } from '../../entities/index.ts';
import { type Database, sql } from '../parts/database/index.ts';
import type { Tables } from '../parts/database/tables.ts';

export type UploadRecord = Pick<Upload, 'objectKey' | 'userId' | 'purpose' | 'contentType' | 'size' | 'state'>;

interface Expected {
  objectKey: string;
  userId: string;
  purpose: UploadPurpose;
  contentType: string;
  size: number;
  /** How long the object may be on its way, and how much later it is looked for. */
  lifeMs: number;
  marginMs: number;
}

const columns = [
  'object_key as objectKey',
  'user_id as userId',
  'purpose',
  'content_type as contentType',
  'size',
  'state',
] as const;

/** The rows of `uploads`. Times are by the database's clock. */
export const createRecords = (database: Database) => {
  const inFuture = (ms: number) => sql<number>`${database.now} + ${ms}`;

  return {
    /** Before anything can be stored under the key: whatever happens then, the row leads to it. */
    async expect({ objectKey, userId, purpose, contentType, size, lifeMs, marginMs }: Expected): Promise<void> {
      await database.write((tables) =>
        tables
          .insertInto('uploads')
          .values({
            object_key: objectKey,
            user_id: userId,
            purpose,
            content_type: contentType,
            size,
            state: 'expected',
            expires_at: inFuture(lifeMs),
            due_at: inFuture(lifeMs + marginMs),
            created_at: database.now,
          })
          .execute(),
      );
    },

    async find(objectKey: string): Promise<UploadRecord | undefined> {
      // The column is ASCII: MySQL refuses to compare it with anything else.
      if (!/^[\x20-\x7e]+$/.test(objectKey)) return undefined;
      return database.query((tables) =>
        tables.selectFrom('uploads').select(columns).where('object_key', '=', objectKey).executeTakeFirst(),
      );
    },

    /** Takes up to `most` rows that are due, each for one process only, for `leaseMs`. */
    lease: (most: number, leaseMs: number) =>
      database.transaction(async (_em, tables) => {
        const due = await tables
          .selectFrom('uploads')
          .select(columns)
          .select(sql<number>`${database.now} - expires_at`.as('expiredForMs'))
          .where('due_at', '<=', database.now)
          .orderBy('due_at')
          .limit(most)
          .modifyEnd(database.skipLocked)
          .execute();
        const keys = due.map(({ objectKey }) => objectKey);
        if (keys.length > 0) {
          await tables
            .updateTable('uploads')
            .set({ due_at: inFuture(leaseMs) })
            .where('object_key', 'in', keys)
            .execute();
        }
        return due.map((row) => ({ ...row, expiredForMs: Number(row.expiredForMs) }));
      }),

    /** Answers whether the row was still expected: if not, it has been taken for lost meanwhile. */
    async keep(objectKey: string): Promise<boolean> {
      const { numUpdatedRows } = await database.write((tables) =>
        tables
          .updateTable('uploads')
          .set({ state: 'kept', due_at: null })
          .where('object_key', '=', objectKey)
          .where('state', '=', 'expected')
          .executeTakeFirst(),
      );
      return numUpdatedRows === 1n;
    },

    async postpone(objectKey: string, ms: number): Promise<void> {
      await database.write((tables) =>
        tables
          .updateTable('uploads')
          .set({ due_at: inFuture(ms) })
          .where('object_key', '=', objectKey)
          .execute(),
      );
    },

    async remove(objectKey: string): Promise<void> {
      await database.write((tables) => tables.deleteFrom('uploads').where('object_key', '=', objectKey).execute());
    },

    /** In the transaction of the change that replaces it. Only an avatar that this user has uploaded as one. */
    async replace(tables: Kysely<Tables>, objectKey: string, userId: string, afterMs: number): Promise<void> {
      await tables
        .updateTable('uploads')
        .set({ state: 'replaced', due_at: inFuture(afterMs) })
        .where('object_key', '=', objectKey)
        .where('user_id', '=', userId)
        .where('purpose', '=', 'avatar')
        .where('state', 'in', ['kept', 'replaced'])
        .execute();
    },

    /** In the transaction of the change that shows it again. Answers whether the object is still to be had. */
    async reprieve(tables: Kysely<Tables>, objectKey: string, ms: number): Promise<boolean> {
      await tables
        .updateTable('uploads')
        .set({ due_at: inFuture(ms) })
        .where('object_key', '=', objectKey)
        .where('state', '=', 'replaced')
        .execute();
      const row = await tables
        .selectFrom('uploads')
        .select('state')
        .where('object_key', '=', objectKey)
        .executeTakeFirst();
      return row?.state !== 'doomed';
    },
  };
};

export type Records = ReturnType<typeof createRecords>;
