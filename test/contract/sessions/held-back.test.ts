import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test, vi } from 'vitest';
import { ageSession } from '../../rig/observe/key-value-view.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import { callerOf } from '../rig/callers.ts';
import { boundToken } from '../rig/proofs.ts';
import { administrator, isAlive, loggedIn, logIn, onBothStacks, verified } from '../rig/scenario.ts';

/** More than half of a session's life. */
const OLD_MS = 4 * 24 * 60 * 60_000;

const cookieOf = ({ session }: { session: string }) => ({ cookie: `auth_session=${session}` });
const json = { 'content-type': 'application/json' };
const form = { 'content-type': 'multipart/form-data; boundary=x' };
const picture =
  '--x\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\nContent-Type: image/png\r\n\r\nbytes\r\n--x--\r\n';

afterEach(() => {
  vi.useRealTimers();
});

onBothStacks((stack) => {
  const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });

  /** Sends all but the last byte. The returned function sends it and resolves to the answer. */
  async function holdBack(
    credential: Record<string, string>,
    method: string,
    path: string,
    body: string,
    type: Record<string, string> = json,
  ) {
    const headers = { ...type, ...credential, 'x-forwarded-for': clientAddress(), 'content-length': body.length };
    const sent = request(stack().url + path, { method, headers, agent: false });
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
    sent.write(body.slice(0, -1));
    // Any later request is checked after it.
    expect((await fetch(`${stack().url}/readyz`)).status).toBe(200);
    await isAlive(scenario().call, 'A'.repeat(43));
    return async () => {
      sent.end(body.slice(-1));
      const [response] = await answered;
      const { statusCode: status, headers } = response;
      return { status, setCookies: headers['set-cookie'] ?? [], body: await text(response) };
    };
  }

  const change = JSON.stringify({ bio: 'changed after the end' });
  test.each([
    ['a change of the profile', 'PUT', '/api/profile', change, json],
    ['the same over /trpc', 'POST', '/trpc/profile.update', change, json],
    ['an image', 'POST', '/api/upload/image', picture, form],
  ])(
    '%s whose last byte comes after the end of its session is UNAUTHENTICATED, and sets no cookie',
    async (_what, method, path, body, type) => {
      const person = await loggedIn(scenario());
      await ageSession(stack(), person.session, OLD_MS);
      const finish = await holdBack(cookieOf(person), method, path, body, type);
      const { call } = scenario();
      expect((await call('auth.logout', undefined, person)).status).toBe(200);
      const answer = await finish();
      expect(answer).toMatchObject({
        status: 401,
        setCookies: [],
        body: expect.stringContaining('UNAUTHENTICATED'),
      });
      const session = await logIn(call, person);
      const { data } = await call('profile.get', undefined, { session });
      expect(JSON.stringify(data)).not.toContain('changed after');
    },
  );

  test('a late body that cannot be read leaves the cookie of a login in between', async () => {
    const person = await loggedIn(scenario());
    await ageSession(stack(), person.session, OLD_MS);
    const finish = await holdBack(cookieOf(person), 'PUT', '/api/profile', '{"bio":]');
    await logIn(scenario().call, person, { session: person.session });
    expect(await finish()).toMatchObject({ status: 400, setCookies: [] });
  });

  test('an act of an administrator whose last byte comes after the end of the session changes nobody', async () => {
    const admin = await administrator(scenario());
    const person = await verified(scenario());
    const finish = await holdBack(cookieOf(admin), 'POST', `/api/users/${person.id}/role`, '{"role":"admin"}');
    expect((await scenario().call('auth.logoutAll', undefined, admin)).status).toBe(200);
    expect(await finish()).toMatchObject({ status: 401 });
    expect(await stack().database('select role from users where id = ?', [person.id])).toEqual([{ role: 'user' }]);
  });

  test('a body that arrives after its proof has expired is taken: the proof was for its beginning', async () => {
    const { session } = await loggedIn(scenario());
    const { sign } = await boundToken(scenario(), session, 'openid profile:write');
    const finish = await holdBack(await sign('PUT', `${stack().appUrl}/api/profile`), 'PUT', '/api/profile', change);
    expect((await scenario().call('profile.update', { bio: 'before' }, { sign })).status).toBe(200);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 2 * 60_000 });
    expect(await finish()).toMatchObject({ status: 200, body: expect.stringContaining('changed after') });
  });

  test.each([
    ['', 'PUT', '/api/profile', change, 'changed after'],
    [' by a procedure without input', 'POST', '/api/totp/options', '{}', 'otpauth'],
  ])(
    'a body that arrives slowly in an open session is taken%s, and renews its cookie in its second half',
    async (...given) => {
      const [, method, path, body, answered] = given;
      const person = await loggedIn(scenario());
      await ageSession(stack(), person.session, OLD_MS);
      const finish = await holdBack(cookieOf(person), method, path, body);
      expect(await finish()).toMatchObject({
        status: 200,
        setCookies: [expect.stringMatching(`^auth_session=${person.session};.*Max-Age=604800`)],
        body: expect.stringContaining(answered),
      });
    },
  );
});
