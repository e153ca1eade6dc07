import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { User } from '../../../entities/index.ts';
import { logIn, type Opened, type OpenedRules, openRules } from '../rig/rules.ts';
import { served } from '../rig/served.ts';

/** The protocol of tRPC under /trpc (https://trpc.io/docs/rpc). */
let opened: Opened;
let rules: OpenedRules;
let service: Awaited<ReturnType<typeof served>>;
let ada: User;
beforeAll(async () => {
  opened = await openRules('rpc', { env: { PAGES: 'off' } });
  ada = await opened.create().insertUser('ada');
});
beforeEach(async () => {
  rules = opened.create();
  service = await served(rules);
});
afterEach(() => service.close());
afterAll(() => opened.close());

const inputs = (value: unknown) => `input=${encodeURIComponent(JSON.stringify(value))}`;
const failure = (code: string, httpStatus: number, path: string) => ({
  error: { code: expect.any(Number), message: expect.any(String), data: { code, httpStatus, path } },
});

test('a query has its input in the query, a mutation in the body', async () => {
  expect(await service.call('GET', `/trpc/users.get?${inputs({ id: ada.id })}`)).toMatchObject({
    status: 200,
    data: { result: { data: { data: { id: ada.id } } } },
  });
  const session = await logIn(rules, ada);
  const changed = await service.call('POST', '/trpc/profile.update', { session, json: { bio: 'engines' } });
  expect(changed).toMatchObject({ status: 200, data: { result: { data: { user: { bio: 'engines' } } } } });
});

test('a query needs no input if its procedure needs none', async () => {
  expect(await service.call('GET', '/trpc/users.list')).toMatchObject({ status: 200 });
});

test('an error has the status and the path of its call', async () => {
  const { status, data } = await service.call('GET', '/trpc/profile.get');
  expect([status, data]).toEqual([401, failure('UNAUTHENTICATED', 401, 'profile.get')]);
});

test.each<[string, string, string, object?]>([
  ['an unknown procedure', 'GET', '/trpc/none'],
  ['a name that is not one of a procedure', 'GET', '/trpc/constructor'],
  ['a mutation by GET', 'GET', '/trpc/auth.logout'],
  ['a query by POST', 'POST', '/trpc/profile.get', {}],
])('is NOT_FOUND: %s', async (_, method, path, json) => {
  const { status, data } = await service.call(method, path, { json });
  expect([status, data]).toEqual([404, failure('NOT_FOUND', 404, path.slice('/trpc/'.length))]);
});

test('a malformed name concerns no call', async () => {
  const { status, data } = await service.call('GET', '/trpc/%E0%A4%A');
  expect([status, data]).toEqual([404, failure('NOT_FOUND', 404, '')]);
});

test('an input that is not JSON is VALIDATION_FAILED', async () => {
  const { status, data } = await service.call('GET', '/trpc/users.get?input=%7B');
  expect([status, data]).toEqual([400, failure('VALIDATION_FAILED', 400, 'users.get')]);
});

test('other methods and paths are not of the protocol', async () => {
  expect(await service.call('HEAD', '/trpc/profile.get')).toMatchObject({ status: 204, text: '' });
  for (const [method, path] of [
    ['PUT', '/trpc/profile.get'],
    ['GET', '/trpc'],
    ['GET', '/trpcx/profile.get'],
  ] as const)
    expect(await service.call(method, path)).toMatchObject({ status: 404, data: { code: 'NOT_FOUND' } });
});

describe('a batch', () => {
  test('answers each call by its own input', async () => {
    const other = await rules.insertUser('other');
    const query = inputs({ 0: { id: ada.id }, 1: { id: other.id } });
    const { status, data } = await service.call('GET', `/trpc/users.get,users.get?batch=1&${query}`);
    expect(status).toBe(200);
    expect(data).toMatchObject([
      { result: { data: { data: { id: ada.id } } } },
      { result: { data: { data: { id: other.id } } } },
    ]);
  });

  test('of mutations has the inputs in one body', async () => {
    const session = await logIn(rules, ada);
    const path = '/trpc/profile.update,profile.update?batch=1';
    const { data } = await service.call('POST', path, { session, json: { 0: { bio: 'b' }, 1: { location: 'l' } } });
    expect(data).toMatchObject([{ result: {} }, { result: {} }]);
    expect((await service.call('GET', '/trpc/profile.get', { session })).data).toMatchObject({
      result: { data: { user: { bio: 'b', location: 'l' } } },
    });
  });

  test('with different outcomes is 207, with one refusal its status', async () => {
    const mixed = await service.call('GET', `/trpc/health,profile.get?batch=1`);
    expect([mixed.status, mixed.data]).toEqual([
      207,
      [expect.objectContaining({ result: expect.anything() }), failure('UNAUTHENTICATED', 401, 'profile.get')],
    ]);
    expect((await service.call('GET', `/trpc/profile.get,sessions.list?batch=1`)).status).toBe(401);
  });

  test('has an input for none of its calls', async () => {
    expect(await service.call('GET', '/trpc/health,users.list?batch=1')).toMatchObject({ status: 200 });
  });

  test('has at most ten calls', async () => {
    const path = (calls: number) => `/trpc/${Array(calls).fill('health').join(',')}?batch=1`;
    expect((await service.call('GET', path(10))).data).toHaveLength(10);
    const { status, data } = await service.call('GET', path(11));
    expect([status, data]).toEqual([
      400,
      { error: expect.objectContaining({ message: 'A batch has at most 10 calls', data: expect.anything() }) },
    ]);
  });

  test('is one only if it says so', async () => {
    for (const query of ['', '?batch=0'])
      expect(await service.call('GET', `/trpc/health,health${query}`)).toMatchObject({ status: 404 });
  });
});

test('a form is read as one, outside of a batch', async () => {
  const session = await logIn(rules, ada);
  const body = new FormData();
  body.set('type', 'avatar');
  const single = await service.call('POST', '/trpc/upload.image', { session, body });
  expect([single.status, single.data.error.data.details]).toEqual([
    400,
    { file: expect.objectContaining({ message: 'The part file is missing' }) },
  ]);
  const batch = await service.call('POST', '/trpc/upload.image?batch=1', { session, body });
  expect(batch).toMatchObject({ status: 415 });
});

test('rows that REST streams are collected', async () => {
  const session = await logIn(rules, ada);
  const { status, data } = await service.call('GET', '/trpc/account.export', { session });
  expect([status, data.result.data.activity]).toEqual([200, expect.arrayContaining([expect.anything()])]);
});
