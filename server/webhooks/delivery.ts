/**
 * The delivery of events: at least once, and in the order of the stream for one user. One process at a time holds the
 * lease on a webhook and delivers to it, so the limit of deliveries in flight holds over all instances, and a slow
 * receiver holds back only itself. After a crash another process continues when the lease ends.
 */
import { v7 as uuidv7 } from 'uuid';
import type { Webhook } from '../../entities/index.ts';
import type { Users } from '../accounts/users/index.ts';
import type { PublicEvent } from '../events/index.ts';
import { type AllTables, columnsOf, type Database, sql } from '../parts/database/contract.ts';
import type { WebhookResponse, WebhookSender } from '../parts/webhook-sender/contract.ts';
import type { Secrets } from '../secrets.ts';
import { MAX_APPLICATIONS, MAX_WEBHOOKS } from '../shared/receivers.ts';
import type { Log } from '../telemetry/log.ts';
import { count } from '../telemetry/metrics.ts';
import { createWorker } from '../workers/worker.ts';
import type { Deliveries, Tried, WaitingDelivery } from './deliveries.ts';
import { LOGOUT } from './logout-addresses.ts';
import { MAX_FAILING_MS, pauseAfter } from './schedule.ts';
import { signedHeaders } from './signature.ts';

const LEASE_MS = 20_000;
/** How often a process that waits for responses looks for further deliveries. */
const LOOK_EVERY_MS = 1000;
/** At a shutdown, the wait for responses. Deliveries without a response by then are sent again. */
const STOP_MS = 1000;
const userAgent = { 'user-agent': 'account-service' };

const targetFields = [
  'id',
  'url',
  'types',
  'include',
  'secret',
  'formerSecret',
  'formerUntil',
  'disabledBy',
  'failingSince',
  'owner',
] as const;
const columns = columnsOf(targetFields);

/** A webhook as read for a try. `now` is the database's time. */
type TargetRow = Pick<Webhook, (typeof targetFields)[number]>;
type Target = { [Field in keyof TargetRow]: Exclude<TargetRow[Field], undefined> } & { now: number };

/** See server/oauth/logout-tokens.ts. */
interface LogoutMessage {
  token: string;
  accepted(): Promise<void>;
}

/** The right of one process to deliver to a webhook. `owner` is new for each lease. */
interface Lease {
  id: string;
  owner: string;
}

export interface DeliveryNeeds {
  database: Database;
  deliveries: Deliveries;
  /** By their ids. */
  readEvents(ids: readonly string[]): Promise<PublicEvent[]>;
  users: Pick<Users, 'find' | 'views'>;
  /** Queues mails to administrators in the caller's transaction. */
  mailAdministrators(tables: AllTables, kind: `webhook-${'gone' | 'failing'}`, host: string): Promise<void>;
  wakeMails(): void;
  /** What an application has to be told of an event by back-channel logout. */
  logoutMessages(applicationId: string, event: PublicEvent): Promise<LogoutMessage[]>;
  sender: WebhookSender;
  secrets: Secrets;
  log: Log;
  /** Deliveries in flight to one webhook. */
  concurrency: number;
  /** False if there are no webhooks: then nothing is read. */
  hasWebhooks(): boolean;
}

export const createDelivery = (needs: DeliveryNeeds) => {
  const { database, deliveries, readEvents, users, mailAdministrators, wakeMails } = needs;
  const { logoutMessages, sender, secrets, log, concurrency, hasWebhooks } = needs;
  const leaseEnd = sql<number>`${database.now} + ${LEASE_MS}`;
  const stopping = new AbortController();
  const stopped = new Promise<void>((resolve) => {
    stopping.signal.addEventListener('abort', () => resolve());
  });
  const waking = new Set<() => void>();

  for (const outcome of ['delivered', 'retried', 'failed', 'no_event'])
    count('account_webhook_deliveries_total', { outcome }, 0);

  const find = (id: string): Promise<Target | undefined> =>
    database.query((tables) =>
      tables
        .selectFrom('webhooks')
        .select(columns)
        .select(database.now.as('now'))
        .where('id', '=', id)
        .executeTakeFirst(),
    );

  /** The secrets that sign, current first. A secret under a former APP_SECRET is encrypted again. */
  const secretsOf = async ({ id, secret, formerSecret, formerUntil, now }: Target): Promise<string[]> => {
    const current = secrets.open('webhook', id, secret);
    if (!current) {
      log.error({ webhook: id }, 'the secret of a webhook cannot be decrypted: its APP_SECRET was removed');
      return [];
    }
    const isFormerValid = formerSecret !== null && formerUntil !== null && formerUntil > now;
    const former = isFormerValid ? secrets.open('webhook', id, formerSecret) : undefined;
    if (!current.isCurrent || former?.isCurrent === false) {
      await database.write((tables) =>
        tables
          .updateTable('webhooks')
          .set({
            secret: secrets.seal('webhook', id, current.text),
            former_secret: former ? secrets.seal('webhook', id, former.text) : null,
          })
          .where('id', '=', id)
          .where('secret', '=', secret)
          .execute(),
      );
    }
    return [current.text, ...(former ? [former.text] : [])];
  };

  /** The body is made at each try, with the current profile. */
  const bodyOf = async ({ include }: Target, event: object & { data: object }): Promise<string> => {
    const { userId } = event.data as { userId?: string };
    const user = include.includes('user') && userId ? await users.find(userId) : undefined;
    return JSON.stringify(user ? { ...event, data: { ...event.data, user: users.views.toProfile(user) } } : event);
  };

  /** Signs and sends an event. Rejects only if the database does not respond. */
  const post = async (
    target: Target,
    event: { id: string; data: object },
  ): Promise<WebhookResponse | { error: 'secret' }> => {
    const signing = await secretsOf(target);
    if (signing.length === 0) return { error: 'secret' };
    const body = await bodyOf(target, event);
    const headers = signedHeaders({ id: event.id, body }, signing, Date.now());
    return sender.send({ url: target.url, headers: { ...headers, ...userAgent }, body });
  };

  /** Tells an application of each login that has ended, until it refuses one. */
  const logOut = async ({ id, url }: Target, event: PublicEvent): Promise<WebhookResponse> => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded', ...userAgent };
    for (const { token, accepted } of await logoutMessages(id, event)) {
      const response = await sender.send({ url, headers, body: `${new URLSearchParams({ logout_token: token })}` });
      if (!isSuccess(response)) return response;
      await accepted();
    }
    return { status: 204, answer: '', retryAfter: undefined };
  };

  const attempt = async (target: Target, delivery: WaitingDelivery, event?: PublicEvent): Promise<Tried> => {
    // Its age, a later event or its user's removal has deleted it.
    if (!event) return { delivery, state: 'failed', error: 'no-event' };
    const response = await (target.types === LOGOUT ? logOut : post)(target, event);
    if (isSuccess(response)) return { delivery, state: 'delivered', status: response.status, answer: response.answer };
    const { retryAfter, ...outcome } = { retryAfter: undefined, ...response };
    const retryInMs = pauseAfter(delivery.attempts + 1, retryAfter);
    return { delivery, url: target.url, state: retryInMs === undefined ? 'failed' : 'waiting', retryInMs, ...outcome };
  };

  /** Stores the outcomes of tries, and disables the webhook if it is gone or has failed for too long. */
  const settle = async ({ id, url, types, failingSince, now }: Target, tried: readonly Tried[]): Promise<void> => {
    const hasSucceeded = tried.some(({ state }) => state === 'delivered');
    const hasFailed = tried.some(({ error, state }) => state !== 'delivered' && error !== 'no-event');
    const isGone = tried.some(({ status, url: former }) => status === 410 && former === url);
    const isTooLong = !hasSucceeded && hasFailed && failingSince !== null && now - failingSince >= MAX_FAILING_MS;
    // The address of an application stays: it belongs to its settings.
    const reason = types === LOGOUT ? undefined : isGone ? 'gone' : isTooLong ? 'failing' : undefined;
    const isDisabled = await database.change(async (tables) => {
      for (const outcome of tried) await deliveries.record(tables, id, outcome);
      const since = hasSucceeded ? null : hasFailed ? sql<number>`coalesce(failing_since, ${database.now})` : undefined;
      if (since !== undefined && (since === null) === (failingSince !== null))
        await tables.updateTable('webhooks').set({ failing_since: since }).where('id', '=', id).execute();
      if (!reason) return false;
      const { numUpdatedRows } = await tables
        .updateTable('webhooks')
        .set({ disabled_by: reason })
        .where('id', '=', id)
        .where('disabled_by', 'is', null)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return false;
      await mailAdministrators(tables, `webhook-${reason}`, new URL(url).host);
      return true;
    });
    for (const each of tried) count('account_webhook_deliveries_total', { outcome: outcomeOf(each) });
    if (!isDisabled) return;
    log.warn({ webhook: id, reason }, 'a webhook was disabled');
    wakeMails();
  };

  /** Delivers to one webhook until nothing is due, or another process has the lease. */
  const deliver = async ({ id, owner }: Lease): Promise<void> => {
    /** By user, in order. The first of a lane may be in flight. */
    const lanes = new Map<string, WaitingDelivery[]>();
    /** By user, until the outcome is stored. */
    const inFlight = new Map<string, Promise<void>>();
    const events = new Map<string, PublicEvent>();
    const tried: Tried[] = [];
    let wake = () => undefined as unknown;
    const wakeUp = () => wake();
    waking.add(wakeUp);

    const drop = (userId: string) => {
      for (const { eventId } of lanes.get(userId) ?? []) events.delete(eventId);
      lanes.delete(userId);
    };

    const fill = async () => {
      const found = await deliveries.takeLanes(id, [...lanes.keys()]);
      for (const [userId, lane] of found) lanes.set(userId, lane);
      const ids = [...found.values()].flat().map(({ eventId }) => eventId);
      if (ids.length > 0) for (const event of await readEvents(ids)) events.set(event.id, event);
    };

    const begin = (target: Target, userId: string, delivery: WaitingDelivery) => {
      const done = attempt(target, delivery, events.get(delivery.eventId)).then(
        (outcome) => void tried.push(outcome),
        // It stays due, and is read again.
        (error: unknown) => {
          log.warn({ webhook: id, err: error }, 'a delivery could not be made; it is retried');
          inFlight.delete(userId);
          drop(userId);
        },
      );
      inFlight.set(userId, done);
    };

    /**
     * Stores the outcomes so far. Only then, after a success or the last try, the user's next delivery may follow.
     * Without the lease only successes count: its next owner tries what failed.
     */
    const finish = async (target: Target | undefined): Promise<void> => {
      const outcomes = [...tried];
      const valid = target?.owner === owner ? outcomes : outcomes.filter(({ state }) => state === 'delivered');
      if (target && valid.length > 0) await settle(target, valid);
      tried.splice(0, outcomes.length);
      for (const { delivery, state } of outcomes) {
        const { userId, eventId } = delivery;
        const lane = lanes.get(userId);
        events.delete(eventId);
        lane?.shift();
        if (state === 'waiting' || lane?.length === 0) drop(userId);
        inFlight.delete(userId);
      }
    };

    try {
      for (;;) {
        const woken = Promise.withResolvers<void>();
        wake = woken.resolve;
        const target = await find(id);
        await finish(target);
        const isOpen = target?.disabledBy === null && target.owner === owner && !stopping.signal.aborted;
        if (isOpen && lanes.size < concurrency) await fill();
        for (const [userId, [first]] of lanes) {
          if (!isOpen || !target || inFlight.size >= concurrency) break;
          if (first && !inFlight.has(userId)) begin(target, userId, first);
        }
        if (inFlight.size === 0) break;
        await Promise.race([...inFlight.values(), woken.promise, elapsed(LOOK_EVERY_MS)]);
        if (!stopping.signal.aborted) continue;
        await Promise.race([Promise.all(inFlight.values()), elapsed(STOP_MS)]);
        await finish(await find(id));
        break;
      }
    } catch (error) {
      // The next owner sends these again: not beside them, and not those that arrived.
      await Promise.race([Promise.all(inFlight.values()), stopped.then(() => elapsed(STOP_MS))]);
      await finish(await find(id));
      throw error;
    } finally {
      waking.delete(wakeUp);
    }
  };

  /** Each lease has an id of its own: a process that was frozen beyond its lease finds another one. */
  const take = (most: number): Promise<Lease[]> =>
    database.change(async (tables) => {
      const rows = await tables
        .selectFrom('webhooks')
        .select('id')
        .where('disabled_by', 'is', null)
        .where('due_at', '<=', database.now)
        .where(
          sql<boolean>`exists (select 1 from webhook_deliveries d where d.webhook_id = webhooks.id and d.due_at <= ${database.now})`,
        )
        .orderBy('due_at')
        .limit(most)
        .modifyEnd(database.skipLocked)
        .execute();
      const leases = rows.map(({ id }) => ({ id, owner: uuidv7() }));
      for (const { id, owner } of leases)
        await tables.updateTable('webhooks').set({ owner, due_at: leaseEnd }).where('id', '=', id).execute();
      return leases;
    });

  const renew = async (leases: Lease[]): Promise<void> => {
    const owners = leases.map(({ owner }) => owner);
    await database.write((tables) =>
      tables.updateTable('webhooks').set({ due_at: leaseEnd }).where('owner', 'in', owners).execute(),
    );
  };

  const release = ({ owner }: Lease) =>
    database.write((tables) =>
      tables.updateTable('webhooks').set({ due_at: 0, owner: null }).where('owner', '=', owner).execute(),
    );

  const worker = createWorker<Lease>({
    name: 'webhooks',
    atOnce: MAX_WEBHOOKS + MAX_APPLICATIONS,
    leases: { leaseMs: LEASE_MS, renew, take: async (most) => (hasWebhooks() ? take(most) : []) },
    work: (lease) => deliver(lease).finally(() => release(lease)),
    log,
  });

  return {
    /** Sends an event now, without a delivery. */
    async test(id: string, event: { id: string; data: object }): Promise<WebhookResponse | { error: 'secret' }> {
      const target = await find(id);
      return target ? post(target, event) : { error: 'secret' };
    },

    start: worker.start,

    wake(delayMs = 0): void {
      worker.wake(delayMs);
      if (delayMs === 0) for (const wake of waking) wake();
      else
        setTimeout(() => {
          for (const wake of waking) wake();
        }, delayMs).unref();
    },

    async stop(): Promise<void> {
      stopping.abort();
      for (const wake of waking) wake();
      await worker.stop();
    },
  };
};

const outcomeOf = ({ state, error }: Tried) =>
  error === 'no-event' ? 'no_event' : state === 'waiting' ? 'retried' : state;

export const isSuccess = (
  response: WebhookResponse | { error: string },
): response is WebhookResponse & { status: number; answer: string } =>
  'status' in response && response.status >= 200 && response.status < 300;

const elapsed = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms).unref());
