/*
 * The time of an event is the database's. Its id, which orders, counts and expires events, contains the time of this
 * process.
 */

import { v7 as uuidv7 } from 'uuid';
import type { ActivityEvent } from '../../entities/index.ts';
import { pageById } from '../lib/pagination.ts';
import {
  type AllTables,
  columnsOf,
  type Database,
  type ReadTables,
  sql,
  type WriteTables,
} from '../parts/database/contract.ts';
import { deleteInBatches } from '../workers/sweep.ts';
import { type Acting, backgroundJob, type Caller } from './caller.ts';
import { deviceOf } from './devices.ts';
import type { DetailsOf, EventKind, NewEvent } from './kinds.ts';

export type { NewEvent } from './kinds.ts';

const DAY_MS = 24 * 60 * 60_000;
/** The column's length. */
const MAX_ADDRESS = 64;

/**
 * The topic of a login that was reported by mail (detail `device` is `new`). The topic of any other event is its kind.
 */
export const TOLD_LOGIN = 'logged-in:new';
const LOGIN = 'logged-in' satisfies EventKind;

/** The one event that outlives its user. */
const REMOVED = 'user-removed' satisfies EventKind;

const listedFields = ['id', 'kind', 'actor', 'actorId', 'address', 'device', 'createdAt'] as const;
const listedColumns = columnsOf([...listedFields, 'details'] as const);

/** A column that says where the actor was; empty for the account's user if another actor did it. */
export const ownColumn = <Column extends 'address' | 'device'>(column: Column) =>
  sql<string>`case when actor = 'user' or actor_id = user_id then ${sql.ref(column)} else '' end`.as(column);

type Viewer = 'user' | 'administrator';
type ShownColumn =
  | (typeof listedColumns)[number]
  | ReturnType<typeof ownColumn<'address'>>
  | ReturnType<typeof ownColumn<'device'>>;
const columnsShownTo: Record<Viewer, readonly ShownColumn[]> = {
  user: [
    ...listedColumns.filter((column) => column !== 'address' && column !== 'device'),
    ownColumn('address'),
    ownColumn('device'),
  ],
  administrator: listedColumns,
};

/** A listed event. `createdAt` is in milliseconds since 1970. */
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
 * The activity log. An event is inserted in the transaction of its change and deleted after `keptDays`; only its number is
 * written later.
 */
export const createActivity = (database: Database, { keptDays }: { keptDays: number }) => {
  const insertOf = (tables: WriteTables, events: Awaited<ReturnType<typeof rowOf>>[]) =>
    tables.insertInto('activity').values(events.map((event) => ({ ...event, created_at: database.now })));

  const record = async (tables: WriteTables, userId: string, event: NewEvent, caller: Caller): Promise<void> => {
    await insertOf(tables, [await rowOf(userId, event, caller)]).execute();
  };

  /** Readers of the stream learn which numbers are gone. */
  const markExpired = async (tables: AllTables, ids: string[]) => {
    const { highest } = await tables
      .selectFrom('activity')
      .select((event) => event.fn.max('number').as('highest'))
      .where('id', 'in', ids)
      .executeTakeFirstOrThrow();
    if (!highest) return;
    await tables
      .updateTable('event_sequence')
      .set({ expired_number: highest })
      .where('expired_number', '<', highest)
      .execute();
  };

  /** Deletes by the primary key, so that a worker's locks are not waited for. */
  const deleteDeliveries = async (tables: AllTables, eventId: string) => {
    const webhooks = await tables.selectFrom('webhooks').select('id').execute();
    if (webhooks.length === 0) return;
    const ids = webhooks.map(({ id }) => id);
    await tables
      .deleteFrom('webhook_deliveries')
      .where('webhook_id', 'in', ids)
      .where('event_id', '=', eventId)
      .execute();
  };

  return {
    /** Inserts an event in the caller's transaction. */
    record,

    /** The same event for each of several users. */
    async recordAll(tables: WriteTables, userIds: readonly string[], event: NewEvent, caller: Caller): Promise<void> {
      await insertOf(tables, await Promise.all(userIds.map((userId) => rowOf(userId, event, caller)))).execute();
    },

    /**
     * Deletes the user's latest event of a kind, and its deliveries, if it is of the same actor. Resolves to its details.
     */
    async takeLatest<Kind extends EventKind>(
      tables: AllTables,
      userId: string,
      kind: Kind,
      { actor, actorId }: Acting,
    ): Promise<DetailsOf<Kind> | undefined> {
      const latest = await tables
        .selectFrom('activity')
        .select(['id', 'details', 'actor', 'actor_id as actorId'])
        .where('user_id', '=', userId)
        .where('topic', '=', kind)
        .orderBy('id', 'desc')
        .limit(1)
        .executeTakeFirst();
      if (!latest || latest.actor !== actor || latest.actorId !== (actorId ?? null)) return undefined;
      await tables.deleteFrom('activity').where('id', '=', latest.id).execute();
      // Also those of a sequencer for which the deletion waited.
      await deleteDeliveries(tables, latest.id);
      return JSON.parse(latest.details ?? '{}') as DetailsOf<Kind>;
    },

    /**
     * True if the user has `most` events of a kind, or of a kind with these details, in the last `withinMs`. Logins that were
     * reported by mail are a kind of their own. `isUntrusted`: without the access of trusted applications, which is not mailed.
     */
    async hasMost(
      tables: ReadTables,
      userId: string,
      kind: EventKind | typeof TOLD_LOGIN,
      {
        most,
        withinMs,
        details,
        isUntrusted = false,
      }: { most: number; withinMs: number; details?: object; isUntrusted?: boolean },
    ): Promise<boolean> {
      const recent = await tables
        .selectFrom('activity')
        .select('id')
        .where('user_id', '=', userId)
        .where('topic', '=', kind)
        .where('id', '>', firstIdOf(Date.now() - withinMs))
        .$if(details !== undefined, (rows) => rows.where('details', '=', JSON.stringify(details)))
        .$if(isUntrusted, (rows) => rows.where(sql<boolean>`coalesce(details, '') not like ${'%,"trusted":"true"}'}`))
        .limit(most)
        .execute();
      return recent.length === most;
    },

    /**
     * Logins reported by mail, at most `most` of them in this order of time: those after `from` (milliseconds since 1970)
     * and after the latest event of the kinds `since`.
     */
    async toldLogins(
      tables: AllTables,
      userId: string,
      {
        from,
        since,
        most,
        order = 'desc',
      }: { from: number; since: readonly EventKind[]; most?: number | undefined; order?: 'asc' | 'desc' | undefined },
    ): Promise<ListedEvent[]> {
      const first = firstIdOf(Math.max(from, 0));
      // One index lookup per kind, however many events there are.
      const ends = await tables
        .selectNoFrom((eb) =>
          since.map((kind) =>
            eb
              .selectFrom('activity')
              .select((activity) => activity.fn.max('id').as('id'))
              .where('user_id', '=', userId)
              .where('topic', '=', kind)
              .where('id', '>', first)
              .as(kind),
          ),
        )
        .executeTakeFirstOrThrow();
      const end = Object.values<string | null>(ends).reduce<string>(
        (latest, id) => (id && id > latest ? id : latest),
        first,
      );
      const logins = tables
        .selectFrom('activity')
        .select(listedColumns)
        .where('user_id', '=', userId)
        .where('topic', '=', TOLD_LOGIN)
        .where('id', '>', end)
        .orderBy('id', order)
        .$if(most !== undefined, (rows) => rows.limit(most as number));
      return (await logins.execute()).map(toListed);
    },

    /**
     * The time of each user's latest login in milliseconds since 1970, if it is still stored. One index lookup for each
     * topic and user: in a subquery with an order MySQL reads the log of everyone.
     */
    async latestLogins(tables: ReadTables, userIds: readonly string[]): Promise<Map<string, number>> {
      if (userIds.length === 0) return new Map();
      const found: Record<string, string | null> = await tables
        .selectNoFrom((eb) =>
          userIds.flatMap((userId, user) =>
            [LOGIN, TOLD_LOGIN].map((topic, kind) =>
              eb
                .selectFrom('activity')
                .select((activity) => activity.fn.max('id').as('id'))
                .where('user_id', '=', userId)
                .where('topic', '=', topic)
                .as(`${kind}_${user}`),
            ),
          ),
        )
        .executeTakeFirstOrThrow();
      const latest = userIds.map((userId, user) => {
        const ids = [found[`0_${user}`], found[`1_${user}`]].filter((id) => typeof id === 'string');
        return [userId, ids.sort().at(-1)] as const;
      });
      return new Map(latest.flatMap(([userId, id]) => (id === undefined ? [] : [[userId, timeOfId(id)]])));
    },

    /**
     * The events of a user, newest first. `cursor` must be an event's id. Hides from the user where an administrator,
     * operator or service was.
     */
    async list(
      userId: string,
      { limit, cursor }: { limit: number; cursor?: string | undefined },
      viewer: Viewer,
    ): Promise<EventPage> {
      const rows = await database.query((tables) =>
        tables
          .selectFrom('activity')
          .select(columnsShownTo[viewer])
          .where('user_id', '=', userId)
          .$if(cursor !== undefined, (events) => events.where('id', '<', cursor as string))
          .orderBy('id', 'desc')
          .limit(limit + 1)
          .execute(),
      );
      const { page, ...next } = pageById(rows, limit);
      return { events: page.map(toListed), ...next };
    },

    /** Deletes the events of a user who is being removed, except that of the completed removal. */
    removeAllOf: (userId: string): Promise<void> =>
      deleteInBatches(database, 'activity', sql`user_id = ${userId} and kind <> ${REMOVED}`),

    /** Records that a user was removed, in the transaction that completes the removal. */
    recordRemoved: (tables: WriteTables, userId: string): Promise<void> =>
      record(tables, userId, { kind: REMOVED }, backgroundJob),

    /** Deletes old events: a range of the primary key. */
    sweep: (): Promise<void> =>
      deleteInBatches(database, 'activity', sql`id < ${firstIdOf(Date.now() - keptDays * DAY_MS)}`, markExpired),
  };
};

/** The time in a UUIDv7. */
const timeOfId = (id: string): number => Number.parseInt(id.replace('-', '').slice(0, 12), 16);

/** The lowest event id of a time in milliseconds since 1970. */
export const firstIdOf = (msecs: number) => uuidv7({ msecs, seq: 0, random: new Uint8Array(16) });

export type Activity = ReturnType<typeof createActivity>;

/** The row without its time. The JSON of the details has at most 1000 characters. */
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
  address: clientAddress.slice(0, MAX_ADDRESS),
  device: await deviceOf(userAgent),
  request_id: requestId,
  details: details ? JSON.stringify(details) : null,
});
