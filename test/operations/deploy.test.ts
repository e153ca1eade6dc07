import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { connect, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { verified } from '../contract/rig/scenario.ts';
import { flat } from '../contract/uploads/corpus.ts';
import { imageForm } from '../contract/uploads/storage.ts';
import { ask } from '../rig/client/raw.ts';
import { type Environment, runDoctor } from '../rig/process/doctor.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { createAuthority } from '../rig/servers/certificates.ts';
import { type DeployedProxy, proxyNames, startDeployedProxy } from '../rig/servers/deployed-proxy.ts';
import { freePort } from '../rig/servers/port.ts';
import { type S3, startS3 } from '../rig/servers/s3.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

const MEGABYTE = 1024 * 1024;
const json = { 'content-type': 'application/json' };

/** Two production instances on real parts, behind each proxy of docs/deploy. */
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
  // Sequentially: each installs what is missing.
  const nginx = await startDeployedProxy('nginx', { port: ports[0], instancePorts, certificate });
  const HAProxy = await startDeployedProxy('HAProxy', { port: ports[1], instancePorts, certificate });
  proxies = { nginx, HAProxy };
});
afterAll(async () => {
  for (const proxy of Object.values(proxies ?? {})) await proxy.stop();
  await stack?.stop();
  await s3?.stop();
});

/** An address of this machine that no other test uses: limits are per client. */
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

/** A user logged in through the proxy, and the cookie to send. */
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

  test('a login over TLS sets a Secure session cookie', async () => {
    const { email, session, cookie } = await userBehind(proxy());
    expect(session).toContain('; Secure');
    const profile = await through(proxy(), '/api/profile', { headers: { cookie } });
    expect(JSON.parse(profile.body)).toMatchObject({ user: { email } });
  });

  test('plain HTTP redirects to HTTPS, whatever the Host', async () => {
    const { status, headers } = await ask(`${proxy().plainUrl}/login?x=1`, { headers: { host: 'evil.example' } });
    expect([status, headers['location']]).toEqual([308, `${proxy().url}/login?x=1`]);
  });

  test('browsers get HTTP/2, and each security header once', async () => {
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

  // checks: 14
  test('limits count the client of the proxy, whatever X-Forwarded-For it sends', async () => {
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

  test('an image of 5 MB passes; a larger one gets the refusal of the service', async () => {
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

  test('headers of 12 kB pass; larger ones are refused', async () => {
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
    'the probe %s is not public',
    async (path) => {
      const { status, body } = await through(proxy(), path);
      expect([status, JSON.parse(body)]).toEqual([404, { message: 'Not found', code: 'NOT_FOUND' }]);
    },
  );
});

test('nginx logs no query, because queries contain mailed tokens', async () => {
  await through(proxies.nginx, '/reset-password?token=SECRET-TOKEN&email=ada@example.com');
  const isLogged = () => proxies.nginx.log()?.includes('"GET /reset-password HTTP/1.1" 200');
  await until(isLogged, { what: 'the line of the request, which comes after its answer' });
  expect(proxies.nginx.log()).not.toContain('SECRET-TOKEN');
});

test.each(proxyNames)('behind %s a hung instance delays requests for seconds, and is then avoided', async (name) => {
  const { [name]: proxy } = proxies;
  const [hung] = stack.services;
  await proxy.useWithout(undefined);
  const askAtOnce = async () => {
    const began = performance.now();
    const replies = await Promise.all(Array.from({ length: 12 }, () => through(proxy, '/api/health')));
    return { statuses: [...new Set(replies.map(({ status }) => status))].sort(), ms: performance.now() - began };
  };
  hung?.signal('SIGSTOP');
  try {
    const first = await askAtOnce();
    console.log(`${name} beside a hung instance: ${first.statuses} within ${Math.round(first.ms)} ms`);
    // nginx sends an unanswered GET to the other instance; HAProxy sends nothing twice.
    expect(first.statuses).toEqual(name === 'nginx' ? [200] : [200, 502]);
    expect(first.ms).toBeLessThan(12_000);
    const next = await askAtOnce();
    expect(next.statuses).toEqual([200]);
    expect(next.ms).toBeLessThan(2000);
  } finally {
    hung?.signal('SIGCONT');
  }
});

test('HAProxy sends nothing more to a stopping instance, and lets it finish its requests', async () => {
  const { HAProxy } = proxies;
  await HAProxy.useWithout(undefined);
  const body = '{"email":"x@example.com"}';
  const half = Math.floor(body.length / 2);
  const options = { method: 'POST', headers: { ...json, 'content-length': body.length }, ca, agent: false };
  const answers: Promise<unknown>[] = [];
  // So many that both instances have some.
  const requests = Array.from({ length: 4 }, () => {
    const sent = request(`${HAProxy.url}/auth/forgot-password`, { ...options, localAddress: freshClient() });
    answers.push(once(sent, 'response').then(([response]) => (response as IncomingMessage).resume().statusCode));
    sent.write(body.slice(0, half));
    return sent;
  });
  const areInFlight = async () => [...((await HAProxy.instances())?.values() ?? [])].every((count) => count === 2);
  await until(areInFlight, { what: 'requests at both instances' });
  const [service] = stack.services;
  const restarted = service?.restart();
  await until(async () => (await HAProxy.instances())?.size === 1, { every: 5, what: 'HAProxy without the instance' });
  for (const sent of requests) sent.end(body.slice(half));
  expect(await Promise.all(answers)).toEqual([200, 200, 200, 200]);
  await restarted;
});

test('a rolling restart fails no request', async () => {
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
  for (const proxy of Object.values(proxies)) await proxy.useWithout(undefined);
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

test('without an instance the proxies answer in the service’s format, and the doctor counts them correctly', async () => {
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
  // nginx retries them after five seconds.
  for (const proxy of Object.values(proxies))
    await until(async () => (await through(proxy, '/api/health')).status === 200, { what: 'the instances behind it' });
});
