import { createHash, randomUUID } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { eventSchemas, type PublicEvent } from '../../../server/events/catalogue.ts';
import { type EventType, eventTypes } from '../../../server/shared/event-types.ts';
import { loadClient } from '../../rig/client/client.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import { startHttpScanner } from '../../rig/servers/scanner.ts';
import { until } from '../../rig/until.ts';
import type { Call } from '../rig/callers.ts';
import { withKey } from '../rig/key-scenario.ts';
import { startTwoProviders } from '../rig/linked-logins.ts';
import { withPasskey } from '../rig/passkey-scenario.ts';
import { relyingParty } from '../rig/relying-party.ts';
import {
  administrator,
  everywhere,
  expectRefusal,
  inBrowser,
  loggedIn,
  mailedToken,
  PASSWORD,
  registered,
  type Scenario,
  verified,
} from '../rig/scenario.ts';
import { withApp } from '../rig/totp-scenario.ts';
import { png } from '../uploads/corpus.ts';
import { INFECTED } from '../uploads/scan.ts';
import { put } from '../uploads/storage.ts';

/** What other systems learn of accounts: each public type, and the feed that has them in one order. */
const TOKEN = 'reader-token';
const OTHER = 'other-token';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const { env: providers, withLinked } = await startTwoProviders();
const scanner = await startHttpScanner();
afterAll(() => scanner.stop());
const env = { ...providers, SCAN_URL: scanner.url, SERVICE_TOKENS: `reader:${sha256(TOKEN)},other:${sha256(OTHER)}` };

const asReader = (token = TOKEN) => ({ headers: { authorization: `Bearer ${token}` } });

interface Page {
  data: PublicEvent[];
  next: number;
  last: number;
}

async function feed(call: Call, input: object, token = TOKEN): Promise<Page> {
  const reply = await call('service.events', { after: 0, ...input }, asReader(token));
  expect(reply).toMatchObject({ status: 200, code: undefined });
  return reply.data;
}

/** Every event of a user, in the order of the stream. */
async function eventsOf(call: Call, userId: string): Promise<PublicEvent[]> {
  const found: PublicEvent[] = [];
  for (let after = 0; ; ) {
    const page = await feed(call, { after, limit: 1000 });
    found.push(...page.data.filter(({ data }) => data.userId === userId));
    if (page.next >= page.last) return found;
    after = page.next;
  }
}

const ok = async (reply: ReturnType<Call>) => {
  const { status, code, data } = await reply;
  expect({ status, code }).toEqual({ status: 200, code: undefined });
  return data;
};

/** The user of an event, and what its data has beside the user's id. */
interface Expected {
  userId: string;
  data?: object;
  /** `user` by default. */
  actor?: string;
  /** What the event must not name. */
  secrets?: string[];
}

const byAdministrator =
  (procedure: string, input: object = {}, data: object = {}) =>
  async (scenario: Scenario): Promise<Expected> => {
    const [{ id }, { session }] = [await loggedIn(scenario), await administrator(scenario)];
    await ok(scenario.call(procedure, { id, ...input }, { session }));
    return { userId: id, data, actor: 'administrator' };
  };

const asUser =
  (procedure: string, input: object | undefined, data: object = {}) =>
  async (scenario: Scenario): Promise<Expected> => {
    const { id, session } = await loggedIn(scenario);
    await ok(scenario.call(procedure, input, { session }));
    return { userId: id, data };
  };

async function stored({ stack }: Scenario, session: string): Promise<string> {
  const body = new FormData();
  body.append('type', 'post');
  body.append('file', new File([new Uint8Array(await png())], 'ada.png', { type: 'image/png' }));
  const headers = { cookie: `auth_session=${session}` };
  const response = await fetch(`${stack.url}/api/upload/image`, { method: 'POST', body, headers });
  const { url } = (await response.json()) as { url: string };
  return url.slice(url.indexOf('uploads/'));
}

/** One act for each type. */
const acts: Record<EventType, (scenario: Scenario) => Promise<Expected>> = {
  async 'user.created'(scenario) {
    const { id, email } = await registered(scenario);
    return { userId: id, data: { method: 'password' }, secrets: [email] };
  },
  async 'user.verified'(scenario) {
    const { id, email } = await verified(scenario);
    return { userId: id, secrets: [email] };
  },
  'user.updated': asUser('profile.update', { bio: 'Secret', location: 'London' }, { fields: ['bio', 'location'] }),
  async 'user.email_changed'(scenario) {
    const { id, email: former, session } = await loggedIn(scenario);
    const email = freshEmail();
    await ok(scenario.call('account.changeEmail', { email }, inBrowser(session)));
    const token = await mailedToken(scenario.stack, email, 'confirm-email');
    await ok(scenario.call('account.confirmEmail', { token }, inBrowser(session)));
    return { userId: id, secrets: [former, email, token] };
  },
  'user.deletion_requested': asUser('account.delete', undefined, { removedAfter: expect.any(String) }),
  async 'grant.created'(scenario) {
    const party = await relyingParty(scenario);
    const { id, session } = await loggedIn(scenario);
    await party.logIn(session);
    return { userId: id, data: { applicationId: party.id } };
  },
  async 'grant.revoked'(scenario) {
    const party = await relyingParty(scenario);
    const { id, session } = await loggedIn(scenario);
    await party.logIn(session);
    await ok(scenario.call('grants.revoke', { id: party.id }, { session }));
    return { userId: id, data: { applicationId: party.id } };
  },
  async 'user.restored'(scenario) {
    const { id, email, session } = await loggedIn(scenario);
    await ok(scenario.call('account.delete', undefined, { session }));
    await ok(scenario.call('account.restore', { email, password: PASSWORD }));
    return { userId: id };
  },
  async 'user.removed'(scenario) {
    const { id, email, session } = await loggedIn(scenario);
    await ok(scenario.call('account.delete', undefined, { session }));
    await remove(scenario, id);
    return { userId: id, secrets: [email, '"actor"'] };
  },
  'user.blocked': byAdministrator('users.block'),
  async 'user.unblocked'(scenario) {
    const [{ id }, { session }] = [await loggedIn(scenario), await administrator(scenario)];
    await ok(scenario.call('users.block', { id }, { session }));
    await ok(scenario.call('users.unblock', { id }, { session }));
    return { userId: id, actor: 'administrator' };
  },
  'user.role_changed': byAdministrator('users.setRole', { role: 'admin' }, { role: 'admin' }),
  'user.password_changed': asUser(
    'account.changePassword',
    { currentPassword: PASSWORD, newPassword: 'Difference-Engine-1822' },
    { by: 'user' },
  ),
  async 'session.created'(scenario) {
    const { id, session } = await loggedIn(scenario);
    const sessionId = await onlySession(scenario, session);
    return { userId: id, data: { sessionId, method: 'password' }, secrets: [session, sha256(session)] };
  },
  async 'session.ended'(scenario) {
    const { id, session } = await loggedIn(scenario);
    const sessionId = await onlySession(scenario, session);
    await ok(scenario.call('auth.logout', undefined, { session }));
    return { userId: id, data: { sessionId }, secrets: [session, sha256(session)] };
  },
  'sessions.ended': asUser('auth.logoutAll', undefined),
  async 'identity.linked'({ stack }) {
    const { id, identity } = await withLinked(stack);
    return { userId: id, data: { provider: 'acme' }, secrets: [identity.sub] };
  },
  async 'identity.unlinked'({ stack, call }) {
    const { id, session } = await withLinked(stack);
    const [linked] = (await call('identities.list', undefined, { session })).data.data;
    await ok(call('identities.unlink', { id: linked.id }, { session }));
    return { userId: id, data: { provider: 'acme' } };
  },
  async 'passkey.added'(scenario) {
    const { id, passkey } = await withPasskey(scenario);
    return { userId: id, data: { passkeyId: passkey.id }, secrets: [passkey.name] };
  },
  async 'passkey.removed'(scenario) {
    const { id, session, passkey } = await withPasskey(scenario);
    await ok(scenario.call('passkeys.remove', { id: passkey.id }, { session }));
    return { userId: id, data: { passkeyId: passkey.id } };
  },
  async 'key.created'(scenario) {
    const { id, key, secret } = await withKey(scenario, { name: 'Secret', scopes: ['profile:read', 'email'] });
    const data = { keyId: key.id, scopes: ['profile:read', 'email'] };
    return { userId: id, data, secrets: ['Secret', secret, sha256(secret)] };
  },
  async 'key.revoked'(scenario) {
    const { id, session, key, secret } = await withKey(scenario);
    await ok(scenario.call('keys.revoke', { id: key.id }, { session }));
    return { userId: id, data: { keyId: key.id }, secrets: [secret] };
  },
  async 'second_factor.enabled'(scenario) {
    const { id, secret, recoveryCodes } = await withApp(scenario);
    return { userId: id, data: { secondFactor: 'totp' }, secrets: [secret, ...recoveryCodes] };
  },
  async 'second_factor.disabled'(scenario) {
    const { id, session } = await withApp(scenario);
    await ok(scenario.call('totp.disable', undefined, { session }));
    return { userId: id, data: { secondFactor: 'totp' } };
  },
  async 'login.refused'(scenario) {
    const { id, email } = await verified(scenario);
    await scenario.call('auth.login', { email, password: 'Wrong-Password-1' }, { address: '203.0.113.99' });
    return { userId: id, data: { reason: 'wrong-password' }, secrets: ['203.0.113.99'] };
  },
  async 'upload.stored'(scenario) {
    const { id, session } = await loggedIn(scenario);
    return { userId: id, data: { key: await stored(scenario, session) } };
  },
  async 'upload.quarantined'(scenario) {
    const { id, session } = await loggedIn(scenario);
    const declared = { filename: 'a.pdf', contentType: 'application/pdf', size: INFECTED.length };
    const { presignedUrl, key } = (await scenario.call('upload.presign', declared, { session })).data;
    expect((await put(presignedUrl, INFECTED, { 'content-type': 'application/pdf' })).status).toBe(200);
    await ok(scenario.call('upload.confirm', { key }, { session }));
    return { userId: id, data: { key, finding: 'Rig-Malware', deletedAfter: expect.any(String) } };
  },
  async 'upload.removed'(scenario) {
    const { id, session } = await loggedIn(scenario);
    const key = await stored(scenario, session);
    await ok(scenario.call('upload.remove', { name: key.replace('uploads/', '') }, { session }));
    return { userId: id, data: { key } };
  },
};

/** The id of the user's only session. */
async function onlySession({ call }: Scenario, session: string): Promise<string> {
  const { data } = await call('sessions.list', undefined, { session });
  expect(data.data).toHaveLength(1);
  return data.data[0].id;
}

/** As if the times of a removal had passed. */
const remove = ({ stack: { database } }: Scenario, userId: string) =>
  until(
    async () => {
      await database('update removals set due_at = 1 where user_id = ? and begun_at is null', [userId]);
      await database('update outbox set created_at = created_at - 3600001 where user_id = ?', [userId]);
      await database(
        'update removals set begun_at = begun_at - 600001, due_at = 1 where user_id = ? and begun_at > 1e12',
        [userId],
      );
      const left = await database('select user_id from removals where user_id = ?', [userId]);
      return left.length === 0;
    },
    { within: 30_000, what: 'the removal' },
  );

everywhere(
  (scenario) => {
    test.each(eventTypes)('%s is told once, with ids, fields and methods only', async (type) => {
      const { call } = scenario();
      const { userId, data = {}, actor = 'user', secrets = [] } = await acts[type](scenario());
      const found = await until(
        async () => {
          const events = (await eventsOf(call, userId)).filter((event) => event.type === type);
          return events.length > 0 ? events : undefined;
        },
        { what: type },
      );
      expect(found).toHaveLength(1);
      const [event] = found;
      expect(event?.data).toEqual({ userId, ...(type !== 'user.removed' && { actor }), ...data });
      expect(eventSchemas[type].strict().parse(event)).toEqual(event);
      expect(Math.abs(Date.now() - Date.parse(event?.timestamp ?? ''))).toBeLessThan(60_000);
      for (const secret of secrets) expect(JSON.stringify(event)).not.toContain(secret);
    });

    test('an account’s events come in the order in which they happened, to every reader the same', async () => {
      const { call } = scenario();
      const { id, session } = await loggedIn(scenario());
      for (const bio of ['a', 'b']) await ok(call('profile.update', { bio }, { session }));
      await ok(call('auth.logout', undefined, { session }));
      const types = await until(async () => {
        const events = (await eventsOf(call, id)).map(({ type }) => type);
        return events.includes('session.ended') ? events : undefined;
      });
      const changes: EventType[] = ['user.updated', 'user.updated'];
      expect(types).toEqual(['user.created', 'user.verified', 'session.created', ...changes, 'session.ended']);
      const [one, other] = [await feed(call, { limit: 1000 }), await feed(call, { limit: 1000 }, OTHER)];
      expect(other.data.slice(0, one.data.length)).toEqual(one.data);
      const numbers = one.data.map(({ number }) => number);
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    });

    test('after 60 changes of a profile within an hour, the latest event also names the fields of further ones', async () => {
      const { call } = scenario();
      const { id, session } = await loggedIn(scenario());
      for (let i = 0; i < 60; i++) await ok(call('profile.update', { bio: `${i}` }, { session }));
      for (const field of ['location', 'website', 'location'])
        await ok(call('profile.update', { [field]: `https://example.test/${randomUUID()}` }, { session }));
      await until(async () => {
        const updates = (await eventsOf(call, id)).filter(({ type }) => type === 'user.updated');
        const fields = updates.map((event) => 'fields' in event.data && event.data.fields);
        expect(fields).toEqual([...Array.from({ length: 59 }, () => ['bio']), ['bio', 'location', 'website']]);
        return true;
      });
    });

    test('pages and types: a reader that asks after `next` reads each event once', async () => {
      const { call } = scenario();
      const { id, session } = await loggedIn(scenario());
      for (const bio of ['a', 'b', 'c']) await ok(call('profile.update', { bio }, { session }));
      await until(async () => (await eventsOf(call, id)).length === 6);
      const all = (await feed(call, { limit: 1000 })).data;
      const paged: PublicEvent[] = [];
      let next = 0;
      for (;;) {
        const page = await feed(call, { after: next, limit: 2 });
        expect(page.data.length).toBeLessThanOrEqual(2);
        paged.push(...page.data);
        if (page.next === next) break;
        next = page.next;
      }
      expect(paged.slice(0, all.length)).toEqual(all);
      const types = ['user.updated', 'user.verified'];
      const filtered = await feed(call, { limit: 1000, types });
      expect(filtered.data.slice(0, all.length)).toEqual(
        expect.arrayContaining(all.filter(({ type }) => types.includes(type))),
      );
      expect(new Set(filtered.data.map(({ type }) => type))).toEqual(new Set(types));
      expect(filtered.next).toBe(filtered.last);
    });

    test('a call that waits is answered with the next event, of its types, or with none at its end', async () => {
      const { call } = scenario();
      const { id, session } = await loggedIn(scenario());
      await until(async () => (await eventsOf(call, id)).length === 3);
      const { next } = await feed(call, { limit: 1000 });
      const waiting = feed(call, { after: next, waitSeconds: 25, types: ['session.ended'] });
      await ok(call('profile.update', { bio: 'x' }, { session }));
      await ok(call('auth.logout', undefined, { session }));
      const page = await waiting;
      expect(page.data.map(({ type }) => type)).toEqual(['session.ended']);
      const { last } = await feed(call, {});
      for (const waitSeconds of [0.2, 0.0005])
        expect(await feed(call, { after: last, waitSeconds, types: ['user.removed'] })).toMatchObject({ data: [] });
    });

    test('a removed user’s other events are gone from the stream', async () => {
      const { call, stack } = scenario();
      const { id, session } = await loggedIn(scenario());
      await ok(call('account.delete', undefined, { session }));
      await until(async () => (await eventsOf(call, id)).length === 4);
      await remove(scenario(), id);
      const left = await until(async () => {
        const events = await eventsOf(call, id);
        return events.length === 1 ? events : undefined;
      });
      expect(left).toMatchObject([{ type: 'user.removed', data: { userId: id } }]);
      const [row] = await stack.database<object>('select * from activity where user_id = ?', [id]);
      expect(row).toMatchObject({
        address: '',
        device: 'Unknown device',
        request_id: '',
        actor_id: null,
        details: null,
      });
    });

    test('a reader that is too far behind is told so, as is one with a number that was never given', async () => {
      const { call } = scenario();
      const { last } = await feed(call, {});
      expectRefusal(await call('service.events', { after: last + 1000 }, asReader()), 410, 'EVENTS_EXPIRED');
    });

    test('followEvents of the client has every event of its types, waits for the next, and ends by its signal', async () => {
      const { call, stack } = scenario();
      const { createServiceClient, followEvents } = await loadClient();
      const client = createServiceClient({ url: stack.url, token: TOKEN });
      const { id, session } = await loggedIn(scenario());
      const leaving = new AbortController();
      const found: object[] = [];
      const types = ['user.created', 'user.updated', 'session.ended'];
      for await (const { type, data } of followEvents(client, { after: 0, types, signal: leaving.signal })) {
        if (!('userId' in data) || data.userId !== id) continue;
        found.push({ type });
        if (type === 'user.created') await ok(call('profile.update', { bio: 'x' }, { session }));
        if (type === 'user.updated') await ok(call('auth.logout', undefined, { session }));
        if (type === 'session.ended') leaving.abort();
      }
      expect(found).toEqual(types.map((type) => ({ type })));
    });

    test('only a service token reads events', async () => {
      const { call } = scenario();
      const { session } = await administrator(scenario());
      for (const options of [{}, { session }, asReader('wrong'), asReader(session)]) {
        expectRefusal(await call('service.events', { after: 0 }, options), 401, 'UNAUTHENTICATED');
      }
    });

    describe('malformed', () => {
      test.each([
        [{}],
        [{ after: -1 }],
        [{ after: 'x' }],
        [{ after: 0, limit: 0 }],
        [{ after: 0, limit: 1001 }],
        [{ after: 0, waitSeconds: 26 }],
        [{ after: 0, types: ['user.unknown'] }],
      ])('%j is refused', async (input) => {
        expectRefusal(await scenario().call('service.events', input, asReader()), 400, 'VALIDATION_FAILED');
      });

      test.each(['user.unknown', 'user.created,user.unknown', ''])('types “%s” are refused by name', async (types) => {
        const reply = await scenario().call('service.events', { after: 0, types }, asReader());
        expectRefusal(reply, 400, 'VALIDATION_FAILED');
        const message = 'Must have names of event types';
        expect(reply.details).toEqual({ types: expect.objectContaining({ message, rule: 'unknown_type' }) });
      });
    });
  },
  { env },
);
