import { variantKey, variantsIn } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import type { Config } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import type { Database } from '../parts/database/contract.ts';
import { type ObjectStorage, type Visibility, visibilityOf } from '../parts/object-storage/contract.ts';
import type { Scanner } from '../parts/scanner/contract.ts';
import type { Log } from '../telemetry/log.ts';
import { gauges } from '../telemetry/metrics.ts';
import { createAvatars } from './avatars.ts';
import { createDeletions } from './deletions.ts';
import { createExamination } from './examination.ts';
import { createImages } from './images/images.ts';
import { createInspection } from './inspection.ts';
import { createUploadLeases } from './leases.ts';
import { type ListedVariant, listVariants } from './listed-variants.ts';
import { keysOf, notFound } from './names.ts';
import { createNewUploads } from './new-uploads.ts';
import { createOnlyInstance } from './only-instance.ts';
import { createParts } from './parts.ts';
import { createRecords, type UploadCursor, type UploadRecord } from './records.ts';
import { createScans, MAX_OF_USER, type QuarantineNotices } from './scans.ts';
import { createUsage, type Usage } from './usage.ts';
import { createVariants } from './variants.ts';

export { keyIn, nameOf } from './names.ts';
export type { Variants } from './variants.ts';

interface Parts {
  database: Database;
  activity: Activity;
  objects: ObjectStorage;
  /** Only with SCAN_URL. */
  scanning?: { scanner: Scanner; allowsWhenDown: boolean; notices: QuarantineNotices } | undefined;
  log: Log;
}

interface AddressOptions {
  /** Seconds. */
  expiresIn: number;
  /** The name under which browsers save the file; without one they may show it. */
  download?: string | undefined;
}

/** Addresses to read a file, and the variants of an image, until `expiresAt` (milliseconds since 1970). */
export interface FileAddress {
  url: string;
  expiresAt: number;
  variants?: ListedVariant[];
}

export type ListedUpload = Omit<UploadRecord, 'variants'> & {
  visibility: Visibility;
  /** Empty for a private file. */
  url: string;
  /** Undefined until the variants of an image are made. */
  variants: ListedVariant[] | undefined;
};

/** The uploads room on the given parts. `start` of `inspection` and `variants` starts their workers. */
export function createUploads(
  { uploads: settings, ownAvatars, cores }: Pick<Config, 'uploads' | 'ownAvatars' | 'cores'>,
  { database, activity, objects, scanning, log }: Parts,
) {
  const { quota } = settings;
  const usage = createUsage(database, { quota });
  const records = createRecords(database, usage, activity);
  const leases = createUploadLeases(database, scanning ? 'others' : 'all');
  gauges(async () => ({ account_uploads_due: await leases.due() }));
  const deletions = createDeletions({ database, activity, objects, usage, leases });
  const avatars = createAvatars({ database, activity, objects, deletions, ownOnly: ownAvatars });
  const examination = scanning && createExamination({ ...scanning, log });
  const scans =
    examination &&
    createScans({
      ...scanning,
      database,
      objects,
      records,
      deletions,
      leases: createUploadLeases(database, 'pending', MAX_OF_USER),
      examination,
      log,
    });
  const arrived = async (upload: UploadRecord) => scans?.hasten(upload);
  const inspection = createInspection({ objects, records, leases, avatars, deletions, arrived, log });
  const parts = createParts({ objects, records, leases });
  const images = createImages({
    cores,
    sizes: settings.imageSizes,
    requireClean: examination?.requireCleanImage,
  });
  const variants = createVariants(settings.imageSizes, { database, objects, usage, isIdle: images.isIdle, log });
  const requireAsDeclared = inspection.confirm;
  const { presign, storeImage, publish } = createNewUploads(settings, {
    requireAsDeclared,
    abandon: deletions.abandon,
    objects,
    records,
    usage,
    images,
    isScanned: scans !== undefined,
  });

  const toListed = (record: UploadRecord): ListedUpload => ({
    ...record,
    visibility: visibilityOf(record.objectKey),
    url: record.state === 'infected' ? '' : objects.publicUrl(record.objectKey),
    variants:
      record.variants === null ? undefined : listVariants(objects, record.objectKey, variantsIn(record.variants)),
  });

  /** Rejects with NOT_FOUND. */
  const require = async (...objectKeys: string[]): Promise<UploadRecord> => {
    const upload = await records.find(...objectKeys);
    if (!upload || upload.state === 'doomed') throw notFound();
    return upload;
  };
  const requireOwn = async (userId: string, ...objectKeys: string[]): Promise<UploadRecord> => {
    const upload = await require(...objectKeys);
    if (upload.userId !== userId) throw notFound();
    return upload;
  };

  const requireScanned = ({ state }: UploadRecord): void => {
    if (state === 'pending') throw new ServiceError('UPLOAD_PENDING');
    if (state === 'infected') throw new ServiceError('UPLOAD_QUARANTINED');
  };

  const addressOf = async (upload: UploadRecord, { expiresIn, download }: AddressOptions): Promise<FileAddress> => {
    requireScanned(upload);
    const { objectKey, variants: stored } = upload;
    const sign = (key: string) => objects.presignGet({ key, expiresInSeconds: expiresIn, download });
    const variants = variantsIn(stored).map(async (variant) => ({
      ...variant,
      url: await sign(variantKey(objectKey, variant)),
    }));
    return {
      expiresAt: Date.now() + expiresIn * 1000,
      url: await sign(objectKey),
      ...(variants.length > 0 && { variants: await Promise.all(variants) }),
    };
  };

  return {
    inspection,
    /** Only with UPLOADS=disk. */
    onlyInstance: settings.areOnDisk ? createOnlyInstance({ database, log }) : undefined,
    variants,
    /** Only with SCAN_URL. */
    scans,
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
     * Addresses for parts of a file: see `parts` of `presign`. NOT_FOUND; VALIDATION_FAILED. `countStart` is called before
     * the storage is asked, and may reject.
     */
    presignParts: async (
      userId: string,
      objectKey: string,
      numbers: readonly number[],
      countStart: () => Promise<unknown>,
    ) => parts.presign(await requireOwn(userId, objectKey), numbers, countStart),

    /** How a file is divided, and which parts have arrived. NOT_FOUND; VALIDATION_FAILED. */
    storedParts: async (userId: string, objectKey: string) => parts.stored(await requireOwn(userId, objectKey)),

    /** Joins the parts of a file and confirms it. Idempotent. NOT_FOUND; VALIDATION_FAILED also if a part is missing. */
    async complete(userId: string, objectKey: string): Promise<UploadRecord> {
      const upload = await requireOwn(userId, objectKey);
      let isJoined = await parts.join(upload);
      try {
        await inspection.confirm(upload);
        isJoined = upload.multipartId !== null;
      } finally {
        if (isJoined) await parts.finish(upload);
      }
      return upload;
    },

    /**
     * Deletes a user's upload and clears it from the user's own profile. Rejects with NOT_FOUND, and with
     * UPLOAD_QUARANTINED. Crash-safe: the inspection completes it, and deletes what still arrives at its address.
     */
    async remove(userId: string, name: string, caller: Caller): Promise<void> {
      const upload = await requireOwn(userId, ...keysOf(name));
      if (upload.state === 'infected') throw new ServiceError('UPLOAD_QUARANTINED');
      const { objectKey } = upload;
      if (!(await avatars.startDeletionByOwner(upload, caller))) throw notFound();
      await deletions
        .proceed(upload)
        .catch((err: unknown) => log.warn({ err, key: objectKey }, 'the deletion of an upload is retried later'));
    },

    /**
     * A presigned address to read an upload of the user; without a user, of anybody. NOT_FOUND, UPLOAD_PENDING,
     * UPLOAD_QUARANTINED.
     */
    async address(name: string, options: AddressOptions, userId?: string): Promise<FileAddress> {
      const keys = keysOf(name);
      return addressOf(userId === undefined ? await require(...keys) : await requireOwn(userId, ...keys), options);
    },

    /** Stores a public copy of the user's private upload. VALIDATION_FAILED for a public one; rejects like `address`. */
    async publish(userId: string, name: string, caller: Caller): Promise<ListedUpload> {
      const upload = await requireOwn(userId, ...keysOf(name));
      if (visibilityOf(upload.objectKey) === 'public')
        throw new ServiceError('VALIDATION_FAILED', { message: 'This file is public already' });
      requireScanned(upload);
      return toListed(await require(await publish(upload, caller)));
    },

    usage: async (userId: string): Promise<Usage & { quota: number }> => ({ ...(await usage.of(userId)), quota }),

    /** A user's newest files in quarantine. Undefined without SCAN_URL. */
    async quarantined(userId: string, limit: number): Promise<ListedUpload[] | undefined> {
      if (!scans) return undefined;
      return (await records.list(userId, { limit, after: undefined, state: 'infected' })).map(toListed);
    },

    /** Newest first. `more` is the cursor of the next page, if there is one. */
    async list(userId: string, { limit, after }: { limit: number; after: UploadCursor | undefined }) {
      const found = await records.list(userId, { limit: limit + 1, after });
      const uploads = found.slice(0, limit).map(toListed);
      return { uploads, more: found.length > limit ? uploads.at(-1) : undefined };
    },
  };
}

export type Uploads = ReturnType<typeof createUploads>;
