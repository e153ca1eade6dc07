import { describe, expect, test } from 'vitest';
import {
  administrator,
  eventsOf,
  everywhere,
  expectRefusal,
  growOld,
  loggedIn,
  type Scenario,
} from '../rig/scenario.ts';
import { withWebhooks } from '../rig/webhook-scenario.ts';

/** What administrators do with webhooks. */

const UNKNOWN = '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c';
const URL = 'https://hooks.example.com/accounts';
const fields = { url: URL, types: ['user.created', 'user.removed'] };

const changes: [procedure: string, input: object][] = [
  ['webhooks.create', fields],
  ['webhooks.update', { id: UNKNOWN, description: 'x' }],
  ['webhooks.delete', { id: UNKNOWN }],
  ['webhooks.rotateSecret', { id: UNKNOWN }],
  ['webhooks.test', { id: UNKNOWN }],
  ['webhooks.redeliver', { id: UNKNOWN, deliveryId: UNKNOWN }],
  ['webhooks.redeliverSince', { id: UNKNOWN, after: 1 }],
];
const reads: [procedure: string, input: object | undefined][] = [
  ['webhooks.list', undefined],
  ['webhooks.get', { id: UNKNOWN }],
  ['webhooks.deliveries', { id: UNKNOWN }],
];

everywhere((scenario) => {
  const created = async (given: object = {}) => {
    const { session, id: adminId } = await administrator(scenario());
    const reply = await scenario().call('webhooks.create', { ...fields, ...given }, { session });
    expect(reply.code).toBeUndefined();
    const { webhook, secret } = reply.data;
    const call = (procedure: string, input: object = {}) =>
      scenario().call(procedure, { id: webhook.id, ...input }, { session });
    return { webhook, secret, session, adminId, call };
  };

  test('a new webhook is listed without its secret, which is stored encrypted', async () => {
    const { webhook, secret, session, adminId, call } = await created({ include: ['user'], description: 'CRM' });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(webhook).toMatchObject({
      ...fields,
      include: ['user'],
      description: 'CRM',
      enabled: true,
      disabledBy: null,
      failingSince: null,
    });
    const { data: list } = await scenario().call('webhooks.list', undefined, { session });
    expect(list.data).toContainEqual(webhook);
    expect((await call('webhooks.get')).data).toEqual({ webhook });
    expect(JSON.stringify(list)).not.toContain(secret);
    const [row] = await scenario().stack.database<{ secret: string }>('select * from webhooks where id = ?', [
      webhook.id,
    ]);
    expect(JSON.stringify(row)).not.toContain(secret.slice('whsec_'.length));
    expect(await eventsOf(scenario().stack, adminId, 'webhook-added')).toEqual([{ url: URL }]);
  });

  test('an update changes what is sent, and enables or disables', async () => {
    const { webhook, call } = await created();
    const other = { url: 'https://other.example.com/', types: ['*'], include: ['user'], description: 'Other' };
    expect((await call('webhooks.update', other)).data.webhook).toEqual({ ...webhook, ...other });
    const disabled = await call('webhooks.update', { enabled: false });
    expect(disabled.data.webhook).toMatchObject({ ...other, enabled: false, disabledBy: 'administrator' });
    const enabled = await call('webhooks.update', { enabled: true, include: [] });
    expect(enabled.data.webhook).toEqual({ ...webhook, ...other, include: [] });
    expect((await call('webhooks.update')).data.webhook).toEqual(enabled.data.webhook);
  });

  test('a deleted webhook is gone', async () => {
    const { call, adminId } = await created();
    expect((await call('webhooks.delete')).data).toEqual({ success: true, message: 'The webhook is removed.' });
    expectRefusal(await call('webhooks.get'), 404, 'NOT_FOUND', 'There is no such webhook');
    expectRefusal(await call('webhooks.delete'), 404, 'NOT_FOUND', 'There is no such webhook');
    expect(await eventsOf(scenario().stack, adminId, 'webhook-removed')).toEqual([{ url: URL }]);
  });

  // checks: 73
  test('the webhooks of an administrator are disabled with the role, until another one enables them', async () => {
    // No event of these users is sent: a failed delivery would change the webhook.
    const { webhook, adminId } = await created({ types: ['user.removed'] });
    const { session } = await administrator(scenario());
    const act = (procedure: string, input: object) => scenario().call(procedure, input, { session });
    expect((await act('users.setRole', { id: adminId, role: 'user' })).code).toBeUndefined();
    const { data } = await act('webhooks.get', { id: webhook.id });
    expect(data.webhook).toEqual({ ...webhook, enabled: false, disabledBy: 'administrator' });
    const enabled = await act('webhooks.update', { id: webhook.id, enabled: true });
    expect(enabled.data.webhook).toEqual(webhook);
    const { session: third } = await administrator(scenario());
    await scenario().call('users.setRole', { id: adminId, role: 'admin' }, { session: third });
    await scenario().call('users.setRole', { id: adminId, role: 'user' }, { session: third });
    expect((await act('webhooks.get', { id: webhook.id })).data.webhook).toEqual(webhook);
  });

  // checks: 73
  test.each([
    ['changed', 'webhooks.update', { url: `${URL}/elsewhere` }],
    ['given a new secret', 'webhooks.rotateSecret', {}],
  ])('a webhook that another administrator has %s is disabled with the role of that one', async (_, change, input) => {
    const { webhook, call } = await created({ types: ['user.removed'] });
    const other = await administrator(scenario());
    const changed = await scenario().call(change, { id: webhook.id, ...input }, { session: other.session });
    expect(changed.code).toBeUndefined();
    expect((await call('users.setRole', { id: other.id, role: 'user' })).code).toBeUndefined();
    expect((await call('webhooks.get')).data.webhook).toMatchObject({ enabled: false, disabledBy: 'administrator' });
  });

  // checks: 73
  test('a change by another administrator does not keep a webhook beyond the role of its creator', async () => {
    const { webhook, adminId } = await created({ types: ['user.removed'] });
    const { session } = await administrator(scenario());
    const act = (procedure: string, input: object) => scenario().call(procedure, input, { session });
    expect((await act('webhooks.update', { id: webhook.id, ...{ description: 'CRM' } })).code).toBeUndefined();
    expect((await act('users.setRole', { id: adminId, role: 'user' })).code).toBeUndefined();
    expect((await act('webhooks.get', { id: webhook.id })).data.webhook.enabled).toBe(false);
  });

  test('a new secret is another one', async () => {
    const { secret, call } = await created();
    const { data } = await call('webhooks.rotateSecret');
    expect(data.secret).toMatch(/^whsec_/);
    expect(data.secret).not.toBe(secret);
    expect(data.formerUntil - Date.now() / 1000).toBeCloseTo(24 * 3600, -2);
  });

  test.each([
    ['no address', { url: 'hooks.example.com' }, 'url'],
    ['another protocol', { url: 'ftp://example.com/' }, 'url'],
    ['a password', { url: 'https://a:b@example.com/' }, 'url'],
    ['a private address', { url: 'https://10.0.0.1/' }, 'url'],
    ['the metadata of a cloud', { url: 'http://169.254.169.254/latest' }, 'url'],
    ['an address that is too long once it is encoded', { url: `https://example.com/${'ö'.repeat(500)}` }, 'url'],
    ['no type', { types: [] }, 'types'],
    ['an unknown type', { types: ['user.born'] }, 'types.0'],
    ['an unknown part', { include: ['password'] }, 'include.0'],
    ['half a character', { description: '\ud800' }, 'description'],
  ])('%s is refused', async (_what, given, field) => {
    const { session } = await administrator(scenario());
    const reply = await scenario().call('webhooks.create', { ...fields, ...given }, { session });
    expectRefusal(reply, 400, 'VALIDATION_FAILED');
    expect(Object.keys(reply.details ?? {})).toEqual([field]);
  });

  test('unknown and malformed ids are 404', async () => {
    const { session, webhook } = await created();
    const calls = [...changes.slice(1), ...reads.slice(1)];
    for (const id of [UNKNOWN, 'x']) {
      for (const [procedure, input] of calls) {
        const reply = await scenario().call(procedure, { ...input, id }, { session });
        expectRefusal(reply, 404, 'NOT_FOUND', 'There is no such webhook');
      }
      const reply = await scenario().call('webhooks.redeliver', { id: webhook.id, deliveryId: id }, { session });
      expectRefusal(reply, 404, 'NOT_FOUND', 'There is no such delivery');
    }
  });

  test('only administrators may read or change webhooks', async () => {
    const { session } = await loggedIn(scenario());
    for (const [procedure, input] of [...changes, ...reads]) {
      expectRefusal(await scenario().call(procedure, input), 401, 'UNAUTHENTICATED');
      expectRefusal(await scenario().call(procedure, input, { session }), 403, 'FORBIDDEN');
    }
  });

  test('changes need a recent credential', async () => {
    const { session, id } = await administrator(scenario());
    await growOld(scenario().stack, id);
    for (const [procedure, input] of changes)
      expectRefusal(await scenario().call(procedure, input, { session }), 403, 'REAUTHENTICATION_REQUIRED');
    expect((await scenario().call('webhooks.list', undefined, { session })).code).toBeUndefined();
  });

  test('a disabled webhook redelivers nothing', async () => {
    const { call } = await created();
    await call('webhooks.update', { enabled: false });
    for (const [procedure, input] of [
      ['webhooks.redeliver', { deliveryId: UNKNOWN }],
      ['webhooks.redeliverSince', { after: 1 }],
    ] as const)
      expectRefusal(await call(procedure, input), 409, 'WEBHOOK_DISABLED', 'The webhook is disabled');
  });
}, withWebhooks);

describe('the number of webhooks', () => {
  everywhere((scenario) => {
    test('is at most fifty, also when several are added at once', async () => {
      const { session } = await administrator(scenario());
      const fill = async ({ stack }: Scenario, count: number) => {
        for (let i = 0; i < count; i++)
          await stack.database(
            "insert into webhooks (id, url, types, include, description, secret, enabled_at, due_at, created_at) values (?, ?, '*', '', '', '', 0, 0, 0)",
            [`0000-${i}`, URL],
          );
      };
      await fill(scenario(), 49);
      const race = Array.from({ length: 8 }, () => scenario().call('webhooks.create', fields, { session }));
      const codes = (await Promise.all(race)).map(({ code }) => code ?? 'created').toSorted();
      expect(codes).toEqual([...Array(7).fill('TOO_MANY_WEBHOOKS'), 'created']);
      expectRefusal(await scenario().call('webhooks.create', fields, { session }), 409, 'TOO_MANY_WEBHOOKS');
      await scenario().stack.database('delete from webhooks');
    });
  });
});
