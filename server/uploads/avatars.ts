import { LockMode } from '@mikro-orm/core';
import { storedAvatarVariants, Upload, type UploadState, User } from '../../entities/index.ts';
import { backgroundJob, type Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import { invalidField } from '../errors.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import type { Deletions } from './deletions.ts';
import { isShown } from './profiles.ts';
import type { UploadRecord } from './records.ts';
import { keyAt, normalizedAddress } from './upload-address.ts';

/** How long a replaced avatar is kept: pages and caches still show it. */
const REPLACED_MS = 24 * 60 * 60_000;

type Shown = Pick<Upload, 'state' | 'contentType' | 'variants'>;

interface Parts {
  database: Database;
  activity: Activity;
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

type StoredAvatar = Pick<User, 'avatar' | 'avatarVariants'>;

/** Decides when avatars that no profile shows are deleted. */
export function createAvatars({ database, activity, objects, deletions, ownOnly }: Parts) {
  const base = objects.publicUrl('');

  const keyOf = (address: string | null) => keyAt(address, base);

  return {
    /**
     * Call in the transaction that changes the profile; deletions lock the same rows. Resolves to what the profile
     * stores. VALIDATION_FAILED if it is being deleted, or is not an upload although the service requires one.
     */
    async changed(tables: AllTables, { userId, former, next }: AvatarChange): Promise<StoredAvatar> {
      const [formerKey, nextKey] = [keyOf(former), keyOf(next)];
      if (formerKey && formerKey !== nextKey) await markReplaced(database, tables, formerKey, userId);
      const upload = nextKey === undefined ? undefined : await restore(tables, nextKey, userId);
      if (upload?.state === 'doomed') throw invalidField('avatar', 'deleted', 'This image has been deleted');
      if (ownOnly && next && !(upload && isImage(upload)))
        throw invalidField('avatar', 'own_upload', 'Must be the URL of an image that was uploaded here');
      return {
        avatar: normalizedAddress(next, base),
        avatarVariants: nextKey && upload && isImage(upload) ? storedAvatarVariants(nextKey, upload.variants) : null,
      };
    },

    /**
     * Starts the deletion of a replaced avatar that no profile shows. Otherwise returns false and stops inspections
     * until a profile stops showing it.
     */
    startDeletionIfUnused: (objectKey: string): Promise<boolean> =>
      database.transaction(async (em, tables) => {
        const upload = await em.findOne(Upload, { objectKey }, { lockMode: LockMode.PESSIMISTIC_WRITE });
        if (upload?.state !== 'replaced') return false;
        if (!(await isShown(tables, objects, objectKey)))
          return deletions.start(tables, { ...upload, expiredForMs: 0 }, ['replaced'], backgroundJob);
        upload.dueAt = null;
        return false;
      }),

    /**
     * Starts the deletion for the owner and clears the owner's profile of it. Returns false if it has already started.
     */
    startDeletionByOwner: (upload: UploadRecord, caller: Caller): Promise<boolean> =>
      database.transaction(async (em, tables) => {
        const user = await em.findOne(User, { id: upload.userId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
        if (user && keyOf(user.avatar ?? null) === upload.objectKey) {
          user.changeProfile({ avatar: null });
          await activity.record(tables, user.id, { kind: 'profile-changed', details: { fields: 'avatar' } }, caller);
        }
        return deletions.start(tables, upload, ['expected', 'pending', 'kept', 'replaced'], caller);
      }, upload.userId),
  };
}

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
 * Call in the transaction in which a profile shows the object again. Stops inspections, and locks the row: a process
 * that makes variants waits, and then finds the profile. The object may be `doomed`; undefined for an unknown key.
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
