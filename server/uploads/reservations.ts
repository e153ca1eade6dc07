import { type Scan, storedVariants, type UploadPurpose, type Variant, variantKey } from '../../entities/index.ts';
import { inBatches } from '../lib/batch-loader.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';
import { pendingKeyOf } from './names.ts';
import { FIRST_LOOK_MS } from './schedule.ts';
import { QuotaExceeded, type UsageCounter } from './usage.ts';

/** The maximum number of reservations in one transaction. */
const MAX_AT_ONCE = 50;
/** The maximum wait for a transaction of reservations that hangs. */
const GATHER_MS = 50;

/** What the row of an image describes beside the object itself. */
export interface Picture {
  width: number;
  height: number;
  placeholder: string;
  variants: Variant[];
  /** The widths that the variants were made for. */
  madeFor: string;
}

export interface Reservation {
  objectKey: string;
  userId: string;
  purpose: UploadPurpose;
  contentType: string;
  size: number;
  /** Only of an image. */
  picture?: Picture;
  /** How long the object may take to arrive, and the delay of its inspection. */
  lifeMs: number;
  marginMs: number;
  /** `due`: the object is sent to its pending key, and is stored only after a scan. Otherwise the result of one before. */
  scan?: Scan | null | undefined;
  /** True if the service copies the object: no client may send it. */
  isCopy?: boolean;
}

/**
 * Writes the row of an upload before anything can be stored under its key, so that every object has a row. Rejects with
 * QuotaExceeded, without a row, above the quota.
 */
export function createReservations(database: Database, usage: UsageCounter): (wanted: Reservation) => Promise<void> {
  const insert = async (tables: AllTables, reservations: readonly Reservation[]): Promise<void> => {
    const fromNow = (ms: number) => sql<number>`${database.now} + ${ms}`;
    const rows = reservations.map(({ objectKey, userId, purpose, contentType, size, picture, ...reserved }) => ({
      object_key: objectKey,
      user_id: userId,
      purpose,
      content_type: contentType,
      size,
      state: reserved.scan === 'due' ? ('pending' as const) : ('expected' as const),
      created_at: database.now,
      expires_at: fromNow(reserved.lifeMs),
      due_at: fromNow(reserved.scan === 'due' ? FIRST_LOOK_MS : reserved.lifeMs + reserved.marginMs),
      width: picture?.width ?? null,
      height: picture?.height ?? null,
      placeholder: picture?.placeholder ?? null,
      variants: picture ? storedVariants(picture.variants) : null,
      variants_size: sizeOf(picture?.variants),
      variants_for: picture?.madeFor ?? null,
      variants_until: reserved.isCopy ? fromNow(reserved.lifeMs) : null,
      scan: reserved.scan ?? null,
    }));
    await tables.insertInto('uploads').values(rows).execute();
    const beside = reservations.flatMap(({ objectKey, picture, scan }) =>
      [
        ...(picture?.variants ?? []).map((variant) => variantKey(objectKey, variant)),
        ...(scan === 'due' ? [pendingKeyOf(objectKey)] : []),
      ].map((key) => ({ object_key: key, upload_key: objectKey })),
    );
    if (beside.length > 0) await tables.insertInto('upload_variants').values(beside).execute();
  };

  /**
   * Writes the reservations that gathered during the transaction before in one transaction. Skips counters that others
   * hold, so no user waits for another; returns false for those users.
   */
  const reserveTogether = inBatches(
    (wanted: readonly Reservation[]): Promise<(boolean | QuotaExceeded)[]> =>
      database.change(async (tables) => {
        const room = await usage.lock(tables, [...new Set(wanted.map(({ userId }) => userId))]);
        const outcomes = wanted.map((reservation) => {
          const left = room.get(reservation.userId);
          if (left === undefined) return false;
          const bytes = bytesOf(reservation);
          if (left < bytes) return new QuotaExceeded();
          room.set(reservation.userId, left - bytes);
          return true;
        });
        const reserved = wanted.filter((_, i) => outcomes[i] === true);
        if (reserved.length > 0) {
          await insert(tables, reserved);
          await usage.add(tables, reserved.map(toFile));
        }
        return outcomes;
      }),
    { most: MAX_AT_ONCE, gatherMs: GATHER_MS },
  );

  /** Waits for the lock of the user's counter; creates a missing counter. */
  const reserveAlone = async (wanted: Reservation): Promise<void> => {
    await usage.prepare(wanted.userId);
    await database.change(async (tables) => {
      await insert(tables, [wanted]);
      // Last, so that a user's reservations wait for each other no longer than a commit takes.
      await usage.addWithin(tables, toFile(wanted));
    }, wanted.userId);
  };

  return async (wanted) => {
    if (!(await reserveTogether(wanted))) await reserveAlone(wanted);
  };
}

const sizeOf = (variants: readonly Variant[] = []): number => variants.reduce((sum, { bytes }) => sum + bytes, 0);

/** The bytes of all objects of an upload. */
export const bytesOf = ({ size, picture }: Pick<Reservation, 'size' | 'picture'>): number =>
  size + sizeOf(picture?.variants);

const toFile = (reservation: Reservation) => ({ userId: reservation.userId, bytes: bytesOf(reservation) });
