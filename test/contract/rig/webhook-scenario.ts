import { expect } from 'vitest';
import { type Receiver, startReceiver } from '../../rig/servers/receiver.ts';
import type { Stack } from '../../rig/stack.ts';
import { until } from '../../rig/until.ts';
import type { Reply } from './callers.ts';
import { administrator, type Scenario } from './scenario.ts';

/** Receivers of tests listen on this machine. */
export const withWebhooks = { env: { WEBHOOK_ALLOW: '127.0.0.0/8' } };

export interface Subscribed {
  receiver: Receiver;
  id: string;
  secret: string;
  /** Calls a procedure on this webhook as the administrator. */
  call(procedure: string, input?: object): Promise<Reply>;
  /** What has arrived about a user, in order; without one, everything. */
  about(userId?: string): Receiver['received'];
  /** The deliveries, newest first, as they are listed. */
  // biome-ignore lint/suspicious/noExplicitAny: a black box: what is in it is for the test to say
  deliveries(): Promise<any[]>;
  stop(): Promise<void>;
}

/** A new receiver, and a webhook to it. */
export async function subscribed(
  scenario: Scenario,
  { types = ['*'], ...fields }: { types?: string[]; include?: string[] } = {},
): Promise<Subscribed> {
  const receiver = await startReceiver();
  const { session } = await administrator(scenario);
  const created = await scenario.call(
    'webhooks.create',
    { url: `${receiver.url}/hook`, types, ...fields },
    { session },
  );
  expect(created).toMatchObject({ code: undefined });
  const { webhook, secret } = created.data;
  const call = (procedure: string, input: object = {}) =>
    scenario.call(procedure, { id: webhook.id, ...input }, { session });
  return {
    receiver,
    id: webhook.id,
    secret,
    call,
    about: (userId) => receiver.received.filter(({ event }) => userId === undefined || event.data.userId === userId),
    async deliveries() {
      const { data, status } = await call('webhooks.deliveries', { limit: 100 });
      expect(status).toBe(200);
      return data.data;
    },
    async stop() {
      await call('webhooks.delete');
      await receiver.stop();
    },
  };
}

/** Waits until events of these types have arrived about a user, in this order, and nothing else. */
export const arrived = (subscription: Subscribed, userId: string, types: string[], within = 10_000) =>
  until(
    () => {
      const found = subscription.about(userId).map(({ event }) => event.type);
      expect(found).toEqual(types);
      return true;
    },
    { what: `${types} about ${userId}`, within },
  );

/** As if the pause before the next try were over. */
export const tryNow = ({ database }: Stack, webhookId: string) =>
  database('update webhook_deliveries set due_at = 0 where webhook_id = ? and due_at is not null', [webhookId]);
