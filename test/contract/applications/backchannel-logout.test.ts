import { createRemoteJWKSet, customFetch, decodeJwt, type JWTPayload, jwtVerify } from 'jose';
import * as client from 'openid-client';
import { beforeAll, describe, expect, test } from 'vitest';
import { answering, startReceiver } from '../../rig/servers/receiver.ts';
import { until } from '../../rig/until.ts';
import { type RelyingParty, refused, relyingParty } from '../rig/relying-party.ts';
import {
  administrator,
  everywhere,
  expectRefusal,
  loggedIn,
  logIn,
  mailedToken,
  PASSWORD,
  type Scenario,
  sessionIn,
} from '../rig/scenario.ts';
import { tryNow, withWebhooks } from '../rig/webhook-scenario.ts';

/** Applications are told when logins at them end (OpenID Connect Back-Channel Logout 1.0). */

type User = Awaited<ReturnType<typeof loggedIn>>;
const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
const NEW_PASSWORD = 'Difference-Engine-1822';

/** An application with a receiver of its own. */
async function told(scenario: Scenario, given: object = {}) {
  const receiver = await startReceiver();
  const backchannelLogoutUri = `${receiver.url}/logged-out`;
  const party = await relyingParty(scenario, { backchannelLogoutUri, trusted: true, ...given });
  const claims = (): JWTPayload[] =>
    receiver.received.map(({ body }) => decodeJwt(new URLSearchParams(body).get('logout_token') ?? ''));
  return {
    party,
    receiver,
    claims,
    /** Waits until the ended logins that the application knows are these, in any order. */
    hasHeard: (sids: unknown[]) =>
      until(
        () => {
          expect(claims().map(({ sid }) => sid)).toHaveLength(sids.length);
          expect(new Set(claims().map(({ sid }) => sid))).toEqual(new Set(sids));
          return true;
        },
        { what: 'logout tokens' },
      ),
    /** Waits until every event so far has been delivered. */
    isQuiet: () =>
      until(async () => {
        const { database } = scenario.stack;
        const open = await database('select 1 from webhook_deliveries where due_at is not null limit 1');
        const unnumbered = await database('select 1 from activity where number is null limit 1');
        return open.length === 0 && unnumbered.length === 0;
      }),
  };
}

/** Logs in to the application; resolves to the `sid` of the ID token. */
async function loginAt(party: RelyingParty, session: string, parameters: Record<string, string> = {}) {
  const sid = (await party.logIn(session, parameters)).claims()?.['sid'];
  expect(sid).toMatch(/^[0-9a-f-]{36}$/);
  return sid as string;
}

const acts: [what: string, act: (scenario: Scenario, user: User) => Promise<unknown>][] = [
  ['the user logs out', ({ call }, { session }) => call('auth.logout', {}, { session })],
  ['the user logs out everywhere', ({ call }, { session }) => call('auth.logoutAll', {}, { session })],
  [
    'another session ends it',
    async ({ call }, user) => {
      const session = await logIn(call, user);
      const { data } = await call('sessions.list', undefined, { session });
      const { id } = data.data.find(({ current }: { current: boolean }) => !current);
      return call('sessions.end', { id }, { session });
    },
  ],
  [
    'the user resets the password',
    async ({ call, stack }, { email }) => {
      await call('auth.forgotPassword', { email });
      const token = await mailedToken(stack, email, 'reset-password');
      return call('auth.resetPassword', { token, email, password: NEW_PASSWORD });
    },
  ],
  [
    'the user changes the password',
    ({ call }, { session }) =>
      call('account.changePassword', { currentPassword: PASSWORD, newPassword: NEW_PASSWORD }, { session }),
  ],
  ['the user deletes the account', ({ call }, { session }) => call('account.delete', {}, { session })],
  [
    'an administrator blocks the user',
    async (scenario, { id }) =>
      scenario.call('users.block', { id }, { session: (await administrator(scenario)).session }),
  ],
];

everywhere((scenario) => {
  let shop: Awaited<ReturnType<typeof told>>;
  let forum: Awaited<ReturnType<typeof told>>;
  beforeAll(async () => {
    [shop, forum] = [await told(scenario()), await told(scenario())];
    return async () => {
      for (const { party, receiver } of [shop, forum]) {
        await party.asAdministrator('applications.delete');
        await receiver.stop();
      }
    };
  });

  test('the application gets a logout token that its library can check', async () => {
    const { party, receiver, hasHeard } = await told(scenario());
    const user = await loggedIn(scenario());
    const sid = await loginAt(party, user.session);
    await scenario().call('auth.logout', {}, { session: user.session });
    await hasHeard([sid]);
    const [{ path, headers, body }] = receiver.received as [(typeof receiver.received)[0]];
    expect(path).toBe('/logged-out');
    expect(headers['content-type']).toBe('application/x-www-form-urlencoded');
    const form = Object.fromEntries(new URLSearchParams(body));
    expect(Object.keys(form)).toEqual(['logout_token']);
    const keys = createRemoteJWKSet(new URL(party.config.serverMetadata().jwks_uri ?? ''), {
      [customFetch]: (url, options) => fetch(party.at(url), options),
    });
    const { payload, protectedHeader } = await jwtVerify(form['logout_token'] ?? '', keys, {
      issuer: scenario().stack.appUrl,
      audience: party.id,
      typ: 'logout+jwt',
      algorithms: ['ES256'],
      maxTokenAge: 60,
      requiredClaims: ['exp', 'jti'],
    });
    expect(protectedHeader.kid).toBeTruthy();
    expect(payload).toMatchObject({ sub: user.id, sid, events: { [EVENT]: {} } });
    expect(payload).not.toHaveProperty('nonce');
    expect(payload['toe']).toBeLessThanOrEqual(Number(payload.iat));
    expect(Number(payload.exp) - Number(payload.iat)).toBe(120);
    expect(party.config.serverMetadata()).toMatchObject({
      backchannel_logout_supported: true,
      backchannel_logout_session_supported: true,
    });
    await receiver.stop();
  });

  describe.each(acts)('if %s', (_what, act) => {
    // checks: 87
    test('each application with a login in an ended session is told, once', async () => {
      const user = await loggedIn(scenario());
      const [atShop, atForum] = [await loginAt(shop.party, user.session), await loginAt(forum.party, user.session)];
      const before = [shop.claims().length, forum.claims().length];
      expect(await act(scenario(), user)).toMatchObject({ code: undefined });
      await until(
        () => shop.claims().some(({ sid }) => sid === atShop) && forum.claims().some(({ sid }) => sid === atForum),
      );
      await shop.isQuiet();
      expect([shop.claims().length, forum.claims().length]).toEqual(before.map((count) => count + 1));
      expect(shop.claims().at(-1)).toMatchObject({ sub: user.id, aud: shop.party.id });
    });
  });

  // checks: 87
  test('logins in other sessions, of other users and at other applications are not told', async () => {
    const user = await loggedIn(scenario());
    const [atShop, another] = [await loginAt(shop.party, user.session), await loggedIn(scenario())];
    await loginAt(shop.party, another.session);
    const other = await logIn(scenario().call, user);
    const atForum = await loginAt(forum.party, other);
    const kept = await loginAt(shop.party, other);
    await scenario().call('profile.update', { name: 'Countess' }, { session: user.session });
    const before = forum.claims().length;
    await scenario().call('auth.logout', {}, { session: user.session });
    await until(() => shop.claims().some(({ sid }) => sid === atShop));
    await shop.isQuiet();
    expect(shop.claims().filter(({ sub }) => sub === user.id)).toHaveLength(1);
    expect(shop.claims().some(({ sid, sub }) => sid === kept || sub === another.id)).toBe(false);
    expect(forum.claims()).toHaveLength(before);
    await scenario().call('auth.logout', {}, { session: other });
    await until(() => shop.claims().some(({ sid }) => sid === kept));
    await until(() => forum.claims().some(({ sid }) => sid === atForum));
  });

  test('a login with offline_access is told too, and its tokens stay valid', async () => {
    const user = await loggedIn(scenario());
    const tokens = await shop.party.logIn(user.session, { scope: 'openid offline_access', prompt: 'consent' });
    await scenario().call('auth.logout', {}, { session: user.session });
    await until(() => shop.claims().some(({ sid }) => sid === tokens.claims()?.['sid']));
    const refreshed = await client.refreshTokenGrant(shop.party.config, tokens.refresh_token ?? '');
    expect(refreshed.claims()?.['sid']).toBe(tokens.claims()?.['sid']);
  });

  test('if the user ends the access, all logins at the application have ended; if a code is used twice, one', async () => {
    const user = await loggedIn(scenario());
    await loginAt(shop.party, user.session);
    await scenario().call('grants.revoke', { id: shop.party.id }, { session: user.session });
    await until(() => shop.claims().some(({ sub, sid }) => sub === user.id && sid === undefined));

    const { callback, verifier } = await shop.party.authorize(user.session);
    const tokens = await shop.party.redeem(callback as URL, verifier);
    expect(await refused(shop.party.redeem(callback as URL, verifier))).toBe('invalid_grant');
    await until(() => shop.claims().some(({ sid }) => sid === tokens.claims()?.['sid']));
    // Neither is told again.
    await scenario().call('auth.logout', {}, { session: user.session });
    await shop.isQuiet();
    expect(shop.claims().filter(({ sub }) => sub === user.id)).toHaveLength(2);
    expect(forum.claims().some(({ sub }) => sub === user.id)).toBe(false);
  });

  // checks: 87
  test('a refused message is sent again as a new token; accepted ones are not', async () => {
    const { party, receiver, claims, isQuiet } = await told(scenario());
    const user = await loggedIn(scenario());
    const first = await loginAt(party, user.session);
    const second = await loginAt(party, await logIn(scenario().call, user));
    let isAccepting = true;
    receiver.answer = (response) => {
      response.writeHead(isAccepting ? 200 : 400).end();
      isAccepting = false;
    };
    await scenario().call('auth.logoutAll', {}, { session: user.session });
    await until(() => claims().length === 2);
    // As if the message were repeated a minute later.
    const { database } = scenario().stack;
    await database('update activity set created_at = created_at - 60000 where kind = ? and user_id = ?', [
      'sessions-ended',
      user.id,
    ]);
    receiver.answer = answering(204);
    await until(async () => {
      await tryNow(scenario().stack, party.id);
      return claims().length === 3;
    });
    await isQuiet();
    const sids = claims().map(({ sid }) => sid);
    expect(sids).toHaveLength(3);
    expect(new Set(sids)).toEqual(new Set([first, second]));
    expect(sids[2]).toBe(sids[1]);
    expect(claims()[2]?.jti).not.toBe(claims()[1]?.jti);
    expect(claims()[2]?.['toe']).toBe(Number(claims()[1]?.['toe']) - 60);
    await receiver.stop();
  });

  test('an address that is gone is not forgotten; a removed one, and a disabled application, get no messages', async () => {
    const { party, receiver, claims, isQuiet } = await told(scenario());
    receiver.answer = answering(410);
    const endOne = async () => {
      const { session } = await loggedIn(scenario());
      await loginAt(party, session);
      await scenario().call('auth.logout', {}, { session });
    };
    const change = async (input: object) =>
      expect(await party.asAdministrator('applications.update', input)).toMatchObject({ code: undefined });
    await endOne();
    await until(() => claims().length === 1);
    receiver.answer = answering(204);
    await until(async () => {
      await tryNow(scenario().stack, party.id);
      return claims().length === 2;
    });
    await change({ backchannelLogoutUri: null });
    await endOne();
    await change({ backchannelLogoutUri: `${receiver.url}/elsewhere` });
    await endOne();
    await until(() => receiver.received.at(-1)?.path === '/elsewhere');
    const { session } = await loggedIn(scenario());
    await loginAt(party, session);
    await change({ enabled: false });
    await scenario().call('auth.logout', {}, { session });
    await isQuiet();
    expect(claims()).toHaveLength(3);
    await receiver.stop();
  });

  test('an application that is allowed again after all sessions ended is told again', async () => {
    const user = await loggedIn(scenario());
    const before = await loginAt(shop.party, user.session);
    const changed = await scenario().call(
      'account.changePassword',
      { currentPassword: PASSWORD, newPassword: NEW_PASSWORD },
      { session: user.session },
    );
    await until(() => shop.claims().some(({ sid }) => sid === before));
    const session = sessionIn(changed);
    const after = await loginAt(shop.party, session ?? '');
    await scenario().call('auth.logout', {}, { session });
    await until(() => shop.claims().filter(({ sid }) => sid === after).length >= (after === before ? 2 : 1));
  });

  test.each([
    ['a service', { kind: 'service', redirectUris: [], scopes: ['a'] }, 'https://shop.example.com/out', 'not_allowed'],
    ['credentials', {}, 'https://ada:secret@shop.example.com/out', 'credentials'],
    ['a private address', {}, 'https://10.0.0.1/out', 'forbidden_address'],
    ['a fragment', {}, 'https://shop.example.com/out#x', 'malformed'],
    ['another scheme', {}, 'ftp://shop.example.com/out', 'malformed'],
    ['a character outside of ASCII', {}, 'https://shop.example.com/größe', 'malformed'],
  ])('%s is refused as an address', async (_what, given, backchannelLogoutUri, rule) => {
    const { session } = await administrator(scenario());
    const fields = { name: 'Shop', kind: 'web', redirectUris: ['https://a.example.com'], scopes: ['openid'], ...given };
    const reply = await scenario().call('applications.create', { ...fields, backchannelLogoutUri }, { session });
    expectRefusal(reply, 400, 'VALIDATION_FAILED');
    expect(reply.details).toMatchObject({ backchannelLogoutUri: { rule } });
  });

  test('an address for logouts is no webhook', async () => {
    const { session } = await administrator(scenario());
    const { id } = shop.party;
    const { data } = await scenario().call('webhooks.list', undefined, { session });
    expect(data.data.map((webhook: { id: string }) => webhook.id)).not.toContain(id);
    for (const procedure of ['webhooks.get', 'webhooks.delete', 'webhooks.rotateSecret'])
      expectRefusal(await scenario().call(procedure, { id }, { session }), 404, 'NOT_FOUND');
    const shown = await shop.party.asAdministrator('applications.get');
    expect(shown.data.application.backchannelLogoutUri).toBe(`${shop.receiver.url}/logged-out`);
  });
}, withWebhooks);
