import { v7 as uuidv7 } from 'uuid';
import type { Accounts } from '../accounts/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import type { Config } from '../config/index.ts';
import { ServiceError } from '../errors.ts';
import { endingKinds, kindsOf } from '../events/catalogue.ts';
import type { Events } from '../events/index.ts';
import { createOutage } from '../lib/outage.ts';
import type { Limits } from '../limits/index.ts';
import { type Database, sql } from '../parts/database/contract.ts';
import type { WebhookSender } from '../parts/webhook-sender/contract.ts';
import type { Secrets } from '../secrets.ts';
import { type EventType, eventTypes } from '../shared/event-types.ts';
import type { Log } from '../telemetry/log.ts';
import { gauges } from '../telemetry/metrics.ts';
import { createHousekeeping } from '../workers/housekeeping.ts';
import type { Deliveries, DeliveryPage, Subscription } from './deliveries.ts';
import { createDelivery, type DeliveryNeeds, isSuccess } from './delivery.ts';
import { LOGOUT } from './logout-addresses.ts';
import { KEPT_MS } from './schedule.ts';
import { createWebhookActs, EVERY_TYPE } from './webhooks.ts';

export { createDeliveries, type Deliveries, type ListedDelivery } from './deliveries.ts';
export { createLogoutAddresses } from './logout-addresses.ts';
export { EVERY_TYPE, type ListedWebhook, type WebhookFields } from './webhooks.ts';

/** How often each process learns of webhooks that another one has made. */
const REFRESH_MS = 15_000;
/** Events of that time are queued once more, because the process that numbers them may not have known the webhook. */
const CATCH_UP_MS = 4 * REFRESH_MS;
/** The commit of the transaction that numbers events follows within this time. */
const AFTER_COMMIT_MS = 20;

interface Parts {
  database: Database;
  activity: Activity;
  accounts: Accounts;
  events: Events;
  limits: Limits;
  deliveries: Deliveries;
  logoutMessages: DeliveryNeeds['logoutMessages'];
  sender: WebhookSender;
  secrets: Secrets;
  log: Log;
}

/** What came back from `webhook.test`. */
interface TestResult {
  isSuccess: boolean;
  status?: number;
  error?: string;
  answer?: string;
  durationMs: number;
}

function kindsIn(types: readonly string[]): readonly string[] {
  if (types.includes(LOGOUT)) return endingKinds;
  const wanted = types.includes(EVERY_TYPE) ? eventTypes : eventTypes.filter((type) => types.includes(type));
  return wanted.flatMap((type) => kindsOf(type as EventType));
}

/** Webhooks: what administrators do with them, and the delivery of events. */
export function createWebhooks({ webhooks: { concurrency } }: Pick<Config, 'webhooks'>, parts: Parts) {
  const { database, activity, accounts, events, deliveries, logoutMessages, sender, secrets, log } = parts;
  /** The ids of all webhooks, disabled ones too, as known to this process. */
  let known: ReadonlySet<string> = new Set();
  let timer: NodeJS.Timeout | undefined;
  let refreshing = Promise.resolve();

  const delivery = createDelivery({
    database,
    deliveries,
    readEvents: events.byIds,
    users: accounts.users,
    mailAdministrators: accounts.administration.mailAdministrators,
    wakeMails: accounts.mail.outbox.wake,
    logoutMessages,
    sender,
    secrets,
    log,
    concurrency,
    hasWebhooks: () => known.size > 0,
  });

  const subscriptionOf = ({ id, types }: { id: string; types: string }): Subscription => ({
    id,
    kinds: kindsIn(types.split(',')),
  });

  const refresh = async (): Promise<void> => {
    const rows = await database.query((tables) =>
      tables
        .selectFrom('webhooks')
        .select(['id', 'types', 'disabled_by', 'enabled_at as since'])
        .select(sql<number>`${database.now} - enabled_at`.as('age'))
        .execute(),
    );
    known = new Set(rows.map(({ id }) => id));
    const fresh = rows.filter((row) => row.disabled_by === null && Number(row.age) < CATCH_UP_MS);
    if (fresh.length === 0) return;
    const last = await events.lastNumber();
    for (const row of fresh) await deliveries.queueSince(subscriptionOf(row), { since: Number(row.since), last });
    delivery.wake();
  };

  const acts = createWebhookActs({
    ...parts,
    recordUnmailed: activity.record,
    // The change is committed: a failure here must not hide its result, such as a new secret.
    changed: async () => {
      await refresh().then(outage.succeeded, outage.failed);
      delivery.wake();
    },
  });

  events.enabledIf(() => known.size > 0);

  // Reads the webhooks of this moment, not those known: a change applies to the next event.
  events.onNumbered(async (tables, numbers) => {
    const rows = await tables
      .selectFrom('webhooks')
      .select(['id', 'types', 'enabled_at as since'])
      .where('disabled_by', 'is', null)
      .execute();
    for (const row of rows)
      await deliveries.insert(tables, subscriptionOf(row), { ...numbers, since: Number(row.since) });
    if (rows.length > 0) delivery.wake(AFTER_COMMIT_MS);
  });

  gauges(async () => {
    if (known.size === 0) return {};
    const rows = await database.query((tables) =>
      tables
        .selectFrom('webhooks')
        .select([
          'id',
          'failing_since as failingSince',
          sql<number>`${database.now}`.as('now'),
          sql<number | null>`(select d.due_at from webhook_deliveries d
            where d.webhook_id = webhooks.id and d.due_at is not null order by d.due_at limit 1)`.as('firstDue'),
        ])
        .where('disabled_by', 'is', null)
        // `npm run webhook` does not know the address of an application.
        .where('types', '<>', LOGOUT)
        .execute(),
    );
    const secondsSince = (from: (row: (typeof rows)[number]) => number) =>
      rows.map((row) => ({
        labels: { webhook: row.id },
        value: row.firstDue === null ? 0 : Math.max(0, Number(row.now) - from(row)) / 1000,
      }));
    return {
      account_webhook_failing_seconds: secondsSince(({ failingSince, now }) => Number(failingSince ?? now)),
      account_webhook_oldest_age_seconds: secondsSince(({ failingSince, firstDue, now }) =>
        Math.min(Number(firstDue), Number(failingSince ?? now)),
      ),
    };
  });

  const outage = createOutage({
    began: (error) => log.warn({ job: 'webhooks', err: error }, 'the webhooks cannot be read; this is retried'),
  });
  const housekeeping = createHousekeeping({
    sweeps: [deliveries.sweep],
    log,
  });

  return {
    ...acts,

    /** Deletes the webhook and its deliveries. */
    async remove(id: string, caller: Caller): Promise<void> {
      await acts.remove(id, caller);
      await deliveries.removeAllOfWebhook(id);
    },

    /** Sends the event `webhook.test` now, even to a disabled webhook. */
    async test(id: string, caller: Caller): Promise<TestResult> {
      await acts.permit(id, caller);
      const event = {
        id: uuidv7(),
        number: 0,
        type: 'webhook.test',
        timestamp: new Date().toISOString(),
        data: { webhookId: id },
      };
      const began = performance.now();
      const response = await delivery.test(id, event);
      const durationMs = Math.round(performance.now() - began);
      return {
        isSuccess: isSuccess(response),
        durationMs,
        ...('status' in response ? { status: response.status, answer: response.answer } : { error: response.error }),
      };
    },

    /** Newest first. `cursor` must be the id of a delivery. NOT_FOUND for an unknown webhook. */
    async deliveries(id: string, page: { limit: number; cursor?: string | undefined }): Promise<DeliveryPage> {
      await acts.get(id);
      return deliveries.list(id, page);
    },

    /** Sends one event again, now. WEBHOOK_DISABLED; NOT_FOUND. */
    async redeliver(id: string, deliveryId: string, caller: Caller): Promise<void> {
      const { disabledBy } = await acts.permit(id, caller);
      if (disabledBy !== null) throw new ServiceError('WEBHOOK_DISABLED');
      if (!(await deliveries.again(id, deliveryId)))
        throw new ServiceError('NOT_FOUND', { message: 'There is no such delivery' });
      delivery.wake();
    },

    /**
     * Sends every event since a time again (milliseconds since 1970), also those that happened while the webhook was
     * disabled. Resolves to how many.
     */
    async redeliverSince(id: string, since: number, caller: Caller): Promise<number> {
      const { disabledBy, types } = await acts.permit(id, caller);
      if (disabledBy !== null) throw new ServiceError('WEBHOOK_DISABLED');
      const from = Math.max(since, Date.now() - KEPT_MS);
      // Before the last number is read: events that have no number yet are queued when they get one.
      await acts.beginAt(id, from);
      const last = await events.lastNumber();
      const queued = await deliveries.queueSince({ id, kinds: kindsIn(types) }, { since: from, last, again: true });
      delivery.wake();
      return queued;
    },

    worker: {
      start(): void {
        const run = () => {
          refreshing = refresh().then(outage.succeeded, outage.failed);
        };
        run();
        timer = setInterval(run, REFRESH_MS).unref();
        delivery.start();
        housekeeping.start();
      },

      async stop(): Promise<void> {
        clearInterval(timer);
        await refreshing;
        await Promise.all([delivery.stop(), housekeeping.stop()]);
      },
    },
  };
}

export type Webhooks = ReturnType<typeof createWebhooks>;
