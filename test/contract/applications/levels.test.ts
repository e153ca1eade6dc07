import * as client from 'openid-client';
import { expect, test } from 'vitest';
import { callerOf } from '../rig/callers.ts';
import { logInByPasskey, withPasskey } from '../rig/passkey-scenario.ts';
import { relyingParty, Visitor } from '../rig/relying-party.ts';
import { loggedIn, logIn, onBothStacks } from '../rig/scenario.ts';
import { setUpApp, withApp } from '../rig/totp-scenario.ts';

/** How strong a login an application asks for: `acr_values=mfa` (RFC 9470). */

const API = 'https://api.example.com';
const MFA = { acr_values: 'mfa' };

onBothStacks((stack) => {
  const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });
  const call: ReturnType<typeof callerOf> = (...given) => scenario().call(...given);
  const withApi = { resources: [API], scopes: ['openid', 'orders:read'], trusted: true };

  test('the metadata names the level', async () => {
    const { config } = await relyingParty(scenario());
    expect(config.serverMetadata()['acr_values_supported']).toEqual(['mfa']);
  });

  test.each<[string, () => Promise<{ session: string }>]>([
    ['an authenticator app', () => withApp(scenario())],
    [
      'a passkey',
      async () => {
        const { authenticator } = await withPasskey(scenario());
        return { session: await logInByPasskey(call, authenticator) };
      },
    ],
  ])('a login with %s has it, in the ID token and the access token', async (_, person) => {
    const party = await relyingParty(scenario(), withApi);
    const { session } = await person();
    const tokens = await party.logIn(session, { ...MFA, scope: 'openid orders:read', resource: API });
    expect(tokens.claims()).toMatchObject({ acr: 'mfa' });
    const [, body = ''] = tokens.access_token.split('.');
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString());
    expect(claims).toMatchObject({ acr: 'mfa', auth_time: expect.any(Number) });
    const next = await client.refreshTokenGrant(party.config, tokens.refresh_token ?? '');
    expect(next.claims()).toMatchObject({ acr: 'mfa' });
  });

  test('a login by password only does not have it, and is asked for more until it has', async () => {
    const party = await relyingParty(scenario());
    const user = await loggedIn(scenario());
    const visitor = new Visitor();
    const { id } = await party.begin(visitor, await party.parameters('v'.repeat(43), MFA));
    const proceed = (session: string, input: object = {}) =>
      call('authorizations.proceed', { id, ...input }, { session, browser: visitor.browser });
    const { data } = await proceed(user.session);
    expect(data).toMatchObject({ step: 'second-factor', application: { name: 'Shop' }, userId: user.id });
    const agreed = { allow: true, userId: user.id };
    expect((await proceed(user.session, agreed)).data.step).toBe('second-factor');
    const { session } = await setUpApp(scenario(), user);
    // Its answer is not to the consent, which was not shown.
    const { data: next } = await proceed(session, agreed);
    expect(next).toMatchObject({ step: 'consent', scopes: ['openid', 'profile', 'email'] });
    expect(await stack().database('select id from grants where application_id = ?', [party.id])).toEqual([]);
    expect((await proceed(session, agreed)).data.step).toBe('continue');
  });

  test('a user who does not want to add a second factor is sent back', async () => {
    const party = await relyingParty(scenario());
    const user = await loggedIn(scenario());
    const visitor = new Visitor();
    const { id } = await party.begin(visitor, await party.parameters('v'.repeat(43), MFA));
    const denial = { id, allow: false, userId: user.id };
    const { data } = await call('authorizations.proceed', denial, { session: user.session, browser: visitor.browser });
    const response = await visitor.go(party.at(data.location));
    expect(response.headers.get('location')).toMatch(/[?&]error=access_denied/);
  });

  test('prompt=none answers that the level is not reached', async () => {
    const party = await relyingParty(scenario(), { trusted: true });
    const user = await loggedIn(scenario());
    const parameters = { ...MFA, prompt: 'none' };
    const { callback } = await party.authorize(user.session, { parameters });
    expect(callback?.searchParams.get('error')).toBe('unmet_authentication_requirements');
    expect((await party.logIn(user.session)).claims()).not.toHaveProperty('acr');
  });

  test('a password alone is not enough again once the passkey session has ended', async () => {
    const party = await relyingParty(scenario(), { trusted: true });
    const { authenticator: _, ...user } = await withPasskey(scenario());
    const { steps } = await party.authorize(await logIn(call, user), { parameters: MFA });
    expect(steps[0]).toBe('second-factor');
  });
});
