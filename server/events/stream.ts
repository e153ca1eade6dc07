import { ServiceError } from '../errors.ts';
import { columnsOf, type Database, type ReadTables, sql } from '../parts/database/contract.ts';
import type { EventType } from '../shared/event-types.ts';
import { kindsOf, type NumberedEvent, type PublicEvent, toPublicEvent } from './catalogue.ts';

/** A read by type looks at this many numbers at once, so that each statement meets its deadline. */
const MAX_SPAN = 10_000;
/** A page ends after this time, also without an event: the reader continues at `next`. */
const MAX_PAGE_MS = 1000;

const columns = columnsOf(['id', 'number', 'kind', 'userId', 'actor', 'details', 'createdAt'] as const);

/** The part of the stream to read. */
export interface StreamQuery {
  /** The last number that the reader has read; 0 begins with the oldest event that is kept. */
  after: number;
  limit: number;
  /** All types by default. */
  types?: readonly EventType[] | undefined;
}

export interface StreamPage {
  events: PublicEvent[];
  /** The number to read after next: everything up to it was read, or is of other types. */
  next: number;
  /** The last number of the stream. */
  last: number;
}

/** Reads numbered events. A reader that has seen a number never sees a smaller one appear later. */
export const createStream = (database: Database) => {
  /** The last number, and the highest one that was deleted for its age. */
  const ends = () =>
    database.query(async (tables) => {
      const row = await tables
        .selectFrom('event_sequence')
        .select(['last_number as last', 'expired_number as expired'])
        .where('id', '=', 1)
        .executeTakeFirstOrThrow();
      return { last: Number(row.last), expired: Number(row.expired) };
    });

  const select = (tables: ReadTables, { from, to, limit, types }: Span) =>
    tables
      .selectFrom('activity')
      .select(columns)
      .where('number', '>', from)
      .where('number', '<=', to)
      .$if(types !== undefined, (rows) => rows.where('kind', 'in', (types ?? []).flatMap(kindsOf)))
      .orderBy('number')
      .limit(limit)
      .execute() as Promise<NumberedEvent[]>;

  const page = async ({ after, limit, types }: StreamQuery): Promise<StreamPage> => {
    const { last, expired } = await ends();
    // A number that was never given: the database was restored from an older backup.
    if ((after > 0 && after < expired) || after > last) throw new ServiceError('EVENTS_EXPIRED');
    const events: PublicEvent[] = [];
    let next = Math.max(after, expired);
    const end = performance.now() + MAX_PAGE_MS;
    while (next < last && events.length < limit && performance.now() < end) {
      const to = types === undefined ? last : Math.min(next + MAX_SPAN, last);
      const span = { from: next, to, limit: limit - events.length, types };
      const rows = await database.query((tables) => select(tables, span));
      events.push(...rows.map(toPublicEvent).filter((event) => event !== undefined));
      next = rows.length === span.limit ? (rows.at(-1)?.number ?? to) : to;
    }
    return { events, next, last };
  };

  return {
    page,

    /** Events by their ids; internal and deleted ones are left out. */
    async byIds(ids: readonly string[]): Promise<PublicEvent[]> {
      const rows = await database.query((tables) =>
        tables.selectFrom('activity').select(columns).where('id', 'in', ids).where('number', '>', 0).execute(),
      );
      return (rows as NumberedEvent[]).map(toPublicEvent).filter((event) => event !== undefined);
    },

    lastNumber: async (): Promise<number> => (await ends()).last,

    /** The age in milliseconds of the oldest event without a number; 0 without one. */
    async lagMs(): Promise<number> {
      const row = await database.query((tables) =>
        tables
          .selectFrom('activity')
          .select(sql<number>`${database.now} - created_at`.as('ageMs'))
          .where('number', 'is', null)
          .orderBy('created_at')
          .limit(1)
          .executeTakeFirst(),
      );
      return Math.max(0, Number(row?.ageMs ?? 0));
    },
  };
};

interface Span extends Pick<StreamQuery, 'limit' | 'types'> {
  from: number;
  to: number;
}

export type Stream = ReturnType<typeof createStream>;
