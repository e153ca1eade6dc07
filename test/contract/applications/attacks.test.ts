import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as client from 'openid-client';
import { expect, test } from 'vitest';
import { ask } from '../../rig/client/raw.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import { callerOf } from '../rig/callers.ts';
import { deviceParty, relyingParty, Visitor } from '../rig/relying-party.ts';
import { expectRefusal, loggedIn, onBothStacks } from '../rig/scenario.ts';

/** Attacks on the OpenID provider (RFC 9700 section 4). */

const MAX_PENDING = 300;
const VERIFIER = 'v'.repeat(43);

onBothStacks((stack, name) => {
  const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });

  // checks: 78
  test('no address in a request is called: request_uri, sector and key addresses', async () => {
    let calls = 0;
    const inner = createServer((_, response) => {
      calls += 1;
      response.end('{}');
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => inner.once('listening', resolve));
    const address = `http://127.0.0.1:${(inner.address() as AddressInfo).port}/metadata`;
    const party = await relyingParty(scenario());
    const parameters = await party.parameters(VERIFIER);
    const visitor = new Visitor();
    const direct = { request_uri: address };
    const { status, url } = await party.begin(visitor, { ...parameters, ...direct });
    expect([status, url?.pathname === '/authorize']).not.toEqual([303, true]);
    const known = { client_id: party.id, response_type: 'code', ...parameters };
    const authorization = `Basic ${btoa(`${party.id}:${party.secret}`)}`;
    for (const extra of [direct, { jwks_uri: address, sector_identifier_uri: address, logo_uri: address }]) {
      const body = new URLSearchParams({ ...known, ...extra } as Record<string, string>);
      const pushed = await fetch(party.at('/oauth/par'), { method: 'POST', body, headers: { authorization } });
      expect(pushed.status).toBe('request_uri' in extra ? 400 : 201);
    }
    const assertion = [
      { alg: 'RS256', jku: address, x5u: address, kid: address },
      { iss: party.id, sub: party.id },
      'x',
    ]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_assertion: assertion,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    });
    expect((await fetch(party.at('/oauth/token'), { method: 'POST', body })).status).toBe(401);
    await new Promise((resolve) => inner.close(resolve));
    expect(calls).toBe(0);
  });

  test('a request that another site loads in a frame or as a part of its page is refused; as a page it is accepted', async () => {
    const party = await relyingParty(scenario());
    const known = { client_id: party.id, response_type: 'code', ...(await party.parameters(VERIFIER)) };
    const url = party.at(`/oauth/authorize?${new URLSearchParams(known as Record<string, string>)}`);
    const statusOf = async (mode: string, dest: string) => {
      const fetched = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': mode, 'sec-fetch-dest': dest };
      return (await ask(String(url), { headers: { ...fetched, 'x-forwarded-for': clientAddress() } })).status;
    };
    expect([await statusOf('no-cors', 'image'), await statusOf('cors', 'empty')]).toEqual([403, 403]);
    expect([await statusOf('navigate', 'iframe'), await statusOf('navigate', 'document')]).toEqual([403, 303]);
  });

  // checks: 85
  test('a token for one audience is refused by the others: userinfo, our API, another API', async () => {
    const api = 'https://api.example.com';
    const party = await relyingParty(scenario(), {
      resources: [api],
      scopes: ['openid', 'profile:read', 'orders:read'],
      tokenFormat: 'opaque',
    });
    const { session, id } = await loggedIn(scenario());
    const { call } = scenario();
    const forUserinfo = await party.logIn(session, { scope: 'openid' });
    const forUs = await party.logIn(session, { scope: 'openid profile:read', resource: stack().appUrl });
    const forApi = await party.logIn(session, { scope: 'openid orders:read', resource: api });
    const taken = async ({ access_token: key }: { access_token: string }) => [
      (await call('profile.get', undefined, { key })).status,
      await client.fetchUserInfo(party.config, key, id).then(
        () => 200,
        () => 401,
      ),
    ];
    expect(await taken(forUserinfo)).toEqual([401, 200]);
    expect(await taken(forUs)).toEqual([200, 401]);
    expect(await taken(forApi)).toEqual([401, 401]);
    expect(await taken({ access_token: forUs.id_token ?? '' })).toEqual([401, 401]);
    expect(await taken({ access_token: forUs.refresh_token ?? '' })).toEqual([401, 401]);
  });

  test('a client cannot use the code or refresh token of another', async () => {
    const [party, thief] = [await relyingParty(scenario()), await relyingParty(scenario())];
    const { session } = await loggedIn(scenario());
    const { callback, verifier } = await party.authorize(session);
    await expect(party.redeem(callback as URL, verifier, thief.config)).rejects.toThrow();
    const { refresh_token: token = '' } = await party.logIn(session);
    await expect(client.refreshTokenGrant(thief.config, token)).rejects.toThrow();
    await client.tokenRevocation(thief.config, token).catch(() => undefined);
    expect(await client.tokenIntrospection(thief.config, token).catch(() => ({ active: false }))).toMatchObject({
      active: false,
    });
    expect(await client.refreshTokenGrant(party.config, token)).toBeDefined();
  });

  test('no answer of the provider or its page may be framed or cached, or tells its address to others', async () => {
    const party = await relyingParty(scenario());
    const { response, url } = await party.begin(new Visitor(), await party.parameters(VERIFIER));
    const page = await new Visitor().go(party.at(url as URL));
    const refused = await new Visitor().go(party.at('/oauth/authorize?client_id=x'));
    for (const { headers } of [response, page, refused]) {
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('referrer-policy')).toBe('strict-origin-when-cross-origin');
    }
    for (const { headers } of [response, refused]) expect(headers.get('cache-control')).toMatch(/no-store/);
  });

  // checks: 82
  test('a planted request of another browser is refused on the account page, also with two browser cookies', async () => {
    const { call } = scenario();
    const party = await relyingParty(scenario(), { trusted: true });
    const [attacker, victim] = [new Visitor(), new Visitor()];
    const { id } = await party.begin(attacker, await party.parameters(VERIFIER));
    await party.begin(victim, await party.parameters(VERIFIER));
    const { session } = await loggedIn(scenario());
    const [own, planted] = [`auth_browser=${victim.browser}`, `auth_browser=${attacker.browser}`];
    for (const cookies of [[own], [own, planted], [planted, own]]) {
      const headers = { cookie: [`auth_session=${session}`, ...cookies].join('; ') };
      expectRefusal(await call('authorizations.proceed', { id }, { headers }), 404, 'NOT_FOUND');
    }
  });

  test('the authorization endpoint has no CORS, and redirects by 303: a browser sends no form again', async () => {
    const origin = 'https://spa.example.com';
    const party = await relyingParty(scenario(), { kind: 'browser', redirectUris: [`${origin}/`] });
    const url = party.at(client.buildAuthorizationUrl(party.config, await party.parameters(VERIFIER)));
    for (const [method, status] of [
      ['GET', 303],
      ['OPTIONS', 404],
    ] as const) {
      const headers = { origin, 'access-control-request-method': 'GET', 'x-forwarded-for': new Visitor().address };
      const response = await fetch(url, { method, redirect: 'manual', headers });
      const allowed = response.headers.get('access-control-allow-origin');
      expect([method, response.status, allowed]).toEqual([method, status, null]);
    }
  });

  test.each(['state', 'nonce', 'ui_locales'])(
    'a long %s is refused, and occupies no place in the store',
    async (name) => {
      const party = await relyingParty(scenario());
      const parameters = await party.parameters(VERIFIER, { [name]: 'x'.repeat(9000) });
      const body = new URLSearchParams({ client_id: party.id, response_type: 'code', ...parameters });
      const headers = { authorization: `Basic ${btoa(`${party.id}:${party.secret}`)}` };
      const pushed = await fetch(party.at('/oauth/par'), { method: 'POST', body, headers });
      expect([pushed.status, await pushed.json()]).toEqual([
        400,
        { error: 'invalid_request', error_description: 'the parameters are too long' },
      ]);
      const { status, url } = await party.begin(new Visitor(), parameters);
      expect([status, url?.pathname]).not.toEqual([303, '/authorize']);
      expect(status).toBeLessThan(500);
    },
  );

  test('the longest request that is taken can be answered', async () => {
    const party = await relyingParty(scenario());
    const { session } = await loggedIn(scenario());
    const begin = async (length: number) => {
      const visitor = new Visitor();
      const parameters = await party.parameters(VERIFIER, { state: 'x'.repeat(length) });
      return { visitor, id: (await party.begin(visitor, parameters)).id };
    };
    let [taken, refused] = [4000, 9000];
    while (refused - taken > 4) {
      const middle = Math.floor((taken + refused) / 2);
      if ((await begin(middle)).id) taken = middle;
      else refused = middle;
    }
    const { visitor, id } = await begin(taken);
    expect((await party.answer(session, id ?? '', visitor)).steps.at(-1)).toBe('continue');
  });

  test('what another site sends to the other endpoints does not use up the visits of an address; each has its bound', async () => {
    const party = await relyingParty(scenario());
    const visitor = new Visitor();
    const { redis } = stack();
    const stored = async () => {
      if (!redis) return 0;
      const keys = await Promise.all(
        ['Interaction', 'PushedAuthorizationRequest'].map((model) => redis.keys(`*oauth:${model}:*`)),
      );
      return keys.flat().length;
    };
    const before = await stored();
    const parameters = await party.parameters(VERIFIER);
    const body = new URLSearchParams({ client_id: party.id, response_type: 'code', ...parameters });
    const headers = {
      'x-forwarded-for': visitor.address,
      authorization: `Basic ${btoa(`${party.id}:${party.secret}`)}`,
    };
    const statusesOf = async (send: () => Promise<Response>) => {
      const statuses: number[] = [];
      for (let i = 0; i < MAX_PENDING + 100; i++) statuses.push((await send()).status);
      return [statuses.slice(0, MAX_PENDING), statuses.slice(MAX_PENDING)].map((some) => new Set(some));
    };
    // A preflight occupies nothing.
    for (const path of ['/oauth/par', '/oauth/device']) await fetch(party.at(path), { method: 'OPTIONS', headers });
    const push = () => fetch(party.at('/oauth/par'), { method: 'POST', body, headers });
    expect(await statusesOf(push)).toEqual([new Set([201]), new Set([429])]);
    const asked = await fetch(party.at('/oauth/device'), { method: 'POST', body: new URLSearchParams(), headers });
    expect(asked.status).toBe(429);
    const url = party.at(client.buildAuthorizationUrl(party.config, parameters));
    expect(await statusesOf(() => visitor.go(url))).toEqual([new Set([303]), new Set([429])]);
    if (name === 'real') {
      const occupied = (await stored()) - before;
      expect(occupied).toBeGreaterThan(MAX_PENDING);
      expect(occupied).toBeLessThanOrEqual(2 * MAX_PENDING);
    }
  });

  test('HEAD begins and ends no authorization request', async () => {
    const party = await relyingParty(scenario());
    const { session } = await loggedIn(scenario());
    const visitor = new Visitor();
    const head = (url: string | URL) => {
      const headers = { 'x-forwarded-for': visitor.address, ...(visitor.cookie && { cookie: visitor.cookie }) };
      return fetch(party.at(url), { method: 'HEAD', redirect: 'manual', headers });
    };
    const parameters = await party.parameters(VERIFIER);
    const begun = await head(client.buildAuthorizationUrl(party.config, parameters));
    expect([begun.status, begun.headers.get('location'), begun.headers.getSetCookie()]).toEqual([204, null, []]);
    const { id } = await party.begin(visitor, parameters);
    const options = { session, browser: visitor.browser };
    const { data } = await scenario().call('authorizations.proceed', { id }, options);
    const agreed = { id, allow: true, userId: data.userId };
    const { location } = (await scenario().call('authorizations.proceed', agreed, options)).data;
    const resumed = await head(location);
    expect([resumed.status, resumed.headers.get('location')]).toEqual([204, null]);
    const callback = new URL((await visitor.go(party.at(location))).headers.get('location') ?? '');
    expect(await party.redeem(callback, VERIFIER)).toMatchObject({ id_token: expect.any(String) });
  });

  // checks: 28
  test('no header of a request leads the addresses of the provider elsewhere', async () => {
    const party = await deviceParty(scenario());
    const forged = { host: 'evil.test', 'x-forwarded-host': 'evil.test', 'x-forwarded-proto': 'ftp' };
    const bodiesOf = async (headers: Record<string, string>) => {
      const form = { 'content-type': 'application/x-www-form-urlencoded', 'x-forwarded-for': clientAddress() };
      const device = { method: 'POST', body: `client_id=${party.id}`, headers: { ...form, ...headers } };
      const answers = [
        await ask(String(party.at('/.well-known/openid-configuration')), { headers }),
        await ask(String(party.at('/.well-known/oauth-authorization-server')), { headers }),
        await ask(String(party.at('/oauth/device')), device),
      ];
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
      const random = { device_code: '', user_code: '', verification_uri_complete: '' };
      return answers.map(({ body }) => ({ ...JSON.parse(body), ...random }));
    };
    const answers = await bodiesOf(forged);
    expect(answers).toEqual(await bodiesOf({}));
    expect(answers.at(-1)).toMatchObject({ verification_uri: `${stack().appUrl}/device` });
  });
});
