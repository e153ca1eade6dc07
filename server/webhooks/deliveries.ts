import type { RawBuilder } from 'kysely';
import type { DeliveryState, WebhookDelivery } from '../../entities/index.ts';
import { firstIdOf } from '../activity/index.ts';
import { publicKinds, typeOf } from '../events/catalogue.ts';
import { pageById } from '../lib/pagination.ts';
import { type AllTables, columnsOf, type Database, sql, type WriteTables } from '../parts/database/contract.ts';
import type { SendError } from '../parts/webhook-sender/contract.ts';
import { KEPT_MS } from './schedule.ts';

/** The maximum number of rows that are read at once to find deliveries that may be tried. */
const WINDOW = 64;
/** The maximum number of earlier deliveries that are read with them: other users wait for the next look. */
const PENDING_AT_ONCE = 16 * WINDOW;
/** The maximum number of deliveries of a user that one statement postpones. */
const POSTPONED_AT_ONCE = 500;
const BATCH = 1000;
/** The maximum number of events in one statement of `queueSince`. */
const EVENTS_AT_ONCE = 5000;
/** The maximum difference between the clock of a process (ids of events) and that of the database (`created_at`). */
const MAX_SKEW_MS = 5 * 60_000;

const every = sql<boolean>`1 = 1`;

const listedFields = [
  'number',
  'kind',
  'state',
  'attempts',
  'dueAt',
  'status',
  'error',
  'answer',
  'createdAt',
  'triedAt',
] as const;

/** A listed delivery. `id` is that of the event. Times in milliseconds since 1970. */
export type ListedDelivery = {
  [Field in Exclude<(typeof listedFields)[number], 'kind'>]: Exclude<WebhookDelivery[Field], undefined>;
} & { id: string; type: string };

export interface DeliveryPage {
  deliveries: ListedDelivery[];
  /** The cursor of the next page; absent on the last one. */
  nextCursor?: string;
}

/** A delivery that is due. `attempts` are the earlier ones. */
export interface WaitingDelivery {
  eventId: string;
  number: number;
  userId: string;
  attempts: number;
}

/** The outcome of a try. */
export interface Tried {
  delivery: WaitingDelivery;
  state: DeliveryState;
  /** The pause before the next try, if the state is `waiting`. */
  retryInMs?: number | undefined;
  status?: number;
  error?: SendError | 'secret' | 'no-event';
  answer?: string;
  /** Where it was sent. */
  url?: string;
}

/** A webhook, and the kinds of activity that it is told. */
export interface Subscription {
  id: string;
  kinds: readonly string[];
}

/**
 * The rows of `webhook_deliveries`. A later event of a user is not tried while an earlier one waits. When a try fails,
 * the user's other deliveries become due no earlier: so few due rows have to be skipped, however many wait.
 */
export const createDeliveries = (database: Database) => {
  const { now } = database;
  /** One statement for all events that match. Skips deliveries that exist. */
  const insert = async (
    tables: AllTables,
    { id, kinds }: Subscription,
    events: RawBuilder<boolean>,
  ): Promise<number> => {
    if (kinds.length === 0) return 0;
    const { numAffectedRows } = await sql`insert ${database.orIgnore} into webhook_deliveries
      (webhook_id, event_id, number, kind, user_id, state, attempts, due_at, created_at)
      select ${id}, id, number, kind, user_id, 'waiting', 0, ${now}, ${now} from activity
      where ${events} and kind in (${sql.join(kinds)})`.execute(tables);
    return Number(numAffectedRows ?? 0);
  };

  const pendingOf = (tables: Pick<AllTables, 'selectFrom'>, webhookId: string, users: readonly string[]) =>
    tables
      .selectFrom('webhook_deliveries')
      .select(['user_id as userId', 'number', 'due_at as dueAt'])
      .where('user_id', 'in', users)
      .where('webhook_id', '=', webhookId)
      .where('due_at', 'is not', null)
      .where('kind', 'in', publicKinds);

  /** Makes some waiting deliveries of a user due no earlier than `dueAt`. Resolves to whether more may be left. */
  const postpone = async (
    tables: AllTables,
    webhookId: string,
    userId: string,
    dueAt: RawBuilder<number>,
  ): Promise<boolean> => {
    const found = await tables
      .selectFrom('webhook_deliveries')
      .select('event_id as id')
      .where('user_id', '=', userId)
      .where('webhook_id', '=', webhookId)
      .where('due_at', '<', dueAt)
      .limit(POSTPONED_AT_ONCE)
      .execute();
    const ids = found.map(({ id }) => id);
    if (ids.length === 0) return false;
    await tables
      .updateTable('webhook_deliveries')
      .set({ due_at: dueAt })
      .where('webhook_id', '=', webhookId)
      .where('event_id', 'in', ids)
      .where('due_at', '<', dueAt)
      .execute();
    return ids.length === POSTPONED_AT_ONCE;
  };

  /** Makes deliveries new. Resolves to how many. */
  const renew = async (tables: WriteTables, webhookId: string, rows: RawBuilder<boolean>): Promise<number> => {
    const { numUpdatedRows } = await tables
      .updateTable('webhook_deliveries')
      .set({ state: 'waiting', attempts: 0, due_at: now })
      .where('webhook_id', '=', webhookId)
      .where(rows)
      .executeTakeFirstOrThrow();
    return Number(numUpdatedRows);
  };

  const record = async (tables: AllTables, webhookId: string, tried: Tried): Promise<void> => {
    const { delivery, state, retryInMs, status, error, answer } = tried;
    const dueAt = retryInMs === undefined ? undefined : sql<number>`${now} + ${retryInMs}`;
    const { numUpdatedRows } = await tables
      .updateTable('webhook_deliveries')
      .set({
        state,
        attempts: sql`attempts + 1`,
        due_at: dueAt ?? null,
        status: status ?? null,
        error: error ?? null,
        answer: answer ?? null,
        tried_at: now,
      })
      .where('webhook_id', '=', webhookId)
      .where('event_id', '=', delivery.eventId)
      .where('state', '=', 'waiting')
      .executeTakeFirst();
    // Another process, which took over the lease, may have recorded it. The rest is postponed when it is found due.
    if (dueAt && numUpdatedRows > 0n) await postpone(tables, webhookId, delivery.userId, dueAt);
  };

  const deleteInBatches = async (webhookId: string, rows: RawBuilder<boolean>): Promise<void> => {
    const deleteBatch = () =>
      database.change(async (tables) => {
        const found = await tables
          .selectFrom('webhook_deliveries')
          .select('event_id')
          .where('webhook_id', '=', webhookId)
          .where(rows)
          .limit(BATCH)
          .execute();
        const ids = found.map((row) => row.event_id);
        if (ids.length > 0)
          await tables
            .deleteFrom('webhook_deliveries')
            .where('webhook_id', '=', webhookId)
            .where('event_id', 'in', ids)
            .execute();
        return ids.length;
      });
    while ((await deleteBatch()) === BATCH);
  };

  /** The ids of webhooks with deliveries, deleted webhooks too. One index lookup per webhook. */
  const webhookIds = async (): Promise<string[]> => {
    const ids: string[] = [];
    for (;;) {
      const next = await database.query((tables) =>
        tables
          .selectFrom('webhook_deliveries')
          .select('webhook_id as id')
          .where('webhook_id', '>', ids.at(-1) ?? '')
          .orderBy('webhook_id')
          .limit(1)
          .executeTakeFirst(),
      );
      if (!next) return ids;
      ids.push(next.id);
    }
  };

  return {
    /** Inserts the deliveries of events since a time, by their numbers, in the caller's transaction. */
    insert: (
      tables: AllTables,
      subscription: Subscription,
      { from, to, since }: { from: number; to: number; since: number },
    ): Promise<number> =>
      insert(tables, subscription, sql`number between ${from} and ${to} and created_at >= ${since}`),

    /**
     * Queues the events since a time that are numbered up to `last`. Without `again` those that have no delivery; else
     * all, whatever their outcome. Resolves to how many.
     */
    async queueSince(
      subscription: Subscription,
      { since, last, again = false }: { since: number; last: number; again?: boolean },
    ): Promise<number> {
      let queued = 0;
      let after: string | undefined = firstIdOf(Math.max(since - MAX_SKEW_MS, 0));
      while (after !== undefined) {
        const from: string = after;
        const to = await database.query((tables) =>
          tables
            .selectFrom('activity')
            .select('id')
            .where('id', '>', from)
            .orderBy('id')
            .offset(EVENTS_AT_ONCE - 1)
            .limit(1)
            .executeTakeFirst(),
        );
        const within = (id: string) =>
          sql<boolean>`created_at >= ${since} and ${sql.ref(id)} > ${from} and ${to ? sql`${sql.ref(id)} <= ${to.id}` : sql`1 = 1`}`;
        queued += await database.change(async (tables) => {
          const renewed = again ? await renew(tables, subscription.id, within('event_id')) : 0;
          // An expression, not the column: SQLite would take the index of the numbers, and read the whole stream.
          const inserted = await insert(
            tables,
            subscription,
            sql`number + 0 between 1 and ${last} and ${within('id')}`,
          );
          return renewed + inserted;
        });
        after = to?.id;
      }
      return queued;
    },

    /** Tries a delivery again, now. Resolves to whether it exists. */
    again: async (webhookId: string, eventId: string): Promise<boolean> =>
      (await database.write((tables) => renew(tables, webhookId, sql<boolean>`event_id = ${eventId}`), webhookId)) > 0,

    /**
     * Due deliveries by user, in the order of the stream from the first waiting one on, without `busy` users. Events of
     * a newer release wait for a newer process, and hold back no others. Call only with the lease of the webhook.
     */
    async takeLanes(webhookId: string, busy: readonly string[]): Promise<Map<string, WaitingDelivery[]>> {
      const { lanes, blocked } = await database.query(async (tables) => {
        const due = await tables
          .selectFrom('webhook_deliveries')
          .select(['event_id as eventId', 'number', 'user_id as userId', 'attempts'])
          .where('webhook_id', '=', webhookId)
          .where('due_at', '<=', now)
          .where('kind', 'in', publicKinds)
          .$if(busy.length > 0, (rows) => rows.where('user_id', 'not in', busy))
          .orderBy('due_at')
          .orderBy('number')
          .limit(WINDOW)
          .execute();
        if (due.length === 0) return { lanes: new Map<string, WaitingDelivery[]>(), blocked: [] };
        const byNumber = new Map(due.map((row) => [Number(row.number), { ...row, number: Number(row.number) }]));
        const users = [...new Set(due.map(({ userId }) => userId))];
        const pending = await pendingOf(tables, webhookId, users)
          .where('number', '<=', Math.max(...byNumber.keys()))
          .orderBy('number')
          .limit(PENDING_AT_ONCE)
          .execute();
        return inLanes(byNumber, pending);
      });
      for (const { userId, dueAt } of blocked) {
        const postponeSome = () =>
          database.change((tables) => postpone(tables, webhookId, userId, sql<number>`${dueAt}`));
        while (await postponeSome());
      }
      return lanes;
    },

    record,

    async list(
      webhookId: string,
      { limit, cursor }: { limit: number; cursor?: string | undefined },
    ): Promise<DeliveryPage> {
      const rows = await database.query((tables) =>
        tables
          .selectFrom('webhook_deliveries')
          .select(['event_id as id', ...columnsOf(listedFields)])
          .where('webhook_id', '=', webhookId)
          .$if(cursor !== undefined, (events) => events.where('event_id', '<', cursor as string))
          .orderBy('event_id', 'desc')
          .limit(limit + 1)
          .execute(),
      );
      const { page, ...next } = pageById(rows, limit);
      return { deliveries: page.map(({ kind, ...row }) => ({ ...row, type: typeOf(kind) ?? kind })), ...next };
    },

    /** Deletes the deliveries that name a user who is being removed. Idempotent. */
    async removeAllOf(userId: string): Promise<void> {
      for (const id of await webhookIds()) await deleteInBatches(id, sql<boolean>`user_id = ${userId}`);
    },

    removeAllOfWebhook: (webhookId: string): Promise<void> => deleteInBatches(webhookId, every),

    /** Deletes old deliveries, and all of webhooks that were deleted. */
    async sweep(): Promise<void> {
      const ids = await webhookIds();
      if (ids.length === 0) return;
      // Read after the ids: a webhook created meanwhile is not among them.
      const rows = await database.query((tables) => tables.selectFrom('webhooks').select('id').execute());
      const known = new Set(rows.map(({ id }) => id));
      for (const id of ids) {
        const isOld = sql<boolean>`event_id < ${firstIdOf(Date.now() - KEPT_MS)}`;
        await deleteInBatches(id, known.has(id) ? isOld : every);
      }
    },
  };
};

export type Deliveries = ReturnType<typeof createDeliveries>;

interface Pending {
  userId: string;
  number: number;
  dueAt: number | null;
}

/** `pending` in the order of the stream. A user is blocked until the first waiting delivery is due. */
function inLanes(due: ReadonlyMap<number, WaitingDelivery>, pending: readonly Pending[]) {
  const lanes = new Map<string, WaitingDelivery[]>();
  const blocked: { userId: string; dueAt: number }[] = [];
  for (const [userId, theirs] of Map.groupBy(pending, (row) => row.userId)) {
    const end = theirs.findIndex(({ number }) => !due.has(Number(number)));
    const lane = theirs.slice(0, end < 0 ? undefined : end).flatMap(({ number }) => due.get(Number(number)) ?? []);
    if (lane.length > 0) lanes.set(userId, lane);
    else blocked.push({ userId, dueAt: Number(theirs[0]?.dueAt) });
  }
  return { lanes, blocked };
}
