import { LockMode } from '@mikro-orm/core';
import { Upload, type UploadState, User } from '../../entities/index.ts';
import { ServiceError } from '../errors.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import type { Deletions } from './deletions.ts';
import type { UploadRecord } from './records.ts';
import { keyAt } from './upload-address.ts';

/** How long an avatar outlives its place in the profile: pages and caches still show it. */
const REPLACED_MS = 24 * 60 * 60_000;

type Shown = Pick<Upload, 'state' | 'contentType'>;

interface Parts {
  database: Database;
  objects: ObjectStorage;
  deletions: Deletions;
  /** Whether an avatar must be an upload of this service. */
  ownOnly: boolean;
}

export interface AvatarChange {
  userId: string;
  former: string | null;
  next: string | null;
}

/** Decides when avatars that profiles no longer show are deleted. */
export function createAvatars({ database, objects, deletions, ownOnly }: Parts) {
  const base = objects.publicUrl('');

  const keyOf = (address: string | null) => keyAt(address, base);

  return {
    /**
     * Runs in the transaction that changes the profile. The deletions below lock the same rows, so that no profile
     * comes to show an avatar that is being deleted: that change is refused with VALIDATION_FAILED, as is one to a picture
     * that is no upload where it must be.
     */
    async changed(tables: AllTables, { userId, former, next }: AvatarChange): Promise<void> {
      const [formerKey, nextKey] = [keyOf(former), keyOf(next)];
      if (formerKey && formerKey !== nextKey) await markReplaced(database, tables, formerKey, userId);
      const upload = nextKey === undefined ? undefined : await restore(tables, nextKey, userId);
      if (upload?.state === 'doomed') throw refused('deleted', 'This image has been deleted');
      if (ownOnly && next && !(upload && isImage(upload)))
        throw refused('own_upload', 'Must be the address of an image that was uploaded here');
    },

    /**
     * Starts the deletion of a replaced avatar that no profile shows. Otherwise answers false, and the avatar is not
     * inspected again until a profile stops showing it.
     */
    startDeletionIfUnused: (objectKey: string): Promise<boolean> =>
      database.transaction(async (em, tables) => {
        const upload = await em.findOne(Upload, { objectKey }, { lockMode: LockMode.PESSIMISTIC_WRITE });
        if (upload?.state !== 'replaced') return false;
        const shown = await tables
          .selectFrom('users')
          .select('id')
          // A prefix, for the address may carry a query. A wildcard in it could only match too much.
          .where('avatar', 'like', `${objects.publicUrl(objectKey)}%`)
          .limit(1)
          .executeTakeFirst();
        if (!shown) return deletions.start(tables, { ...upload, expiredForMs: 0 }, ['replaced']);
        upload.dueAt = null;
        return false;
      }),

    /** Starts the deletion for the owner, and clears the owner's profile of it. Answers false where it has started. */
    startDeletionByOwner: (upload: UploadRecord): Promise<boolean> =>
      database.transaction(async (em, tables) => {
        const user = await em.findOne(User, { id: upload.userId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
        if (user && keyOf(user.avatar ?? null) === upload.objectKey) user.changeProfile({ avatar: null });
        return deletions.start(tables, upload, ['expected', 'kept', 'replaced']);
      }, upload.userId),
  };
}

const refused = (rule: string, message: string) =>
  new ServiceError('VALIDATION_FAILED', { details: { avatar: { message, rule } } });

export type Avatars = ReturnType<typeof createAvatars>;

/**
 * Runs in the transaction by which a user's profile stops showing the object. Schedules an inspection if the object is
 * an avatar that this user uploaded as one, or that its owner has replaced before.
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
 * Runs in the transaction by which a user's profile shows the object again: no inspection until a profile stops showing
 * it. Answers the object, which may be `doomed`; undefined where there is none of this key.
 */
async function restore(tables: AllTables, objectKey: string, userId: string): Promise<Shown | undefined> {
  await tables
    .updateTable('uploads')
    .set({ due_at: null, state: sql<UploadState>`case when user_id = ${userId} then 'kept' else state end` })
    .where('object_key', '=', objectKey)
    .where('state', '=', 'replaced')
    .execute();
  return tables
    .selectFrom('uploads')
    .select(['state', 'content_type as contentType'])
    .where('object_key', '=', objectKey)
    .executeTakeFirst() as Promise<Shown | undefined>;
}

/** What is expected may never come. */
const isImage = ({ state, contentType }: Shown): boolean => state !== 'expected' && contentType.startsWith('image/');
