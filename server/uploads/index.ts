import { randomUUID } from 'node:crypto';
import type { Config } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import type { Log } from '../log.ts';
import { extensionOf, isUploadType, type UploadType } from '../media-types.ts';
import type { Database } from '../parts/database/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import { createAvatars } from './avatars.ts';
import { createImages, type ImagePurpose, type SentImage } from './images.ts';
import { createInspection, FIRST_LOOK_MS } from './inspection.ts';
import { createRecords, type UploadCursor, type UploadRecord, type Usage } from './records.ts';

/** interface.md section 8. */
const ADDRESS_SECONDS = 300;
/** Longer than storing an image can take; after it no caller waits any more. */
const STORING_MS = 60_000;

interface Parts {
  database: Database;
  objects: ObjectStorage;
  log: Log;
}

export interface UploadAddress {
  presignedUrl: string;
  publicUrl: string;
  key: string;
  /** Seconds. */
  expiresIn: number;
}

export interface StoredImage {
  url: string;
  size: number;
  width: number;
  height: number;
}

export type ListedUpload = UploadRecord & { url: string };

/** The rules about files, on the given parts. `inspection.start` starts the worker. */
export function createUploads(config: Pick<Config, 'uploads'>, { database, objects, log }: Parts) {
  const { types, maxBytes, quota } = config.uploads;
  const records = createRecords(database, { quota });
  const avatars = createAvatars({ database, objects, records });
  const inspection = createInspection({ database, objects, records, avatars, log });
  const images = createImages();

  const requireType = (contentType: string): UploadType => {
    const type = contentType.toLowerCase();
    if (isUploadType(type) && types.includes(type)) return type;
    throw invalid('contentType', 'not_allowed', `Must be one of ${types.join(', ')}`);
  };

  const toListed = (record: UploadRecord): ListedUpload => ({ ...record, url: objects.publicUrl(record.objectKey) });

  /** Rejects with VALIDATION_FAILED where the user would keep more than the quota. */
  const expect = async (declared: Parameters<typeof records.expect>[0], field: string): Promise<void> => {
    if (await records.expect(declared)) return;
    const { used } = await records.usage(declared.userId);
    throw invalid(field, 'quota', `You keep ${used} of ${quota} bytes, there is no room for ${declared.size} more`);
  };

  return {
    inspection,
    images,
    avatarChanged: avatars.changed,
    userDeleted: records.doomAllOf,

    /** An address to which the user may send one file of just this type and size, under a key of its own. */
    async presign(userId: string, declared: { contentType: string; size: number }): Promise<UploadAddress> {
      const type = requireType(declared.contentType);
      const { contentType, size } = declared;
      if (size > maxBytes) throw invalid('size', 'too_large', `Must be at most ${maxBytes} bytes`);
      const key = newKey(extensionOf(type));
      const lifeMs = ADDRESS_SECONDS * 1000;
      await expect(
        { objectKey: key, userId, purpose: 'direct', contentType: type, size, lifeMs, marginMs: FIRST_LOOK_MS },
        'size',
      );
      // The type as the client spells it, because the client will send it so.
      const presignedUrl = await objects.presignPut({ key, contentType, size, expiresInSeconds: ADDRESS_SECONDS });
      return { presignedUrl, publicUrl: objects.publicUrl(key), key, expiresIn: ADDRESS_SECONDS };
    },

    /** Converts an image and stores it. Rejects with VALIDATION_FAILED, or with SERVICE_UNAVAILABLE and nothing stored. */
    async storeImage(userId: string, file: SentImage, purpose: ImagePurpose): Promise<StoredImage> {
      const { bytes, width, height } = await images.convert(userId, file, purpose);
      const key = newKey('webp');
      const contentType = 'image/webp';
      const size = bytes.length;
      const lifeMs = STORING_MS;
      await expect({ objectKey: key, userId, purpose, contentType, size, lifeMs, marginMs: 0 }, 'file');
      await objects.put(key, bytes, contentType);
      if (!(await records.keep(key))) {
        throw new ServiceError('SERVICE_UNAVAILABLE', {
          cause: new Error('storing an image took too long'),
          retryAfter: 5,
        });
      }
      return { url: objects.publicUrl(key), size, width, height };
    },

    confirm: inspection.confirm,
    remove: inspection.remove,

    usage: async (userId: string): Promise<Usage & { quota: number }> => ({ ...(await records.usage(userId)), quota }),

    /** Newest first. `more`: where the next page begins, if there is one. */
    async list(userId: string, { limit, after }: { limit: number; after: UploadCursor | undefined }) {
      const found = await records.list(userId, { limit: limit + 1, after });
      const uploads = found.slice(0, limit).map(toListed);
      return { uploads, more: found.length > limit ? uploads.at(-1) : undefined };
    },
  };
}

export type Uploads = ReturnType<typeof createUploads>;

/** The key contains nothing of what the user sent, and cannot be guessed. */
const newKey = (extension: string): string => `uploads/${randomUUID()}.${extension}`;

const invalid = (field: string, rule: string, message: string) =>
  new ServiceError('VALIDATION_FAILED', { details: { [field]: { message, rule } } });
