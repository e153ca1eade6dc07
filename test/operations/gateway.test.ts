import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type CryptoKey, exportSPKI, generateKeyPair, type JWTHeaderParameters, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { relyingParty } from '../contract/rig/relying-party.ts';
import { loggedIn, onStack } from '../contract/rig/scenario.ts';
import { ask } from '../rig/client/raw.ts';
import { root } from '../rig/process/service.ts';
import { createAuthority } from '../rig/servers/certificates.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { requireBinary } from '../rig/servers/debian.ts';
import { deployedFile } from '../rig/servers/deployed-proxy.ts';
import { accepts, freePort } from '../rig/servers/port.ts';
import { type PrivateServer, startPrivateServer } from '../rig/servers/private-server.ts';

/** docs/deploy/gateway.cfg: Debian's HAProxy checks the JWTs of applications in front of an API. */

const API = 'https://api.example.com';

onStack('embedded', (stack) => {
  const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });
  let gateway: PrivateServer;
  let api: Server;
  let ca: Buffer;
  let own: CryptoKey;
  let pem: string;
  let party: Awaited<ReturnType<typeof relyingParty>>;

  beforeAll(async () => {
    party = await relyingParty(scenario(), {
      resources: [API, 'https://other.example.com'],
      scopes: ['openid', 'orders:read', 'orders:write'],
    });
    const directory = temporaryDirectory('gateway');
    const keys = join(directory, 'jwt');
    mkdirSync(keys);
    const script = join(root, 'docs/deploy/jwks-to-pem.mjs');
    await promisify(execFile)(process.execPath, [script, `${stack().appUrl}/oauth/jwks`, keys]);
    expect(readFileSync(join(keys, '2.pem'), 'utf8')).toBe(readFileSync(join(keys, '1.pem'), 'utf8'));
    // The next key: one of the test, by which it signs what the service never would.
    const { publicKey, privateKey } = await generateKeyPair('ES256');
    own = privateKey;
    pem = await exportSPKI(publicKey);
    writeFileSync(join(keys, '2.pem'), pem);

    api = createServer(({ headers }, response) => {
      response.end(JSON.stringify([headers['x-user'], headers['x-application'], headers['x-scope']]));
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => api.once('listening', resolve));
    const authority = await createAuthority();
    ca = readFileSync(authority.ca);
    const { cert, key } = await authority.issue('localhost');
    const certificate = join(directory, 'api.pem');
    writeFileSync(certificate, readFileSync(cert, 'utf8') + readFileSync(key, 'utf8'));
    const port = await freePort();
    const configuration = join(directory, 'gateway.cfg');
    const values = {
      '/etc/haproxy/jwt': keys,
      '/etc/haproxy/api.pem': certificate,
      'https://accounts.example.com': stack().appUrl,
      'bind :8443': `bind 127.0.0.1:${port}`,
      '127.0.0.1:4000': `127.0.0.1:${(api.address() as AddressInfo).port}`,
    };
    writeFileSync(configuration, deployedFile('gateway.cfg', values));
    gateway = await startPrivateServer({
      name: 'gateway',
      url: `https://localhost:${port}`,
      port,
      directory,
      command: {
        file: await requireBinary({ names: ['haproxy'], debianPackage: 'haproxy' }),
        args: ['-db', '-f', configuration],
        env: {},
      },
      answers: () => accepts(port),
    });
  });
  afterAll(async () => {
    await gateway?.stop();
    api?.close();
  });

  const call = async (token: string | undefined, path = '/orders') => {
    const headers = {
      'x-user': 'forged',
      'x-scope': 'forged',
      'x-application': 'forged',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    };
    const { status, body, headers: answered } = await ask(gateway.url + path, { ca, headers });
    return status === 200 ? JSON.parse(body) : [status, answered['www-authenticate']];
  };
  const INVALID = [401, 'Bearer error="invalid_token"'];
  const now = () => Math.floor(Date.now() / 1000);
  const sign = (
    claims: Record<string, unknown> = {},
    header: Partial<JWTHeaderParameters> = {},
    key: CryptoKey | Uint8Array = own,
  ) =>
    new SignJWT({
      iss: stack().appUrl,
      aud: API,
      sub: 'ada',
      client_id: 'shop',
      scope: 'orders:read',
      exp: now() + 60,
      ...claims,
    })
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', ...header })
      .sign(key);

  test('a token of the service leads to the API, which learns who calls', async () => {
    const user = await loggedIn(scenario());
    const { access_token: token } = await party.logIn(user.session, { scope: 'openid orders:read', resource: API });
    expect(await call(token)).toEqual([user.id, party.id, 'orders:read']);
    expect(await call(await sign())).toEqual(['ada', 'shop', 'orders:read']);
    const other = await party.logIn(user.session, { scope: 'openid orders:write', resource: API });
    expect(await call(other.access_token)).toEqual([403, 'Bearer error="insufficient_scope", scope="orders:read"']);
    expect(await call(other.access_token, '/baskets')).toEqual([user.id, party.id, 'orders:write']);
  });

  describe('refused is', () => {
    const forged: Record<string, () => Promise<string> | string | undefined> = {
      'no token': () => undefined,
      'what is no JWT': () => 'a.b.c',
      'a token of the service for another API': async () => {
        const { session } = await loggedIn(scenario());
        const asked = { scope: 'openid orders:read', resource: 'https://other.example.com' };
        return (await party.logIn(session, asked)).access_token;
      },
      'an ID token': async () => {
        const { session } = await loggedIn(scenario());
        return (await party.logIn(session, { scope: 'openid' })).id_token ?? '';
      },
      'another type': () => sign({}, { typ: 'JWT' }),
      'another issuer': () => sign({ iss: 'https://evil.example.com' }),
      'another audience': () => sign({ aud: 'https://other.example.com' }),
      'an expired token': () => sign({ exp: now() - 1 }),
      'a token without an expiry': () => sign({ exp: undefined }),
      'a token that is bound to a key': () => sign({ cnf: { jkt: 'x'.repeat(43) } }),
      'a token of another key': async () => sign({}, {}, (await generateKeyPair('ES256')).privateKey),
      'HS256 with the public key as secret': () => sign({}, { alg: 'HS256' }, new TextEncoder().encode(pem)),
      'alg none': async () => {
        const [, payload] = (await sign()).split('.');
        return `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')}.${payload}.`;
      },
      'a changed claim': async () => {
        const [header, , signature] = (await sign()).split('.');
        const [, payload] = (await sign({ sub: 'admin' })).split('.');
        return [header, payload, signature].join('.');
      },
    };
    test.each(Object.entries(forged))('%s', async (_, forge) => expect(await call(await forge())).toEqual(INVALID));
  });
});
