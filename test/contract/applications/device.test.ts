import * as client from 'openid-client';
import { describe, expect, test } from 'vitest';
import { clientAddress } from '../../rig/servers/address.ts';
import type { callerOf } from '../rig/callers.ts';
import { DEVICE, deviceParty, refused, relyingParty, Visitor } from '../rig/relying-party.ts';
import { eventsOf, everywhere, expectRefusal, growOld, loggedIn, logIn } from '../rig/scenario.ts';
import { setUpApp } from '../rig/totp-scenario.ts';

/** The device authorization grant (RFC 8628); openid-client is the device. */

const API = 'https://api.example.com';

everywhere((scenario) => {
  const stack = () => scenario().stack;
  const call: ReturnType<typeof callerOf> = (...given) => scenario().call(...given);
  const party = (given: object = {}) => deviceParty(scenario(), given);

  test('a device gets tokens once the user has entered its code and allowed it', async () => {
    const { config, id, begin, redeem } = await party();
    const user = await loggedIn(scenario());
    const asked = await begin();
    expect(asked).toEqual({
      device_code: expect.stringMatching(/^[\w-]{43}$/),
      user_code: expect.stringMatching(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/),
      verification_uri: `${stack().appUrl}/device`,
      verification_uri_complete: `${stack().appUrl}/device?user_code=${asked.user_code}`,
      expires_in: 600,
    });
    expect(await refused(redeem(asked))).toBe('authorization_pending');
    for (const userCode of [asked.user_code, asked.user_code.toLowerCase().replace('-', '')]) {
      const { status, data } = await call('authorizations.device', { userCode }, user);
      expect([status, data]).toEqual([
        200,
        {
          step: 'consent',
          application: { name: 'Shop', logoUrl: null },
          scopes: ['openid', 'profile', 'email'],
          userId: user.id,
          email: user.email,
          userCode: asked.user_code,
        },
      ]);
    }
    expect(await refused(redeem(asked))).toBe('authorization_pending');
    const answer = { userCode: asked.user_code, allow: true, userId: user.id };
    expect((await call('authorizations.device', answer, user)).data).toEqual({ step: 'done' });
    const tokens = await client.pollDeviceAuthorizationGrant(config, { ...asked, interval: 0.01 });
    expect(tokens).toMatchObject({ scope: 'openid profile email', refresh_token: expect.any(String) });
    expect(tokens.claims()).toMatchObject({ iss: stack().appUrl, sub: user.id, aud: id });
    const claims = await client.fetchUserInfo(config, tokens.access_token, user.id);
    expect(claims).toMatchObject({ sub: user.id, email: user.email });
    expect(await eventsOf(stack(), user.id, 'grant-created')).toEqual([{ application: 'Shop', applicationId: id }]);
    await stack().waitForMail({ to: user.email, subject: 'An application got access' });
  });

  test('a device that names no scope asks for all of the application, except offline_access', async () => {
    const { config } = await party();
    const user = await loggedIn(scenario());
    const { user_code: userCode } = await client.initiateDeviceAuthorization(config, {});
    const { data } = await call('authorizations.device', { userCode }, user);
    expect(data).toMatchObject({ step: 'consent', scopes: ['openid', 'profile', 'email'] });
  });

  test('a device may ask for a login with a second factor', async () => {
    const { id, begin, answer, redeem } = await party();
    const user = await loggedIn(scenario());
    const codes = await begin({ acr_values: 'mfa' });
    const agreed = { userCode: codes.user_code, allow: true, userId: user.id };
    const { data } = await call('authorizations.device', agreed, user);
    expect(data).toMatchObject({ step: 'second-factor', application: { name: 'Shop' }, userCode: codes.user_code });
    const { session } = await setUpApp(scenario(), user);
    // Its answer is not to the consent, which was not shown.
    const { data: next } = await call('authorizations.device', agreed, { session });
    expect(next).toMatchObject({ step: 'consent', scopes: ['openid', 'profile', 'email'] });
    expect(await stack().database('select id from grants where application_id = ?', [id])).toEqual([]);
    await answer(codes, { ...user, session });
    expect((await redeem(codes)).claims()).toMatchObject({ acr: 'mfa' });
  });

  test('the user is told of each device, for trusted applications too', async () => {
    const { id, allowed } = await party({ trusted: true });
    const user = await loggedIn(scenario());
    for (const count of [1, 2]) {
      await allowed(user);
      await stack().waitForMail({ to: user.email, subject: 'An application got access', count });
    }
    const details = { application: 'Shop', applicationId: id };
    expect(await eventsOf(stack(), user.id, 'grant-created')).toEqual([details, details]);
  });

  test('a user who does not allow it ends the request', async () => {
    const { begin, answer, redeem } = await party();
    const user = await loggedIn(scenario());
    const asked = await begin();
    await answer(asked, user, false);
    expectRefusal(await call('authorizations.device', { userCode: asked.user_code }, user), 404, 'NOT_FOUND');
    expect(await refused(redeem(asked))).toBe('access_denied');
    expect(await eventsOf(stack(), user.id, 'grant-created')).toEqual([]);
  });

  // checks: 86
  test('consent is asked every time, for trusted applications too', async () => {
    const { begin, allowed } = await party({ trusted: true });
    const user = await loggedIn(scenario());
    await allowed(user);
    const { user_code: userCode } = await begin();
    expect((await call('authorizations.device', { userCode }, user)).data.step).toBe('consent');
    expect((await call('authorizations.device', { userCode, allow: true }, user)).data.step).toBe('consent');
  });

  test('the answer of one user is not that of another who has logged in since', async () => {
    const { begin, redeem } = await party();
    const [first, second] = [await loggedIn(scenario()), await loggedIn(scenario())];
    const asked = await begin();
    const answer = { userCode: asked.user_code, allow: true, userId: first.id };
    const { data } = await call('authorizations.device', answer, second);
    expect(data).toMatchObject({ step: 'consent', userId: second.id });
    expect(await refused(redeem(asked))).toBe('authorization_pending');
  });

  test('a code is answered once', async () => {
    const { begin, redeem } = await party();
    const users = [await loggedIn(scenario()), await loggedIn(scenario())];
    const asked = await begin();
    const send = (user: Awaited<ReturnType<typeof loggedIn>>, answer: object) =>
      call('authorizations.device', { userCode: asked.user_code, ...answer }, user);
    for (const user of users) expect((await send(user, {})).data.step).toBe('consent');
    const answers = await Promise.all(users.map((user) => send(user, { allow: true, userId: user.id })));
    const winner = users[answers.findIndex(({ status }) => status === 200)];
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404]);
    expect((await redeem(asked)).claims()?.sub).toBe(winner?.id);
    for (const user of users)
      expect(await eventsOf(stack(), user.id, 'grant-created')).toHaveLength(user === winner ? 1 : 0);
  });

  test('a device code works once: a second use ends the grant', async () => {
    const { config, begin, answer, redeem } = await party();
    const user = await loggedIn(scenario());
    const asked = await begin();
    await answer(asked, user);
    const tokens = await redeem(asked);
    expect(await refused(redeem(asked))).toBe('invalid_grant');
    expect(await refused(client.refreshTokenGrant(config, tokens.refresh_token ?? ''))).toBe('invalid_grant');
    await expect(client.fetchUserInfo(config, tokens.access_token, user.id)).rejects.toThrow();
    expect(await eventsOf(stack(), user.id, 'grant-revoked')).toHaveLength(1);
  });

  test('a device code belongs to its application', async () => {
    const [one, other] = [await party(), await party()];
    const user = await loggedIn(scenario());
    const asked = await one.begin();
    await one.answer(asked, user);
    expect(await refused(other.redeem(asked))).toBe('invalid_grant');
    expect(await one.redeem(asked)).toMatchObject({ access_token: expect.any(String) });
  });

  test('the access ends with the session that allowed it, unless the user allowed offline access', async () => {
    const { config, begin, answer, allowed, redeem } = await party();
    const user = await loggedIn(scenario());
    const bound = await allowed(user);
    const offline = await allowed(user, { scope: 'openid offline_access' });
    expect(offline.scope).toBe('openid offline_access');
    const waiting = await begin();
    await answer(waiting, user);
    await call('auth.logout', undefined, user);
    expect(await refused(client.refreshTokenGrant(config, bound.refresh_token ?? ''))).toBe('invalid_grant');
    expect(await refused(redeem(waiting))).toBe('invalid_grant');
    const next = await client.refreshTokenGrant(config, offline.refresh_token ?? '');
    await call('auth.logoutAll', undefined, { session: await logIn(call, user) });
    expect(await refused(client.refreshTokenGrant(config, next.refresh_token ?? ''))).toBe('invalid_grant');
  });

  test('an access token is for the API that the device names', async () => {
    const { allowed } = await party({ resources: [API], scopes: ['openid', 'orders:read'], tokenFormat: 'opaque' });
    const api = await relyingParty(scenario(), { kind: 'service', redirectUris: [], scopes: [], resources: [API] });
    const user = await loggedIn(scenario());
    const tokens = await allowed(user, { scope: 'openid orders:read', resource: API });
    const seen = await client.tokenIntrospection(api.config, tokens.access_token);
    expect(seen).toMatchObject({ active: true, sub: user.id, aud: API, scope: 'orders:read' });
  });

  test('max_age wants a recent login', async () => {
    const { begin, answer, redeem } = await party();
    const user = await loggedIn(scenario());
    await growOld(stack(), user.id);
    const asked = await begin({ scope: 'openid', max_age: '60' });
    const { data } = await call('authorizations.device', { userCode: asked.user_code }, user);
    expect(data).toEqual({ step: 'login' });
    await answer(asked, { ...user, session: await logIn(call, user) });
    expect((await redeem(asked)).claims()?.auth_time).toBeCloseTo(Date.now() / 1000, -2);
  });

  test('a disabled application gets nothing', async () => {
    const { begin, answer, redeem, asAdministrator } = await party();
    const user = await loggedIn(scenario());
    const [open, answered] = [await begin(), await begin()];
    await answer(answered, user);
    await asAdministrator('applications.update', { enabled: false });
    expectRefusal(await call('authorizations.device', { userCode: open.user_code }, user), 404, 'NOT_FOUND');
    expect(await refused(redeem(answered))).toBe('invalid_client');
    expect(await refused(begin())).toBe('invalid_client');
  });

  test('only applications of this kind, and no other flow', async () => {
    const web = await relyingParty(scenario());
    expect(await refused(client.initiateDeviceAuthorization(web.config, { scope: 'openid' }))).toBe('invalid_request');
    const device = await party();
    const parameters = {
      redirect_uri: 'https://shop.example.com/callback',
      ...(await device.parameters('v'.repeat(43))),
    };
    const { status, id } = await device.beginInBrowser(new Visitor(), { ...parameters, response_type: 'code' });
    expect([status, id]).toEqual([400, undefined]);
    expect(await refused(device.begin({ scope: 'openid orders:read', resource: API }))).toBe('invalid_target');
    const api = await party({ resources: [API], scopes: ['openid', 'orders:read'] });
    expect(await refused(api.begin({ scope: 'openid orders:write', resource: API }))).toBe('invalid_scope');
    expect(await refused(client.genericGrantRequest(web.config, DEVICE, { device_code: 'x' }))).toBe('invalid_request');
  });

  test('the pages of the library are not there', async () => {
    const { at } = await party();
    const json = { accept: 'application/json' };
    for (const [method, path] of [
      ['POST', '/device'],
      ['GET', '/device/x'],
      ['GET', '/oauth/device'],
    ] as const) {
      const response = await fetch(at(path), { method, headers: { ...json, origin: stack().appUrl } });
      expect([method, path, response.status]).toEqual([method, path, 404]);
    }
    const page = await fetch(at('/device?user_code=BCDF-GHJK'), { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");
    expect(await page.text()).not.toContain('op.deviceInputForm');
  });

  test('the answer needs a session', async () => {
    const { begin } = await party();
    const { user_code: userCode } = await begin();
    expectRefusal(await call('authorizations.device', { userCode }), 401, 'UNAUTHENTICATED');
  });

  describe('guessing', () => {
    const wrong = { userCode: 'BBBB-BBBB' };

    test('is limited for a user, over many addresses', async () => {
      const user = await loggedIn(scenario());
      const { begin } = await party();
      const { user_code: userCode } = await begin();
      for (let i = 0; i < 10; i++) {
        expect((await call('authorizations.device', { userCode }, user)).status).toBe(200);
        expectRefusal(await call('authorizations.device', wrong, user), 404, 'NOT_FOUND');
      }
      expectRefusal(await call('authorizations.device', wrong, user), 429, 'RATE_LIMITED');
      expectRefusal(await call('authorizations.device', { userCode }, user), 429, 'RATE_LIMITED');
    });

    test('is limited for an address, over many users', async () => {
      const address = clientAddress();
      const users = [];
      for (let i = 0; i < 6; i++) users.push(await loggedIn(scenario()));
      const statuses = [];
      for (const { session } of users)
        for (let i = 0; i < 9; i++)
          statuses.push((await call('authorizations.device', wrong, { session, address })).status);
      expect(statuses).toEqual([...Array(50).fill(404), ...Array(4).fill(429)]);
    });

    test('the pending codes of one address are bounded', async () => {
      const { config, at } = await party();
      const address = clientAddress();
      config[client.customFetch] = (url, { headers, ...options }) =>
        fetch(at(url), { ...options, headers: { ...headers, 'x-forwarded-for': address } } as RequestInit);
      const begin = () => client.initiateDeviceAuthorization(config, { scope: 'openid' });
      for (let i = 0; i < 300; i++) await begin();
      await expect(begin()).rejects.toThrow();
    });
  });
});
