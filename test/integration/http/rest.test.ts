import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { User } from '../../../entities/index.ts';
import { logIn, type Opened, type OpenedRules, openRules, statingProvider } from '../rig/rules.ts';
import { type Sent, served } from '../rig/served.ts';

/** How a request over REST becomes a call of a procedure, and its outcome a response. */
let opened: Opened;
let rules: OpenedRules;
let service: Awaited<ReturnType<typeof served>>;
let ada: User;
let admin: User;
beforeAll(async () => {
  const env = { PAGES: 'off', LIMIT_LOGIN: '1000/900', ALLOWED_ORIGINS: 'https://shop.test' };
  opened = await openRules('rest', { env, providers: { acme: statingProvider() } });
  const { insertUser } = opened.create();
  ada = await insertUser('ada');
  admin = await insertUser('admin', (user) => {
    user.role = 'admin';
  });
});
beforeEach(async () => {
  rules = opened.create();
  service = await served(rules);
});
afterEach(() => service.close());
afterAll(() => opened.close());

const NOT_FOUND = { code: 'NOT_FOUND' };

describe('a path', () => {
  test('has its parameter, decoded, which no query replaces', async () => {
    const { status, data } = await service.call('GET', `/api/users/${ada.id}?id=${admin.id}`);
    expect([status, data.data.id]).toEqual([200, ada.id]);
    expect((await service.call('GET', `/api/users/%75${ada.id.slice(1)}`)).data.data.id).toBe(ada.id);
  });

  test('has its parameter, which no body replaces', async () => {
    const session = await logIn(rules, admin);
    const user = await rules.insertUser('blocked');
    await service.call('POST', `/api/users/${user.id}/block`, { session, json: { id: admin.id } });
    const { data } = await service.call('GET', `/api/users/${user.id}/details`, { session });
    expect(data.user.blockedAt).toEqual(expect.any(Number));
  });

  test('has two parameters', async () => {
    const session = await logIn(rules, admin);
    const id = '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c';
    const { data } = await service.call('POST', `/api/webhooks/x/deliveries/${id}`, { session });
    expect(data.message).toBe('There is no such webhook');
    const other = await service.call('POST', `/api/webhooks/${id}/deliveries/x`, { session });
    expect(other.data.message).toBe('There is no such delivery');
  });

  test.each([
    ['an unknown path', '/api/none'],
    ['the pattern itself', '/api/users/*/details'],
    ['the pattern of a list', '/api/users/*'],
    ['a malformed encoding', '/api/users/%E0%A4%A'],
    ['an empty parameter in front', '//api/users'],
    ['nine segments', '/api/webhooks/a/deliveries/b/c/d/e'],
    ['a trailing slash', '/api/profile/'],
    ['another method', '/auth/login'],
  ])('is NOT_FOUND: %s', async (_, path) => {
    const { status, data } = await service.call('GET', path);
    expect([status, data]).toEqual([404, { ...NOT_FOUND, message: expect.any(String) }]);
  });

  test('the exact path comes before one with a parameter', async () => {
    // Otherwise `find` would be the id of a user.
    expect((await service.call('GET', '/api/users/find')).status).toBe(401);
    expect((await service.call('GET', '/api/users/other')).status).toBe(404);
  });

  test('has the configured providers only, each by one address', async () => {
    expect((await service.call('GET', '/auth/acme')).status).toBe(302);
    for (const path of ['/auth/other', '/auth/%61cme', '/auth/ACME'])
      expect((await service.call('GET', path)).data).toMatchObject(NOT_FOUND);
  });
});

describe('an answer', () => {
  test('has the status of its contract', async () => {
    const json = { name: 'Grace', email: 'grace@example.test', password: 'Analytical-Engine-1843' };
    expect((await service.call('POST', '/auth/register', { json })).status).toBe(201);
    expect((await service.call('GET', '/api/health')).status).toBe(200);
  });

  test('to HEAD has no body, and begins no login', async () => {
    expect(await service.call('HEAD', '/api/health')).toMatchObject({ status: 200, text: '' });
    expect(await service.call('HEAD', '/auth/acme')).toMatchObject({ status: 204, text: '' });
  });

  test('of a redirect is the page that a refusal names, for a navigation', async () => {
    const headers = { 'sec-fetch-mode': 'navigate' };
    const page = await service.call('GET', '/auth/acme?link=1', { headers });
    expect([page.status, page.headers['location']]).toEqual([302, '/login']);
    expect(await service.call('GET', '/auth/acme?link=1')).toMatchObject({
      status: 401,
      data: { code: 'UNAUTHENTICATED' },
    });
  });

  test('is sent as a file, streamed, if it is one', async () => {
    const session = await logIn(rules, ada);
    const { status, headers, data } = await service.call('GET', '/api/account/export', { session });
    expect(status).toBe(200);
    expect(headers['content-disposition']).toMatch(/^attachment; filename="[\w-]+\.json"$/);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(data).toMatchObject({ activity: expect.any(Array) });
  });

  test('is not found while nothing handles the request', async () => {
    expect(await service.call('DELETE', '/none')).toMatchObject({ status: 404, data: NOT_FOUND });
  });
});

describe('a body', () => {
  const login = (init: Sent) => service.call('POST', '/auth/login', init);
  const type = { 'content-type': 'application/json' };

  test.each<[string, Sent, number, object]>([
    ['malformed', { headers: type, body: '{' }, 400, { code: 'VALIDATION_FAILED' }],
    [
      'a list',
      { headers: type, body: '[]' },
      400,
      { details: { body: { rule: 'invalid_type', message: 'Must be a JSON object' } } },
    ],
    [
      'another type',
      { headers: { 'content-type': 'text/plain' }, body: '{}' },
      415,
      { code: 'UNSUPPORTED_MEDIA_TYPE' },
    ],
    [
      'larger than 100 KB',
      { headers: type, body: JSON.stringify({ email: 'x'.repeat(102_400) }) },
      413,
      { code: 'PAYLOAD_TOO_LARGE' },
    ],
    [
      'compressed otherwise than it says',
      { headers: { ...type, 'content-encoding': 'gzip' }, body: '{}' },
      400,
      { code: 'VALIDATION_FAILED' },
    ],
    ['none', {}, 400, { details: { email: expect.anything(), password: expect.anything() } }],
  ])('is refused: %s', async (_, init, status, data) => {
    expect(await login(init)).toMatchObject({ status, data });
  });

  test('of 100 KB is read', async () => {
    const json = { email: 'nobody@example.test', password: 'x'.repeat(102_400 - 60) };
    expect(await service.call('POST', '/auth/login', { json })).toMatchObject({ status: 401 });
  });

  test('of a form is read from a form only', async () => {
    const session = await logIn(rules, ada);
    const image = (init: Sent) => service.call('POST', '/api/upload/image', { session, ...init });
    const form = new FormData();
    form.set('type', 'avatar');
    const missing = await image({ body: form });
    expect([missing.status, missing.data]).toEqual([400, { error: 'The part file is missing' }]);
    expect(await image({ headers: type, body: '{}' })).toMatchObject({
      status: 400,
      data: { error: 'Must be multipart/form-data' },
    });
  });
});

describe('an error of uploads', () => {
  test('has `error` only, or beside the other fields', async () => {
    const session = await logIn(rules, ada);
    const confirm = await service.call('POST', '/api/upload/confirm', { session, json: { key: 1 } });
    expect([confirm.status, Object.keys(confirm.data)]).toEqual([400, ['error']]);
    const presign = await service.call('POST', '/api/upload/presign', { session, json: { size: 0 } });
    expect(presign.data).toMatchObject({
      code: 'VALIDATION_FAILED',
      error: presign.data.details[Object.keys(presign.data.details)[0] ?? ''].message,
    });
    const unknown = await service.call('POST', '/api/upload/confirm', { session, json: { key: 'uploads/none.png' } });
    expect(unknown).toMatchObject({ status: 404, data: { code: 'NOT_FOUND', error: unknown.data.message } });
  });

  test('is the ordinary one without a session', async () => {
    const { status, data } = await service.call('POST', '/api/upload/confirm', { json: { key: 'x' } });
    expect([status, Object.keys(data)]).toEqual([401, ['message', 'code']]);
  });
});
