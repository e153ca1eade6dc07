import type { UploadPurpose } from '../../entities/index.ts';
import { inBatches } from '../batches.ts';
import { type AllTables, type Database, prepared, sql } from '../parts/database/contract.ts';
import { QuotaExceeded, type UsageCounter } from './usage.ts';

/** The most reservations of one transaction. */
const MOST_AT_ONCE = 50;
/** A transaction of reservations may hang: those after it wait no longer. */
const GATHER_MS = 50;

export interface Reservation {
  objectKey: string;
  userId: string;
  purpose: UploadPurpose;
  contentType: string;
  size: number;
  /** How long the object may take to arrive, and how much later it is inspected. */
  lifeMs: number;
  marginMs: number;
}

/**
 * Writes the row of an upload before anything can be stored under its key: whatever happens then, the row leads to the
 * object. Rejects with QuotaExceeded, and writes nothing, where the user would keep more than the quota.
 */
export function createReservations(database: Database, usage: UsageCounter): (wanted: Reservation) => Promise<void> {
  const inserted = prepared();
  const insert = async (tables: AllTables, reservations: readonly Reservation[]): Promise<void> => {
    const rows = reservations.map(({ objectKey, userId, purpose, contentType, size, lifeMs, marginMs }) => ({
      object_key: objectKey,
      user_id: userId,
      purpose,
      content_type: contentType,
      size,
      state: 'expected' as const,
      expires_at: lifeMs,
      due_at: lifeMs + marginMs,
    }));
    const fromNow = (ms: number) => sql<number>`${database.now} + ${ms}`;
    await inserted(tables, {
      shape: rows.length,
      build: () =>
        tables.insertInto('uploads').values(
          rows.map((row) => ({
            ...row,
            expires_at: fromNow(row.expires_at),
            due_at: fromNow(row.due_at),
            created_at: database.now,
          })),
        ),
      parameters: rows.flatMap((row) => Object.values(row)),
    });
  };

  /**
   * Reservations in one transaction: those that come while others are being made. It takes the counters that it can lock
   * at once: it waits for no other transaction, so none of its users waits for another's. Answers false for a user whose
   * counter it could not lock.
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
    { most: MOST_AT_ONCE, gatherMs: GATHER_MS },
  );

  /** Waits its turn for the user's counter, which it makes where there is none. */
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
