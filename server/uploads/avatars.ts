import { LockMode } from '@mikro-orm/core';
import { storedAvatarVariants, Upload, type UploadState, User } from '../../entities/index.ts';
import { backgroundJob, type Caller } from '../activity/caller.ts';
import { invalidField } from '../errors.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import type { Deletions } from './deletions.ts';
import type { UploadRecord } from './records.ts';
import { keyAt } from './upload-address.ts';

/** How long a replaced avatar is kept: pages and caches still show it. */
const REPLACED_MS = 24 * 60 * 60_000;

type Shown = Pick<Upload, 'state' | 'contentType' | 'variants'>;

interface Parts {
  database: Database;
  objects: ObjectStorage;
  deletions: Deletions;
  /** True if an avatar must be an upload of this service. */
  ownOnly: boolean;
}

interface AvatarChange {
  userId: string;
  former: string | null;
  next: string | null;
}

/** Decides when avatars that no profile shows are deleted. */
export function createAvatars({ database, objects, deletions, ownOnly }: Parts) {
  const base = objects.publicUrl('');

  const keyOf = (address: string | null) => keyAt(address, base);

  return {
    /**
     * Call in the transaction that changes the profile. Resolves to the variants of the new avatar. VALIDATION_FAILED
     * if the avatar is being deleted, or is not an upload although the service requires one. Deletions lock the same
     * rows.
     */
    async changed(tables: AllTables, { userId, former, next }: AvatarChange): Promise<string | null> {
      const [formerKey, nextKey] = [keyOf(former), keyOf(next)];
      if (formerKey && formerKey !== nextKey) await markReplaced(database, tables, formerKey, userId);
      const upload = nextKey === undefined ? undefined : await restore(tables, nextKey, userId);
      if (upload?.state === 'doomed') throw invalidField('avatar', 'deleted', 'This image has been deleted');
      if (ownOnly && next && !(upload && isImage(upload)))
        throw invalidField('avatar', 'own_upload', 'Must be the URL of an image that was uploaded here');
      return nextKey && upload && isImage(upload) ? storedAvatarVariants(nextKey, upload.variants) : null;
    },

    /**
     * Starts the deletion of a replaced avatar that no profile shows. Otherwise returns false and stops inspections
     * until a profile stops showing it.
     */
    startDeletionIfUnused: (objectKey: string): Promise<boolean> =>
      database.transaction(async (em, tables) => {
        const upload = await em.findOne(Upload, { objectKey }, { lockMode: LockMode.PESSIMISTIC_WRITE });
        if (upload?.state !== 'replaced') return false;
        const shown = await tables
          .selectFrom('users')
          .select('id')
          .where('avatar', 'like', addressPattern(objects, objectKey))
          .limit(1)
          .executeTakeFirst();
        if (!shown) return deletions.start(tables, { ...upload, expiredForMs: 0 }, ['replaced'], backgroundJob);
        upload.dueAt = null;
        return false;
      }),

    /**
     * Starts the deletion for the owner and clears the owner's profile of it. Returns false if it has already started.
     */
    startDeletionByOwner: (upload: UploadRecord, caller: Caller): Promise<boolean> =>
      database.transaction(async (em, tables) => {
        const user = await em.findOne(User, { id: upload.userId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
        if (user && keyOf(user.avatar ?? null) === upload.objectKey) user.changeProfile({ avatar: null });
        return deletions.start(tables, upload, ['expected', 'pending', 'kept', 'replaced'], caller);
      }, upload.userId),
  };
}

/**
 * Matches the URL of an image and those of its variants. A pattern, because they may have a query; a wildcard in them
 * could only match too much.
 */
export const addressPattern = (objects: Pick<ObjectStorage, 'publicUrl'>, objectKey: string): string =>
  `${objects.publicUrl(objectKey.replace(/\.\w+$/, ''))}%`;

export type Avatars = ReturnType<typeof createAvatars>;

/**
 * Call in the transaction in which a profile stops showing the object. Schedules an inspection if this user uploaded it
 * as an avatar, or its owner has replaced it before.
 */
async function markReplaced({ now }: Database, tables: AllTables, objectKey: string, userId: string): Promise<void> {
  await tables
    .updateTable('uploads')
    .set({ state: 'replaced', due_at: sql`${now} + ${REPLACED_MS}` })
    .where('object_key', '=', objectKey)
    .where('purpose', '=', 'avatar')
    .where((is) =>
      is.or([is('state', '=', 'replaced'), is.and([is('state', '=', 'kept'), is('user_id', '=', userId)])]),
    )
    .execute();
}

/**
 * Call in the transaction in which a profile shows the object again. Stops inspections. Returns the object, which may
 * be `doomed`; undefined for an unknown key. Locks its row: a process that makes variants waits, and then finds the
 * profile.
 */
async function restore(tables: AllTables, objectKey: string, userId: string): Promise<Shown | undefined> {
  await tables
    .updateTable('uploads')
    // In this order: MySQL assigns one after the other.
    .set({
      due_at: sql<number | null>`case when state = 'replaced' then null else due_at end`,
      state: sql<UploadState>`case when state = 'replaced' and user_id = ${userId} then 'kept' else state end`,
    })
    .where('object_key', '=', objectKey)
    .execute();
  return tables
    .selectFrom('uploads')
    .select(['state', 'content_type as contentType', 'variants'])
    .where('object_key', '=', objectKey)
    .executeTakeFirst() as Promise<Shown | undefined>;
}

/** An expected upload may never arrive, and a pending one may never be given out. */
const isImage = ({ state, contentType }: Shown): boolean =>
  (state === 'kept' || state === 'replaced') && contentType.startsWith('image/');
