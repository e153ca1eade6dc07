import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Config } from '../../../server/config/index.ts';
import { type Opened, openRules, statingProvider } from '../rig/rules.ts';
import { type Sent, served } from '../rig/served.ts';

/** What a request passes on its way to a procedure, by the configuration. */
let opened: Opened;
const ends: (() => Promise<void>)[] = [];
beforeAll(async () => {
  const env = { PAGES: 'off', LIMIT_LOGIN: '1/900' };
  opened = await openRules('app', { env, providers: { acme: statingProvider() } });
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(() => opened.close());

/** The application with these changes of the configuration, and its log. */
async function start(changes: Partial<Config> = {}) {
  const log = { info: vi.fn(), warn: vi.fn(), error: vi.fn(), debug: vi.fn() };
  const service = await served({ ...opened.create(changes), log: log as never });
  ends.push(service.close);
  return { ...service, log };
}

test('every answer has the headers of security, is not stored, and ends JSON with a line break', async () => {
  const { call, log } = await start();
  for (const [path, status] of [
    ['/api/health', 200],
    ['/none', 404],
    ['/trpc/health', 200],
    ['/trpc/none', 404],
  ] as const) {
    const answer = await call('GET', path);
    expect(answer).toMatchObject({
      status,
      headers: {
        'cache-control': 'no-store',
        'content-type': 'application/json; charset=utf-8',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
      },
      text: expect.stringMatching(/^\{.*\}\n$/),
    });
    expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(answer.text)));
  }
  const batch = await call('GET', '/trpc/health?batch=1');
  expect(batch.text).toMatch(/^\[.*\]\n$/);
  expect(log.info.mock.calls.map(([{ route, status }]) => `${status} ${route}`)).toEqual([
    '200 /api/health',
    '404 (none)',
    '200 /trpc/health',
    // Only the names of procedures are logged.
    '404 /trpc',
    '200 /trpc/health',
  ]);
});

test('an answer without a JSON body is sent as it is', async () => {
  const { call } = await start();
  expect(await call('GET', '/auth/acme')).toMatchObject({ status: 302, text: expect.not.stringMatching(/^"/) });
  expect((await call('GET', '/docs')).text).toMatch(/^<!doctype html>/);
});

test('while it stops, connections are closed after the answer', async () => {
  const { call, stop } = await start();
  expect((await call('GET', '/readyz')).status).toBe(200);
  stop();
  const { status, headers } = await call('GET', '/readyz');
  expect([status, headers.connection]).toEqual([503, 'close']);
});

describe('a request is refused', () => {
  test.each<[string, string, string, Sent, number, string]>([
    ['with a malformed Host', 'GET', '/api/health', { headers: { host: 'a b' } }, 400, 'VALIDATION_FAILED'],
    ['with 101 parameters', 'GET', `/api/health?${'a&'.repeat(100)}`, {}, 400, 'VALIDATION_FAILED'],
    ['from another site', 'POST', '/auth/logout', { headers: { origin: 'https://evil.test' } }, 403, 'ORIGIN_MISMATCH'],
    [
      'as a preflight of another site',
      'OPTIONS',
      '/auth/logout',
      { headers: { origin: 'https://evil.test', 'access-control-request-method': 'POST' } },
      403,
      'ORIGIN_MISMATCH',
    ],
    ['under /dev by another name', 'GET', '/dev/mail', { headers: { host: 'evil.test' } }, 404, 'NOT_FOUND'],
  ])('%s', async (_, method, path, sent, status, code) => {
    const { call } = await start();
    expect(await call(method, path, sent)).toMatchObject({ status, data: { code } });
  });
});

test('front ends of ALLOWED_ORIGINS may read answers', async () => {
  const { call } = await start({ origins: new Set(['https://shop.test']) });
  const origin = 'https://shop.test';
  const { headers } = await call('GET', '/api/health', { headers: { origin } });
  expect(headers).toMatchObject({
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
  });
  expect(await call('POST', '/auth/logout', { headers: { origin } })).toMatchObject({ status: 401 });
});

test('the log warns of a proxy that TRUST_PROXY does not name, and of a limit that is used up', async () => {
  const forwarded = { headers: { 'x-forwarded-for': '203.0.113.1' } };
  const { call, log } = await start();
  await call('GET', '/api/health', forwarded);
  expect(log.warn).toHaveBeenCalledExactlyOnceWith(expect.stringContaining('TRUST_PROXY is 0'));
  const json = { email: 'nobody@example.test', password: 'x' };
  await call('POST', '/auth/login', { json });
  expect(await call('POST', '/auth/login', { json })).toMatchObject({
    status: 429,
    headers: { 'ratelimit-limit': '1', 'ratelimit-remaining': '0', 'retry-after': '900' },
  });
  expect(log.warn).toHaveBeenLastCalledWith(
    expect.objectContaining({ limit: 'LIMIT_LOGIN' }),
    expect.stringContaining('LIMIT_LOGIN is used up'),
  );
  const behind = await start({ trustedProxies: 1 });
  await behind.call('GET', '/api/health', forwarded);
  expect(behind.log.warn).not.toHaveBeenCalled();
});

test('the tools of development exist in development only', async () => {
  const here = { headers: { host: 'localhost:3000' } };
  const { call } = await start({ devTools: true });
  expect(await call('GET', '/dev/mail', here)).toMatchObject({ status: 200, data: [] });
  // The link of a mail, opened by a program.
  const opened = await call('GET', '/verify-email?token=x', here);
  expect(opened).toMatchObject({ status: 400, data: { code: 'INVALID_TOKEN' } });
  const off = await start({ devTools: false });
  for (const path of ['/dev/mail', '/verify-email?token=x'])
    expect(await off.call('GET', path, here)).toMatchObject({ status: 404 });
});

test('a challenge is asked of guarded changes, where they are on', async () => {
  const { call } = await start({ challenge: 'always' });
  const json = { email: 'nobody@example.test', password: 'x' };
  expect(await call('POST', '/auth/login', { json })).toMatchObject({ data: { code: 'CHALLENGE_REQUIRED' } });
  expect(await call('POST', '/auth/logout')).toMatchObject({ data: { code: 'UNAUTHENTICATED' } });
  expect(await call('GET', '/trpc/auth.login')).toMatchObject({ status: 404 });
});

test('the document and its page are served', async () => {
  const { call } = await start();
  const document = await call('GET', '/openapi.json');
  expect(document.data).toMatchObject({ openapi: '3.1.0', paths: { '/auth/{provider}': expect.anything() } });
  expect(document.text).toMatch(/\}\n$/);
  for (const [path, type, cache] of [
    ['/docs', 'text/html; charset=utf-8', 'no-store'],
    ['/docs/swagger-ui.css', 'text/css; charset=utf-8', 'public, max-age=86400'],
  ] as const) {
    const { status, headers } = await call('GET', path);
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, type, cache]);
  }
});
