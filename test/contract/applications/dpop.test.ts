import { createHash } from 'node:crypto';
import { exportJWK, generateKeyPair } from 'jose';
import { describe, expect, test } from 'vitest';
import { loadClient, procedureOf } from '../../rig/client/client.ts';
import { callerOf } from '../rig/callers.ts';
import { withKey } from '../rig/key-scenario.ts';
import { boundToken, type Changes } from '../rig/proofs.ts';
import { relyingParty } from '../rig/relying-party.ts';
import { everywhere, expectRefusal, loggedIn, onBothStacks } from '../rig/scenario.ts';

/** Tokens for our own API that are bound to a key (RFC 9449). */

const challenge = (parameters: string) => `DPoP ${parameters}, algs="ES256 Ed25519 EdDSA"`;
const PROFILE = '/api/profile';
const INVALID_PROOF = [401, 'UNAUTHENTICATED', challenge('error="invalid_dpop_proof"')];
const INVALID_TOKEN = [401, 'UNAUTHENTICATED', challenge('error="invalid_token"')];
const sha256 = createHash('sha256').update('a-service').digest('hex');

everywhere((scenario) => {
  test('a token works with a proof of its key, for the scopes that it names', async () => {
    const { call } = scenario();
    const user = await loggedIn(scenario());
    const { sign } = await boundToken(scenario(), user.session);
    const { status, data } = await call('profile.get', undefined, { sign });
    expect([status, data.user.id]).toEqual([200, user.id]);
    const refusal = await call('profile.update', { bio: 'x' }, { sign });
    expectRefusal(refusal, 403, 'INSUFFICIENT_SCOPE');
    expect(refusal.headers.get('www-authenticate')).toBe(
      challenge('error="insufficient_scope", scope="profile:write"'),
    );
    await call('auth.logoutAll', undefined, { session: user.session });
    const ended = await call('profile.get', undefined, { sign });
    expectRefusal(ended, 401, 'UNAUTHENTICATED');
    expect(ended.headers.get('www-authenticate')).toBe(challenge('error="invalid_token"'));
  });

  test('a token that is bound to a key is no bearer token, and a bearer token has no proof', async () => {
    const { call, stack } = scenario();
    const { session } = await loggedIn(scenario());
    const { token, sign, party } = await boundToken(scenario(), session);
    const asBearer = await call('profile.get', undefined, { key: token });
    expectRefusal(asBearer, 401, 'UNAUTHENTICATED');
    expect(asBearer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
    const { access_token: bearer } = await party.logIn(session, { scope: 'profile:read', resource: stack.appUrl });
    expect((await call('profile.get', undefined, { key: bearer })).status).toBe(200);
    const { secret: key } = await withKey(scenario());
    for (const other of [bearer, key]) {
      const { prove } = await boundToken(scenario(), session);
      const ath = createHash('sha256').update(other).digest('base64url');
      const withProof = await call('profile.get', undefined, {
        sign: async (method, url) => ({
          authorization: `DPoP ${other}`,
          dpop: await prove(method, new URL(url).pathname, { claims: { ath } }),
        }),
      });
      expectRefusal(withProof, 401, 'UNAUTHENTICATED');
      expect(withProof.headers.get('www-authenticate')).toBe(challenge('error="invalid_token"'));
    }
    expect((await call('profile.get', undefined, { sign })).status).toBe(200);
  });

  test('a session cookie beside it is 400, and neither is used', async () => {
    const { call } = scenario();
    const { session } = await loggedIn(scenario());
    const { sign } = await boundToken(scenario(), session);
    const refusal = await call('profile.get', undefined, { session, sign });
    expectRefusal(refusal, 400, 'VALIDATION_FAILED', /session cookie and a token/);
    expect(refusal.headers.get('www-authenticate')).toBe(challenge('error="invalid_request"'));
  });
});

onBothStacks(
  (stack) => {
    const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });
    const bound = async () => boundToken(scenario(), (await loggedIn(scenario())).session);
    type Bound = Awaited<ReturnType<typeof bound>>;
    let shared: Promise<Bound> | undefined;
    const ask = async (token: string, dpop: string | undefined, path = PROFILE) => {
      const headers = { authorization: `DPoP ${token}`, ...(dpop !== undefined && { dpop }) };
      const response = await fetch(stack().url + path, { headers });
      const { code } = (await response.json()) as { code?: string };
      return [response.status, code, response.headers.get('www-authenticate')];
    };
    const granted = [200, undefined, null];
    const proofOf = async ({ prove }: Bound, changes: Changes) => prove('GET', PROFILE, changes);
    const now = () => Math.floor(Date.now() / 1000);

    describe('refused is a proof', () => {
      const forged: Record<string, (bound: Bound) => Promise<string | undefined> | string | undefined> = {
        'that is missing': () => undefined,
        'that is no JWT': () => 'x.y.z',
        'that is sent twice': async (own) => `${await proofOf(own, {})}, ${await proofOf(own, {})}`,
        'of another type': (own) => proofOf(own, { header: { typ: 'JWT' } }),
        'that is not signed': async (own) => {
          const [, payload] = (await proofOf(own, {})).split('.');
          const header = { alg: 'none', typ: 'dpop+jwt', jwk: own.jwk };
          return `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${payload}.`;
        },
        'that is signed with a shared secret': (own) => {
          const k = Buffer.alloc(32).toString('base64url');
          return proofOf(own, { header: { alg: 'HS256', jwk: { kty: 'oct', k } }, key: new Uint8Array(32) });
        },
        'that another key has signed': async (own) =>
          proofOf(own, { key: (await generateKeyPair('ES256')).privateKey }),
        'without its key': (own) => proofOf(own, { header: { jwk: undefined } }),
        'whose key is the private one': async (own) => {
          const { privateKey } = await generateKeyPair('ES256', { extractable: true });
          return proofOf(own, { header: { jwk: await exportJWK(privateKey) }, key: privateKey });
        },
        'for another method': (own) => own.prove('POST', PROFILE),
        'for another path': (own) => own.prove('GET', '/api/uploads'),
        'for another host': (own) => proofOf(own, { claims: { htu: `https://evil.example.com${PROFILE}` } }),
        'for what is no address': (own) => proofOf(own, { claims: { htu: PROFILE } }),
        'that is old': (own) => proofOf(own, { claims: { iat: now() - 70 } }),
        'of the future': (own) => proofOf(own, { claims: { iat: now() + 70 } }),
        'without a time': (own) => proofOf(own, { claims: { iat: undefined } }),
        'that has expired': (own) => proofOf(own, { claims: { exp: now() - 1 } }),
        'without an id': (own) => proofOf(own, { claims: { jti: undefined } }),
        'without the token': (own) => proofOf(own, { claims: { ath: undefined } }),
        'for another token': (own) => proofOf(own, { claims: { ath: 'x'.repeat(43) } }),
      };
      test.each(Object.entries(forged))('%s', async (_, forge) => {
        shared ??= bound();
        const own = await shared;
        expect(await ask(own.token, await forge(own))).toEqual(INVALID_PROOF);
        expect(await ask(own.token, await proofOf(own, {}))).toEqual(granted);
      });
    });

    test('a proof may be off by less than a minute, and its address has no query and fragment', async () => {
      const own = await bound();
      for (const claims of [
        { iat: now() - 50 },
        { iat: now() + 50 },
        { htu: `${stack().appUrl}${PROFILE}?x=1#y` },
        { htu: `${stack().appUrl}${PROFILE}` },
      ])
        expect(await ask(own.token, await proofOf(own, { claims }), `${PROFILE}?a=1`)).toEqual(granted);
    });

    test('a proof of another key gives no access to a token', async () => {
      const [own, thief] = [await bound(), await bound()];
      const ath = createHash('sha256').update(own.token).digest('base64url');
      expect(await ask(own.token, await proofOf(thief, { claims: { ath } }))).toEqual(INVALID_TOKEN);
      expect(await ask('x'.repeat(43), await proofOf(thief, {}))).toEqual(INVALID_PROOF);
      expect(await ask('x', undefined)).toEqual(INVALID_TOKEN);
    });

    test('a proof works for one request', async () => {
      const own = await bound();
      const proof = await proofOf(own, {});
      expect(await ask(own.token, proof)).toEqual(granted);
      expect(await ask(own.token, proof)).toEqual(INVALID_PROOF);
      const next = await proofOf(own, {});
      const answers = await Promise.all(Array.from({ length: 10 }, () => ask(own.token, next)));
      expect(answers.filter(([status]) => status === 200)).toHaveLength(1);
    });

    test('which may have several calls of the typed client', async () => {
      const user = await loggedIn(scenario());
      const { sign } = await boundToken(scenario(), user.session, 'openid profile:read uploads:read');
      const { createClient } = await loadClient();
      const requests: string[] = [];
      const client = createClient({
        url: stack().url,
        fetch: async (address, init) => {
          requests.push(String(address));
          return fetch(address, { ...init, headers: await sign(init?.method ?? 'GET', String(address)) });
        },
      });
      const [profile, uploads] = await Promise.all([
        procedureOf(client, 'profile.get').query(undefined),
        procedureOf(client, 'upload.list').query({}),
      ]);
      expect([profile, uploads]).toMatchObject([{ user: { id: user.id } }, { data: [] }]);
      expect(requests).toHaveLength(1);
    });

    test('a page of another site cannot use the exemption of credentials from the check of origins', async () => {
      const own = await bound();
      const headers = { authorization: `DPoP ${own.token}`, origin: 'https://evil.example' };
      const response = await fetch(`${stack().url}${PROFILE}`, { method: 'PUT', headers });
      expect(response.status).toBe(401);
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
    });

    test('another service that gets the token alone does not accept it', async () => {
      const own = await bound();
      const { createServiceClient } = await loadClient();
      const service = createServiceClient({ url: stack().url, token: 'a-service' });
      expect(await procedureOf(service, 'service.session').mutate({ token: own.token })).toBeNull();
      const { prove } = own;
      const response = await fetch(`${stack().url}/api/events?after=0`, {
        headers: { authorization: 'DPoP a-service', dpop: await prove('GET', '/api/events') },
      });
      expect(response.status).toBe(401);
    });

    test('another service that gets a bearer token learns the user, the application and the scopes', async () => {
      const party = await relyingParty(scenario(), { scopes: ['openid', 'profile:read'] });
      const user = await loggedIn(scenario());
      const asked = { scope: 'openid profile:read', resource: stack().appUrl };
      const { access_token: token } = await party.logIn(user.session, asked);
      const { createServiceClient } = await loadClient();
      const service = createServiceClient({ url: stack().url, token: 'a-service' });
      const find = () => procedureOf(service, 'service.session').mutate({ token });
      expect(await find()).toMatchObject({
        user: { id: user.id },
        scopes: ['profile:read'],
        credential: { kind: 'token', applicationId: party.id },
      });
      await callerOf('rest', stack().url)('auth.logout', undefined, { session: user.session });
      expect(await find()).toBeNull();
    });

    test('a client credentials token of an application has no user here', async () => {
      const party = await relyingParty(scenario(), { kind: 'service', redirectUris: [], scopes: ['profile:read'] });
      const body = new URLSearchParams({ grant_type: 'client_credentials', resource: stack().appUrl });
      const authorization = `Basic ${btoa(`${party.id}:${party.secret}`)}`;
      const answer = await fetch(party.at('/oauth/token'), { method: 'POST', body, headers: { authorization } });
      const { access_token: key } = (await answer.json()) as { access_token?: string };
      expect(key).toEqual(expect.any(String));
      expectRefusal(await scenario().call('profile.get', undefined, { key }), 401, 'UNAUTHENTICATED');
    });
  },
  { env: { SERVICE_TOKENS: `other:${sha256}` } },
);
