/**
 * The events without a number, in the index that begins with it. During a long snapshot, such as a backup, that index
 * still has the places of all events that were numbered meanwhile: so most looks are at recent events only, and what
 * committed later is found by a look at all.
 */
import { type AllTables, type Database, type ReadTables, sql } from '../parts/database/contract.ts';
import { isKnownKind, publicKinds, typeOf } from './catalogue.ts';

/** The maximum number of events that one transaction numbers. */
const MAX_NUMBERED = 500;
/** Longer than a transaction of the service takes. */
const RECENT_MS = 5000;
/** The pause between two looks at all events. */
const ALL_EVERY_MS = 1000;
/** The pause is at least so many times the look. */
const ALL_PAUSE_FACTOR = 20;

/** Instead of a number: an internal event, and one of a newer release, which a newer sequencer numbers. */
const INTERNAL = 0;
const UNKNOWN = -1;

export const createUnnumbered = (database: Database) => {
  /** By the database's clock: where recent events begin. */
  let recentSince = 0;
  /** By `performance.now()`. */
  let looksAtAllAt = 0;
  /** Less after a failure: with many webhooks a transaction may not meet its deadline. */
  let most = MAX_NUMBERED;

  const waiting = (tables: ReadTables, since: number) =>
    tables.selectFrom('activity').where('number', 'is', null).where('created_at', '>=', since);

  const adoptSome = (): Promise<number> =>
    database.change(async (tables) => {
      const found = await tables
        .selectFrom('activity')
        .select('id')
        .where('number', '=', UNKNOWN)
        .where('kind', 'in', publicKinds)
        .limit(MAX_NUMBERED)
        .execute();
      const ids = found.map(({ id }) => id);
      if (ids.length > 0) await tables.updateTable('activity').set({ number: null }).where('id', 'in', ids).execute();
      return ids.length;
    });

  return {
    /** Makes events wait that a sequencer of an older release did not know. */
    async adopt(): Promise<void> {
      while ((await adoptSome()) === MAX_NUMBERED);
      looksAtAllAt = 0;
    },

    /** Looks for events. Resolves to the time to number them from; undefined if none waits. */
    async look(): Promise<number | undefined> {
      const began = performance.now();
      const isAll = began >= looksAtAllAt;
      const since = isAll ? 0 : recentSince;
      const found = await database.query((tables) => waiting(tables, since).select('id').limit(1).executeTakeFirst());
      const end = performance.now();
      if (isAll) looksAtAllAt = end + Math.max(ALL_EVERY_MS, ALL_PAUSE_FACTOR * (end - began));
      return found && since;
    },

    /** Numbers the oldest events since a time, from `from` on. */
    async number(tables: AllTables, { since, from }: { since: number; from: number }): Promise<Numbered> {
      const events = await waiting(tables, since)
        .select(['id', 'kind', 'created_at as createdAt'])
        .orderBy('created_at')
        .orderBy('id')
        .limit(most)
        .execute();
      let next = from;
      const numbers = events.map(({ id, kind }) => {
        if (typeOf(kind) !== undefined) return { id, number: next++ };
        return { id, number: isKnownKind(kind) ? INTERNAL : UNKNOWN };
      });
      if (events.length > 0) await setNumbers(tables, numbers);
      return {
        since,
        count: events.length,
        isFull: events.length === most,
        next,
        newest: Number(events.at(-1)?.createdAt ?? 0),
      };
    },

    /** Call it after the commit. */
    committed({ since, isFull, newest }: Numbered): void {
      recentSince = Math.max(recentSince, newest - RECENT_MS);
      if (since === 0 && isFull) looksAtAllAt = 0;
      most = Math.min(most + (most >> 3) + 1, MAX_NUMBERED);
    },

    /** Call it if the transaction fails. */
    failed(): void {
      most = Math.max(1, most >> 2);
    },
  };
};

/**
 * What a transaction has numbered. `isFull`: more may wait. `next` is the next number, `newest` the time of its last
 * event.
 */
export interface Numbered {
  since: number;
  count: number;
  isFull: boolean;
  next: number;
  newest: number;
}

async function setNumbers(tables: AllTables, numbers: readonly { id: string; number: number }[]): Promise<void> {
  const cases = sql.join(
    numbers.map(({ id, number }) => sql`when ${id} then ${sql.lit(number)}`),
    sql` `,
  );
  const ids = sql.join(numbers.map(({ id }) => id));
  await sql`update activity set number = case id ${cases} end where id in (${ids})`.execute(tables);
}
