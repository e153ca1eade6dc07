import { v7 as uuidv7 } from 'uuid';
import type { ActivityEvent } from '../../entities/index.ts';
import { pageById } from '../page-by-id.ts';
import {
  type AllTables,
  columnsOf,
  type Database,
  prepared,
  type ReadTables,
  sql,
  type WriteTables,
} from '../parts/database/contract.ts';
import { deleteInBatches } from '../workers/sweep.ts';
import type { Caller } from './caller.ts';
import { deviceOf } from './devices.ts';
import type { EventKind } from './kinds.ts';

const DAY_MS = 24 * 60 * 60_000;
/** The column's length. */
const LONGEST_ADDRESS = 64;

export interface NewEvent {
  kind: EventKind;
  /** By the names in kinds.ts; as JSON at most 1000 characters. Never a secret. */
  details?: Record<string, string>;
}

const listedFields = ['id', 'kind', 'actor', 'actorId', 'address', 'device', 'createdAt'] as const;
const listedColumns = columnsOf([...listedFields, 'details'] as const);

/** An event as it is shown. `createdAt` in milliseconds since 1970. */
export type ListedEvent = Pick<ActivityEvent, (typeof listedFields)[number]> & {
  details: Record<string, string> | undefined;
};

const toListed = <Row extends { details: string | null }>({ details, ...row }: Row) => ({
  ...row,
  details: details === null ? undefined : (JSON.parse(details) as Record<string, string>),
});

export interface EventPage {
  events: ListedEvent[];
  /** The cursor of the next page; absent on the last one. */
  nextCursor?: string;
}

/**
 * What happens to accounts. An event is inserted in the transaction of the change that it tells of, and nothing updates it;
 * after `keptDays` it is deleted. Its time is the database's; its id, by which events are listed, counted and deleted, has
 * that of this process.
 */
export const createActivity = (database: Database, { keptDays }: { keptDays: number }) => {
  const inserted = prepared();
  const insertOf = (tables: WriteTables, events: Awaited<ReturnType<typeof rowOf>>[]) =>
    tables.insertInto('activity').values(events.map((event) => ({ ...event, created_at: database.now })));

  return {
    /** Inserts an event in the caller's transaction. */
    async record(tables: WriteTables, userId: string, event: NewEvent, caller: Caller): Promise<void> {
      const row = await rowOf(userId, event, caller);
      await inserted(tables, { shape: 'one', build: () => insertOf(tables, [row]), parameters: Object.values(row) });
    },

    /** The same event for each of several users. */
    async recordAll(tables: WriteTables, userIds: readonly string[], event: NewEvent, caller: Caller): Promise<void> {
      // Compiled each time: the statements for all numbers of users would stay in memory.
      await insertOf(tables, await Promise.all(userIds.map((userId) => rowOf(userId, event, caller)))).execute();
    },

    /** Whether the user has `most` events of a kind from the last `withinMs`. */
    async hasMost(
      tables: ReadTables,
      userId: string,
      kind: EventKind,
      { most, withinMs }: { most: number; withinMs: number },
    ): Promise<boolean> {
      const recent = await tables
        .selectFrom('activity')
        .select('id')
        .where('user_id', '=', userId)
        .where('kind', '=', kind)
        .where('id', '>', firstIdOf(Date.now() - withinMs))
        .limit(most)
        .execute();
      return recent.length === most;
    },

    /**
     * The events of a kind with this detail, newest first: those of the last `withinMs` that came after the latest of the
     * kind `since`.
     */
    async recent(
      tables: AllTables,
      userId: string,
      {
        kind,
        detail,
        withinMs,
        since,
      }: { kind: EventKind; detail: readonly [string, string]; withinMs: number; since: EventKind },
    ): Promise<ListedEvent[]> {
      const entry = JSON.stringify(Object.fromEntries([detail])).slice(1, -1);
      const rows = await tables
        .selectFrom('activity')
        .select(listedColumns)
        .where('user_id', '=', userId)
        .where('id', '>', firstIdOf(Date.now() - withinMs))
        .where((eb) => eb.or([eb('kind', '=', since), eb('kind', '=', kind).and('details', 'like', `%${entry}%`)]))
        .orderBy('id', 'desc')
        .execute();
      const end = rows.findIndex((row) => row.kind === since);
      return (end === -1 ? rows : rows.slice(0, end)).map(toListed);
    },

    /** The events of a user, newest first. `cursor` must be the id of one. */
    async list(userId: string, { limit, cursor }: { limit: number; cursor?: string | undefined }): Promise<EventPage> {
      const rows = await database.query((tables) =>
        tables
          .selectFrom('activity')
          .select(listedColumns)
          .where('user_id', '=', userId)
          .$if(cursor !== undefined, (events) => events.where('id', '<', cursor as string))
          .orderBy('id', 'desc')
          .limit(limit + 1)
          .execute(),
      );
      const { page, ...next } = pageById(rows, limit);
      return { events: page.map(toListed), ...next };
    },

    /** Deletes the events of a user who is being removed. */
    removeAllOf: (userId: string): Promise<void> => deleteInBatches(database, 'activity', sql`user_id = ${userId}`),

    /** Deletes old events: a range of the primary key. */
    sweep: (): Promise<void> =>
      deleteInBatches(database, 'activity', sql`id < ${firstIdOf(Date.now() - keptDays * DAY_MS)}`),
  };
};

/** The first id that an event of this time, in milliseconds since 1970, can have. */
const firstIdOf = (msecs: number) => uuidv7({ msecs, seq: 0, random: new Uint8Array(16) });

export type Activity = ReturnType<typeof createActivity>;

/** All but its time. */
const rowOf = async (
  userId: string,
  { kind, details }: NewEvent,
  { actor, actorId, clientAddress, userAgent, requestId }: Caller,
) => ({
  id: uuidv7(),
  user_id: userId,
  kind,
  actor,
  actor_id: actorId ?? null,
  address: clientAddress.slice(0, LONGEST_ADDRESS),
  device: await deviceOf(userAgent),
  request_id: requestId,
  details: details ? JSON.stringify(details) : null,
});
