import type { Upload, UploadState } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import { type Database, type ReadTables, sql } from '../parts/database/contract.ts';
import { pendingKeyOf } from './names.ts';
import { createReservations } from './reservations.ts';
import { LAST_CHECK_MS } from './schedule.ts';
import type { UsageCounter } from './usage.ts';

/** Longer than a storage takes to copy a file of the largest size. */
const MOVE_MS = 16 * 60_000;

export type UploadRecord = Pick<
  Upload,
  | 'objectKey'
  | 'userId'
  | 'purpose'
  | 'contentType'
  | 'size'
  | 'state'
  | 'createdAt'
  | 'confirmedVersion'
  | 'width'
  | 'height'
  | 'placeholder'
  | 'variants'
  | 'variantsFor'
  | 'variantsUntil'
  | 'scan'
  | 'finding'
> & {
  /** Milliseconds since the address, or the time to store an image, expired. */
  expiredForMs: number;
  multipartId: string | null;
};

/** The cursor of a page of uploads: the page begins after this one. */
export type UploadCursor = Pick<Upload, 'createdAt' | 'objectKey'>;

/** The rows of `uploads`. Times are by the database's clock. */
export const createRecords = (database: Database, usage: UsageCounter, activity: Activity) => {
  /** The upload that has one of these keys. */
  const find = async (...objectKeys: string[]): Promise<UploadRecord | undefined> => {
    // The column is ASCII: MySQL refuses to compare it with other characters.
    if (!objectKeys.every((key) => /^[\x20-\x7e]+$/.test(key))) return undefined;
    const row = await database.query((tables) =>
      selectRecords(database, tables).where('object_key', 'in', objectKeys).executeTakeFirst(),
    );
    return row && toRecord(row);
  };

  return {
    find,
    reserve: createReservations(database, usage),

    /**
     * Marks the object as stored permanently, after a scan one that was pending: what is still sent to its address is deleted
     * later. Returns false if its deletion has started.
     */
    commit: (
      { objectKey, userId }: Pick<Upload, 'objectKey' | 'userId'>,
      caller: Caller,
      scan?: 'clean' | 'allowed',
    ): Promise<boolean> =>
      database.change(async (tables) => {
        const { numUpdatedRows } = await tables
          .updateTable('uploads')
          .set({
            state: 'kept',
            variants_until: null,
            // A part that was being sent may arrive until then.
            due_at: sql<
              number | null
            >`case when multipart_id is not null then ${database.now} + ${LAST_CHECK_MS} else ${
              scan ? sql<number>`expires_at + ${LAST_CHECK_MS}` : sql`null`
            } end`,
            // The copy may have another version.
            ...(scan && { scan, confirmed_version: null }),
          })
          .where('object_key', '=', objectKey)
          .where('state', '=', scan ? 'pending' : 'expected')
          .executeTakeFirst();
        if (numUpdatedRows !== 1n) return false;
        await activity.record(tables, userId, { kind: 'upload-stored', details: { key: objectKey } }, caller);
        return true;
      }, objectKey),

    /** Call before the scanner looks at a file: from here on no part of it is sent. Undefined if it is pending no more. */
    async beginLook(objectKey: string): Promise<UploadRecord | undefined> {
      await database.write(
        (tables) =>
          tables
            .updateTable('uploads')
            .set({ scan: 'looking' })
            .where('object_key', '=', objectKey)
            .where('state', '=', 'pending')
            .execute(),
        objectKey,
      );
      const upload = await find(objectKey);
      return upload?.state === 'pending' ? upload : undefined;
    },

    /** Call before an object is moved: its row stays for some minutes if it is deleted. False if it is being deleted. */
    async beginMove(objectKey: string): Promise<boolean> {
      const { numUpdatedRows } = await database.write(
        (tables) =>
          tables
            .updateTable('uploads')
            .set({ variants_until: sql`${database.now} + ${MOVE_MS}` })
            .where('object_key', '=', objectKey)
            .where('state', '=', 'pending')
            .executeTakeFirst(),
        objectKey,
      );
      return numUpdatedRows === 1n;
    },

    /** The upload was moved, and nothing can be sent to its address any more. */
    async finishMove(objectKey: string): Promise<void> {
      await database.change(async (tables) => {
        await tables.deleteFrom('upload_variants').where('object_key', '=', pendingKeyOf(objectKey)).execute();
        await tables
          .updateTable('uploads')
          .set({ due_at: null, multipart_id: null })
          .where('object_key', '=', objectKey)
          .where('state', '=', 'kept')
          .execute();
      }, objectKey);
    },

    /** Stores the version that the user has confirmed. The first one stays. */
    async confirm(objectKey: string, version: string): Promise<void> {
      await database.write(
        (tables) =>
          tables
            .updateTable('uploads')
            .set({ confirmed_version: version })
            .where('object_key', '=', objectKey)
            .where('state', 'in', ['expected', 'pending'])
            .where('confirmed_version', 'is', null)
            .execute(),
        objectKey,
      );
    },

    /**
     * The upload is sent in parts, which may be in the storage from here on. Returns false if the scanner looks at it, or its
     * deletion has started.
     */
    async startParts(objectKey: string, checkedAfterMs: number): Promise<boolean> {
      const { numUpdatedRows } = await database.write(
        (tables) =>
          tables
            .updateTable('uploads')
            .set({ multipart_id: '', due_at: sql`expires_at + ${checkedAfterMs}` })
            .where('object_key', '=', objectKey)
            .where('state', 'in', ['expected', 'pending'])
            .where((is) => is.or([is('scan', 'is', null), is('scan', '=', 'due')]))
            .where((is) => is.or([is('multipart_id', 'is', null), is('multipart_id', '=', '')]))
            .executeTakeFirst(),
        objectKey,
      );
      return numUpdatedRows === 1n;
    },

    /** Stores the storage's id of a file in parts. Returns false if it has one, or its deletion has started. */
    async nameParts(objectKey: string, id: string): Promise<boolean> {
      const { numUpdatedRows } = await database.write(
        (tables) =>
          tables
            .updateTable('uploads')
            .set({ multipart_id: id })
            .where('object_key', '=', objectKey)
            .where('state', 'in', ['expected', 'pending'])
            .where('multipart_id', '=', '')
            .executeTakeFirst(),
        objectKey,
      );
      return numUpdatedRows === 1n;
    },

    /** A user's uploads, newest first: a range of one index, however many there are. */
    async list(
      userId: string,
      { limit, after, state }: { limit: number; after: UploadCursor | undefined; state?: UploadState },
    ) {
      const rows = await database.query((tables) =>
        selectRecords(database, tables)
          .where('user_id', '=', userId)
          .where('state', state === undefined ? '<>' : '=', state ?? 'doomed')
          .$if(after !== undefined, (uploads) => uploads.where(isAfter(after as UploadCursor)))
          .orderBy('created_at', 'desc')
          .orderBy('object_key', 'desc')
          .limit(limit)
          .execute(),
      );
      return rows.map(toRecord);
    },
  };
};

export type Records = ReturnType<typeof createRecords>;

export const selectRecords = ({ now }: Database, tables: ReadTables) =>
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
      'confirmed_version as confirmedVersion',
      'width',
      'height',
      'placeholder',
      'variants',
      'variants_for as variantsFor',
      'variants_until as variantsUntil',
      'multipart_id as multipartId',
      'scan',
      'finding',
      sql<number>`${now} - expires_at`.as('expiredForMs'),
    ]);

/** MySQL returns computed values as text. */
export const toRecord = (row: UploadRecord): UploadRecord => ({ ...row, expiredForMs: Number(row.expiredForMs) });

/** The index serves only the first condition. */
const isAfter = ({ createdAt, objectKey }: UploadCursor) =>
  sql<boolean>`created_at <= ${createdAt} and (created_at < ${createdAt} or object_key < ${objectKey})`;
