import { AccessTokenError, verifyAccessToken } from 'account-client/tokens';
import * as client from 'openid-client';
import { expect, test } from 'vitest';
import { callerOf } from '../rig/callers.ts';
import { relyingParty } from '../rig/relying-party.ts';
import { loggedIn, onBothStacks } from '../rig/scenario.ts';

/** An API that checks the JWTs of the provider by `account-client/tokens`. */

const API = 'https://api.example.com';
const OTHER_API = 'https://billing.example.com';
const withApis = { resources: [API, OTHER_API], scopes: ['openid', 'offline_access', 'orders:read', 'orders:write'] };

onBothStacks((stack) => {
  const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });
  /** APP_URL may be a name that leads nowhere. */
  const verifierOf =
    ({ at }: Awaited<ReturnType<typeof relyingParty>>, audience = API) =>
    (token: string, scope?: string) =>
      verifyAccessToken(token, {
        issuer: stack().appUrl,
        audience,
        scope,
        fetch: (url, init) => fetch(at(String(url)), init),
      });
  const codeOf = (result: Promise<unknown>) =>
    result.then(
      () => 'accepted',
      (error: unknown) => (error instanceof AccessTokenError ? error.code : error),
    );

  test('it knows the user, the application and the scopes of a token', async () => {
    const party = await relyingParty(scenario(), withApis);
    const user = await loggedIn(scenario());
    const tokens = await party.logIn(user.session, { scope: 'openid orders:read', resource: API });
    const verify = verifierOf(party);
    expect(await verify(tokens.access_token, 'orders:read')).toEqual({
      iss: stack().appUrl,
      aud: API,
      sub: user.id,
      client_id: party.id,
      scope: ['orders:read'],
      jti: expect.any(String),
      iat: expect.any(Number),
      exp: expect.any(Number),
      auth_time: expect.any(Number),
    });
    expect(await codeOf(verify(tokens.access_token, 'orders:write'))).toBe('INSUFFICIENT_SCOPE');
  });

  test('it knows the application of a token by client credentials', async () => {
    const service = await relyingParty(scenario(), { ...withApis, kind: 'service', redirectUris: [] });
    const grant = { scope: 'orders:read', resource: API };
    const { access_token: token } = await client.clientCredentialsGrant(service.config, grant);
    expect(await verifierOf(service)(token)).toMatchObject({ sub: service.id, client_id: service.id });
  });

  test('a token for another API, an ID token and a token for our own API are refused', async () => {
    const party = await relyingParty(scenario(), withApis);
    const { session } = await loggedIn(scenario());
    const tokens = await party.logIn(session, { scope: 'openid orders:read', resource: OTHER_API });
    expect(await codeOf(verifierOf(party, OTHER_API)(tokens.access_token))).toBe('accepted');
    expect(await codeOf(verifierOf(party)(tokens.access_token))).toBe('INVALID_TOKEN');
    expect(await codeOf(verifierOf(party, party.id)(tokens.id_token ?? ''))).toBe('INVALID_TOKEN');
    const own = await party.logIn(session, { scope: 'openid' });
    expect(await codeOf(verifierOf(party)(own.access_token))).toBe('INVALID_TOKEN');
  });

  test('a token that is bound to a key is refused as a bearer token', async () => {
    const service = await relyingParty(scenario(), { ...withApis, kind: 'service', redirectUris: [] });
    const DPoP = client.getDPoPHandle(service.config, await client.randomDPoPKeyPair('ES256'));
    const grant = { scope: 'orders:read', resource: API };
    const { access_token: token } = await client.clientCredentialsGrant(service.config, grant, { DPoP });
    expect(await codeOf(verifierOf(service)(token))).toBe('INVALID_TOKEN');
  });
});
