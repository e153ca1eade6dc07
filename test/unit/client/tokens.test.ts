import { AccessTokenError, verifyAccessToken } from 'account-client/tokens';
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  type JWTHeaderParameters,
  SignJWT,
  UnsecuredJWT,
} from 'jose';
import { afterEach, describe, expect, test, vi } from 'vitest';

/** The attacks on an API that takes JWT access tokens (RFC 8725, RFC 9068 section 5). */

const audience = 'https://api.example.com';
let count = 0;
const newPair = () => generateKeyPair('ES256', { extractable: true });

/** An issuer that nobody has asked before, and what it is asked. */
async function newIssuer() {
  const issuer = `https://accounts-${++count}.example.com`;
  const { publicKey, privateKey } = await newPair();
  const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256', use: 'sig' };
  const requests: string[] = [];
  const answers: { keys: () => Response } = { keys: () => Response.json({ keys: [jwk] }) };
  const fetch = async (url: string | URL | Request) => {
    requests.push(String(url));
    return answers.keys();
  };
  const claims = { iss: issuer, aud: audience, sub: 'user', client_id: 'shop', jti: 'id', scope: 'orders:read a' };
  const sign = (
    changes: Record<string, unknown> = {},
    header: Partial<JWTHeaderParameters> = {},
    key: CryptoKey | Uint8Array = privateKey,
  ) =>
    new SignJWT({ iat: now(), exp: now() + 300, ...claims, ...changes })
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'one', ...header })
      .sign(key, { crit: { x: true } });
  const verify = (token: string, options: { scope?: string; audience?: string } = {}) =>
    verifyAccessToken(token, { issuer, audience, fetch, ...options });
  const refusal = async (token: string | Promise<string>, options = {}) => {
    const error = await verify(await token, options).then(String, (thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(AccessTokenError);
    const { code, status } = error as AccessTokenError;
    return [code, status];
  };
  return { issuer, claims, jwk, publicKey, requests, answers, sign, verify, refusal };
}
const now = () => Math.floor(Date.now() / 1000);
const invalid = ['INVALID_TOKEN', 401];
afterEach(() => void vi.useRealTimers());

test('a token for this API has its claims, with scopes as a list', async () => {
  const { verify, sign, claims, requests, issuer } = await newIssuer();
  const token = await sign();
  const found = await verify(token, { scope: 'a orders:read' });
  expect(found).toEqual({ ...claims, scope: ['orders:read', 'a'], iat: expect.any(Number), exp: expect.any(Number) });
  expect(await verify(await sign({ scope: undefined }))).toMatchObject({ scope: [] });
  expect(requests).toEqual([`${issuer}/oauth/jwks`]);
});

test('a token without one of the scopes is 403', async () => {
  const { refusal, sign } = await newIssuer();
  for (const scope of ['orders:write', 'orders:read orders:write', 'orders'])
    expect(await refusal(sign(), { scope })).toEqual(['INSUFFICIENT_SCOPE', 403]);
});

test('a missing setting is an error of the program, not a check that is left out', async () => {
  const { verify, sign } = await newIssuer();
  const token = await sign({ aud: 'https://other.example.com' });
  for (const options of [{ audience: '' }, { audience: undefined as unknown as string }])
    await expect(verify(token, options)).rejects.toThrow(TypeError);
});

describe('refused is', () => {
  test.each<[string, Record<string, unknown>, Partial<JWTHeaderParameters>?]>([
    ['a token for another audience', { aud: 'https://other.example.com' }],
    ['a token of another issuer', { iss: 'https://evil.example.com' }],
    ['an expired token', { exp: now() - 1 }],
    ['a token without an expiry', { exp: undefined }],
    ['a token without its application', { client_id: undefined }],
    ['a token without a user', { sub: undefined }],
    ['a token bound to a key: it is no bearer token', { cnf: { jkt: 'x'.repeat(43) } }],
    ['an ID token', {}, { typ: 'JWT' }],
    ['a token without a type', {}, { typ: undefined as never }],
    ['a critical header that is unknown', {}, { crit: ['x'], x: 1 }],
  ])('%s', async (_, changes, header) => {
    const { refusal, sign } = await newIssuer();
    expect(await refusal(sign(changes, header))).toEqual(invalid);
  });

  test('alg none', async () => {
    const { refusal, claims, requests } = await newIssuer();
    const unsigned = new UnsecuredJWT({ ...claims, iat: now(), exp: now() + 300 }).encode();
    const [, payload] = unsigned.split('.');
    for (const alg of ['none', 'None', 'NONE']) {
      const header = Buffer.from(JSON.stringify({ alg, typ: 'at+jwt', kid: 'one' })).toString('base64url');
      expect(await refusal(`${header}.${payload}.`)).toEqual(invalid);
    }
    expect(requests).toEqual([]);
  });

  test('HS256 with the public key as secret', async () => {
    const { refusal, sign, publicKey, jwk } = await newIssuer();
    for (const secret of [await exportSPKI(publicKey), JSON.stringify(jwk), jwk.x ?? ''])
      expect(await refusal(sign({}, { alg: 'HS256' }, new TextEncoder().encode(secret)))).toEqual(invalid);
  });

  test('another algorithm, with a key of its own', async () => {
    const { refusal, sign } = await newIssuer();
    for (const alg of ['ES384', 'RS256', 'EdDSA']) {
      const { privateKey } = await generateKeyPair(alg);
      expect(await refusal(sign({}, { alg }, privateKey))).toEqual(invalid);
    }
  });

  test('a key that the token itself names: jwk, jku, x5u, x5c, or a kid that is an address', async () => {
    const { refusal, sign, requests, issuer } = await newIssuer();
    const { publicKey, privateKey } = await newPair();
    const jwk = { ...(await exportJWK(publicKey)), alg: 'ES256' };
    const kid = await calculateJwkThumbprint(jwk);
    const address = 'https://evil.example.com/jwks';
    for (const header of [
      { jwk, kid: undefined as never },
      { jwk, kid },
      { jku: address },
      { x5u: address },
      { x5c: ['AAAA'] },
      { kid: address },
      { kid: '../../../../dev/null' },
      { kid: '/etc/passwd' },
      { kid: "' or 1=1 --" },
      { kid: '__proto__' },
      {},
    ])
      expect(await refusal(sign({}, header, privateKey))).toEqual(invalid);
    expect(new Set(requests)).toEqual(new Set([`${issuer}/oauth/jwks`]));
  });

  test('what is no JWT', async () => {
    const { refusal, sign } = await newIssuer();
    const [header, payload, signature] = (await sign()).split('.') as [string, string, string];
    const other = Buffer.from(JSON.stringify({ sub: 'admin' })).toString('base64url');
    for (const text of [
      '',
      '.',
      '..',
      'x',
      'a.b.c',
      `${header}.${payload}`,
      `${header}.${payload}.`,
      `${header}.${other}.${signature}`,
      `${header}.${payload}.${signature}.${signature}.x`,
      `${header}.${payload}.${Buffer.alloc(64).toString('base64url')}`,
    ])
      expect([text, ...(await refusal(text))]).toEqual([text, ...invalid]);
  });
});

describe('the keys', () => {
  test('come by the fetch of the call, whichever came first', async () => {
    const { issuer, verify, sign } = await newIssuer();
    const options = { issuer, audience, fetch: () => Promise.reject(new TypeError('offline')) };
    const token = await sign();
    await expect(verifyAccessToken(token, options)).rejects.toMatchObject({ code: 'KEYS_UNAVAILABLE' });
    expect(await verify(token)).toMatchObject({ sub: 'user' });
  });

  test('are fetched once, and again for an unknown one after 30 seconds', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { verify, refusal, sign, requests, answers, jwk } = await newIssuer();
    await Promise.all(Array.from({ length: 20 }, async () => verify(await sign())));
    expect(requests).toHaveLength(1);
    const next = await newPair();
    const signNext = () => sign({}, { kid: 'two' }, next.privateKey);
    const { publicKey } = next;
    const two = { ...(await exportJWK(publicKey)), kid: 'two', alg: 'ES256', use: 'sig' };
    answers.keys = () => Response.json({ keys: [jwk, two] });
    for (let i = 0; i < 20; i++) expect(await refusal(signNext())).toEqual(invalid);
    expect(requests).toHaveLength(1);
    vi.advanceTimersByTime(30_001);
    expect(await verify(await signNext())).toMatchObject({ sub: 'user' });
    expect(requests).toHaveLength(2);
  });

  test('that cannot be fetched are 503, not a refusal', async () => {
    const { verify, refusal, sign, answers } = await newIssuer();
    const good = answers.keys;
    const failures: (() => Response)[] = [
      () => new Response('down', { status: 503 }),
      () => new Response(null, { status: 302, headers: { location: 'https://evil.example.com' } }),
      () => new Response('<html>'),
      () => Response.json({}),
      () => {
        throw new TypeError('offline');
      },
    ];
    for (const failure of failures) {
      answers.keys = failure;
      expect(await refusal(sign())).toEqual(['KEYS_UNAVAILABLE', 503]);
    }
    answers.keys = good;
    expect(await verify(await sign())).toMatchObject({ sub: 'user' });
  });
});
