import type { Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import type { Config } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import type { Database } from '../parts/database/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import type { Log } from '../telemetry/log.ts';
import { gauges } from '../telemetry/metrics.ts';
import { createAvatars } from './avatars.ts';
import { createDeletions } from './deletions.ts';
import { createImages } from './images.ts';
import { createInspection } from './inspection.ts';
import { createUploadLeases } from './leases.ts';
import { createNewUploads } from './new-uploads.ts';
import { createRecords, type UploadCursor, type UploadRecord } from './records.ts';
import { createUsage, type Usage } from './usage.ts';

interface Parts {
  database: Database;
  activity: Activity;
  objects: ObjectStorage;
  log: Log;
}

export type ListedUpload = UploadRecord & { url: string };

/** The uploads room on the given parts. `inspection.start` starts the worker. */
export function createUploads(
  { uploads: settings, ownAvatars, cores }: Pick<Config, 'uploads' | 'ownAvatars' | 'cores'>,
  { database, activity, objects, log }: Parts,
) {
  const { quota } = settings;
  const usage = createUsage(database, { quota });
  const records = createRecords(database, usage, activity);
  const leases = createUploadLeases(database);
  gauges(async () => ({ account_uploads_due: await leases.due() }));
  const deletions = createDeletions({ database, activity, objects, usage, leases });
  const avatars = createAvatars({ database, objects, deletions, ownOnly: ownAvatars });
  const inspection = createInspection({ objects, records, leases, avatars, deletions, log });
  const images = createImages({ cores });
  const { presign, storeImage } = createNewUploads(settings, { objects, records, usage, images });

  const toListed = (record: UploadRecord): ListedUpload => ({ ...record, url: objects.publicUrl(record.objectKey) });

  const requireOwn = async (userId: string, objectKey: string): Promise<UploadRecord> => {
    const upload = await records.find(objectKey);
    if (upload?.userId !== userId || upload.state === 'doomed') throw notFound();
    return upload;
  };

  return {
    inspection,
    images,
    avatarChanged: avatars.changed,
    removeAllOf: deletions.removeAllOf,
    presign,
    storeImage,

    /** Rejects with NOT_FOUND, and with VALIDATION_FAILED if nothing was uploaded, or not as declared. */
    async confirm(userId: string, objectKey: string): Promise<UploadRecord> {
      const upload = await requireOwn(userId, objectKey);
      await inspection.confirm(upload);
      return upload;
    },

    /**
     * Deletes a user's upload and clears it from the user's own profile. Rejects with NOT_FOUND. Crash-safe: the
     * inspection completes it, and deletes what still arrives at its address.
     */
    async remove(userId: string, objectKey: string, caller: Caller): Promise<void> {
      const upload = await requireOwn(userId, objectKey);
      if (!(await avatars.startDeletionByOwner(upload, caller))) throw notFound();
      await deletions
        .proceed(upload)
        .catch((err: unknown) => log.warn({ err, key: objectKey }, 'the deletion of an upload is retried later'));
    },

    usage: async (userId: string): Promise<Usage & { quota: number }> => ({ ...(await usage.of(userId)), quota }),

    /** Newest first. `more` is the cursor of the next page, if there is one. */
    async list(userId: string, { limit, after }: { limit: number; after: UploadCursor | undefined }) {
      const found = await records.list(userId, { limit: limit + 1, after });
      const uploads = found.slice(0, limit).map(toListed);
      return { uploads, more: found.length > limit ? uploads.at(-1) : undefined };
    },
  };
}

export type Uploads = ReturnType<typeof createUploads>;

const notFound = () => new ServiceError('NOT_FOUND', { message: 'Upload not found' });
