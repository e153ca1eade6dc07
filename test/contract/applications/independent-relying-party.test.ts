import * as oauth from 'oauth4webapi';
import { expect, test } from 'vitest';
import { callerOf } from '../rig/callers.ts';
import { CALLBACK, relyingParty, Visitor } from '../rig/relying-party.ts';
import { loggedIn, onBothStacks } from '../rig/scenario.ts';

/** A relying party that checks every answer itself, by oauth4webapi: signatures of ID tokens too. */

const API = 'https://api.example.com';
const scopes = ['openid', 'profile', 'email', 'offline_access', 'orders:read'];

onBothStacks((stack) => {
  const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });

  async function independent(given: object = {}) {
    const party = await relyingParty(scenario(), { resources: [API], scopes, ...given });
    const options = {
      [oauth.allowInsecureRequests]: true,
      [oauth.customFetch]: (url: string, init: object) => fetch(party.at(url), init as RequestInit),
    };
    const issuer = new URL(stack().appUrl);
    const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, options));
    const client: oauth.Client = { client_id: party.id, id_token_signed_response_alg: 'ES256' };
    const auth = party.secret ? oauth.ClientSecretPost(party.secret) : oauth.None();
    return { party, options, as, client, auth };
  }
  type Independent = Awaited<ReturnType<typeof independent>>;

  /** A pushed request, up to the callback. */
  async function begun({ party, options, as, client, auth }: Independent, session: string, extra = {}) {
    const [verifier, state, nonce] = [
      oauth.generateRandomCodeVerifier(),
      oauth.generateRandomState(),
      oauth.generateRandomNonce(),
    ];
    const parameters = {
      redirect_uri: CALLBACK,
      response_type: 'code',
      scope: 'openid email',
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
      ...extra,
    };
    const pushed = await oauth.processPushedAuthorizationResponse(
      as,
      client,
      await oauth.pushedAuthorizationRequest(as, client, auth, parameters, options),
    );
    const address = new URL(as.authorization_endpoint ?? '');
    address.search = `${new URLSearchParams({ client_id: party.id, request_uri: pushed.request_uri })}`;
    const visitor = new Visitor();
    const { id } = await party.visit(visitor, address);
    const { callback } = await party.answer(session, id ?? '', visitor);
    return { callback: callback as URL, verifier, state, nonce };
  }

  async function logIn(own: Independent, session: string, extra = {}, DPoP?: oauth.DPoPHandle) {
    const { options, as, client, auth } = own;
    const { callback, verifier, state, nonce } = await begun(own, session, extra);
    const parameters = oauth.validateAuthResponse(as, client, callback, state);
    const response = await oauth.authorizationCodeGrantRequest(as, client, auth, parameters, CALLBACK, verifier, {
      ...options,
      ...(DPoP && { DPoP }),
    });
    const tokens = await oauth.processAuthorizationCodeResponse(as, client, response, {
      expectedNonce: nonce,
      requireIdToken: true,
    });
    await oauth.validateApplicationLevelSignature(as, response, options);
    return tokens;
  }

  test('code flow by a pushed request, userinfo, refresh, introspection and revocation', async () => {
    const own = await independent();
    const { options, as, client, auth } = own;
    const user = await loggedIn(scenario());
    const tokens = await logIn(own, user.session);
    expect(oauth.getValidatedIdTokenClaims(tokens)).toMatchObject({ sub: user.id, iss: stack().appUrl });

    const asked = await oauth.userInfoRequest(as, client, tokens.access_token, options);
    expect(await oauth.processUserInfoResponse(as, client, user.id, asked)).toMatchObject({ email: user.email });

    const refreshed = await oauth.refreshTokenGrantRequest(as, client, auth, tokens.refresh_token ?? '', options);
    const next = await oauth.processRefreshTokenResponse(as, client, refreshed);
    expect(next.refresh_token).not.toBe(tokens.refresh_token);

    const introspect = async () => {
      const response = await oauth.introspectionRequest(as, client, auth, next.refresh_token ?? '', options);
      return oauth.processIntrospectionResponse(as, client, response);
    };
    expect(await introspect()).toMatchObject({ active: true, client_id: client.client_id });
    const revoked = await oauth.revocationRequest(as, client, auth, next.refresh_token ?? '', options);
    await oauth.processRevocationResponse(revoked);
    expect(await introspect()).toEqual({ active: false });
  });

  test('an API checks a JWT and its DPoP proof', async () => {
    const own = await independent();
    const { as, client, options } = own;
    const { session, id } = await loggedIn(scenario());
    const key = await oauth.generateKeyPair('ES256');
    const handle = oauth.DPoP(client, key);
    const tokens = await logIn(own, session, { scope: 'openid orders:read', resource: API }, handle);
    expect(tokens.token_type).toBe('dpop');
    let request = new Request(API);
    await oauth.protectedResourceRequest(tokens.access_token, 'GET', new URL(`${API}/orders`), undefined, undefined, {
      DPoP: handle,
      [oauth.customFetch]: async (url, init) => {
        request = new Request(url, init as RequestInit);
        return new Response();
      },
    });
    expect(await oauth.validateJwtAccessToken(as, request, API, options)).toMatchObject({
      sub: id,
      scope: 'orders:read',
    });
    const stolen = new Request(`${API}/orders`, { headers: { authorization: `Bearer ${tokens.access_token}` } });
    await expect(oauth.validateJwtAccessToken(as, stolen, API, options)).rejects.toThrow();
  });

  test('an answer of another server is told from ours: each one names its issuer (mix-up)', async () => {
    const own = await independent();
    const { as, client, party } = own;
    const { session } = await loggedIn(scenario());
    const { callback, state } = await begun(own, session);
    const visitor = new Visitor();
    const { id } = await party.begin(visitor, await party.parameters('v'.repeat(43)));
    const { callback: denied } = await party.answer((await loggedIn(scenario())).session, id ?? '', visitor, false);
    const wrong = await party.parameters('v'.repeat(43), { resource: 'https://other.example.com' });
    const { url: refused } = await party.begin(visitor, wrong);
    for (const answer of [callback, denied, refused]) expect(answer?.searchParams.get('iss')).toBe(stack().appUrl);
    const validate = (change: (query: URLSearchParams) => void) => {
      const changed = new URL(callback);
      change(changed.searchParams);
      return () => oauth.validateAuthResponse(as, client, changed, state);
    };
    expect(validate(() => undefined)).not.toThrow();
    expect(validate((query) => query.set('iss', 'https://evil.example.com'))).toThrow();
    expect(validate((query) => query.delete('iss'))).toThrow();
    expect(validate((query) => query.set('state', 'planted'))).toThrow();
  });
});
