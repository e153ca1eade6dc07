/*
 * Smaller pictures of images that were stored before, or for other IMAGE_SIZES. Each step is idempotent, and
 * `variantsFor` is set last: after a crash another process repeats the image when its lease has ended. Rows are found by
 * an index over `purpose` and `variants_for`, at a start and then every ten minutes; while none is found nothing else is
 * asked. A row of `upload_variants` is written before its object, and deleted after it.
 */

import { LockMode } from '@mikro-orm/core';
import {
  storedAvatarVariants,
  storedVariants,
  Upload,
  type Variant,
  variantKey,
  variantsIn,
} from '../../entities/index.ts';
import type { ImageSizes } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import { type AllTables, type Database, type ReadTables, sql } from '../parts/database/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';
import { type ImagePurpose, imagePurposes } from '../shared/image-limits.ts';
import type { Log } from '../telemetry/log.ts';
import { count, gauges } from '../telemetry/metrics.ts';
import type { Leases } from '../workers/leases.ts';
import { createWorker } from '../workers/worker.ts';
import { countUpTo } from './count.ts';
import type { WebpImage } from './images/conversion.ts';
import { createConverter } from './images/converter.ts';
import { toVariant } from './new-uploads.ts';
import { isShown, setAvatarVariants } from './profiles.ts';
import type { UsageCounter } from './usage.ts';

/** Longer than an image takes. While a lease lasts, no row of a deleted upload is deleted. */
const LEASE_MS = 60_000;
/** The version before may store images without variants until the last of its processes has stopped. */
const LOOK_EVERY_MS = 10 * 60_000;

const MAX_SWEPT = 50;

/** The states of images that are stored. */
const stored = ['kept', 'replaced'] as const;

/** An image that needs variants. */
type DueImage = Pick<Upload, 'objectKey' | 'userId' | 'size' | 'width' | 'height' | 'placeholder' | 'variants'> & {
  purpose: ImagePurpose;
};

type Made = Pick<DueImage, 'width' | 'height' | 'placeholder'> & { pictures: WebpImage[] };

interface Parts {
  database: Database;
  objects: ObjectStorage;
  usage: UsageCounter;
  /** True if no upload is converted or waits. */
  isIdle(): boolean;
  log: Log;
}

export function createVariants(sizes: ImageSizes, { database, objects, usage, isIdle, log }: Parts) {
  const converter = createConverter({ cores: 1 });
  const widthsFor = (purpose: ImagePurpose) => sizes[purpose].join(',');

  /** Ranges of the index: no row that is up to date is read. */
  const due = (tables: ReadTables) =>
    tables
      .selectFrom('uploads')
      .where((is) =>
        is.or(
          imagePurposes.flatMap((purpose) => {
            const current = widthsFor(purpose);
            return [
              is('variants_for', 'is', null),
              is('variants_for', '<', current),
              is('variants_for', '>', current),
            ].map((differs) => is.and([is('purpose', '=', purpose), differs]));
          }),
        ),
      )
      .where('state', 'in', stored);

  const waiting = (): Promise<number> => database.query((tables) => countUpTo(tables, due(tables)));
  const waitingKeys = async (most: number): Promise<string[]> => {
    const rows = await database.query((tables) => due(tables).select('object_key as key').limit(most).execute());
    return rows.map(({ key }) => key);
  };

  gauges(async () => ({ account_images_without_variants: await waiting() }));
  for (const outcome of ['made', 'skipped', 'deleted']) count('account_image_variants_total', { outcome }, 0);

  const leaseEnd = sql<number>`${database.now} + ${LEASE_MS}`;

  const lease = async (tables: Pick<AllTables, 'updateTable'>, images: DueImage[], isRenewed = false) => {
    await tables
      .updateTable('uploads')
      .set({ variants_until: leaseEnd })
      .where(
        'object_key',
        'in',
        images.map(({ objectKey }) => objectKey),
      )
      .$if(isRenewed, (uploads) => uploads.where('variants_until', 'is not', null))
      .execute();
  };

  const leases: Leases<DueImage> = {
    leaseMs: LEASE_MS,

    take: (most) =>
      database.change(async (tables) => {
        const images = (await due(tables)
          .select(['object_key as objectKey', 'user_id as userId', 'purpose', 'size'])
          .select(['width', 'height', 'placeholder', 'variants'])
          .where(sql<boolean>`(variants_until is null or variants_until <= ${database.now})`)
          .limit(most)
          .modifyEnd(database.skipLocked)
          .execute()) as DueImage[];
        if (images.length > 0) await lease(tables, images);
        return images;
      }),

    renew: (images) => database.write(async (tables) => lease(tables, images, true)),
  };

  /** Changes the row of an image that is stored. Resolves to false if it is being deleted. */
  const change = ({ objectKey, userId }: DueImage, work: (row: Upload, tables: AllTables) => Promise<void>) =>
    database.transaction(async (em, tables) => {
      const row = await em.findOne(Upload, { objectKey }, { lockMode: LockMode.PESSIMISTIC_WRITE });
      if (!row || !stored.some((state) => state === row.state)) return false;
      await work(row, tables);
      return true;
    }, userId);

  /** Undefined if there is no picture to make others from; the log says why. */
  const derive = async ({ objectKey, size }: DueImage, widths: readonly number[]): Promise<Made | undefined> => {
    const found = await objects.find(objectKey, Number(size));
    if (!found) {
      log.warn({ key: objectKey }, 'an image is missing in the storage');
      return undefined;
    }
    try {
      const { variants, ...described } = await converter.derive(found.start, widths);
      return { ...described, pictures: variants };
    } catch (err) {
      if (!(err instanceof ServiceError) || err.code !== 'VALIDATION_FAILED') throw err;
      log.warn({ key: objectKey, err }, 'a stored image cannot be read');
      return undefined;
    }
  };

  /** An object of this size is the same: it was stored before a crash. */
  const put = async (key: string, bytes: Buffer): Promise<void> => {
    const found = await objects.find(key, 0);
    if (found?.size === bytes.length) return;
    if (found) await objects.delete(key);
    await objects.put(key, bytes, 'image/webp');
  };

  /** Declares the objects and stores them. Resolves to false if the image is being deleted. */
  const store = async (image: DueImage, pictures: WebpImage[]): Promise<boolean> => {
    const { objectKey } = image;
    const rows = pictures.map((each) => ({ object_key: variantKey(objectKey, each), upload_key: objectKey }));
    const isDeclared = await change(image, async (_row, tables) => {
      await lease(tables, [image]);
      for (const { object_key, upload_key } of rows) {
        await sql`insert ${database.orIgnore} into upload_variants (object_key, upload_key) values (${object_key}, ${upload_key})`.execute(
          tables,
        );
      }
    });
    if (!isDeclared) return false;
    const outcomes = await Promise.allSettled(
      pictures.map((picture) => put(variantKey(objectKey, picture), picture.bytes)),
    );
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    return true;
  };

  /** From here on the new variants are listed and counted, and the former ones are not. */
  const record = (image: DueImage, made: Omit<Made, 'pictures'>, variants: Variant[]): Promise<boolean> =>
    change(image, async (row, tables) => {
      const variantsSize = variants.reduce((sum, { bytes }) => sum + bytes, 0);
      await usage.grow(tables, { userId: row.userId, bytes: variantsSize - Number(row.variantsSize) });
      const { width, height, placeholder } = made;
      Object.assign(row, { width, height, placeholder, variants: storedVariants(variants), variantsSize });
    });

  /**
   * Deletes objects that are listed no longer, and those of a process that ended before it could list them. A variant that a
   * profile shows stays, with its row, until its image is deleted or the widths change again.
   */
  const deleteOthers = async (objectKey: string, variants: readonly Variant[]): Promise<void> => {
    const rows = await database.query((tables) =>
      tables.selectFrom('upload_variants').select('object_key as key').where('upload_key', '=', objectKey).execute(),
    );
    const listed = new Set(variants.map((variant) => variantKey(objectKey, variant)));
    const others: string[] = [];
    for (const { key } of rows)
      if (!listed.has(key) && !(await database.query((tables) => isShown(tables, objects, key)))) others.push(key);
    if (others.length === 0) return;
    await Promise.all(others.map((key) => objects.delete(key)));
    await database.write((tables) => tables.deleteFrom('upload_variants').where('object_key', 'in', others).execute());
  };

  /** Profiles that show the image. A change to it waits for our transaction, and then finds the variants itself. */
  const updateProfiles = async (objectKey: string, variants: readonly Variant[]): Promise<void> => {
    const stored = storedAvatarVariants(objectKey, storedVariants(variants));
    await database.write((tables) => setAvatarVariants(tables, objects, objectKey, stored));
  };

  const finish = async (objectKey: string, purpose: ImagePurpose): Promise<void> => {
    await database.write((tables) =>
      tables
        .updateTable('uploads')
        .set({ variants_for: widthsFor(purpose), variants_until: null })
        .where('object_key', '=', objectKey)
        .execute(),
    );
  };

  /** Deletes objects of images that the version before has deleted. Reads a range of an index, which is mostly empty. */
  const sweep = async (): Promise<void> => {
    const rows = await database.query((tables) =>
      tables
        .selectFrom('upload_variants')
        .select('object_key as key')
        .where('upload_key', 'is', null)
        .limit(MAX_SWEPT)
        .execute(),
    );
    if (rows.length === 0) return;
    const keys = rows.map(({ key }) => key);
    await Promise.all(keys.map((key) => objects.delete(key)));
    await database.write((tables) => tables.deleteFrom('upload_variants').where('object_key', 'in', keys).execute());
    if (rows.length === MAX_SWEPT) await sweep();
  };

  const make = async (image: DueImage): Promise<void> => {
    const { objectKey, purpose, width, placeholder } = image;
    const widths = sizes[purpose];
    const kept = variantsIn(image.variants).filter((variant) => widths.includes(variant.width));
    const missing = widths.filter((each) => each < (width ?? Infinity) && !kept.some((has) => has.width === each));
    const isComplete = placeholder !== null && missing.length === 0;
    const made = isComplete ? undefined : await derive(image, missing);
    const pictures = made?.pictures ?? [];
    const variants = [...kept, ...pictures.map(toVariant)].sort((a, b) => a.width - b.width);
    const isMade =
      (await store(image, pictures)) &&
      (await record(image, { ...image, ...(placeholder === null && made) }, variants));
    // After the lease of a process that was stopped for long, the row may be gone.
    if (!isMade) await Promise.all(pictures.map((picture) => objects.delete(variantKey(objectKey, picture))));
    else {
      await updateProfiles(objectKey, variants);
      await deleteOthers(objectKey, variants);
    }
    await finish(objectKey, purpose);
    count('account_image_variants_total', { outcome: isMade ? (isComplete || made ? 'made' : 'skipped') : 'deleted' });
  };

  let nextLook = 0;

  const worker = createWorker<DueImage>({
    name: 'variants',
    atOnce: 1,
    leases: {
      ...leases,
      async take(most) {
        if (Date.now() < nextLook || !isIdle()) return [];
        const images = await leases.take(most);
        if (images.length > 0) return images;
        await sweep();
        // Some may be leased by a process that was killed, or that found no storage.
        nextLook = Date.now() + ((await waitingKeys(1)).length > 0 ? LEASE_MS : LOOK_EVERY_MS);
        return images;
      },
    },
    work: make,
    log,
  });

  return {
    start: worker.start,
    stop: worker.stop,
    /** The number of images that wait for their variants. */
    waiting,
    /** The keys of some of them, at most `most`. */
    waitingKeys,
    take: leases.take,
    renew: leases.renew,
    sweep,
    /** Makes the variants of a leased image. Rejects if the storage or the database does not respond. */
    make,
  };
}

export type Variants = ReturnType<typeof createVariants>;
