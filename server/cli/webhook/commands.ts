import { operator } from '../../activity/caller.ts';
import { eventTypes } from '../../shared/event-types.ts';
import { EVERY_TYPE, type ListedWebhook, type Webhooks } from '../../webhooks/index.ts';
import { UsageError } from '../failure.ts';
import { iso, plain, table } from '../user/output.ts';

/** The number of deliveries in a list. */
const MAX_LISTED = 50;

interface Options {
  types?: string | undefined;
  description?: string | undefined;
  'include-user'?: boolean | undefined;
}

/** Text for people, and the same as data for `--json`. */
interface Answer {
  text: string;
  data: unknown;
  hasFailed?: boolean;
}

interface Command {
  /** For the usage text. */
  takes: string;
  does: string;
  /** How many. */
  arguments: number;
  run(webhooks: Webhooks, given: [string, string], options: Options): Promise<Answer>;
}

const maybeIso = (ms: number | null) => (ms === null ? null : iso(ms));

const stateOf = ({ disabledBy, failingSince }: ListedWebhook): string => {
  if (disabledBy !== null) return `disabled (${disabledBy})`;
  return failingSince === null ? 'works' : `failing since ${iso(failingSince)}`;
};

const toData = ({ failingSince, createdAt, ...webhook }: ListedWebhook) => ({
  ...webhook,
  failingSince: maybeIso(failingSince),
  createdAt: iso(createdAt),
});

function typesIn(list = EVERY_TYPE): string[] {
  const types = list.split(',').map((type) => type.trim());
  const unknown = types.find((type) => type !== EVERY_TYPE && !(eventTypes as readonly string[]).includes(type));
  if (unknown !== undefined) throw new UsageError(`${unknown} is not a type of event: ${eventTypes.join(', ')}`);
  return types;
}

/** Every command: a new one is an entry here. */
export const commands: Record<string, Command> = {
  list: {
    takes: '',
    does: 'lists the webhooks',
    arguments: 0,
    async run(webhooks) {
      const all = await webhooks.list();
      const rows = all.map((one) => [
        one.id,
        plain(one.url),
        one.types.join(','),
        stateOf(one),
        plain(one.description),
      ]);
      const text = all.length === 0 ? 'No webhook\n' : table([['ID', 'URL', 'TYPES', 'STATE', 'DESCRIPTION'], ...rows]);
      return { text, data: all.map(toData) };
    },
  },
  add: {
    takes: 'URL [--types A,B] [--include-user]',
    does: 'adds a webhook, for every type by default, and prints its secret',
    arguments: 1,
    async run(webhooks, [url], { types, description = '', 'include-user': withUser }) {
      const fields = { url, types: typesIn(types), include: withUser ? ['user'] : [], description };
      const { webhook, secret } = await webhooks.create(fields, operator);
      const text = `${webhook.id} was added. Its secret, which is shown only now:\n${secret}\n`;
      return { text, data: { ...toData(webhook), secret } };
    },
  },
  remove: {
    takes: 'ID',
    does: 'removes a webhook and its deliveries',
    arguments: 1,
    async run(webhooks, [id]) {
      await webhooks.remove(id, operator);
      return { text: `${id} was removed.\n`, data: { id } };
    },
  },
  enable: {
    takes: 'ID',
    does: 'enables a webhook again',
    arguments: 1,
    async run(webhooks, [id]) {
      const webhook = await webhooks.update(id, { enabled: true }, operator);
      return { text: `${id} is enabled.\n`, data: toData(webhook) };
    },
  },
  disable: {
    takes: 'ID',
    does: 'disables a webhook',
    arguments: 1,
    async run(webhooks, [id]) {
      const webhook = await webhooks.update(id, { enabled: false }, operator);
      return { text: `${id} is disabled.\n`, data: toData(webhook) };
    },
  },
  test: {
    takes: 'ID',
    does: 'sends the event webhook.test now, from here, and prints the response',
    arguments: 1,
    async run(webhooks, [id]) {
      const { isSuccess, ...result } = await webhooks.test(id, operator);
      const { status, error, answer = '', durationMs } = result;
      const text = `${error ?? `HTTP ${status}`} after ${durationMs} ms${answer && `: ${plain(answer)}`}\n`;
      return { text, data: { success: isSuccess, ...result }, hasFailed: !isSuccess };
    },
  },
  deliveries: {
    takes: 'ID',
    does: `lists the newest ${MAX_LISTED} deliveries of a webhook`,
    arguments: 1,
    async run(webhooks, [id]) {
      const { deliveries } = await webhooks.deliveries(id, { limit: MAX_LISTED });
      const rows = deliveries.map(({ id: event, type, state, attempts, status, error, createdAt, dueAt }) => [
        event,
        type,
        state,
        String(attempts),
        error ?? String(status ?? ''),
        iso(createdAt),
        dueAt === null ? '' : iso(dueAt),
      ]);
      const text =
        rows.length === 0
          ? 'No delivery\n'
          : table([['EVENT', 'TYPE', 'STATE', 'TRIES', 'RESPONSE', 'SINCE', 'NEXT TRY'], ...rows]);
      const data = deliveries.map(({ createdAt, triedAt, dueAt, ...delivery }) => ({
        ...delivery,
        createdAt: iso(createdAt),
        triedAt: maybeIso(triedAt),
        nextTryAt: maybeIso(dueAt),
      }));
      return { text, data };
    },
  },
  redeliver: {
    takes: 'ID EVENT|TIME',
    does: 'sends an event again, or all since a time in ISO 8601',
    arguments: 2,
    async run(webhooks, [id, given]) {
      const since = /^\d{4}-/.test(given) ? Date.parse(given) : Number.NaN;
      if (Number.isNaN(since)) await webhooks.redeliver(id, given, operator);
      const events = Number.isNaN(since) ? 1 : await webhooks.redeliverSince(id, since, operator);
      return { text: `Events that are sent again: ${events}\n`, data: { events } };
    },
  },
  rotate: {
    takes: 'ID',
    does: 'makes a new secret; the former one signs too for 24 hours',
    arguments: 1,
    async run(webhooks, [id]) {
      const { secret, formerUntil } = await webhooks.rotateSecret(id, operator);
      const text = `The new secret, which is shown only now:\n${secret}\nThe former one is valid until ${iso(formerUntil)}.\n`;
      return { text, data: { secret, formerUntil: iso(formerUntil) } };
    },
  },
};
