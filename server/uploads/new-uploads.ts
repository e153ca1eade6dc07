import { randomUUID } from 'node:crypto';
import { extname } from 'node:path';
import { type Variant, variantKey, variantsIn } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { Config } from '../config/index.ts';
import { invalidField, ServiceError } from '../errors.ts';
import { extensionOf, isUploadType, type UploadType } from '../lib/media-types.ts';
import type { ObjectStorage, Visibility } from '../parts/object-storage/contract.ts';
import type { ImagePurpose } from '../shared/image-limits.ts';
import type { WebpImage } from './images/conversion.ts';
import type { Images, SentImage } from './images/images.ts';
import { type ListedVariant, listVariants } from './listed-variants.ts';
import { keyIn, nameOf, notFound, pendingKeyOf } from './names.ts';
import { type Division, divide } from './parts.ts';
import type { Records, UploadRecord } from './records.ts';
import { bytesOf, type Picture, type Reservation } from './reservations.ts';
import { FIRST_CHECK_MS } from './schedule.ts';
import { QuotaExceeded, type UsageCounter } from './usage.ts';

/** interface.md section 8. */
const ADDRESS_SECONDS = 300;
/** Longer than storing an image can take; after it no caller waits any more. */
const STORING_MS = 60_000;

interface Parts {
  /** Rejects with VALIDATION_FAILED, and deletes the object, unless it is as declared. */
  requireAsDeclared(upload: UploadRecord): Promise<void>;
  objects: ObjectStorage;
  records: Records;
  usage: UsageCounter;
  images: Images;
  /** Deletes an upload that is not to be stored, also what arrives later. */
  abandon(upload: UploadRecord): Promise<void>;
  /** True if a direct upload is stored only after a scan. */
  isScanned: boolean;
}

interface UploadAddress {
  presignedUrl: string;
  /** Empty for a private file. */
  publicUrl: string;
  key: string;
  /** Seconds. */
  expiresIn: number;
  /** Only of a large file: it may be sent in parts instead. */
  parts?: Division;
}

interface StoredImage {
  /** Empty for a private image. */
  url: string;
  /** Only of a private image: its URL cannot tell it. */
  name?: string;
  size: number;
  width: number;
  height: number;
  variants: ListedVariant[];
  placeholder: string;
}

/** The two ways to upload: directly to a presigned address, or as an image that the service converts. */
export function createNewUploads(
  { types, maxBytes, quota, imageSizes }: Config['uploads'],
  { requireAsDeclared, abandon, objects, records, usage, images, isScanned }: Parts,
) {
  /** Rejects with VALIDATION_FAILED above the user's quota. */
  const reserve = async (reservation: Reservation, field: string): Promise<void> => {
    try {
      await records.reserve(reservation);
    } catch (error) {
      if (!(error instanceof QuotaExceeded)) throw error;
      const { used } = await usage.of(reservation.userId);
      throw invalidField(field, 'quota', `You use ${used} of ${quota} bytes; ${bytesOf(reservation)} more do not fit`);
    }
  };

  const requireType = (contentType: string): UploadType => {
    const type = contentType.toLowerCase();
    if (isUploadType(type) && types.includes(type)) return type;
    throw invalidField('contentType', 'not_allowed', `Must be one of ${types.join(', ')}`);
  };

  const commit = async (upload: Pick<UploadRecord, 'objectKey' | 'userId'>, caller: Caller): Promise<void> => {
    if (await records.commit(upload, caller)) return;
    throw new ServiceError('SERVICE_UNAVAILABLE', {
      cause: new Error('storing a file took too long'),
      retryAfter: 5,
    });
  };

  return {
    /** An address that accepts one file of exactly this type and size, under its own key. */
    async presign(
      userId: string,
      { contentType, size, visibility }: { contentType: string; size: number; visibility: Visibility },
    ): Promise<UploadAddress> {
      const type = requireType(contentType);
      if (size > maxBytes) throw invalidField('size', 'too_large', `Must be at most ${maxBytes} bytes`);
      const key = newKey(visibility, extensionOf(type));
      const scan = isScanned ? 'due' : null;
      const declared = { objectKey: key, userId, purpose: 'direct', contentType: type, size, scan } as const;
      await reserve({ ...declared, lifeMs: ADDRESS_SECONDS * 1000, marginMs: FIRST_CHECK_MS }, 'size');
      const presignedUrl = await objects.presignPut({
        key: isScanned ? pendingKeyOf(key) : key,
        // As the client spells it, because the client will send it so.
        contentType,
        size,
        expiresInSeconds: ADDRESS_SECONDS,
      });
      const parts = divide(size);
      return {
        presignedUrl,
        publicUrl: objects.publicUrl(key),
        key,
        expiresIn: ADDRESS_SECONDS,
        ...(parts && { parts }),
      };
    },

    /**
     * Converts an image and stores it. Rejects with VALIDATION_FAILED or SERVICE_UNAVAILABLE, and then stores nothing.
     */
    async storeImage(
      userId: string,
      { file, purpose, visibility }: { file: SentImage; purpose: ImagePurpose; visibility: Visibility },
      caller: Caller,
    ): Promise<StoredImage> {
      const { bytes, width, height, variants: made, placeholder, scan } = await images.convert(userId, file, purpose);
      const key = newKey(visibility, 'webp');
      const contentType = 'image/webp';
      const size = bytes.length;
      const lifeMs = STORING_MS;
      const variants = made.map(toVariant);
      const picture = { width, height, placeholder, variants, madeFor: imageSizes[purpose].join(',') };
      await reserve({ objectKey: key, userId, purpose, contentType, size, scan, picture, lifeMs, marginMs: 0 }, 'file');
      const pictures = [{ key, bytes }, ...made.map((each) => ({ key: variantKey(key, each), bytes: each.bytes }))];
      await Promise.all(pictures.map((each) => objects.put(each.key, each.bytes, contentType)));
      await commit({ objectKey: key, userId }, caller);
      return {
        url: objects.publicUrl(key),
        ...(visibility === 'private' && { name: nameOf(key) }),
        size,
        width,
        height,
        variants: listVariants(objects, key, variants),
        placeholder,
      };
    },

    /**
     * Stores a public copy of a private upload, with its variants. Resolves to its key. Rejects with VALIDATION_FAILED, and
     * then stores nothing, if nothing was uploaded, if not as declared, or above the quota; with NOT_FOUND if it was deleted.
     */
    async publish(upload: UploadRecord, caller: Caller): Promise<string> {
      await requireAsDeclared(upload);
      const { objectKey: from, userId, purpose, contentType, size, scan } = upload;
      const to = keyIn('public', `${randomUUID()}${extname(nameOf(from))}`);
      const picture = pictureIn(upload);
      const declared = { objectKey: to, userId, purpose, contentType, size, scan, isCopy: true };
      await reserve({ ...declared, ...(picture && { picture }), lifeMs: STORING_MS, marginMs: FIRST_CHECK_MS }, 'name');
      const keys = [undefined, ...(picture?.variants ?? [])].map((variant) =>
        variant ? ([variantKey(from, variant), variantKey(to, variant)] as const) : ([from, to] as const),
      );
      try {
        const copies = await Promise.all(keys.map(([source, target]) => objects.copy(source, target, contentType)));
        if (copies.includes(false)) throw notFound();
        // The content of an address that is still valid may have been replaced while it was copied.
        await requireAsDeclared({ ...upload, objectKey: to, scan: null, state: 'expected', confirmedVersion: null });
        await commit(declared, caller);
      } catch (error) {
        const begun = await records.find(to);
        if (begun) await abandon(begun);
        throw error;
      }
      return to;
    },
  };
}

export const toVariant = ({ bytes, width, height }: WebpImage): Variant => ({ width, height, bytes: bytes.length });

/** The key contains no user input and cannot be guessed. */
const newKey = (visibility: Visibility, extension: string): string => keyIn(visibility, `${randomUUID()}.${extension}`);

/** Undefined unless its variants were made. */
function pictureIn({ width, height, placeholder, variants, variantsFor }: UploadRecord): Picture | undefined {
  if (width == null || height == null || placeholder == null || variantsFor == null) return undefined;
  return { width, height, placeholder, variants: variantsIn(variants), madeFor: variantsFor };
}
