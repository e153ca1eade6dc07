import { LockMode } from '@mikro-orm/core';
import { Upload, User } from '../../entities/index.ts';
import { ServiceError } from '../errors.ts';
import type { AllTables, Database } from '../parts/database/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import type { Records, UploadRecord } from './records.ts';

/** How long an avatar outlives its place in the profile: pages and caches still show it. */
export const REPLACED_MS = 24 * 60 * 60_000;

interface Parts {
  database: Database;
  objects: ObjectStorage;
  records: Records;
}

export interface AvatarChange {
  userId: string;
  former: string | null;
  next: string | null;
}

/** Decides when avatars that profiles no longer show are deleted. */
export function createAvatars({ database, objects, records }: Parts) {
  const base = objects.publicUrl('');

  /** The key of an address of ours, whatever query a client has added to it. */
  const keyOf = (address: string | null): string | undefined => {
    const url = address ? URL.parse(address) : null;
    const plain = url ? url.origin + url.pathname : '';
    return plain.startsWith(base) ? plain.slice(base.length) : undefined;
  };

  return {
    /**
     * Runs in the transaction that changes the profile. `condemn` waits for its locks on the two rows, so that no
     * profile comes to show an avatar that is being deleted: that change is refused with VALIDATION_FAILED.
     */
    async changed(tables: AllTables, { userId, former, next }: AvatarChange): Promise<void> {
      const [formerKey, nextKey] = [keyOf(former), keyOf(next)];
      if (formerKey && formerKey !== nextKey) await records.replace(tables, formerKey, userId, REPLACED_MS);
      if (!nextKey || (await records.reprieve(tables, nextKey, userId))) return;
      throw new ServiceError('VALIDATION_FAILED', {
        details: { avatar: { message: 'This image has been deleted', rule: 'deleted' } },
      });
    },

    /**
     * Whether a replaced avatar may be deleted: no profile shows it, and from now on none can. Otherwise it is left
     * alone until a profile stops showing it.
     */
    condemn: (objectKey: string): Promise<boolean> =>
      database.transaction(async (em, tables) => {
        const upload = await em.findOne(Upload, { objectKey }, { lockMode: LockMode.PESSIMISTIC_WRITE });
        if (upload?.state !== 'replaced') return false;
        const shown = await tables
          .selectFrom('users')
          .select('id')
          // A prefix, for the address may carry a query. A wildcard in it could only spare too much.
          .where('avatar', 'like', `${objects.publicUrl(objectKey)}%`)
          .limit(1)
          .executeTakeFirst();
        if (!shown) return records.doom(tables, { ...upload, expiredForMs: 0 }, ['replaced']);
        upload.dueAt = null;
        return false;
      }),

    /**
     * Dooms an upload because its user deletes it, and removes it from that user's profile. Answers false where it is
     * doomed already.
     */
    withdraw: (upload: UploadRecord): Promise<boolean> =>
      database.transaction(async (em, tables) => {
        const user = await em.findOne(User, { id: upload.userId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
        if (user && keyOf(user.avatar ?? null) === upload.objectKey) user.changeProfile({ avatar: null });
        return records.doom(tables, upload, ['expected', 'kept', 'replaced']);
      }, upload.userId),
  };
}

export type Avatars = ReturnType<typeof createAvatars>;
