import { createHmac, createPublicKey, type JsonWebKeyInput } from 'node:crypto';
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';
import * as client from 'openid-client';
import { describe, expect, test } from 'vitest';
import { callerOf } from '../rig/callers.ts';
import { type RelyingParty, relyingParty } from '../rig/relying-party.ts';
import { administrator, expectRefusal, loggedIn, onBothStacks } from '../rig/scenario.ts';

/** Applications that identify themselves by a key (`private_key_jwt`, RFC 7523). */

const API = 'https://api.example.com';
const service = { kind: 'service', redirectUris: [], scopes: ['orders:read'], resources: [API] };
const TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

const keyPair = async (alg: string, modulusLength?: number) => {
  const { privateKey, publicKey } = await generateKeyPair(alg, {
    extractable: true,
    ...(modulusLength && { modulusLength }),
  });
  return { privateKey, publicJwk: await exportJWK(publicKey), privateJwk: await exportJWK(privateKey) };
};

onBothStacks((stack) => {
  const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });
  const call: ReturnType<typeof callerOf> = (...given) => scenario().call(...given);

  /** An application with a key instead of a secret. */
  const withKey = async (given: object = service, alg = 'ES256') => {
    const pair = await keyPair(alg);
    const party = await relyingParty(
      scenario(),
      { ...given, publicKeys: [pair.publicJwk] },
      client.PrivateKeyJwt(pair.privateKey),
    );
    return { ...pair, party };
  };
  const grant = (config: client.Configuration) =>
    client.clientCredentialsGrant(config, { scope: 'orders:read', resource: API });

  const claimsOf = ({ id }: RelyingParty): JWTPayload => {
    const now = Math.floor(Date.now() / 1000);
    return { iss: id, sub: id, aud: stack().appUrl, jti: crypto.randomUUID(), iat: now, exp: now + 60 };
  };
  const signed = (payload: JWTPayload, key: client.CryptoKey, alg = 'ES256') =>
    new SignJWT(payload).setProtectedHeader({ alg }).sign(key);
  /** The status, and the error of a refusal, for an assertion. */
  const tokenFor = async ({ at }: RelyingParty, assertion: string, extra: Record<string, string> = {}) => {
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      scope: 'orders:read',
      resource: API,
      client_assertion_type: TYPE,
      client_assertion: assertion,
      ...extra,
    });
    const response = await fetch(at('/oauth/token'), { method: 'POST', body });
    return [response.status, ((await response.json()) as { error?: string }).error];
  };
  const REFUSED = [401, 'invalid_client'];

  test.each(['ES256', 'RS256', 'PS256', 'Ed25519'])('a service gets tokens with a key for %s', async (alg) => {
    const { party } = await withKey(service, alg);
    expect(party.secret).toBeUndefined();
    expect(await grant(party.config)).toMatchObject({ scope: 'orders:read' });
    expect(party.config.serverMetadata()).toMatchObject({
      token_endpoint_auth_methods_supported: expect.arrayContaining(['private_key_jwt']),
      token_endpoint_auth_signing_alg_values_supported: ['ES256', 'EdDSA', 'Ed25519', 'RS256', 'PS256'],
    });
  });

  test('a site logs its users in with a key, which it may exchange', async () => {
    const { party, publicJwk } = await withKey({});
    const { session, id } = await loggedIn(scenario());
    const tokens = await party.logIn(session);
    expect(tokens.claims()?.sub).toBe(id);
    const { refresh_token: token = '' } = await client.refreshTokenGrant(party.config, tokens.refresh_token ?? '');
    const next = await keyPair('ES256');
    const both = await party.asAdministrator('applications.update', {
      publicKeys: [
        { ...next.publicJwk, kid: 'next', use: 'sig', alg: 'ES256', x5t: 'unknown', n: 'é'.repeat(1024) },
        publicJwk,
      ],
    });
    expect(both.data.application.publicKeys).toEqual([
      { ...next.publicJwk, kid: 'next', use: 'sig', alg: 'ES256' },
      publicJwk,
    ]);
    const { refresh_token: last = '' } = await client.refreshTokenGrant(party.config, token);
    await party.asAdministrator('applications.update', { publicKeys: [next.publicJwk] });
    await expect(client.refreshTokenGrant(party.config, last)).rejects.toMatchObject({ cause: expect.anything() });
    const nextConfig = new client.Configuration(
      party.config.serverMetadata(),
      party.id,
      { id_token_signed_response_alg: 'ES256' },
      client.PrivateKeyJwt(next.privateKey),
    );
    client.allowInsecureRequests(nextConfig);
    nextConfig[client.customFetch] = (url, options) => fetch(party.at(url), options as RequestInit);
    expect(await client.refreshTokenGrant(nextConfig, last)).toMatchObject({ access_token: expect.any(String) });
  });

  test('an assertion works once', async () => {
    const { party, privateKey } = await withKey();
    const assertion = await signed(claimsOf(party), privateKey);
    expect(await tokenFor(party, assertion)).toEqual([200, undefined]);
    expect(await tokenFor(party, assertion)).toEqual(REFUSED);
  });

  describe('an assertion is refused', () => {
    type Pair = Awaited<ReturnType<typeof withKey>>;
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const now = () => Math.floor(Date.now() / 1000);
    const changed =
      (change: (claims: JWTPayload) => JWTPayload) =>
      async ({ party, privateKey }: Pair) =>
        signed(change(claimsOf(party)), privateKey);
    const assertions: Record<string, (pair: Pair) => Promise<string>> = {
      'without a signature': async ({ party }) => `${part({ alg: 'none' })}.${part(claimsOf(party))}.`,
      'that HS256 signs with the public key': async ({ party, publicJwk }) => {
        const pem = createPublicKey({ key: publicJwk, format: 'jwk' } as JsonWebKeyInput).export({
          type: 'spki',
          format: 'pem',
        });
        const text = `${part({ alg: 'HS256' })}.${part(claimsOf(party))}`;
        return `${text}.${createHmac('sha256', pem).update(text).digest('base64url')}`;
      },
      'of the key of another application': async ({ party }) => {
        const { privateKey } = await withKey();
        return signed(claimsOf(party), privateKey);
      },
      'that is expired': changed((claims) => ({ ...claims, exp: now() - 20 })),
      'that never expires': changed(({ exp: _, ...claims }) => claims),
      'that expires in an hour': changed((claims) => ({ ...claims, exp: now() + 3600 })),
      'without an id': changed(({ jti: _, ...claims }) => claims),
      'for another audience': changed((claims) => ({ ...claims, aud: 'https://evil.example' })),
      'for the token endpoint': changed((claims) => ({ ...claims, aud: `${stack().appUrl}/oauth/token` })),
      'for another audience too': changed((claims) => ({ ...claims, aud: [stack().appUrl, 'https://evil.example'] })),
      'of another issuer': changed((claims) => ({ ...claims, iss: 'https://evil.example' })),
    };
    test.each(Object.entries(assertions))('%s', async (_, make) => {
      const pair = await withKey();
      expect(await tokenFor(pair.party, await make(pair))).toEqual(REFUSED);
    });

    test('beside another application, and in the place of a secret', async () => {
      const { party, privateKey, publicJwk } = await withKey();
      const other = await relyingParty(scenario(), service);
      const assertion = await signed(claimsOf(party), privateKey);
      expect(await tokenFor(party, assertion, { client_id: other.id })).toEqual([400, 'invalid_request']);
      expect(await tokenFor(other, await signed(claimsOf(other), privateKey))).toEqual(REFUSED);
      const body = { client_id: party.id, client_secret: JSON.stringify(publicJwk), grant_type: 'client_credentials' };
      const response = await fetch(party.at('/oauth/token'), { method: 'POST', body: new URLSearchParams(body) });
      expect(response.status).toBe(401);
    });
  });

  test('with a key the secret ends, and cannot come back', async () => {
    const party = await relyingParty(scenario(), service);
    expect(await grant(party.config)).toBeDefined();
    await party.asAdministrator('applications.rotateSecret');
    const { publicJwk } = await keyPair('ES256');
    await party.asAdministrator('applications.update', { publicKeys: [publicJwk] });
    await expect(grant(party.config)).rejects.toThrow();
    const rotated = await party.asAdministrator('applications.rotateSecret');
    expectRefusal(rotated, 404, 'NOT_FOUND', 'This application has keys instead of a secret');
    const emptied = await party.asAdministrator('applications.update', { publicKeys: [] });
    expect(emptied.details?.['publicKeys']?.rule).toBe('required');
    const [row] = await stack().database('select * from applications where id = ?', [party.id]);
    expect(row).toMatchObject({ secret_hash: null, former_hash: null, former_until: null });
  });

  describe('a key is refused', () => {
    const malformed = { kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA' };
    const keys: [what: string, rule: string, make: () => Promise<JWK> | JWK][] = [
      ['a private EC key', 'private_key', async () => (await keyPair('ES256')).privateJwk],
      ['a private RSA key', 'private_key', async () => (await keyPair('RS256')).privateJwk],
      [
        'a public key with one private member',
        'private_key',
        async () => ({ ...(await keyPair('RS256')).publicJwk, qi: 'AQ' }),
      ],
      ['a shared secret', 'symmetric_key', () => ({ kty: 'oct', k: 'c2VjcmV0' })],
      ['a key of another curve', 'unknown_key_type', async () => (await keyPair('ES384')).publicJwk],
      ['a key of an unknown type', 'unknown_key_type', () => ({ kty: 'AKP', pub: 'AQ', alg: 'ML-DSA-44' })],
      [
        'a key for encryption',
        'not_for_signatures',
        async () => ({ ...(await keyPair('ES256')).publicJwk, use: 'enc' }),
      ],
      ['a key for ES384', 'not_for_signatures', async () => ({ ...(await keyPair('ES256')).publicJwk, alg: 'ES384' })],
      ['an RSA key with the exponent 1', 'weak_key', async () => ({ ...(await keyPair('RS256')).publicJwk, e: 'AQ' })],
      [
        'an RSA key of 1024 bits',
        'weak_key',
        () => ({ kty: 'RSA', e: 'AQAB', n: Buffer.alloc(128, 0xff).toString('base64url') }),
      ],
      ['a point that is not on the curve', 'malformed', () => malformed],
      ['a key without its members', 'malformed', () => ({ kty: 'RSA' })],
    ];
    test('by its rule', async () => {
      const { session } = await administrator(scenario());
      const { publicJwk } = await keyPair('ES256');
      for (const [what, rule, make] of keys) {
        const input = { ...service, name: 'Shop', publicKeys: [publicJwk, await make()] };
        const reply = await call('applications.create', input, { session });
        expect([what, reply.status, reply.code, reply.details]).toEqual([
          what,
          400,
          'VALIDATION_FAILED',
          { publicKeys: { rule, message: expect.any(String) } },
        ]);
      }
      const six = await call(
        'applications.create',
        { ...service, name: 'Shop', publicKeys: Array(6).fill(publicJwk) },
        { session },
      );
      expect(six.details?.['publicKeys']?.rule).toBe('too_big');
    });

    test.each(['browser', 'native'])('of a %s application', async (kind) => {
      const { session } = await administrator(scenario());
      const { publicJwk } = await keyPair('ES256');
      const input = {
        name: 'Shop',
        kind,
        redirectUris: ['https://shop.example.com/'],
        scopes: ['openid'],
        publicKeys: [publicJwk],
      };
      const reply = await call('applications.create', input, { session });
      expect(reply.details?.['publicKeys']?.rule).toBe('not_allowed');
    });
  });
});
