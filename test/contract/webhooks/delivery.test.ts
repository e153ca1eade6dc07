import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { loadClient } from '../../rig/client/client.ts';
import { answering, type Received } from '../../rig/servers/receiver.ts';
import { until } from '../../rig/until.ts';
import { administrator, everywhere, loggedIn, registered, verified } from '../rig/scenario.ts';
import { arrived, type Subscribed, subscribed, tryNow, withWebhooks } from '../rig/webhook-scenario.ts';

/** What receivers of webhooks get. */

const DAY_MS = 24 * 60 * 60_000;
const created = ['user.created'];
const standing = (subscription: Subscribed, id: string) => async () =>
  (await subscription.deliveries()).find((one) => one.id === id);

everywhere((scenario) => {
  test('an event arrives once, signed as Standard Webhooks says', async () => {
    const subscription = await subscribed(scenario(), { types: created });
    const person = await registered(scenario());
    await arrived(subscription, person.id, created);
    const [{ id, headers, body, event }] = subscription.about(person.id) as [Received];
    expect(event).toEqual({
      id,
      number: expect.any(Number),
      type: 'user.created',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      data: { userId: person.id, actor: 'user', method: 'password' },
    });
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': event.id });
    expect(new Webhook(subscription.secret).verify(body, headers)).toEqual(event);
    expect(() => new Webhook(subscription.secret).verify(`${body} `, headers)).toThrow();
    // The answer arrives before it is stored.
    await until(async () => (await standing(subscription, id)()).attempts === 1);
    expect(await standing(subscription, id)()).toMatchObject({
      type: 'user.created',
      state: 'delivered',
      attempts: 1,
      status: 204,
      error: null,
    });
    await subscription.stop();
  });

  test('verifyWebhook of the client accepts what the service signs, and nothing else', async () => {
    const { verifyWebhook, WebhookError } = await loadClient();
    const subscription = await subscribed(scenario(), { types: created });
    const person = await registered(scenario());
    await arrived(subscription, person.id, created);
    const [{ headers, body, event }] = subscription.about(person.id) as [Received];
    const requestWith = (changes: { headers?: object; body?: string } = {}) =>
      new Request('https://receiver.test', {
        method: 'POST',
        headers: { ...headers, ...changes.headers },
        body: changes.body ?? body,
      });
    expect(await verifyWebhook(requestWith(), subscription.secret)).toEqual(event);
    const other = `whsec_${Buffer.alloc(32).toString('base64')}`;
    const old = String(Number(headers['webhook-timestamp']) - 301);
    for (const [request, secret] of [
      [requestWith(), other],
      [requestWith({ body: `${body} ` }), subscription.secret],
      [requestWith({ headers: { 'webhook-id': 'x' } }), subscription.secret],
      [requestWith({ headers: { 'webhook-timestamp': old } }), subscription.secret],
      [requestWith({ headers: { 'webhook-signature': 'v1,AAAA v2,%' } }), subscription.secret],
      [new Request('https://receiver.test', { method: 'POST', body }), subscription.secret],
    ] as const)
      await expect(verifyWebhook(request, secret)).rejects.toThrow(WebhookError);
    await subscription.stop();
  });

  test('only the types asked for arrive, those of one user in order', async () => {
    const subscription = await subscribed(scenario(), { types: ['user.verified', 'session.created', 'user.updated'] });
    const person = await loggedIn(scenario());
    for (const name of ['Ada B', 'Ada C', 'Ada D'])
      await scenario().call('profile.update', { name }, { session: person.session });
    const updates = Array(3).fill('user.updated');
    await arrived(subscription, person.id, ['user.verified', 'session.created', ...updates]);
    const numbers = subscription.about(person.id).map(({ event }) => event.number);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    await subscription.stop();
  });

  test('only webhooks that include it get the profile, with its current values', async () => {
    const plain = await subscribed(scenario(), { types: ['user.updated'] });
    const whole = await subscribed(scenario(), { types: ['user.updated'], include: ['user'] });
    whole.receiver.answer = answering(503);
    const { id, session } = await loggedIn(scenario());
    await scenario().call('profile.update', { name: 'First Name' }, { session });
    await arrived(plain, id, ['user.updated']);
    await arrived(whole, id, ['user.updated']);
    whole.receiver.answer = answering(200);
    await scenario().call('profile.update', { name: 'Second Name' }, { session });
    await arrived(plain, id, ['user.updated', 'user.updated']);
    await until(() => standing(whole, whole.about(id)[0]?.id ?? '')().then(({ attempts }) => attempts === 1));
    await tryNow(scenario().stack, whole.id);
    await arrived(whole, id, ['user.updated', 'user.updated', 'user.updated']);
    const names = whole.about(id).map(({ event }) => event.data.user.name);
    expect(names).toEqual(['First Name', 'Second Name', 'Second Name']);
    const { data } = await scenario().call('profile.get', undefined, { session });
    expect(whole.about(id)[2]?.event.data.user).toEqual(data.user);
    expect(plain.about(id)[0]?.event.data).not.toHaveProperty('user');
    await Promise.all([plain.stop(), whole.stop()]);
  });

  test('a failed delivery is tried again with the same id; later events of the user wait, other users do not', async () => {
    const subscription = await subscribed(scenario(), { types: ['user.created', 'user.verified'] });
    let bad: string | undefined;
    subscription.receiver.answer = (response, { event }) => {
      bad ??= event.data.userId;
      response.writeHead(event.data.userId === bad ? 500 : 204).end('out of order');
    };
    const person = await verified(scenario());
    const [{ id }] = (await until(() => subscription.about(person.id).length > 0 && subscription.about(person.id))) as [
      Received,
    ];
    const another = await verified(scenario());
    await arrived(subscription, another.id, ['user.created', 'user.verified']);
    const delivery = await until(async () => {
      const found = await standing(subscription, id)();
      return found.attempts === 1 && found;
    });
    expect(delivery).toMatchObject({ state: 'waiting', status: 500, error: null, answer: 'out of order' });
    expect(delivery.nextTryAt - delivery.triedAt).toBeGreaterThanOrEqual(4);
    expect(delivery.nextTryAt - delivery.triedAt).toBeLessThanOrEqual(7);
    expect(subscription.about(person.id).map(({ event }) => event.type)).toEqual(created);
    const { data } = await subscription.call('webhooks.get');
    expect(data.webhook).toMatchObject({ enabled: true });
    subscription.receiver.answer = answering(202);
    await tryNow(scenario().stack, subscription.id);
    await arrived(subscription, person.id, ['user.created', 'user.created', 'user.verified']);
    expect(subscription.about(person.id)[1]?.id).toBe(id);
    expect((await subscription.call('webhooks.get')).data.webhook).toMatchObject({ failingSince: null });
    await subscription.stop();
  });

  test('the last try is given up, and the next event of the user follows', async () => {
    const subscription = await subscribed(scenario(), { types: ['user.created', 'user.verified'] });
    subscription.receiver.answer = (response, { event }) =>
      response.writeHead(event.type === 'user.created' ? 500 : 204).end();
    const person = await verified(scenario());
    await arrived(subscription, person.id, created);
    const [{ id }] = subscription.about(person.id) as [Received];
    await until(async () => (await standing(subscription, id)()).attempts === 1);
    await scenario().stack.database('update webhook_deliveries set attempts = 9 where event_id = ?', [id]);
    await tryNow(scenario().stack, subscription.id);
    await arrived(subscription, person.id, ['user.created', 'user.created', 'user.verified']);
    expect(await standing(subscription, id)()).toMatchObject({ state: 'failed', attempts: 10, nextTryAt: null });
    await subscription.stop();
  });

  test('a redirect is a failure, and Retry-After is obeyed', async () => {
    const target = await subscribed(scenario(), { types: ['user.restored'] });
    const subscription = await subscribed(scenario(), { types: created });
    const headers = { location: target.receiver.url, 'retry-after': '600' };
    subscription.receiver.answer = answering(302, '', headers);
    const person = await registered(scenario());
    await arrived(subscription, person.id, created);
    const [{ id }] = subscription.about(person.id) as [Received];
    const delivery = await until(async () => {
      const found = await standing(subscription, id)();
      return found.attempts === 1 && found;
    });
    expect(delivery).toMatchObject({ state: 'waiting', status: 302 });
    expect(delivery.nextTryAt - delivery.triedAt).toBeGreaterThanOrEqual(599);
    expect(target.receiver.received).toEqual([]);
    await Promise.all([target.stop(), subscription.stop()]);
  });

  test('410 disables a webhook at once, administrators are mailed, and what it misses can be redelivered', async () => {
    // Before the subscription: their own events must not be the first that it refuses.
    const admin = await administrator(scenario());
    const witness = await subscribed(scenario(), { types: created });
    const subscription = await subscribed(scenario(), { types: created });
    const since = Math.floor(Date.now() / 1000);
    subscription.receiver.answer = answering(410);
    const person = await registered(scenario());
    await until(async () => !(await subscription.call('webhooks.get')).data.webhook.enabled);
    expect((await subscription.call('webhooks.get')).data.webhook).toMatchObject({ disabledBy: 'gone' });
    const mail = await scenario().stack.waitForMail({ to: admin.email, subject: 'webhook' });
    expect(mail.text).toContain(`127.0.0.1:${subscription.receiver.port}`);
    expect(mail.text).not.toContain('/hook');
    const missed = await registered(scenario());
    // Now the event has a number.
    await arrived(witness, missed.id, created);
    subscription.receiver.answer = answering(204);
    expect(subscription.about(missed.id)).toEqual([]);
    await subscription.call('webhooks.update', { enabled: true });
    const later = await subscription.call('webhooks.redeliverSince', { after: Math.ceil(Date.now() / 1000) + 60 });
    expect(later.data.events).toBe(0);
    const { data } = await subscription.call('webhooks.redeliverSince', { after: since - 1 });
    expect(data.events).toBeGreaterThanOrEqual(2);
    await arrived(subscription, missed.id, created);
    await until(() => subscription.about(person.id).length > 1);
    expect(new Set(subscription.about(person.id).map(({ id }) => id)).size).toBe(1);
    await Promise.all([subscription.stop(), witness.stop()]);
  });

  test('after three days without a success a webhook is disabled, and administrators are mailed', async () => {
    const admin = await administrator(scenario());
    const subscription = await subscribed(scenario(), { types: created });
    subscription.receiver.answer = answering(500);
    const first = await registered(scenario());
    await until(async () => (await subscription.call('webhooks.get')).data.webhook.failingSince !== null);
    const age = async (days: number) => {
      await scenario().stack.database('update webhooks set failing_since = failing_since - ? where id = ?', [
        days * DAY_MS,
        subscription.id,
      ]);
      const tries = subscription.about(first.id).length;
      await tryNow(scenario().stack, subscription.id);
      await until(() => subscription.about(first.id).length > tries);
    };
    await age(2.9);
    await until(async () => (await subscription.deliveries()).some(({ attempts }) => attempts === 2));
    expect((await subscription.call('webhooks.get')).data.webhook.enabled).toBe(true);
    await age(0.2);
    await until(async () => !(await subscription.call('webhooks.get')).data.webhook.enabled);
    expect((await subscription.call('webhooks.get')).data.webhook.disabledBy).toBe('failing');
    await scenario().stack.waitForMail({ to: admin.email, subject: 'webhook' });
    await subscription.stop();
  });

  test('one delivery is redelivered with the same id', async () => {
    const subscription = await subscribed(scenario(), { types: created });
    const person = await registered(scenario());
    await arrived(subscription, person.id, created);
    const [{ id }] = subscription.about(person.id) as [Received];
    await until(async () => (await standing(subscription, id)()).state === 'delivered');
    const reply = await subscription.call('webhooks.redeliver', { deliveryId: id });
    expect(reply.data).toEqual({ success: true, message: 'The event will be sent again.' });
    await arrived(subscription, person.id, [...created, ...created]);
    expect(subscription.about(person.id)[1]).toMatchObject({ id });
    await subscription.stop();
  });

  test('deliveries are listed in pages, newest first', async () => {
    const subscription = await subscribed(scenario(), { types: created });
    const people = [await registered(scenario()), await registered(scenario()), await registered(scenario())];
    for (const { id } of people) await arrived(subscription, id, created);
    const ids = people.map(({ id }) => subscription.about(id)[0]?.id).toReversed();
    const first = await subscription.call('webhooks.deliveries', { limit: 2 });
    const second = await subscription.call('webhooks.deliveries', { limit: 2, cursor: first.data.nextCursor });
    expect([first, second].map(({ data }) => data.data.map(({ id }: { id: string }) => id))).toEqual([
      ids.slice(0, 2),
      ids.slice(2),
    ]);
    expect(second.data).not.toHaveProperty('nextCursor');
    await subscription.stop();
  });

  test('both secrets sign after a rotation', async () => {
    const subscription = await subscribed(scenario(), { types: created });
    const { data } = await subscription.call('webhooks.rotateSecret');
    const person = await registered(scenario());
    await arrived(subscription, person.id, created);
    const [{ headers, body, event }] = subscription.about(person.id) as [Received];
    expect(headers['webhook-signature']?.split(' ')).toHaveLength(2);
    for (const secret of [subscription.secret, data.secret])
      expect(new Webhook(secret).verify(body, headers)).toEqual(event);
    await scenario().stack.database('update webhooks set former_until = 1 where id = ?', [subscription.id]);
    const later = await registered(scenario());
    await arrived(subscription, later.id, created);
    const [after] = subscription.about(later.id) as [Received];
    expect(() => new Webhook(subscription.secret).verify(after.body, after.headers)).toThrow();
    expect(new Webhook(data.secret).verify(after.body, after.headers)).toEqual(after.event);
    await subscription.stop();
  });

  test('a test event is sent at once, even to a disabled webhook, and its outcome is returned', async () => {
    const subscription = await subscribed(scenario(), { types: ['user.restored'] });
    await subscription.call('webhooks.update', { enabled: false });
    subscription.receiver.answer = answering(201, 'thank you');
    expect((await subscription.call('webhooks.test')).data).toEqual({
      success: true,
      status: 201,
      answer: 'thank you',
      durationMs: expect.any(Number),
    });
    const [{ headers, body, event }] = subscription.receiver.received as [Received];
    expect(event).toMatchObject({ type: 'webhook.test', number: 0, data: { webhookId: subscription.id } });
    expect(new Webhook(subscription.secret).verify(body, headers)).toEqual(event);
    subscription.receiver.answer = answering(500, 'no');
    expect((await subscription.call('webhooks.test')).data).toMatchObject({
      success: false,
      status: 500,
      answer: 'no',
    });
    subscription.receiver.answer = (response) => response.destroy();
    expect((await subscription.call('webhooks.test')).data).toMatchObject({ success: false, error: 'connection' });
    expect(await subscription.deliveries()).toEqual([]);
    await subscription.stop();
  });

  test('the removal of a user deletes the deliveries that name the user, and is itself delivered', async () => {
    const subscription = await subscribed(scenario());
    const person = await loggedIn(scenario());
    const other = await registered(scenario());
    await until(() => subscription.about(person.id).length >= 3);
    await scenario().call('account.delete', {}, { session: person.session });
    await until(() => subscription.about(person.id).some(({ event }) => event.type === 'user.deletion_requested'));
    const { database } = scenario().stack;
    await database('update removals set due_at = 1 where user_id = ?', [person.id]);
    await until(async () => (await database('select id from users where id = ?', [person.id])).length === 0);
    const rows = () => database('select kind from webhook_deliveries where user_id = ?', [person.id]);
    await until(async () => (await rows()).length === 0, { what: 'no delivery' });
    // As if the removal had begun, and mails been sent, more than an hour before.
    await database('update outbox set created_at = created_at - 3600001 where email = ?', [person.email]);
    await database('update removals set begun_at = begun_at - 3600000, due_at = 1 where user_id = ?', [person.id]);
    await until(() => subscription.about(person.id).some(({ event }) => event.type === 'user.removed'), {
      within: 30_000,
      what: 'user.removed',
    });
    expect(await rows()).toEqual([{ kind: 'user-removed' }]);
    expect(await database('select kind from webhook_deliveries where user_id = ?', [other.id])).not.toEqual([]);
    await subscription.stop();
  });

  test('the export has no deliveries', async () => {
    const subscription = await subscribed(scenario());
    const person = await loggedIn(scenario());
    await until(() => subscription.about(person.id).length >= 3);
    const { data } = await scenario().call('account.export', undefined, { session: person.session });
    expect(JSON.stringify(data)).not.toMatch(/webhook|deliver/i);
    await subscription.stop();
  });
}, withWebhooks);

describe('slow and dead receivers', () => {
  everywhere((scenario) => {
    test('hold back only themselves', async () => {
      const good = await subscribed(scenario(), { types: created });
      const bad = [
        () => undefined,
        answering(500),
        (response: import('node:http').ServerResponse) => void response.destroy(),
        (response: import('node:http').ServerResponse) => {
          response.writeHead(200);
          const timer = setInterval(() => response.write('x'.repeat(64)), 20);
          response.on('close', () => clearInterval(timer));
        },
      ];
      const others: Subscribed[] = [];
      for (const answer of bad) {
        const subscription = await subscribed(scenario(), { types: created });
        subscription.receiver.answer = answer;
        others.push(subscription);
      }
      for (let i = 0; i < 20; i++) {
        const { id } = await registered(scenario());
        // Sooner than a receiver that hangs is given up.
        await arrived(good, id, created);
      }
      for (const { receiver } of others) expect(receiver.received.length).toBeGreaterThan(0);
      const [hanging] = others as [Subscribed];
      // At most WEBHOOK_CONCURRENCY in flight until the first is given up.
      const [first] = hanging.receiver.received as [Received];
      expect(hanging.receiver.received.filter(({ at }) => at - first.at < 10_000).length).toBeLessThanOrEqual(8);
      await Promise.all([good, ...others].map((one) => one.stop()));
    });
  }, withWebhooks);
});
