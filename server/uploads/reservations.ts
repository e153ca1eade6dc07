import type { UploadPurpose } from '../../entities/index.ts';
import { inBatches } from '../lib/batch-loader.ts';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';
import { QuotaExceeded, type UsageCounter } from './usage.ts';

/** The maximum number of reservations in one transaction. */
const MAX_AT_ONCE = 50;
/** The maximum wait for a transaction of reservations that hangs. */
const GATHER_MS = 50;

export interface Reservation {
  objectKey: string;
  userId: string;
  purpose: UploadPurpose;
  contentType: string;
  size: number;
  /** How long the object may take to arrive, and the delay of its inspection. */
  lifeMs: number;
  marginMs: number;
}

/**
 * Writes the row of an upload before anything can be stored under its key, so that every object has a row. Rejects with
 * QuotaExceeded, without a row, above the quota.
 */
export function createReservations(database: Database, usage: UsageCounter): (wanted: Reservation) => Promise<void> {
  const insert = async (tables: AllTables, reservations: readonly Reservation[]): Promise<void> => {
    const fromNow = (ms: number) => sql<number>`${database.now} + ${ms}`;
    const rows = reservations.map(({ objectKey, userId, purpose, contentType, size, lifeMs, marginMs }) => ({
      object_key: objectKey,
      user_id: userId,
      purpose,
      content_type: contentType,
      size,
      state: 'expected' as const,
      created_at: database.now,
      expires_at: fromNow(lifeMs),
      due_at: fromNow(lifeMs + marginMs),
    }));
    await tables.insertInto('uploads').values(rows).execute();
  };

  /**
   * Writes the reservations that gathered during the transaction before in one transaction. Skips counters that others
   * hold, so no user waits for another; returns false for those users.
   */
  const reserveTogether = inBatches(
    (wanted: readonly Reservation[]): Promise<(boolean | QuotaExceeded)[]> =>
      database.change(async (tables) => {
        const room = await usage.lock(tables, [...new Set(wanted.map(({ userId }) => userId))]);
        const outcomes = wanted.map(({ userId, size }) => {
          const left = room.get(userId);
          if (left === undefined) return false;
          if (left < size) return new QuotaExceeded();
          room.set(userId, left - size);
          return true;
        });
        const reserved = wanted.filter((_, i) => outcomes[i] === true);
        if (reserved.length > 0) {
          await insert(tables, reserved);
          await usage.add(tables, reserved);
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
      await usage.addWithin(tables, wanted);
    }, wanted.userId);
  };

  return async (wanted) => {
    if (!(await reserveTogether(wanted))) await reserveAlone(wanted);
  };
}
