import { type Upload, type UploadPurpose, type UploadState, UploadUsage } from '../../entities/index.ts';
import { type AllTables, type Database, type ReadTables, sql } from '../parts/database/contract.ts';
import { createLeases } from '../workers/leases.ts';

export type UploadRecord = Pick<
  Upload,
  'objectKey' | 'userId' | 'purpose' | 'contentType' | 'size' | 'state' | 'createdAt'
> & {
  /** How long ago the address, or the time to store an image, expired. */
  expiredForMs: number;
};

interface Expected {
  objectKey: string;
  userId: string;
  purpose: UploadPurpose;
  contentType: string;
  size: number;
  /** How long the object may take to arrive, and how much later it is inspected. */
  lifeMs: number;
  marginMs: number;
}

export interface Usage {
  /** Bytes declared and kept. */
  used: number;
  files: number;
}

/** Where a page of a user's uploads begins: after this one. */
export type UploadCursor = Pick<Upload, 'createdAt' | 'objectKey'>;

/** Longer than an inspection or a deletion can take; after it another process takes up the row of one that died. */
const LEASE_MS = 60_000;

/** The rows of `uploads`, and their sums per user. Times are by the database's clock. */
export const createRecords = (database: Database, { quota }: { quota: number }) => {
  const inFuture = (ms: number) => sql<number>`${database.now} + ${ms}`;

  const select = (tables: ReadTables) =>
    tables
      .selectFrom('uploads')
      .select([
        'object_key as objectKey',
        'user_id as userId',
        'purpose',
        'content_type as contentType',
        'size',
        'state',
        'created_at as createdAt',
        sql<number>`${database.now} - expires_at`.as('expiredForMs'),
      ]);

  const findUsage = (userId: string): Promise<Usage | undefined> =>
    database.query((tables) =>
      tables.selectFrom('upload_usage').select(['used', 'files']).where('user_id', '=', userId).executeTakeFirst(),
    );

  return {
    /**
     * Writes the row before anything can be stored under the key: whatever happens then, the row leads to the object.
     * Answers false, and writes nothing, where the user would keep more than the quota: the database compares and
     * counts in one statement.
     */
    async expect({ objectKey, userId, purpose, contentType, size, lifeMs, marginMs }: Expected): Promise<boolean> {
      if (!(await findUsage(userId))) {
        const none = { userId, used: 0, files: 0 };
        await database.transaction((em) => em.upsert(UploadUsage, none, { onConflictAction: 'ignore' }));
      }
      const declare = database.transaction(async (_em, tables) => {
        await tables
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
          .execute();
        // Last, so that a user's declarations wait for each other no longer than a commit takes.
        const { numUpdatedRows } = await tables
          .updateTable('upload_usage')
          .set({ used: sql`used + ${size}`, files: sql`files + 1` })
          .where('user_id', '=', userId)
          .where('used', '<=', quota - size)
          .executeTakeFirst();
        if (numUpdatedRows !== 1n) throw new QuotaReached();
      }, userId);
      return declare.then(
        () => true,
        (error: unknown) => {
          if (error instanceof QuotaReached) return false;
          throw error;
        },
      );
    },

    usage: async (userId: string): Promise<Usage> => {
      const { used = 0, files = 0 } = (await findUsage(userId)) ?? {};
      return { used: Number(used), files: Number(files) };
    },

    async find(objectKey: string): Promise<UploadRecord | undefined> {
      // The column is ASCII: MySQL refuses to compare it with anything else.
      if (!/^[\x20-\x7e]+$/.test(objectKey)) return undefined;
      const row = await database.query((tables) =>
        select(tables).where('object_key', '=', objectKey).executeTakeFirst(),
      );
      return row && toRecord(row);
    },

    /** A user's kept uploads, newest first: a range of one index, however many there are. */
    async list(userId: string, { limit, after }: { limit: number; after: UploadCursor | undefined }) {
      const rows = await database.query((tables) =>
        select(tables)
          .where('user_id', '=', userId)
          .where('state', '<>', 'doomed')
          .$if(after !== undefined, (uploads) => uploads.where(isAfter(after as UploadCursor)))
          .orderBy('created_at', 'desc')
          .orderBy('object_key', 'desc')
          .limit(limit)
          .execute(),
      );
      return rows.map(toRecord);
    },

    leases: createLeases(database, {
      table: 'uploads',
      key: 'object_key',
      keyOf: ({ objectKey }: UploadRecord) => objectKey,
      leaseMs: LEASE_MS,
      select,
      toRow: toRecord,
    }),

    /** Answers whether the row was still expected: if not, it has been given up as lost meanwhile. */
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

    /** Schedules another inspection, unless the row has another state by now. */
    async postpone({ objectKey, state }: Pick<UploadRecord, 'objectKey' | 'state'>, ms: number): Promise<void> {
      await database.write((tables) =>
        tables
          .updateTable('uploads')
          .set({ due_at: inFuture(ms) })
          .where('object_key', '=', objectKey)
          .where('state', '=', state)
          .execute(),
      );
    },

    /**
     * Dooms the row: the point of no return. Its room is free at once, or, where a client may still upload to its address,
     * when that has expired (`free`). Answers whether the row was in one of these states. The caller deletes the object;
     * where it fails to, the inspection does once the lease has ended.
     */
    async doom(tables: AllTables, upload: UploadRecord, from: UploadState[]): Promise<boolean> {
      const { numUpdatedRows } = await tables
        .updateTable('uploads')
        .set({ state: 'doomed', due_at: inFuture(LEASE_MS) })
        .where('object_key', '=', upload.objectKey)
        .where('state', 'in', from)
        .executeTakeFirst();
      if (numUpdatedRows !== 1n) return false;
      if (!isOpen(upload)) await freeRoom(tables, upload);
      return true;
    },

    /** Gives the room of a doomed upload back, once. */
    free: (upload: UploadRecord): Promise<void> =>
      database.transaction((_em, tables) => freeRoom(tables, upload), upload.userId),

    /** Removes a doomed row after its object is gone for good. */
    async remove(objectKey: string): Promise<void> {
      await database.write((tables) =>
        tables.deleteFrom('uploads').where('object_key', '=', objectKey).where('state', '=', 'doomed').execute(),
      );
    },

    /**
     * Runs in the transaction by which a user's profile stops showing the object. Schedules an inspection if the object
     * is an avatar that this user uploaded as one, or that its own user has replaced before.
     */
    async replace(tables: AllTables, objectKey: string, userId: string, afterMs: number): Promise<void> {
      await tables
        .updateTable('uploads')
        .set({ state: 'replaced', due_at: inFuture(afterMs) })
        .where('object_key', '=', objectKey)
        .where('purpose', '=', 'avatar')
        .where((is) =>
          is.or([is('state', '=', 'replaced'), is.and([is('state', '=', 'kept'), is('user_id', '=', userId)])]),
        )
        .execute();
    },

    /** Dooms all uploads of a user, in the transaction that deletes the user. */
    async doomAllOf(tables: AllTables, userId: string): Promise<void> {
      await tables
        .updateTable('uploads')
        .set({ state: 'doomed', size: 0, due_at: database.now })
        .where('user_id', '=', userId)
        .execute();
      await tables.deleteFrom('upload_usage').where('user_id', '=', userId).execute();
    },

    /**
     * Runs in the transaction by which a user's profile shows the object again: no inspection until a profile stops
     * showing it. Answers whether the object is still available.
     */
    async reprieve(tables: AllTables, objectKey: string, userId: string): Promise<boolean> {
      await tables
        .updateTable('uploads')
        .set({ due_at: null, state: sql<UploadState>`case when user_id = ${userId} then 'kept' else state end` })
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

/** Whether a client may still begin to upload to its address: storages cannot take an address back. */
export const isOpen = ({ purpose, expiredForMs }: UploadRecord): boolean => purpose === 'direct' && expiredForMs < 0;

/** A row counts as long as its size is not 0. */
async function freeRoom(tables: AllTables, { objectKey, userId, size }: UploadRecord): Promise<void> {
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
}

/** MySQL returns computed values as text. */
const toRecord = (row: UploadRecord): UploadRecord => ({ ...row, expiredForMs: Number(row.expiredForMs) });

/** Thrown to undo the declaration. */
class QuotaReached extends Error {}

/** The index serves only the first condition. */
const isAfter = ({ createdAt, objectKey }: UploadCursor) =>
  sql<boolean>`created_at <= ${createdAt} and (created_at < ${createdAt} or object_key < ${objectKey})`;
