/**
 * Webhooks and the acts of administrators and operators on them. Each act of an administrator is rate-limited and
 * recorded in the administrator's activity.
 */
import { v7 as uuidv7 } from 'uuid';
import type { Webhook } from '../../entities/index.ts';
import { lockStillAdministrator } from '../accounts/sessions/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import { ServiceError } from '../errors.ts';
import type { Limits } from '../limits/index.ts';
import {
  type AllTables,
  columnsOf,
  type Database,
  lockShared,
  nowOf,
  type ReadTables,
  sql,
} from '../parts/database/contract.ts';
import { requireSendable, type WebhookSender } from '../parts/webhook-sender/contract.ts';
import type { Secrets } from '../secrets.ts';
import { MAX_WEBHOOKS } from '../shared/receivers.ts';
import { LOGOUT } from './logout-addresses.ts';
import { ROTATION_MS } from './schedule.ts';
import { newSecret } from './signature.ts';

/** In `types`: every type, also those of later releases. */
export const EVERY_TYPE = '*';

const listedFields = [
  'id',
  'url',
  'types',
  'include',
  'description',
  'disabledBy',
  'failingSince',
  'createdAt',
] as const;
const listedColumns = columnsOf(listedFields);

/** A listed webhook. Times in milliseconds since 1970. */
type Listed = Pick<Webhook, 'id' | 'url' | 'description' | 'disabledBy' | 'failingSince' | 'createdAt'>;
export type ListedWebhook = { [Field in keyof Listed]: Exclude<Listed[Field], undefined> } & {
  types: string[];
  include: string[];
};

export interface WebhookFields {
  url: string;
  types: readonly string[];
  include: readonly string[];
  description: string;
}

type Changes = { [Field in keyof WebhookFields]?: WebhookFields[Field] | undefined };

const namesIn = (list: string): string[] => list.split(',').filter(Boolean);

const toListed = <Row extends { types: string; include: string }>({ types, include, ...row }: Row) => ({
  ...row,
  types: namesIn(types),
  include: namesIn(include),
});

const noWebhook = () => new ServiceError('NOT_FOUND', { message: 'There is no such webhook' });

interface Needs {
  database: Database;
  limits: Pick<Limits, 'enforce'>;
  /** Inserts an event without a mail. */
  recordUnmailed: Activity['record'];
  sender: Pick<WebhookSender, 'problemOf'>;
  secrets: Secrets;
  /** Called after each change. */
  changed(): Promise<void>;
}

export const createWebhookActs = ({ database, limits, recordUnmailed, sender, secrets, changed }: Needs) => {
  const { now } = database;

  const all = (tables: ReadTables) => tables.selectFrom('webhooks').where('types', '<>', LOGOUT);

  const get = async (tables: ReadTables, id: string): Promise<ListedWebhook> => {
    const row = await all(tables).select(listedColumns).where('id', '=', id).executeTakeFirst();
    if (!row) throw noWebhook();
    return toListed(row);
  };

  /** FORBIDDEN if the caller is no longer an administrator. `event` is recorded with the URL. */
  const perform = async <Result>(
    caller: Caller,
    event: `webhook-${'added' | 'changed' | 'removed'}` | undefined,
    act: (tables: AllTables) => Promise<Result & { url: string }>,
  ): Promise<Result & { url: string }> => {
    const { actor, actorId } = caller;
    if (actor === 'administrator') await limits.enforce('administration', actorId);
    const result = await database.transaction(async (em, tables) => {
      await lockStillAdministrator(em, caller);
      if (event === 'webhook-added') await lockShared(em, 'webhooks');
      const done = await act(tables);
      if (event && actorId) {
        const details = { url: shortened(done.url) };
        await recordUnmailed(tables, actorId, { kind: event, details }, caller);
      }
      return done;
    }, actorId);
    await changed();
    return result;
  };

  const columnsFrom = ({ url, description, types, include }: Changes) => ({
    ...(url !== undefined && { url: new URL(url).href }),
    ...(description !== undefined && { description }),
    ...(types && { types: (types.includes(EVERY_TYPE) ? [EVERY_TYPE] : [...new Set(types)]).join(',') }),
    ...(include && { include: [...new Set(include)].join(',') }),
  });

  /** The webhook ends with the role of who changed it last, and of who created or enabled it. */
  const changedBy = ({ actorId }: Caller) => ({ changed_by: actorId ?? null });
  const enabledBy = (caller: Caller) => ({
    ...enabling,
    ...changedBy(caller),
    administrator_id: caller.actorId ?? null,
  });
  const enabling = { disabled_by: null, failing_since: null, enabled_at: sql<number>`${now}` };

  return {
    /** All of them, oldest first. */
    async list(): Promise<ListedWebhook[]> {
      const rows = await database.query((tables) => all(tables).select(listedColumns).orderBy('id').execute());
      return rows.map(toListed);
    },

    /** NOT_FOUND for an unknown id. */
    get: (id: string): Promise<ListedWebhook> => database.query((tables) => get(tables, id)),

    /** Resolves to the webhook and its secret, which no other call returns. */
    async create(fields: WebhookFields, caller: Caller): Promise<{ webhook: ListedWebhook; secret: string }> {
      requireSendable(sender, 'url', fields.url);
      const id = uuidv7();
      const secret = newSecret();
      const webhook = await perform(caller, 'webhook-added', async (tables) => {
        const { count } = await all(tables)
          .select(({ fn }) => fn.countAll<number>().as('count'))
          .executeTakeFirstOrThrow();
        if (Number(count) >= MAX_WEBHOOKS) throw new ServiceError('TOO_MANY_WEBHOOKS');
        await tables
          .insertInto('webhooks')
          .values({
            ...columnsFrom(fields),
            ...enabledBy(caller),
            id,
            secret: secrets.seal('webhook', id, secret),
            due_at: 0,
            created_at: now,
          } as never)
          .execute();
        return get(tables, id);
      });
      return { webhook, secret };
    },

    /** Changes the given fields. Enabling forgets earlier failures. */
    update: (
      id: string,
      { enabled, ...fields }: Changes & { enabled?: boolean | undefined },
      caller: Caller,
    ): Promise<ListedWebhook> => {
      if (fields.url !== undefined) requireSendable(sender, 'url', fields.url);
      return perform(caller, 'webhook-changed', async (tables) => {
        const { disabledBy } = await get(tables, id);
        const isChanged = enabled !== undefined && enabled === (disabledBy !== null);
        const state = isChanged ? (enabled ? enabledBy(caller) : { disabled_by: 'administrator' as const }) : {};
        const values = { ...columnsFrom(fields), ...state };
        if (Object.keys(values).length > 0)
          await tables
            .updateTable('webhooks')
            .set({ ...values, ...changedBy(caller) })
            .where('id', '=', id)
            .execute();
        return get(tables, id);
      });
    },

    /** Its deliveries are deleted by the caller, and by the next sweep. */
    async remove(id: string, caller: Caller): Promise<void> {
      await perform(caller, 'webhook-removed', async (tables) => {
        const webhook = await get(tables, id);
        await tables.deleteFrom('webhooks').where('id', '=', id).execute();
        return webhook;
      });
    },

    /** A new secret. The former one signs too for 24 hours. */
    async rotateSecret(id: string, caller: Caller): Promise<{ secret: string; formerUntil: number }> {
      const secret = newSecret();
      const { formerUntil } = await perform(caller, 'webhook-changed', async (tables) => {
        const webhook = await get(tables, id);
        const formerUntil = (await nowOf(database, tables)) + ROTATION_MS;
        await tables
          .updateTable('webhooks')
          .set({ former_secret: sql`secret`, former_until: formerUntil })
          .where('id', '=', id)
          .execute();
        await tables
          .updateTable('webhooks')
          .set({ secret: secrets.seal('webhook', id, secret), ...changedBy(caller) })
          .where('id', '=', id)
          .execute();
        return { ...webhook, formerUntil };
      });
      return { secret, formerUntil };
    },

    /** Moves the time of the first event of the webhook back to `since`, never forward. */
    beginAt: (id: string, since: number) =>
      database.write((tables) =>
        tables
          .updateTable('webhooks')
          .set({ enabled_at: since })
          .where('id', '=', id)
          .where('enabled_at', '>', since)
          .execute(),
      ),

    /** Permission and limit for an act without a change of the webhook. */
    permit: (id: string, caller: Caller): Promise<ListedWebhook> =>
      perform(caller, undefined, (tables) => get(tables, id)),
  };
};

/** Details of events have at most 1000 characters. */
const shortened = (url: string): string => (url.length > 500 ? `${url.slice(0, 500)}…` : url);
