import { afterAll, beforeAll, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { administrator, registered, verified } from '../contract/rig/scenario.ts';
import { arrived, subscribed, withWebhooks } from '../contract/rig/webhook-scenario.ts';
import { deliveryViolations, type StoredEvent } from '../rig/observe/deliveries.ts';
import { type Numbered, orderViolations } from '../rig/observe/stream.ts';
import type { Service } from '../rig/process/service.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';
import { unlimited } from './load.ts';

/** Webhooks while instances are killed. */

const CYCLES = 4;
const USERS = 8;

let stack: Stack;
beforeAll(async () => {
  stack = await startStack('real', { instances: 2, env: { ...unlimited, ...withWebhooks.env } });
});
afterAll(() => stack?.stop());

const at = (service: Service) => ({ stack, call: callerOf('rest', service.url) });

const storedEvents = async (webhookId: string) =>
  (
    await stack.database<StoredEvent & Numbered>(
      'select a.id, a.number, a.user_id `userId`, a.created_at `at` from activity a join webhooks w on w.id = ? where a.number > 0 and a.created_at >= w.created_at order by a.number',
      [webhookId],
    )
  ).map((event) => ({ ...event, number: Number(event.number), at: Number(event.at) }));

// checks: 80
test(`${CYCLES} kill -9 of one of two instances amid deliveries lose no event, and keep the order of each user`, async () => {
  const { services } = stack;
  const subscription = await subscribed(at(services[0] as Service), { types: ['*'] });
  const { receiver } = subscription;
  // Not a new one: its latest events would be queued once more, also those that were lost.
  await stack.database('update webhooks set enabled_at = enabled_at - 120000 where id = ?', [subscription.id]);
  let inFlight = 0;
  // Slow enough that deliveries are in flight when an instance is killed.
  receiver.answer = (response) => {
    inFlight++;
    setTimeout(() => {
      inFlight--;
      response.writeHead(204).end();
    }, 100);
  };
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    const [victim, other] = [services[cycle % 2], services[(cycle + 1) % 2]] as [Service, Service];
    const people = Promise.all(Array.from({ length: USERS }, () => verified(at(other))));
    await until(() => inFlight > 0, { what: 'a delivery in flight' });
    await victim.kill();
    await people;
    await victim.restart();
  }
  await registered(at(services[0] as Service));
  await until(
    async () => {
      const events = await storedEvents(subscription.id);
      expect(orderViolations(events)).toEqual([]);
      expect(deliveryViolations(events, receiver.received, subscription.secret)).toEqual([]);
      const [waiting] = await stack.database<{ n: number }>('select count(*) n from activity where number is null');
      return Number(waiting?.n) === 0;
    },
    { within: 60_000, every: 500, what: 'every event' },
  );
  const ids = new Set(receiver.received.map(({ id }) => id));
  console.log(`webhooks: ${CYCLES} kills; ${ids.size} events, ${receiver.received.length - ids.size} sent twice`);
  await subscription.stop();
});

test('a webhook created at one instance is known to the others, even for events that they number', async () => {
  const [first, second] = stack.services as [Service, Service];
  const subscription = await subscribed(at(first), { types: ['user.created'] });
  const people = await Promise.all([first, second, second].map((service) => registered(at(service))));
  for (const { id } of people) await arrived(subscription, id, ['user.created'], 60_000);
  await subscription.stop();
});

test('a secret is encrypted again under a new APP_SECRET', async () => {
  const [first, second] = stack.services as [Service, Service];
  const old = first.env['APP_SECRET'] ?? '';
  const next = 'N7pQ2xVb9LmT4sRkW8yZ3cHfJ6dGaE1u0oIi5KtXrSw=';
  const subscription = await subscribed(at(first), { types: ['user.created'] });
  const replace = async (secret: string) => {
    for (const service of [first, second]) await service.restart({ env: { APP_SECRET: secret } });
  };
  const isSealed = async () =>
    (await stack.database<{ secret: string }>('select secret from webhooks where id = ?', [subscription.id]))[0]
      ?.secret;
  const before = await isSealed();
  await replace(`${next},${old}`);
  await arrived(subscription, (await registered(at(first))).id, ['user.created'], 60_000);
  expect(await isSealed()).not.toBe(before);
  await replace(next);
  const { id } = await registered(at(second));
  await arrived(subscription, id, ['user.created'], 60_000);
  const events = (await storedEvents(subscription.id)).filter(({ userId }) => userId === id);
  const received = subscription.about(id);
  expect(deliveryViolations(events.slice(0, 1), received, subscription.secret)).toEqual([]);
  await administrator(at(first));
  await replace(old);
  await stack.database('delete from webhooks where id = ?', [subscription.id]);
  await subscription.receiver.stop();
});
