import { v7 as uuidv7 } from 'uuid';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { createCustomFields } from '../../../server/accounts/users/index.ts';
import { createViews } from '../../../server/accounts/users/shown.ts';
import { firstIdOf } from '../../../server/activity/index.ts';
import type { PublicEvent } from '../../../server/events/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { WebhookResponse } from '../../../server/parts/webhook-sender/contract.ts';
import { createSecrets } from '../../../server/secrets.ts';
import { createDeliveries } from '../../../server/webhooks/deliveries.ts';
import { createDelivery } from '../../../server/webhooks/delivery.ts';
import { KEPT_MS } from '../../../server/webhooks/schedule.ts';
import { stackNames } from '../../contract/rig/scenario.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';
import { until } from '../../rig/until.ts';

const log = { info: () => undefined, warn: () => undefined } as never;
const secrets = createSecrets(['test']);

const ok = { status: 204, answer: '', retryAfter: undefined };

describe.each(stackNames)('on %s parts', (kind) => {
  const dataDir = temporaryDirectory('deliveries');
  let databaseUrl: string | undefined;
  let database: Database;
  const stops: (() => unknown)[] = [];
  beforeAll(async () => {
    databaseUrl = kind === 'real' ? await createDatabase(inject('mysqlUrl')) : undefined;
    database = await openDatabase({ databaseUrl, dataDir });
    await database.migrate();
  });
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
    await database.write((tables) => tables.deleteFrom('webhooks').execute());
    await database.write((tables) => tables.deleteFrom('webhook_deliveries').execute());
  });
  afterAll(async () => {
    await database.close();
    if (databaseUrl) await dropDatabase(databaseUrl);
  });

  const addWebhook = async (): Promise<string> => {
    const id = uuidv7();
    const values = {
      id,
      url: 'https://example.com/',
      types: '*',
      include: '',
      description: '',
      secret: secrets.seal('webhook', id, 'whsec_AAAA'),
      enabled_at: 0,
      due_at: 0,
      created_at: 0,
    };
    await database.write((tables) =>
      tables
        .insertInto('webhooks')
        .values(values as never)
        .execute(),
    );
    return id;
  };

  /** A delivery that is due. Resolves to the id of its event. */
  const addDelivery = async (
    webhookId: string,
    { number = 1, userId = 'user_a', kind = 'verified', eventId = uuidv7() } = {},
  ) => {
    const values = { webhook_id: webhookId, event_id: eventId, number, kind, user_id: userId };
    await database.write((tables) =>
      tables
        .insertInto('webhook_deliveries')
        .values({ ...values, state: 'waiting', attempts: 0, due_at: number, created_at: 0 } as never)
        .execute(),
    );
    return eventId;
  };

  const rows = () =>
    database.query((tables) =>
      tables
        .selectFrom('webhook_deliveries')
        .select(['event_id as id', 'state', 'attempts', 'due_at as dueAt'])
        .orderBy('number')
        .execute(),
    );

  /** The delivery of one process. Its receiver answers when the test says so. `onRead` runs before due rows are read. */
  const startDelivery = ({ concurrency = 1, onRead = async () => undefined as unknown } = {}) => {
    const deliveries = createDeliveries(database);
    const sent: { id: string; answer(response: WebhookResponse): void }[] = [];
    let releases = 0;
    const delivery = createDelivery({
      database: {
        ...database,
        write: (statement) => database.write(statement).finally(() => releases++),
      },
      deliveries: { ...deliveries, takeLanes: (...given) => onRead().then(() => deliveries.takeLanes(...given)) },
      readEvents: async (ids) => ids.map((id) => ({ id, data: {} }) as PublicEvent),
      users: { find: async () => undefined, views: createViews(createCustomFields()) },
      mailAdministrators: async () => undefined,
      wakeMails: () => undefined,
      logoutMessages: async () => [],
      sender: {
        problemOf: () => undefined,
        send({ headers }) {
          const { promise, resolve } = Promise.withResolvers<WebhookResponse>();
          sent.push({ id: headers['webhook-id'] ?? '', answer: resolve });
          return promise;
        },
        close: () => undefined,
      },
      secrets,
      log,
      concurrency,
      hasWebhooks: () => true,
    });
    delivery.start();
    stops.push(() => delivery.stop());
    return { sent, hasReleased: () => releases > 0 };
  };

  test('an outcome that arrives while due rows are read is stored before the next delivery of its user', async () => {
    const webhookId = await addWebhook();
    const ids = [await addDelivery(webhookId, { number: 1 }), await addDelivery(webhookId, { number: 2 })];
    const { sent } = startDelivery({
      concurrency: 2,
      async onRead() {
        const [first, ...others] = sent;
        if (!first || others.length > 0) return;
        first.answer(ok);
        // The outcome is known by then.
        await new Promise((resolve) => setImmediate(resolve));
      },
    });
    await until(() => sent.length === 2);
    sent[1]?.answer(ok);
    await until(async () => (await rows()).every(({ state }) => state === 'delivered'));
    expect(sent.map(({ id }) => id)).toEqual(ids);
  });

  test('deliveries in flight are not sent again beside them after a statement has failed', async () => {
    const webhookId = await addWebhook();
    const ids = [await addDelivery(webhookId), await addDelivery(webhookId, { number: 2, userId: 'user_b' })];
    let reads = 0;
    const { sent } = startDelivery({
      concurrency: 3,
      onRead: async () => {
        if (++reads === 2) throw new Error('the database refuses a statement');
      },
    });
    await until(() => reads === 2);
    for (const { answer } of sent) answer(ok);
    await until(async () => (await rows()).every(({ state }) => state === 'delivered'));
    expect(sent.map(({ id }) => id)).toEqual(ids);
  });

  test.each([
    ['has failed', { status: 500, answer: '', retryAfter: undefined }],
    ['was refused for good', { status: 410, answer: '', retryAfter: undefined }],
    ['had no response', { error: 'timeout' as const }],
    ['was delivered', ok],
  ])(
    'a process that has lost its lease delivers and postpones nothing more, whether its own try %s',
    async (_, late) => {
      const webhookId = await addWebhook();
      const [first, second, other] = [
        await addDelivery(webhookId, { number: 1 }),
        await addDelivery(webhookId, { number: 2 }),
        await addDelivery(webhookId, { number: 3, userId: 'user_b' }),
      ];
      const frozen = startDelivery();
      await until(() => frozen.sent.length === 1);
      // As if it had been frozen for longer than its lease.
      await database.write((tables) => tables.updateTable('webhooks').set({ due_at: 0 }).execute());
      const next = startDelivery();
      await until(() => next.sent.length === 1);
      const before = await rows();
      frozen.sent[0]?.answer(late);
      await until(frozen.hasReleased);
      const state = late === ok ? { state: 'delivered', attempts: 1, dueAt: null } : {};
      expect(await rows()).toEqual([{ ...before[0], ...state }, ...before.slice(1)]);
      const webhook = await database.query((tables) =>
        tables.selectFrom('webhooks').select(['disabled_by', 'failing_since']).executeTakeFirstOrThrow(),
      );
      expect(webhook).toEqual({ disabled_by: null, failing_since: null });
      for (let i = 0; i < 3; i++) {
        await until(() => next.sent.length > i);
        next.sent[i]?.answer(ok);
      }
      await until(async () => (await rows()).every(({ state }) => state === 'delivered'));
      expect(frozen.sent.map(({ id }) => id)).toEqual([first]);
      expect(next.sent.map(({ id }) => id)).toEqual([first, second, other]);
    },
  );

  test('an event of a newer release waits for a newer process, and holds back no other', async () => {
    const webhookId = await addWebhook();
    const kinds = ['verified', 'of-a-newer-release', 'verified'];
    const ids: string[] = [];
    for (const [i, kind] of kinds.entries()) ids.push(await addDelivery(webhookId, { number: i + 1, kind }));
    const { sent } = startDelivery();
    for (const i of [0, 1]) {
      await until(() => sent.length > i);
      sent[i]?.answer(ok);
    }
    await until(async () => (await rows()).filter(({ state }) => state === 'delivered').length === 2);
    expect((await rows())[1]).toEqual({ id: ids[1], state: 'waiting', attempts: 0, dueAt: 2 });
    // A process that knows the kind.
    await database.write((tables) => tables.updateTable('webhook_deliveries').set({ kind: 'verified' }).execute());
    await until(() => sent.length === 3);
    sent[2]?.answer(ok);
    expect(sent.map(({ id }) => id)).toEqual([ids[0], ids[2], ids[1]]);
  });

  test('very many waiting deliveries of a user are postponed some at a time, and none is tried before the first', async () => {
    const webhookId = await addWebhook();
    const count = 1200;
    const ids: string[] = [];
    for (let number = 1; number <= count; number++) ids.push(await addDelivery(webhookId, { number }));
    const other = await addDelivery(webhookId, { number: count + 1, userId: 'user_b' });
    const postponed = async () => (await rows()).filter(({ dueAt }) => Number(dueAt) > count + 1).length;
    const after: number[] = [];
    const change: Database['change'] = (...given) =>
      database.change(...given).finally(async () => after.push(await postponed()));
    const deliveries = createDeliveries({ ...database, change });
    const delivery = { eventId: ids[0] ?? '', number: 1, userId: 'user_a', attempts: 0 };
    await database.change((tables) =>
      deliveries.record(tables, webhookId, { delivery, state: 'waiting', retryInMs: 3_600_000 }),
    );
    after.push(await postponed());
    // The first look finds only theirs.
    expect([...(await deliveries.takeLanes(webhookId, [])).keys()]).toEqual([]);
    const lanes = await deliveries.takeLanes(webhookId, []);
    expect([...lanes].map(([user, [first]]) => [user, first?.eventId])).toEqual([['user_b', other]]);
    expect(after.at(-1)).toBe(count);
    for (const [i, now] of after.entries()) expect(now - (after[i - 1] ?? 0)).toBeLessThanOrEqual(501);
  });

  test('the sweep deletes old deliveries and those of deleted webhooks, and no others', async () => {
    const webhookId = await addWebhook();
    const kept = await addDelivery(webhookId, { eventId: firstIdOf(Date.now() - KEPT_MS + 60_000) });
    await addDelivery(webhookId, { eventId: firstIdOf(Date.now() - KEPT_MS - 60_000) });
    await addDelivery(uuidv7());
    await createDeliveries(database).sweep();
    expect((await rows()).map(({ id }) => id)).toEqual([kept]);
  });

  test('the sweep keeps the deliveries of a webhook that is created meanwhile', async () => {
    const kept: string[] = [];
    await addDelivery(uuidv7());
    const meanwhile: Database = {
      ...database,
      async query(read) {
        if (kept.length < 5) kept.push(await addDelivery(await addWebhook()));
        return database.query(read);
      },
    };
    await createDeliveries(meanwhile).sweep();
    expect(kept).toHaveLength(5);
    expect((await rows()).map(({ id }) => id).toSorted()).toEqual(kept.toSorted());
  });
});
