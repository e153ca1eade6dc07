import { randomUUID } from 'node:crypto';
import type { Caller } from '../activity/caller.ts';
import type { Config } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import { extensionOf, isUploadType, type UploadType } from '../lib/media-types.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import type { ImagePurpose } from './conversion.ts';
import type { Images, SentImage } from './images.ts';
import type { Records } from './records.ts';
import type { Reservation } from './reservations.ts';
import { FIRST_CHECK_MS } from './schedule.ts';
import { QuotaExceeded, type UsageCounter } from './usage.ts';

/** interface.md section 8. */
const ADDRESS_SECONDS = 300;
/** Longer than storing an image can take; after it no caller waits any more. */
const STORING_MS = 60_000;

interface Parts {
  objects: ObjectStorage;
  records: Records;
  usage: UsageCounter;
  images: Images;
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

/** The two ways to upload: directly to a presigned address, or as an image that the service converts. */
export function createNewUploads(
  { types, maxBytes, quota }: Config['uploads'],
  { objects, records, usage, images }: Parts,
) {
  /** Rejects with VALIDATION_FAILED above the user's quota. */
  const reserve = async (reservation: Reservation, field: string): Promise<void> => {
    try {
      await records.reserve(reservation);
    } catch (error) {
      if (!(error instanceof QuotaExceeded)) throw error;
      const { userId, size } = reservation;
      const { used } = await usage.of(userId);
      throw invalid(field, 'quota', `You use ${used} of ${quota} bytes; ${size} more do not fit`);
    }
  };

  const requireType = (contentType: string): UploadType => {
    const type = contentType.toLowerCase();
    if (isUploadType(type) && types.includes(type)) return type;
    throw invalid('contentType', 'not_allowed', `Must be one of ${types.join(', ')}`);
  };

  return {
    /** An address that accepts one file of exactly this type and size, under its own key. */
    async presign(userId: string, declared: { contentType: string; size: number }): Promise<UploadAddress> {
      const type = requireType(declared.contentType);
      const { contentType, size } = declared;
      if (size > maxBytes) throw invalid('size', 'too_large', `Must be at most ${maxBytes} bytes`);
      const key = newKey(extensionOf(type));
      const lifeMs = ADDRESS_SECONDS * 1000;
      await reserve(
        { objectKey: key, userId, purpose: 'direct', contentType: type, size, lifeMs, marginMs: FIRST_CHECK_MS },
        'size',
      );
      // The type as the client spells it, because the client will send it so.
      const presignedUrl = await objects.presignPut({ key, contentType, size, expiresInSeconds: ADDRESS_SECONDS });
      return { presignedUrl, publicUrl: objects.publicUrl(key), key, expiresIn: ADDRESS_SECONDS };
    },

    /**
     * Converts an image and stores it. Rejects with VALIDATION_FAILED or SERVICE_UNAVAILABLE, and then stores nothing.
     */
    async storeImage(
      userId: string,
      { file, purpose }: { file: SentImage; purpose: ImagePurpose },
      caller: Caller,
    ): Promise<StoredImage> {
      const { bytes, width, height } = await images.convert(userId, file, purpose);
      const key = newKey('webp');
      const contentType = 'image/webp';
      const size = bytes.length;
      const lifeMs = STORING_MS;
      await reserve({ objectKey: key, userId, purpose, contentType, size, lifeMs, marginMs: 0 }, 'file');
      await objects.put(key, bytes, contentType);
      if (!(await records.commit({ objectKey: key, userId }, caller))) {
        throw new ServiceError('SERVICE_UNAVAILABLE', {
          cause: new Error('storing an image took too long'),
          retryAfter: 5,
        });
      }
      return { url: objects.publicUrl(key), size, width, height };
    },
  };
}

/** The key contains no user input and cannot be guessed. */
const newKey = (extension: string): string => `uploads/${randomUUID()}.${extension}`;

const invalid = (field: string, rule: string, message: string) =>
  new ServiceError('VALIDATION_FAILED', { details: { [field]: { message, rule } } });
