import { expect, test } from 'vitest';
import { loadClient, procedureOf } from '../../rig/client/client.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import { callerOf } from '../rig/callers.ts';
import { loggedIn, onBothStacks } from '../rig/scenario.ts';

onBothStacks((stack) => {
  const session = async () => {
    const { session, ...user } = await loggedIn({ stack: stack(), call: callerOf('rest', stack().url) });
    return { cookie: `auth_session=${session}`, ...user };
  };
  const send = async (path: string, cookie: string, init: RequestInit = {}) => {
    const headers = { 'x-forwarded-for': clientAddress(), cookie, ...(init.headers as Record<string, string>) };
    const response = await fetch(`${stack().url}/trpc/${path}`, { ...init, headers });
    return { status: response.status, body: await response.json() };
  };
  const post = (path: string, cookie: string, body: unknown) =>
    send(path, cookie, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const input = (value: unknown) => `input=${encodeURIComponent(JSON.stringify(value))}`;

  test('each call of a batch has its own answer; different statuses give 207', async () => {
    const { cookie, id, email } = await session();
    const both = await send(`profile.get,users.get?batch=1&${input({ 1: { id: 'nobody' } })}`, cookie);
    expect(both).toMatchObject({
      status: 207,
      body: [
        { result: { data: { user: { id, email } } } },
        { error: { data: { code: 'NOT_FOUND', httpStatus: 404 } } },
      ],
    });
    const refused = await send('profile.get,profile.get?batch=1', '');
    expect(refused).toMatchObject({
      status: 401,
      body: Array(2).fill({ error: { data: { code: 'UNAUTHENTICATED', path: 'profile.get' } } }),
    });
  });

  test('each refused call of a batch names its own time to wait', async () => {
    const { createClient, isServiceError } = await loadClient();
    const { cookie } = await session();
    const client = createClient({
      url: stack().url,
      headers: { 'x-forwarded-for': clientAddress(), cookie },
      solveChallenges: false,
    });
    const refusalOf = (call: Promise<unknown>) =>
      call.then(
        () => undefined,
        (error: unknown) => {
          if (isServiceError(error)) return [error.code, error.retryAfter];
          throw error;
        },
      );
    const email = freshEmail();
    const logIn = () => refusalOf(procedureOf(client, 'auth.login').mutate({ email, password: 'Wrong-1843' }));
    for (let i = 0; i < 5; i++) expect((await logIn())?.[0]).toBe('INVALID_CREDENTIALS');
    const name = 'x'.repeat(1000);
    const both = [logIn(), refusalOf(procedureOf(client, 'profile.update').mutate({ name }))];
    expect(await Promise.all(both)).toEqual([
      ['RATE_LIMITED', expect.any(Number)],
      ['VALIDATION_FAILED', undefined],
    ]);
  });

  test('a batch of one is a batch, with its input at index 0', async () => {
    const { cookie } = await session();
    const answer = await post('profile.update?batch=1', cookie, { 0: { bio: 'first' }, 1: { bio: 'nobody’s' } });
    expect(answer).toMatchObject({ status: 200, body: [{ result: { data: { user: { bio: 'first' } } } }] });
  });

  test('all changes of a batch are made, each with its own input', async () => {
    const { cookie, id } = await session();
    const answer = await post('profile.update,profile.update?batch=1', cookie, {
      0: { bio: 'B' },
      1: { location: 'L' },
    });
    expect(answer.status).toBe(200);
    expect(await stack().database('select bio, location from users where id = ?', [id])).toEqual([
      { bio: 'B', location: 'L' },
    ]);
  });

  test('a mutation by GET and a query by POST are 404, in a batch too', async () => {
    const { cookie, id } = await session();
    const read = await send(`profile.get,profile.update?batch=1&${input({ 1: { bio: 'changed' } })}`, cookie);
    expect(read).toMatchObject({ status: 207, body: [{ result: {} }, { error: { data: { code: 'NOT_FOUND' } } }] });
    expect(await post('profile.get', cookie, {})).toMatchObject({ status: 404 });
    expect(await stack().database('select bio from users where id = ?', [id])).toEqual([{ bio: null }]);
  });

  test.each(['{', '%7B', 'null x'])('an input in the URL that is not JSON is refused (%s)', async (text) => {
    for (const path of ['users.list?', 'users.list?batch=1&']) {
      const { status, body } = await send(`${path}input=${text}`, '');
      expect(status).toBe(400);
      expect([body].flat()).toMatchObject([{ error: { data: { code: 'VALIDATION_FAILED' } } }]);
    }
  });

  test('a form is the input of a single call, never of a batch', async () => {
    const { cookie } = await session();
    const body = new FormData();
    body.set('type', 'avatar');
    expect((await send('upload.image?batch=1', cookie, { method: 'POST', body })).status).toBe(415);
  });

  test('a batch beyond the limit is refused as a whole', async () => {
    const refused = await send(`${Array(11).fill('health').join(',')}?batch=1`, '');
    expect(refused).toMatchObject({ status: 400, body: { error: { data: { code: 'VALIDATION_FAILED' } } } });
  });

  test('a path that cannot be decoded is 404', async () => {
    expect(await send('%zz', '')).toMatchObject({ status: 404, body: { error: { data: { code: 'NOT_FOUND' } } } });
  });
});
