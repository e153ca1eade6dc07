import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2';
import { text } from 'node:stream/consumers';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callerOf } from './contract/callers.ts';
import { verified } from './contract/scenario.ts';
import { freshEmail } from './rig/address.ts';
import { createAuthority } from './rig/certificates.ts';
import { type DeployedProxy, proxyNames, startDeployedProxy } from './rig/deployed-proxy.ts';
import { type Environment, runDoctor } from './rig/doctor.ts';
import { freePort } from './rig/port.ts';
import { ask } from './rig/raw.ts';
import { type S3, startS3 } from './rig/s3.ts';
import { type Stack, startStack } from './rig/stack.ts';
import { until } from './rig/until.ts';
import { flat } from './uploads/corpus.ts';
import { imageForm } from './uploads/storage.ts';

const MEGABYTE = 1024 * 1024;
const json = { 'content-type': 'application/json' };

/** Two instances in production on real parts, behind each of the proxies of docs/deploy. */
let s3: S3;
let stack: Stack;
let caFile: string;
let ca: Buffer;
let proxies: Record<(typeof proxyNames)[number], DeployedProxy>;

beforeAll(async () => {
  const [authority, storage, ports] = await Promise.all([
    createAuthority(),
    startS3({ cors: true }),
    Promise.all([freePort(), freePort()]),
  ]);
  [s3, caFile, ca] = [storage, authority.ca, readFileSync(authority.ca)];
  const certificate = await authority.issue('localhost');
  stack = await startStack('real', {
    instances: 2,
    env: {
      NODE_ENV: 'production',
      APP_URL: `https://localhost:${ports[0]}`,
      DEV_TOOLS: 'off',
      LIMIT_MAIL_REQUEST: '100000/3600',
      ...s3.env,
    },
  });
  const instancePorts: [number, number] = [stack.services[0]?.port ?? 0, stack.services[1]?.port ?? 0];
  // In turn: each installs what is missing.
  const nginx = await startDeployedProxy('nginx', { port: ports[0], instancePorts, certificate });
  const HAProxy = await startDeployedProxy('HAProxy', { port: ports[1], instancePorts, certificate });
  proxies = { nginx, HAProxy };
}, 300_000);
afterAll(async () => {
  for (const proxy of Object.values(proxies ?? {})) await proxy.stop();
  await stack?.stop();
  await s3?.stop();
});

/** An address of this machine that no other test sends from: limits are per client. */
let clients = 0;
const freshClient = () => {
  clients++;
  return `127.1.${clients >> 8}.${clients & 255}`;
};

const through = (proxy: DeployedProxy, path: string, options: Parameters<typeof ask>[1] = {}) =>
  ask(proxy.url + path, { ca, localAddress: freshClient(), ...options });

const logIn = (
  proxy: DeployedProxy,
  person: { email: string; password: string },
  options: Parameters<typeof ask>[1] = {},
) =>
  through(proxy, '/auth/login', {
    method: 'POST',
    body: JSON.stringify({ email: person.email, password: person.password }),
    ...options,
    headers: { ...json, ...options.headers },
  });

/** A user who has logged in through the proxy, and the cookie to send. */
async function userBehind(proxy: DeployedProxy) {
  const person = await verified({ stack, call: callerOf('rest', stack.url) });
  const reply = await logIn(proxy, person);
  expect(reply.status).toBe(200);
  const cookies = [reply.headers['set-cookie'] ?? []].flat();
  const session = cookies.find((cookie) => cookie.startsWith('auth_session=')) ?? '';
  return { ...person, session, cookie: session.split(';', 1)[0] ?? '' };
}

describe.each(proxyNames)('behind %s', (name) => {
  const proxy = () => proxies[name];

  test('a login over TLS opens a session, by a Secure cookie', async () => {
    const { email, session, cookie } = await userBehind(proxy());
    expect(session).toContain('; Secure');
    const profile = await through(proxy(), '/api/profile', { headers: { cookie } });
    expect(JSON.parse(profile.body)).toMatchObject({ user: { email } });
  });

  test('plain http leads to https, whatever Host it names', async () => {
    const { status, headers } = await ask(`${proxy().plainUrl}/login?x=1`, { headers: { host: 'evil.example' } });
    expect([status, headers['location']]).toEqual([308, `${proxy().url}/login?x=1`]);
  });

  test('browsers speak HTTP/2, and each security header is there once', async () => {
    const session = connect(proxy().url, { ca });
    const stream = session.request({ ':path': '/api/health' });
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders & IncomingHttpStatusHeader];
    expect([headers[':status'], JSON.parse(await text(stream))]).toEqual([
      200,
      expect.objectContaining({ status: 'ok', db: 'connected' }),
    ]);
    session.close();
    const response = await fetch(`${stack.url}/api/health`);
    for (const header of ['content-security-policy', 'x-frame-options', 'strict-transport-security', 'referrer-policy'])
      expect(headers[header]).toBe(response.headers.get(header));
  });

  test('limits count the client who called the proxy, whatever X-Forwarded-For it sends', async () => {
    const attempt = (localAddress: string, headers: Record<string, string | string[]>) =>
      logIn(proxy(), { email: freshEmail(), password: 'Wrong-Password-1' }, { localAddress, headers });
    const own = freshClient();
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++)
      statuses.push(
        (await attempt(own, { 'x-forwarded-for': [`203.0.113.${i}`, `198.51.100.${i}, 192.0.2.${i}`] })).status,
      );
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
    expect((await attempt(freshClient(), { 'x-forwarded-for': own })).status).toBe(401);
  });

  const send = async (cookie: string, bytes: Uint8Array) => {
    const form = new Response(imageForm({ bytes }));
    const headers = { cookie, 'content-type': form.headers.get('content-type') ?? '' };
    const body = Buffer.from(await form.arrayBuffer());
    const reply = await through(proxy(), '/api/upload/image', { method: 'POST', headers, body });
    return { status: reply.status, body: JSON.parse(reply.body) };
  };

  test('an image of 5 MB passes; one that is larger gets the refusal of the service itself', async () => {
    const { cookie } = await userBehind(proxy());
    const noise = sharp(randomBytes(1300 * 1300 * 3), { raw: { width: 1300, height: 1300, channels: 3 } });
    const image = await noise.png({ compressionLevel: 0 }).toBuffer();
    expect(image.length).toBeGreaterThan(4.8 * MEGABYTE);
    expect(await send(cookie, image)).toMatchObject({ status: 200, body: { success: true, width: 1300 } });
    for (const megabytes of [6, 20]) {
      const tooLarge = Buffer.concat([await flat(10, 10).png().toBuffer(), Buffer.alloc(megabytes * MEGABYTE)]);
      expect(await send(cookie, tooLarge)).toEqual({ status: 400, body: { error: 'The image is larger than 5 MB' } });
    }
  });

  test('headers of 12 kB pass; larger ones are refused, as far as they reach the service by itself', async () => {
    const withHeader = (kilobytes: number) =>
      through(proxy(), '/api/health', { headers: { 'x-large': 'x'.repeat(kilobytes * 1024) } });
    expect((await withHeader(12)).status).toBe(200);
    const refused = await withHeader(20);
    expect([refused.status, JSON.parse(refused.body).code]).toEqual([
      name === 'nginx' ? 400 : 431,
      'VALIDATION_FAILED',
    ]);
    expect((await withHeader(60)).status).toBe(400);
  });

  test.each(['/livez', '/readyz', '/READYZ', '/readyz/', '/%72eadyz', '/readyz?x=1'])(
    'the probe %s is not for the public',
    async (path) => {
      const { status, body } = await through(proxy(), path);
      expect([status, JSON.parse(body)]).toEqual([404, { message: 'Not found', code: 'NOT_FOUND' }]);
    },
  );
});

test('nginx logs no query: mailed tokens are in them', async () => {
  await through(proxies.nginx, '/reset-password?token=SECRET-TOKEN&email=ada@example.com');
  const isLogged = () => proxies.nginx.log()?.includes('"GET /reset-password HTTP/1.1" 200');
  await until(isLogged, { what: 'the line of the request, which comes after its answer' });
  expect(proxies.nginx.log()).not.toContain('SECRET-TOKEN');
});

test('instances are restarted one after the other, and no request fails', async () => {
  const users = await Promise.all(
    Object.values(proxies).map(async (proxy) => ({ proxy, ...(await userBehind(proxy)) })),
  );
  const failed: string[] = [];
  let [isOver, answered] = [false, 0];
  const client = async (proxy: DeployedProxy, cookie: string, n: number) => {
    const requests: [path: string, options: Parameters<typeof ask>[1]][] = [
      ['/api/profile', { headers: { cookie } }],
      ['/api/profile', { method: 'PUT', headers: { ...json, cookie }, body: `{"bio":"${n}"}` }],
      ['/auth/forgot-password', { method: 'POST', headers: json, body: '{"email":"x@example.com"}' }],
    ];
    for (let i = n; !isOver; i++) {
      const [path, options] = requests[i % requests.length] ?? ['/', {}];
      const { status, body } = await through(proxy, path, options).catch((error: Error) => ({
        status: 0,
        body: error.message,
      }));
      if (status === 200) answered++;
      else
        failed.push(`${proxy === proxies.nginx ? 'nginx' : 'HAProxy'} ${options?.method} ${path}: ${status} ${body}`);
    }
  };
  const load = users.flatMap(({ proxy, cookie }) => [0, 1, 2].map((n) => client(proxy, cookie, n)));
  for (const service of stack.services) {
    for (const proxy of Object.values(proxies)) await proxy.useWithout(service.port);
    await service.restart();
    for (const proxy of Object.values(proxies)) await proxy.useWithout(undefined);
  }
  isOver = true;
  await Promise.all(load);
  console.log(`Requests during two restarts: ${answered}`);
  expect(failed).toEqual([]);
});

test('without an instance the proxies say so as the service would, and the doctor counts them right', async () => {
  const [first, second] = stack.services;
  await Promise.all([first?.stop(), second?.stop()]);
  for (const proxy of Object.values(proxies)) {
    const { status, headers, body } = await through(proxy, '/api/profile');
    expect([status, JSON.parse(body).code]).toEqual([503, 'SERVICE_UNAVAILABLE']);
    expect(headers['content-type']).toBe('application/json');
    const env: Environment = { ...first?.env, CA_FILE: caFile, APP_URL: proxy.url };
    const { lines } = await runDoctor(env);
    expect(lines).toContain('ok address TRUST_PROXY=1 counts the proxies in front');
  }
  await Promise.all([first?.restart(), second?.restart()]);
});
