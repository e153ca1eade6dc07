import { createRemoteJWKSet, customFetch, jwtVerify } from 'jose';
import * as client from 'openid-client';
import { v7 as uuidv7 } from 'uuid';
import { describe, expect, test } from 'vitest';
import { entriesOf } from '../../rig/observe/key-value-view.ts';
import { until } from '../../rig/until.ts';
import { callerOf } from '../rig/callers.ts';
import { CALLBACK, deviceParty, type RelyingParty, refused, relyingParty, Visitor } from '../rig/relying-party.ts';
import { eventsOf, expectRefusal, growOld, loggedIn, logIn, onBothStacks } from '../rig/scenario.ts';

/** Other applications log in here; openid-client is the relying party. */

const API = 'https://api.example.com';
const withApi = { resources: [API], scopes: ['openid', 'profile', 'email', 'offline_access', 'orders:read'] };

const errorIn = async (response: Response) => ((await response.json()) as { error?: string }).error;

onBothStacks((stack) => {
  const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });
  const call: ReturnType<typeof callerOf> = (...given) => scenario().call(...given);

  test('without an application the endpoints do not exist', async () => {
    const party = await relyingParty(scenario());
    expect((await fetch(party.at('/.well-known/openid-configuration'))).status).toBe(200);
    const rows = await stack().database<{ id: string }>('select id from applications');
    const stored = await stack().database<Record<string, unknown>>('select * from applications');
    await stack().database('delete from applications');
    const jwks = party.at('/oauth/jwks');
    await until(async () => (await fetch(jwks)).status === 404, { what: 'the end of the endpoints' });
    for (const path of ['/.well-known/openid-configuration', '/oauth/jwks', '/oauth/authorize', '/oauth/authorize/x']) {
      const response = await fetch(party.at(path), { headers: { accept: 'application/json' } });
      expect([path, response.status, await response.json()]).toEqual([
        path,
        404,
        expect.objectContaining({ code: 'NOT_FOUND' }),
      ]);
    }
    for (const row of stored) {
      const columns = Object.keys(row);
      await stack().database(
        `insert into applications (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`,
        Object.values(row) as string[],
      );
    }
    expect(await stack().database('select id from applications')).toHaveLength(rows.length);
  });

  test('the metadata offers code with S256 only, and no implicit, hybrid or password flow', async () => {
    const { config, at } = await relyingParty(scenario());
    const metadata = config.serverMetadata();
    expect(metadata).toMatchObject({
      issuer: stack().appUrl,
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      code_challenge_methods_supported: ['S256'],
      grant_types_supported: [
        'authorization_code',
        'refresh_token',
        'client_credentials',
        'urn:ietf:params:oauth:grant-type:device_code',
      ],
      id_token_signing_alg_values_supported: ['ES256'],
      authorization_response_iss_parameter_supported: true,
      pushed_authorization_request_endpoint: `${stack().appUrl}/oauth/par`,
      device_authorization_endpoint: `${stack().appUrl}/oauth/device`,
      ui_locales_supported: ['en', 'de', 'fr', 'es'],
    });
    const other = await fetch(at('/.well-known/oauth-authorization-server'));
    expect(await other.json()).toEqual(JSON.parse(JSON.stringify(metadata)));
  });

  test('an id that no application can have is unknown', async () => {
    const { at } = await relyingParty(scenario());
    const { session } = await loggedIn(scenario());
    expectRefusal(await call('grants.revoke', { id: 'é' }, { session }), 404, 'NOT_FOUND');
    const response = await fetch(at('/oauth/authorize?client_id=%C3%A9&response_type=code'), { redirect: 'manual' });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('invalid_client')]);
  });

  test('a user logs in to an application by code and PKCE', async () => {
    const party = await relyingParty(scenario());
    const user = await loggedIn(scenario());
    const parameters = { nonce: 'the-nonce', max_age: '3600' };
    const { steps, callback, verifier } = await party.authorize(user.session, { parameters });
    expect(steps).toEqual(['consent', 'continue']);
    expect(callback?.href.startsWith(CALLBACK)).toBe(true);
    expect(Object.fromEntries(callback?.searchParams ?? [])).toEqual({
      code: expect.any(String),
      state: 'the-state',
      iss: stack().appUrl,
    });
    const tokens = await client.authorizationCodeGrant(party.config, callback as URL, {
      pkceCodeVerifier: verifier,
      expectedState: 'the-state',
      expectedNonce: 'the-nonce',
      maxAge: 3600,
    });
    expect(tokens.claims()).toMatchObject({ iss: stack().appUrl, sub: user.id, aud: party.id });
    expect(tokens).toMatchObject({ scope: 'openid profile email', refresh_token: expect.any(String) });
    const claims = await client.fetchUserInfo(party.config, tokens.access_token, user.id);
    expect(claims).toEqual({ sub: user.id, name: user.name, email: user.email, email_verified: true });
    const details = { application: 'Shop', applicationId: party.id };
    expect(await eventsOf(stack(), user.id, 'grant-created')).toEqual([details]);
    await stack().waitForMail({ to: user.email, subject: 'An application got access' });
  });

  test('consent is asked once, and not by a trusted application', async () => {
    const user = await loggedIn(scenario());
    const party = await relyingParty(scenario());
    expect((await party.authorize(user.session)).steps).toEqual(['consent', 'continue']);
    expect((await party.authorize(user.session)).steps).toEqual(['continue', 'continue']);
    const again = await logIn(call, user);
    expect((await party.authorize(again)).steps).toEqual(['continue', 'continue']);
    expect((await party.authorize(again, { parameters: { prompt: 'consent' } })).steps[0]).toBe('consent');
    const trusted = await relyingParty(scenario(), { trusted: true });
    expect((await trusted.authorize(again)).steps).toEqual(['continue', 'continue']);
  });

  test('consent is asked every time where another application on the device may have the redirect address', async () => {
    const addresses = ['http://127.0.0.1/callback', 'com.example.app:/callback', 'https://app.example.com/callback'];
    const party = await relyingParty(scenario(), { kind: 'native', redirectUris: addresses });
    const { session } = await loggedIn(scenario());
    const stepsBy = async (redirect: string, prompt?: string) => {
      const parameters = { redirect_uri: redirect, ...(prompt && { prompt }) };
      const { steps, callback } = await party.authorize(session, { parameters });
      return [steps[0], callback?.searchParams.get('error')];
    };
    for (const redirect of addresses) await stepsBy(redirect);
    const [loopback = '', scheme = '', claimed = ''] = addresses;
    expect(await stepsBy(loopback)).toEqual(['consent', null]);
    expect(await stepsBy(scheme)).toEqual(['consent', null]);
    expect(await stepsBy(claimed)).toEqual(['continue', null]);
    expect(await stepsBy(loopback, 'none')).toEqual(['continue', 'consent_required']);
  });

  test('a user who does not allow it is sent back with access_denied', async () => {
    const party = await relyingParty(scenario());
    const user = await loggedIn(scenario());
    const { callback } = await party.authorize(user.session, { allow: false });
    expect(callback?.searchParams.get('error')).toBe('access_denied');
    expect((await party.authorize(user.session)).steps[0]).toBe('consent');
  });

  test('prompt=none is answered without a page that asks', async () => {
    const party = await relyingParty(scenario());
    const user = await loggedIn(scenario());
    const silently = async (session: string | undefined, extra = {}) => {
      const { steps, callback } = await party.authorize(session, { parameters: { prompt: 'none', ...extra } });
      expect(steps[0]).toBe('continue');
      return callback?.searchParams.get('error') ?? (callback?.searchParams.has('code') && 'code');
    };
    expect(await silently(undefined)).toBe('login_required');
    expect(await silently(user.session)).toBe('consent_required');
    const tokens = await party.logIn(user.session);
    expect(await silently(user.session)).toBe('code');
    const hint = tokens.id_token ?? '';
    expect(await silently(user.session, { id_token_hint: hint })).toBe('code');
    const other = await loggedIn(scenario());
    expect(await silently(other.session, { id_token_hint: hint })).toBe('login_required');
    await growOld(stack(), user.id);
    for (const age of ['60', '0']) expect(await silently(user.session, { max_age: age })).toBe('login_required');
  });

  test('the account page learns the address and the language that the application names', async () => {
    const party = await relyingParty(scenario());
    const begin = async (extra: Record<string, string>) => {
      const visitor = new Visitor();
      const { id, url } = await party.begin(visitor, await party.parameters('v'.repeat(43), extra));
      const { data } = await call('authorizations.proceed', { id }, { browser: visitor.browser });
      return [data, url?.searchParams.get('ui_locales')];
    };
    expect(await begin({ login_hint: 'nobody@example.com', ui_locales: 'ja fr-CA de' })).toEqual([
      { step: 'login', loginHint: 'nobody@example.com' },
      'fr',
    ]);
    expect(await begin({ login_hint: 'Call 0900 123', ui_locales: 'ja' })).toEqual([{ step: 'login' }, null]);
  });

  test('prompt=login and max_age want a login after the request', async () => {
    const party = await relyingParty(scenario());
    const user = await loggedIn(scenario());
    await growOld(stack(), user.id);
    for (const parameters of [{ prompt: 'login' }, { max_age: '60' }] as Record<string, string>[])
      expect((await party.authorize(user.session, { parameters })).steps[0]).toBe('login');
    const visitor = new Visitor();
    const { id } = await party.begin(visitor, await party.parameters('v'.repeat(43), { prompt: 'login' }));
    const session = await logIn(call, user);
    const { data } = await call('authorizations.proceed', { id }, { session, browser: visitor.browser });
    expect(data.step).toBe('consent');
  });

  describe('a request belongs to the browser that began it', () => {
    // checks: 82
    test('another browser can neither answer nor continue it', async () => {
      const party = await relyingParty(scenario(), { trusted: true });
      const [attacker, victim] = [new Visitor(), new Visitor()];
      const { id } = await party.begin(attacker, await party.parameters('v'.repeat(43)));
      await party.begin(victim, await party.parameters('v'.repeat(43)));
      const { session } = await loggedIn(scenario());
      const answer = (browser: string | undefined) => call('authorizations.proceed', { id }, { session, browser });
      expectRefusal(await answer(victim.browser), 404, 'NOT_FOUND', 'This login request has expired');
      expectRefusal(await answer(undefined), 404, 'NOT_FOUND');
      const { data } = await answer(attacker.browser);
      const elsewhere = await victim.go(party.at(data.location));
      expect([elsewhere.status, elsewhere.headers.get('location')]).toEqual([400, null]);
      const once = await attacker.go(party.at(data.location));
      expect(once.headers.get('location')).toMatch(/[?&]code=/);
      expect((await attacker.go(party.at(data.location))).status).toBe(400);
    });

    // checks: 82
    test('the answer of one user is not that of another who has logged in since', async () => {
      const party = await relyingParty(scenario());
      const [first, second] = [await loggedIn(scenario()), await loggedIn(scenario())];
      const visitor = new Visitor();
      const { id } = await party.begin(visitor, await party.parameters('v'.repeat(43)));
      const proceed = (session: string, input: object) =>
        call('authorizations.proceed', { id, ...input }, { session, browser: visitor.browser });
      const { data: asked } = await proceed(first.session, {});
      const { data } = await proceed(second.session, { allow: true, userId: asked.userId });
      expect(data).toMatchObject({ step: 'consent', userId: second.id });
    });

    test('no cookie of the library reaches a browser, and no session cookie the endpoints', async () => {
      const party = await relyingParty(scenario());
      const user = await loggedIn(scenario());
      const visitor = new Visitor();
      const { response } = await party.begin(visitor, await party.parameters('v'.repeat(43)));
      const lines = response.headers.getSetCookie();
      expect(lines).toHaveLength(1);
      expect(lines[0]).toMatch(/^auth_browser=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax/);
      const headers = { cookie: `auth_session=${user.session}` };
      const direct = await fetch(party.at(response.url), { redirect: 'manual', headers });
      expect(direct.headers.get('location')).toMatch(/^\/authorize\?id=/);
    });
  });

  // checks: 83
  describe('redirect addresses are compared exactly', () => {
    test.each([
      ['another port', 'https://shop.example.com:8443/callback'],
      ['another case', 'https://shop.example.com/Callback'],
      ['another path', 'https://shop.example.com/callback/'],
      ['a path that climbs', 'https://shop.example.com/callback/../callback'],
      ['a query', 'https://shop.example.com/callback?next=1'],
      ['a user', 'https://a@shop.example.com/callback'],
      ['a fragment', 'https://shop.example.com/callback#x'],
      ['another host', 'https://shop.example.com.evil.example/callback'],
      ['another scheme', 'http://shop.example.com/callback'],
    ])('%s', async (_, redirect) => {
      const party = await relyingParty(scenario());
      const parameters = await party.parameters('v'.repeat(43), { redirect_uri: redirect });
      const { status, response } = await party.begin(new Visitor(), parameters);
      expect([status, response.headers.get('location')]).toEqual([400, null]);
      expect(await response.text()).toMatch(/^invalid_(?:redirect_uri|request)/);
    });

    test('but the port of a native application on the loopback addresses is free', async () => {
      const party = await relyingParty(scenario(), { kind: 'native', redirectUris: ['http://127.0.0.1/callback'] });
      const { session } = await loggedIn(scenario());
      const redirect = 'http://127.0.0.1:51004/callback';
      const { callback, verifier } = await party.authorize(session, { parameters: { redirect_uri: redirect } });
      expect(callback?.href.startsWith(redirect)).toBe(true);
      expect(await party.redeem(callback as URL, verifier)).toMatchObject({ access_token: expect.any(String) });
      for (const other of ['http://localhost/callback', 'http://127.0.0.1:51004/other', 'http://127.0.0.2/callback']) {
        const parameters = await party.parameters('v'.repeat(43), { redirect_uri: other });
        expect((await party.begin(new Visitor(), parameters)).status).toBe(400);
      }
    });
  });

  test('PKCE cannot be left out, weakened or exchanged', async () => {
    const party = await relyingParty(scenario());
    const { session } = await loggedIn(scenario());
    const { code_challenge: challenge, code_challenge_method: _, ...without } = await party.parameters('v'.repeat(43));
    for (const parameters of [
      without,
      { ...without, code_challenge: challenge as string },
      { ...without, code_challenge: challenge as string, code_challenge_method: 'plain' },
    ]) {
      const { url } = await party.begin(new Visitor(), parameters as Record<string, string>);
      expect(url?.searchParams.get('error')).toBe('invalid_request');
    }
    const { callback } = await party.authorize(session);
    expect(await refused(party.redeem(callback as URL, 'w'.repeat(43)))).toBe('invalid_grant');
  });

  test('other flows do not exist', async () => {
    const party = await relyingParty(scenario());
    for (const type of ['token', 'id_token', 'code id_token', 'none']) {
      const parameters = await party.parameters('v'.repeat(43), { response_type: type, nonce: 'n' });
      const { url, status } = await party.begin(new Visitor(), parameters);
      expect([type, status, new URLSearchParams(url?.hash.slice(1) || url?.search).get('error')]).toEqual([
        type,
        303,
        expect.stringMatching(/^(?:unsupported_response_type|invalid_request)$/),
      ]);
    }
    const password = client.genericGrantRequest(party.config, 'password', { username: 'a', password: 'b' });
    expect(await refused(password)).toBe('unsupported_grant_type');
  });

  test('a code works once: a second use ends the grant', async () => {
    const party = await relyingParty(scenario());
    const user = await loggedIn(scenario());
    const { callback, verifier } = await party.authorize(user.session);
    const tokens = await party.redeem(callback as URL, verifier);
    expect(await refused(party.redeem(callback as URL, verifier))).toBe('invalid_grant');
    expect(await refused(client.refreshTokenGrant(party.config, tokens.refresh_token ?? ''))).toBe('invalid_grant');
    await expect(client.fetchUserInfo(party.config, tokens.access_token, user.id)).rejects.toThrow();
    expect(await eventsOf(stack(), user.id, 'grant-revoked')).toHaveLength(1);
  });

  test('a code lives for a minute', async () => {
    const party = await relyingParty(scenario());
    const user = await loggedIn(scenario());
    const { callback, verifier } = await party.authorize(user.session);
    const ofParty = 'grant_id in (select id from grants where application_id = ?)';
    const [row] = await stack().database<{ left: number }>(
      `select expires_at - ? as \`left\` from oauth_artifacts where ${ofParty}`,
      [String(Date.now()), party.id],
    );
    expect(Number(row?.left)).toBeGreaterThan(0);
    expect(Number(row?.left)).toBeLessThanOrEqual(60_000);
    await stack().database(`update oauth_artifacts set expires_at = 1 where ${ofParty}`, [party.id]);
    expect(await refused(party.redeem(callback as URL, verifier))).toBe('invalid_grant');
  });

  test('the answer comes in the query only', async () => {
    const party = await relyingParty(scenario());
    for (const mode of ['fragment', 'form_post', 'web_message', 'jwt']) {
      const parameters = await party.parameters('v'.repeat(43), { response_mode: mode });
      const { status, url } = await party.begin(new Visitor(), parameters);
      expect([mode, status, url?.pathname === '/authorize']).not.toEqual([mode, 303, true]);
    }
  });

  test('codes and tokens are stored as hashes', async () => {
    const party = await relyingParty(scenario());
    const { session } = await loggedIn(scenario());
    const { callback, verifier } = await party.authorize(session);
    const code = callback?.searchParams.get('code') ?? '';
    const tokens = await party.redeem(callback as URL, verifier);
    const stored = JSON.stringify([
      await stack().database('select * from oauth_artifacts'),
      await stack().database('select * from grants'),
      await stack().database('select * from signing_keys'),
    ]);
    expect(stored).toContain(party.id);
    for (const secret of [code, tokens.refresh_token, tokens.access_token, '"d"']) expect(stored).not.toContain(secret);
  });

  // checks: 37
  test('neither the key-value store nor the log has an opaque token, a device code or a request_uri', async () => {
    const user = await loggedIn(scenario());
    const party = await relyingParty(scenario(), { scopes: ['openid', 'profile', 'email', 'profile:read'] });
    const opaque = await party.logIn(user.session, { scope: 'openid profile:read', resource: stack().appUrl });
    expect((await call('profile.get', undefined, { key: opaque.access_token })).status).toBe(200);
    const device = await deviceParty(scenario());
    const [asked, allowed] = [await device.begin(), await device.begin()];
    await device.answer(allowed, user);
    const pushed = await client.buildAuthorizationUrlWithPAR(party.config, await party.parameters('v'.repeat(43)));
    const requestUri = pushed.searchParams.get('request_uri')?.split(':').at(-1) ?? '';
    const stored = JSON.stringify(await entriesOf(stack()));
    for (const model of ['AccessToken', 'DeviceCode', 'DeviceCode:unused', 'PushedAuthorizationRequest'])
      expect(stored).toContain(`oauth:${model}:`);
    const logged = stack()
      .services.map((service) => service.output())
      .join('');
    for (const secret of [opaque.access_token, asked.device_code, allowed.device_code, requestUri]) {
      expect(secret).toMatch(/^[\w-]{43,}$/);
      expect(stored).not.toContain(secret);
      expect(logged).not.toContain(secret);
    }
  });

  describe('refresh tokens', () => {
    test('rotate, and a used one ends the grant', async () => {
      const party = await relyingParty(scenario());
      const user = await loggedIn(scenario());
      const first = await party.logIn(user.session);
      const refresh = (token: string | undefined) => client.refreshTokenGrant(party.config, token ?? '');
      const second = await refresh(first.refresh_token);
      expect(second.refresh_token).not.toBe(first.refresh_token);
      const third = await refresh(second.refresh_token);
      await stack().database('update oauth_artifacts set consumed_at = consumed_at - 11000');
      expect(await refused(refresh(second.refresh_token))).toBe('invalid_grant');
      expect(await refused(refresh(third.refresh_token))).toBe('invalid_grant');
      expect(await eventsOf(stack(), user.id, 'grant-revoked')).toHaveLength(1);
    });

    test('end a year after the user last came, however often they are used', async () => {
      const party = await relyingParty(scenario());
      const { session } = await loggedIn(scenario());
      const { refresh_token: token = '' } = await party.logIn(session);
      const end = async () => {
        const sql = 'select expires_at - created_at as life from grants where application_id = ?';
        return (await stack().database<{ life: number }>(sql, [party.id]))[0]?.life;
      };
      const before = await end();
      await stack().database('update grants set expires_at = expires_at - 1000 where application_id = ?', [party.id]);
      const next = await client.refreshTokenGrant(party.config, token);
      expect(await end()).toBe(Number(before) - 1000);
      await stack().database('update grants set expires_at = 1 where application_id = ?', [party.id]);
      expect(await refused(client.refreshTokenGrant(party.config, next.refresh_token ?? ''))).toBe('invalid_grant');
    });

    test('may be repeated for ten seconds by the same sender only', async () => {
      const party = await relyingParty(scenario());
      const { session } = await loggedIn(scenario());
      const { refresh_token: token = '' } = await party.logIn(session);
      const from = (address: string) => {
        party.config[client.customFetch] = (url, options) =>
          fetch(party.at(url), {
            ...(options as RequestInit),
            headers: { ...options.headers, 'x-forwarded-for': address },
          });
        return client.refreshTokenGrant(party.config, token);
      };
      const [one, two] = [await from('192.0.2.1'), await from('192.0.2.1')];
      expect(two.refresh_token).not.toBe(one.refresh_token);
      expect(await refused(from('192.0.2.2'))).toBe('invalid_grant');
      expect(await refused(client.refreshTokenGrant(party.config, two.refresh_token ?? ''))).toBe('invalid_grant');
    });

    test('end with the session that made them, unless the user allowed offline access', async () => {
      const party = await relyingParty(scenario());
      const user = await loggedIn(scenario());
      const bound = await party.logIn(user.session);
      const offline = await party.logIn(user.session, { scope: 'openid offline_access', prompt: 'consent' });
      const { refresh_token: last = '' } = await client.refreshTokenGrant(party.config, bound.refresh_token ?? '');
      await call('auth.logout', undefined, { session: user.session });
      expect(await refused(client.refreshTokenGrant(party.config, last))).toBe('invalid_grant');
      const { refresh_token: next = '' } = await client.refreshTokenGrant(party.config, offline.refresh_token ?? '');
      await client.tokenRevocation(party.config, next);
      expect(await refused(client.refreshTokenGrant(party.config, next))).toBe('invalid_grant');
    });
  });

  /** The id of the only grant. */
  const grantOf = async ({ id }: { id: string }): Promise<string> => {
    const [grant] = await stack().database<{ id: string }>('select id from grants where application_id = ?', [id]);
    return grant?.id ?? '';
  };

  /** As if the user of a grant had then allowed the same in fifty sessions, which have ended. */
  const allowInOthers = async (grant: string, scopes: string) => {
    for (let i = 0; i < 50; i++)
      await stack().database(
        'insert into grants (id, user_id, application_id, session_id, epoch, scopes, resources, created_at, last_used_at, expires_at) select ?, user_id, application_id, ?, epoch, ?, resources, created_at, last_used_at, expires_at from grants where id = ?',
        [uuidv7(), uuidv7(), scopes, grant],
      );
  };

  test('past fifty grants to an application, the ones that nobody can use end first', async () => {
    const party = await relyingParty(scenario());
    const user = await loggedIn(scenario());
    const offline = { scope: 'openid offline_access', prompt: 'consent' };
    const { refresh_token: token = '' } = await party.logIn(user.session, offline);
    await call('auth.logout', undefined, { session: user.session });
    const phone = await grantOf(party);
    const revoked = () => eventsOf(stack(), user.id, 'grant-revoked');
    await allowInOthers(phone, 'openid');
    await party.logIn(await logIn(call, user));
    const { refresh_token: next = '' } = await client.refreshTokenGrant(party.config, token);
    expect(await revoked()).toEqual([]);
    await allowInOthers(phone, 'openid offline_access');
    await party.logIn(await logIn(call, user));
    expect(await refused(client.refreshTokenGrant(party.config, next))).toBe('invalid_grant');
    expect(await revoked()).toContainEqual({ application: 'Shop', applicationId: party.id, grant: phone });
  });

  test('past fifty grants to an application, nobody can use one by a scope that was taken from the application', async () => {
    const party = await relyingParty(scenario());
    const user = await loggedIn(scenario());
    const { access_token: token } = await party.logIn(user.session);
    await allowInOthers(await grantOf(party), 'openid offline_access');
    await party.asAdministrator('applications.update', { scopes: ['openid'] });
    await party.logIn(await logIn(call, user), { scope: 'openid' });
    expect(await client.fetchUserInfo(party.config, token, user.id)).toMatchObject({ sub: user.id });
    expect(await eventsOf(stack(), user.id, 'grant-revoked')).toEqual([]);
  });

  test('access beyond what the user has allowed before is recorded and mailed', async () => {
    const party = await relyingParty(scenario());
    const user = await loggedIn(scenario());
    const told = async () => (await eventsOf(stack(), user.id, 'grant-created')).length;
    await party.logIn(user.session, { scope: 'openid' });
    await party.logIn(user.session, { scope: 'openid' });
    await party.logIn(await logIn(call, user), { scope: 'openid' });
    expect(await told()).toBe(1);
    await party.logIn(user.session, { scope: 'openid offline_access', prompt: 'consent' });
    expect(await told()).toBe(2);
    expect((await call('auth.logoutAll', undefined, user)).status).toBe(200);
    await party.logIn(await logIn(call, user), { scope: 'openid' });
    expect(await told()).toBe(3);
    const mails = await stack().database("select id from outbox where kind = 'application-allowed' and user_id = ?", [
      user.id,
    ]);
    expect(mails).toHaveLength(3);
  });

  test('a scope that is taken from an application is taken from its grants', async () => {
    const party = await relyingParty(scenario());
    const user = await loggedIn(scenario());
    const tokens = await party.logIn(user.session, { scope: 'openid email offline_access', prompt: 'consent' });
    await party.asAdministrator('applications.update', { scopes: ['openid', 'offline_access'] });
    expect(await client.fetchUserInfo(party.config, tokens.access_token, user.id)).toEqual({ sub: user.id });
    const { data: listed } = await call('grants.list', undefined, { session: user.session });
    expect(listed.data).toMatchObject([{ id: party.id, scopes: ['openid', 'offline_access'] }]);
    const next = await client.refreshTokenGrant(party.config, tokens.refresh_token ?? '');
    expect(next.scope?.split(' ').sort()).toEqual(['offline_access', 'openid']);
    await call('auth.logout', undefined, { session: user.session });
    const last = await client.refreshTokenGrant(party.config, next.refresh_token ?? '');
    await party.asAdministrator('applications.update', { scopes: ['openid'] });
    expect(await refused(client.refreshTokenGrant(party.config, last.refresh_token ?? ''))).toBe('invalid_grant');
    await expect(client.fetchUserInfo(party.config, last.access_token, user.id)).rejects.toThrow();
  });

  // checks: 84
  describe('all access ends', () => {
    type Ends = (
      user: Awaited<ReturnType<typeof loggedIn>>,
      party: Awaited<ReturnType<typeof relyingParty>>,
    ) => unknown;
    const ends: Record<string, Ends> = {
      'logging out everywhere': ({ session }) => call('auth.logoutAll', undefined, { session }),
      'a new password': ({ session, password }) =>
        call(
          'account.changePassword',
          { currentPassword: password, newPassword: 'Different-Engine-1843' },
          { session },
        ),
      'a block': ({ id }) => stack().database('update users set blocked_at = 1 where id = ?', [id]),
      'a deletion': ({ session }) => call('account.delete', undefined, { session }),
      'the end of the access by the user': ({ session }, { id }) => call('grants.revoke', { id }, { session }),
      'a disabled application': (_user, { asAdministrator }) =>
        asAdministrator('applications.update', { enabled: false }),
      'a removed application': (_user, { asAdministrator }) => asAdministrator('applications.delete'),
    };
    test.each(Object.entries(ends))('by %s', async (_, end) => {
      const party = await relyingParty(scenario(), withApi);
      const user = await loggedIn(scenario());
      const tokens = await party.logIn(user.session, { scope: 'openid offline_access', prompt: 'consent' });
      const { callback, verifier } = await party.authorize(user.session);
      const introspect = () => client.tokenIntrospection(party.config, tokens.refresh_token ?? '');
      expect(await introspect()).toMatchObject({ active: true, sub: user.id });
      await end(user, party);
      expect(await refused(client.refreshTokenGrant(party.config, tokens.refresh_token ?? ''))).toMatch(
        /^invalid_(?:grant|client)$/,
      );
      expect(await refused(party.redeem(callback as URL, verifier))).toMatch(/^invalid_(?:grant|client)$/);
      await expect(client.fetchUserInfo(party.config, tokens.access_token, user.id)).rejects.toThrow();
      expect((await introspect().catch(() => ({ active: false }))).active).toBe(false);
    });
  });

  describe('access tokens for an API', () => {
    test('are JWTs that it checks by the published keys', async () => {
      const party = await relyingParty(scenario(), withApi);
      const user = await loggedIn(scenario());
      const tokens = await party.logIn(user.session, { scope: 'openid orders:read', resource: API });
      const keys = createRemoteJWKSet(new URL(party.config.serverMetadata().jwks_uri ?? ''), {
        [customFetch]: (url, options) => fetch(party.at(url), options),
      });
      const { payload, protectedHeader } = await jwtVerify(tokens.access_token, keys, {
        issuer: stack().appUrl,
        audience: API,
        typ: 'at+jwt',
      });
      expect(protectedHeader.alg).toBe('ES256');
      expect(payload).toMatchObject({ sub: user.id, client_id: party.id, scope: 'orders:read' });
      expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(300);
    });

    test('are opaque if the application wants it, and the API introspects them', async () => {
      const party = await relyingParty(scenario(), { ...withApi, tokenFormat: 'opaque' });
      const api = await relyingParty(scenario(), { kind: 'service', redirectUris: [], scopes: [], resources: [API] });
      const stranger = await relyingParty(scenario(), { kind: 'service', redirectUris: [], scopes: [] });
      const user = await loggedIn(scenario());
      const { access_token: token } = await party.logIn(user.session, { scope: 'openid orders:read', resource: API });
      const seenBy = ({ config }: typeof api) => client.tokenIntrospection(config, token);
      expect(await seenBy(api)).toMatchObject({ active: true, sub: user.id, aud: API, scope: 'orders:read' });
      expect(await seenBy(stranger)).toEqual({ active: false });
      await party.asAdministrator('applications.update', { enabled: false });
      expect(await seenBy(api)).toEqual({ active: false });
      await party.asAdministrator('applications.update', { enabled: true });
      expect(await seenBy(api)).toMatchObject({ active: true });
      await call('grants.revoke', { id: party.id }, { session: user.session });
      expect(await seenBy(api)).toEqual({ active: false });
    });

    test('for our own API, which takes it for the scopes that it names and the application has, until its session ends', async () => {
      const scopes = ['openid', 'profile:read', 'uploads:read'];
      const party = await relyingParty(scenario(), { scopes });
      const user = await loggedIn(scenario());
      const asked = { scope: 'openid profile:read', resource: stack().appUrl };
      const { access_token: key } = await party.logIn(user.session, asked);
      const { status, data } = await call('profile.get', undefined, { key });
      expect([status, data.user.id]).toEqual([200, user.id]);
      for (const procedure of ['upload.list', 'sessions.list'])
        expectRefusal(await call(procedure, undefined, { key }), 403, 'INSUFFICIENT_SCOPE');
      await party.asAdministrator('applications.update', { scopes: ['openid', 'uploads:read'] });
      expectRefusal(await call('profile.get', undefined, { key }), 403, 'INSUFFICIENT_SCOPE');
      await party.asAdministrator('applications.update', { scopes });
      expect((await call('profile.get', undefined, { key })).status).toBe(200);
      await call('auth.logoutAll', undefined, { session: user.session });
      expectRefusal(await call('profile.get', undefined, { key }), 401, 'UNAUTHENTICATED');
    });

    test('and a request without a scope asks for all of the application, except offline_access', async () => {
      const party = await relyingParty(scenario(), withApi);
      const user = await loggedIn(scenario());
      const verifier = 'v'.repeat(43);
      const { scope: _, ...parameters } = await party.parameters(verifier, { resource: API });
      const visitor = new Visitor();
      const { id } = await party.begin(visitor, parameters);
      const options = { session: user.session, browser: visitor.browser };
      const { data: asked } = await call('authorizations.proceed', { id }, options);
      expect(asked).toMatchObject({ step: 'consent', scopes: ['openid', 'profile', 'email', 'orders:read'] });
      const { data } = await call('authorizations.proceed', { id, allow: true, userId: user.id }, options);
      const response = await visitor.go(party.at(data.location));
      const tokens = await party.redeem(new URL(response.headers.get('location') ?? ''), verifier);
      expect(tokens.scope?.split(' ')).toContain('orders:read');
    });

    test('only for its own resources and scopes', async () => {
      const party = await relyingParty(scenario(), withApi);
      const begin = async (extra: Record<string, string>) =>
        (await party.begin(new Visitor(), await party.parameters('v'.repeat(43), extra))).url?.searchParams.get(
          'error',
        );
      expect(await begin({ resource: 'https://other.example.com' })).toBe('invalid_target');
      const plain = await relyingParty(scenario(), { scopes: ['openid'] });
      const parameters = await plain.parameters('v'.repeat(43), { scope: 'openid email' });
      expect((await plain.begin(new Visitor(), parameters)).url?.searchParams.get('error')).toBe('invalid_scope');
      const foreign = { resource: API, scope: 'openid orders:read orders:write' };
      expect(await begin(foreign)).toBe('invalid_scope');
      const pushed = await party.parameters('v'.repeat(43), foreign);
      expect(await refused(client.buildAuthorizationUrlWithPAR(party.config, pushed))).toBe('invalid_scope');
      const service = await relyingParty(scenario(), { ...withApi, kind: 'service', redirectUris: [] });
      const forItself = { resource: API, scope: 'orders:read orders:write' };
      expect(await refused(client.clientCredentialsGrant(service.config, forItself))).toBe('invalid_scope');
    });

    test("a grant has room for its resources, however often the application's change", async () => {
      const party = await relyingParty(scenario(), { trusted: true });
      const { session } = await loggedIn(scenario());
      for (const letter of ['a', 'b']) {
        const resources = Array.from({ length: 11 }, (_, n) => `https://${letter}${n}.example.com/${'x'.repeat(470)}`);
        await party.asAdministrator('applications.update', { resources });
        for (const resource of resources) await party.logIn(session, { scope: 'openid', resource });
      }
    });

    test("a grant has room for its scopes, however often the application's change", async () => {
      const party = await relyingParty(scenario(), { resources: [API], trusted: true });
      const { session } = await loggedIn(scenario());
      for (const letter of ['a', 'b']) {
        const scopes = Array.from({ length: 49 }, (_, n) => `${letter.repeat(62)}${n + 10}`);
        await party.asAdministrator('applications.update', { scopes: ['openid', ...scopes] });
        const { scope } = await party.logIn(session, { resource: API, scope: ['openid', ...scopes].join(' ') });
        expect(scope?.split(' ').sort()).toEqual(scopes);
      }
    });

    test('a service gets them for itself, with either secret during a rotation', async () => {
      const service = await relyingParty(scenario(), { ...withApi, kind: 'service', redirectUris: [] });
      const grant = (config: client.Configuration) =>
        client.clientCredentialsGrant(config, { scope: 'orders:read', resource: API });
      expect(await grant(service.config)).toMatchObject({ scope: 'orders:read', expires_in: 300 });
      const { data } = await service.asAdministrator('applications.rotateSecret');
      const next = new client.Configuration(service.config.serverMetadata(), service.id, data.secret);
      client.allowInsecureRequests(next);
      next[client.customFetch] = (url, options) => fetch(service.at(url), options as RequestInit);
      expect(await grant(next)).toBeDefined();
      expect(await grant(service.config)).toBeDefined();
      await stack().database('update applications set former_until = 1 where id = ?', [service.id]);
      expect(await refused(grant(service.config))).toBe('invalid_client');
      expect(await grant(next)).toBeDefined();
    });

    test('a client credentials token ends with its application', async () => {
      const fields = { ...withApi, kind: 'service', redirectUris: [], tokenFormat: 'opaque' };
      const service = await relyingParty(scenario(), fields);
      const api = await relyingParty(scenario(), { kind: 'service', redirectUris: [], scopes: [], resources: [API] });
      const { access_token: token } = await client.clientCredentialsGrant(service.config, {
        scope: 'orders:read',
        resource: API,
      });
      const seen = () => client.tokenIntrospection(api.config, token);
      expect(await seen()).toMatchObject({ active: true, client_id: service.id, scope: 'orders:read' });
      await service.asAdministrator('applications.update', { enabled: false });
      expect(await seen()).toEqual({ active: false });
      await service.asAdministrator('applications.update', { enabled: true });
      expect(await seen()).toMatchObject({ active: true });
      await service.asAdministrator('applications.delete');
      expect(await seen()).toEqual({ active: false });
    });
  });

  test('a pushed request starts the same flow, once', async () => {
    const party = await relyingParty(scenario());
    const { session } = await loggedIn(scenario());
    const verifier = 'v'.repeat(43);
    const url = await client.buildAuthorizationUrlWithPAR(party.config, await party.parameters(verifier));
    const visitor = new Visitor();
    const location = (await visitor.go(party.at(url))).headers.get('location') ?? '';
    const id = new URL(location, stack().appUrl).searchParams.get('id');
    const options = { session, browser: visitor.browser };
    const { data: asked } = await call('authorizations.proceed', { id }, options);
    const { data } = await call('authorizations.proceed', { id, allow: true, userId: asked.userId }, options);
    const callback = (await visitor.go(party.at(data.location))).headers.get('location') ?? '';
    expect(await party.redeem(new URL(callback), verifier)).toMatchObject({ access_token: expect.any(String) });
    const again = await new Visitor().go(party.at(url));
    expect(again.headers.get('location') ?? (await again.text())).toMatch(/invalid_request_uri/);
  });

  test('DPoP binds tokens to a key, and a proof works once', async () => {
    const party = await relyingParty(scenario(), { kind: 'browser', redirectUris: ['https://spa.example.com/'] });
    const user = await loggedIn(scenario());
    const DPoP = client.getDPoPHandle(party.config, await client.randomDPoPKeyPair('ES256'));
    const { callback, verifier } = await party.authorize(user.session);
    const checks = { pkceCodeVerifier: verifier, expectedState: 'the-state' };
    const tokens = await client.authorizationCodeGrant(party.config, callback as URL, checks, undefined, { DPoP });
    expect(tokens.token_type).toBe('dpop');
    expect(await client.fetchUserInfo(party.config, tokens.access_token, user.id, { DPoP })).toMatchObject({
      sub: user.id,
    });
    await expect(client.fetchUserInfo(party.config, tokens.access_token, user.id)).rejects.toThrow();
    let proof = '';
    party.config[client.customFetch] = (url, options) => {
      proof = options.headers['dpop'] ?? '';
      return fetch(party.at(url), options as RequestInit);
    };
    const next = await client.refreshTokenGrant(party.config, tokens.refresh_token ?? '', undefined, { DPoP });
    const body = new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: next.refresh_token ?? '',
      client_id: party.id,
    });
    const replay = await fetch(party.at('/oauth/token'), { method: 'POST', body, headers: { dpop: proof } });
    expect([replay.status, await replay.json()]).toEqual([400, expect.objectContaining({ error: 'invalid_grant' })]);
    const another = client.getDPoPHandle(party.config, await client.randomDPoPKeyPair('ES256'));
    const stolen = client.refreshTokenGrant(party.config, next.refresh_token ?? '', undefined, { DPoP: another });
    expect(await refused(stolen)).toBe('invalid_grant');
  });

  test('a request may be a form, which is repeated as GET', async () => {
    const party = await relyingParty(scenario());
    const parameters = await party.parameters('v'.repeat(43));
    const url = client.buildAuthorizationUrl(party.config, parameters);
    const send = (body: URLSearchParams) =>
      fetch(party.at('/oauth/authorize'), { method: 'POST', body, redirect: 'manual' });
    const response = await send(url.searchParams);
    const location = party.at(response.headers.get('location') ?? '');
    expect([response.status, location.pathname, response.headers.getSetCookie()]).toEqual([
      303,
      '/oauth/authorize',
      [],
    ]);
    expect([...location.searchParams].sort()).toEqual([...url.searchParams].sort());
    expect((await new Visitor().go(location)).headers.get('location')).toMatch(/^\/authorize\?id=/);
    // A repeated parameter stays repeated: the library refuses it.
    const repeated = new URLSearchParams([...url.searchParams, ['scope', 'openid']]);
    const doubled = party.at((await send(repeated)).headers.get('location') ?? '');
    expect(doubled.searchParams.getAll('scope')).toEqual(repeated.getAll('scope'));
    expect((await send(new URLSearchParams({ state: 'x'.repeat(5000) }))).status).toBe(413);
  });

  test('two pages of an application may ask at once', async () => {
    const party = await relyingParty(scenario(), { trusted: true });
    const { session } = await loggedIn(scenario());
    const all = await Promise.all(Array.from({ length: 4 }, () => party.authorize(session)));
    for (const { callback } of all) expect(callback?.searchParams.has('code')).toBe(true);
    expect(await stack().database('select id from grants where application_id = ?', [party.id])).toHaveLength(1);
  });

  test('a page of any site may ask before it sends a request', async () => {
    const { at } = await relyingParty(scenario());
    for (const path of ['/oauth/token', '/oauth/userinfo', '/.well-known/openid-configuration']) {
      const headers = { origin: 'https://spa.example.com', 'access-control-request-method': 'POST' };
      const response = await fetch(at(path), { method: 'OPTIONS', headers });
      expect([path, response.status, response.headers.get('access-control-allow-credentials')]).toEqual([
        path,
        204,
        null,
      ]);
    }
  });

  test('only pages of the application read its answers', async () => {
    const party = await relyingParty(scenario(), { kind: 'browser', redirectUris: ['https://spa.example.com/'] });
    const request = (origin: string) => {
      const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'x', client_id: party.id });
      return fetch(party.at('/oauth/token'), { method: 'POST', body, headers: { origin } });
    };
    const own = await request('https://spa.example.com');
    expect([own.headers.get('access-control-allow-origin'), await errorIn(own)]).toEqual([
      'https://spa.example.com',
      'invalid_grant',
    ]);
    const foreign = await request('https://evil.example');
    expect([foreign.headers.get('access-control-allow-origin'), await errorIn(foreign)]).toEqual([
      null,
      'invalid_request',
    ]);
  });

  test('the pending requests of one address are bounded', async () => {
    const party = await relyingParty(scenario());
    const visitor = new Visitor();
    const url = party.at(client.buildAuthorizationUrl(party.config, await party.parameters('v'.repeat(43))));
    const statuses = new Set<number>();
    for (let i = 0; i < 310 && !statuses.has(429); i++) statuses.add((await visitor.go(url)).status);
    expect([...statuses]).toEqual([303, 429]);
  });

  test('an answered request makes one grant; after the end of the grant it has expired', async () => {
    const party = await relyingParty(scenario());
    const { session, id: userId } = await loggedIn(scenario());
    const visitor = new Visitor();
    const { id } = await party.begin(visitor, await party.parameters('v'.repeat(43)));
    const proceed = (input: object) => call('authorizations.proceed', input, { session, browser: visitor.browser });
    expect((await proceed({ id })).data.step).toBe('consent');
    const allowed = await proceed({ id, allow: true, userId });
    expect(allowed.data.step).toBe('continue');
    expect((await call('grants.revoke', { id: party.id }, { session })).status).toBe(200);
    expect((await proceed({ id, allow: true, userId })).data).toEqual(allowed.data);
    // Not for another user of the browser.
    for (const other of [await loggedIn(scenario()), {}]) {
      const reply = await call('authorizations.proceed', { id }, { ...other, browser: visitor.browser });
      expectRefusal(reply, 404, 'NOT_FOUND', 'This login request has expired');
    }
    expect(await eventsOf(stack(), userId, 'grant-created')).toHaveLength(1);
    const again = await party.visit(visitor, allowed.data.location);
    expect(again.id).toEqual(expect.any(String));
    const refusal = await proceed({ id: again.id, allow: true, userId });
    expectRefusal(refusal, 404, 'NOT_FOUND', 'This login request has expired');
  });

  // checks: 72
  test('access that is mailed is limited for a user, but that of trusted applications is not', async () => {
    const { session, id, email } = await loggedIn(scenario());
    const accessAgain = async (party: RelyingParty) => {
      const { steps } = await party.authorize(session);
      await call('grants.revoke', { id: party.id }, { session });
      return steps.at(-1);
    };
    const party = await relyingParty(scenario());
    for (let i = 0; i < 10; i++) expect(await accessAgain(party)).toBe('continue');
    const visitor = new Visitor();
    const { id: request } = await party.begin(visitor, await party.parameters('v'.repeat(43)));
    const proceed = (answer: object) =>
      call('authorizations.proceed', { id: request, ...answer }, { session, browser: visitor.browser });
    expect((await proceed({})).data.step).toBe('consent');
    const refusal = await proceed({ allow: true, userId: id });
    expectRefusal(refusal, 429, 'RATE_LIMITED');
    expect(await accessAgain(await relyingParty(scenario(), { trusted: true }))).toBe('continue');
    const mails = await stack().database("select id from outbox where email = ? and kind = 'application-allowed'", [
      email,
    ]);
    expect(mails).toHaveLength(10);
  });

  test('access of trusted applications leaves the limit to others', async () => {
    const { session, id } = await loggedIn(scenario());
    const trusted = await relyingParty(scenario(), { trusted: true });
    for (let i = 0; i < 10; i++) {
      await trusted.authorize(session);
      await call('grants.revoke', { id: trusted.id }, { session });
    }
    const party = await relyingParty(scenario());
    expect((await party.authorize(session)).steps.at(-1)).toBe('continue');
    const details = { application: 'Shop', applicationId: trusted.id, trusted: 'true' };
    expect((await eventsOf(stack(), id, 'grant-created')).slice(0, 10)).toEqual(Array(10).fill(details));
  });

  test('users list and end the access of applications', async () => {
    const party = await relyingParty(scenario());
    const { session, id } = await loggedIn(scenario());
    expect((await call('grants.list', undefined, { session })).data).toEqual({ data: [] });
    await party.logIn(session);
    const { data } = await call('grants.list', undefined, { session });
    const now = expect.any(Number);
    expect(data.data).toEqual([
      {
        id: party.id,
        name: 'Shop',
        logoUrl: null,
        scopes: ['openid', 'profile', 'email'],
        createdAt: now,
        lastUsedAt: now,
      },
    ]);
    const other = await loggedIn(scenario());
    expectRefusal(await call('grants.revoke', { id: party.id }, { session: other.session }), 404, 'NOT_FOUND');
    expect((await call('grants.revoke', { id: party.id }, { session })).status).toBe(200);
    expect((await call('grants.list', undefined, { session })).data).toEqual({ data: [] });
    expect(await eventsOf(stack(), id, 'grant-revoked')).toEqual([{ application: 'Shop', applicationId: party.id }]);
  });
});
