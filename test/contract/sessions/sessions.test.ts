import { beforeAll, describe, expect, test } from 'vitest';
import { ageSession, entriesOf, replaceEntry, sessionEntry } from '../../rig/observe/key-value-view.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import { flush } from '../../rig/servers/redis.ts';
import { until } from '../../rig/until.ts';
import { callerOf, type Reply } from '../rig/callers.ts';
import {
  expectRefusal,
  isAlive,
  loggedIn,
  logIn,
  onBothStacks,
  overEverySurface,
  PASSWORD,
  registered,
  sessionIn,
  verified,
  visibleIn,
} from '../rig/scenario.ts';

const DAY_MS = 24 * 60 * 60_000;

onBothStacks((stack, name) => {
  overEverySurface(stack, name, (scenario) => {
    // checks: 2, 20, 49
    test('a login returns the user, and the session only as the documented cookie', async () => {
      const { call } = scenario();
      const { email, name, id } = await verified(scenario());
      const reply = await call('auth.login', { email: email.toUpperCase(), password: PASSWORD });
      expect(reply.status).toBe(200);
      expect(reply.data).toEqual({
        success: true,
        message: expect.any(String),
        user: { id, email, name, provider: 'email' },
      });
      const session = sessionIn(reply) ?? '';
      expect(reply.setCookies).toEqual([
        `auth_session=${session}; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800`,
        expect.stringMatching(/^auth_device=/),
      ]);
      expect(Buffer.from(session, 'base64url')).toHaveLength(32);
      expect(JSON.stringify(reply.data)).not.toContain(session);
    });

    // checks: 9, 18
    test('unknown email, wrong password, unverified account and account without password get the same answer', async () => {
      const { call, stack } = scenario();
      const person = await verified(scenario());
      const waiting = await registered(scenario());
      const external = await verified(scenario());
      await stack.database("update users set password_hash = null, provider = 'acme' where id = ?", [external.id]);
      const replies = await Promise.all(
        [person.email, waiting.email, external.email, freshEmail()].map((email) =>
          call('auth.login', { email, password: 'Wrong-Password-1' }),
        ),
      );
      for (const reply of replies) {
        expectRefusal(reply, 401, 'INVALID_CREDENTIALS', 'Invalid email or password');
        expect(visibleIn(reply)).toEqual(visibleIn(replies[0] as Reply));
      }
    });

    // checks: 9
    test('the right password of an unverified account opens no session', async () => {
      const { call, stack } = scenario();
      const waiting = await registered(scenario());
      const reply = await call('auth.login', waiting);
      expectRefusal(reply, 403, 'EMAIL_NOT_VERIFIED', 'Please verify your email before logging in');
      expect(reply.setCookies).toEqual([]);
      expect((await entriesOf(stack)).filter(({ value }) => value.includes(waiting.id))).toEqual([]);
    });

    // checks: 13
    test('the sixth attempt in fifteen minutes is refused, right or wrong, with Retry-After', async () => {
      const { call } = scenario();
      const person = await verified(scenario());
      const address = clientAddress();
      for (let i = 0; i < 4; i++) {
        const reply = await call('auth.login', { ...person, password: 'Wrong-Password-1' }, { address });
        expectRefusal(reply, 401, 'INVALID_CREDENTIALS');
      }
      await logIn(call, person, { address });
      const reply = await call('auth.login', person, { address });
      expectRefusal(reply, 429, 'RATE_LIMITED', /retry after 15 minutes/);
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(880);
      expect(reply.headers.get('ratelimit-limit')).toBe('5');
      expect(reply.headers.get('ratelimit-remaining')).toBe('0');
      expect(Number(reply.headers.get('ratelimit-reset'))).toBeLessThanOrEqual(900);
    });

    // checks: 13
    test('of fifty concurrent attempts five are checked', async () => {
      const { call } = scenario();
      const address = clientAddress();
      const attempt = { email: freshEmail(), password: PASSWORD };
      const replies = await Promise.all(Array.from({ length: 50 }, () => call('auth.login', attempt, { address })));
      expect(replies.filter(({ status }) => status === 401)).toHaveLength(5);
      expect(replies.filter(({ status }) => status === 429)).toHaveLength(45);
    });

    // checks: 19
    test('a login opens a new session and ends the one that the request carried', async () => {
      const { call } = scenario();
      const person = await verified(scenario());
      const planted = await logIn(call, await verified(scenario()));
      const own = await logIn(call, person, { session: planted });
      expect(own).not.toBe(planted);
      expect(await isAlive(call, planted)).toBe(false);
      expect(await isAlive(call, own)).toBe(true);
      const chosen = 'A'.repeat(43);
      expect(await logIn(call, person, { session: chosen })).not.toBe(chosen);
      expect(await isAlive(call, chosen)).toBe(false);
    });

    // checks: 21
    test('logout ends the session, and only that one; a second logout is 401', async () => {
      const { call } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const other = await logIn(call, person);
      const cleared = ['auth_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0'];
      const reply = await call('auth.logout', undefined, { session });
      expect(reply.data).toEqual({ success: true, message: expect.any(String) });
      expect(reply.setCookies).toEqual(cleared);
      for (const gone of [session, undefined]) {
        const again = await call('auth.logout', undefined, { session: gone });
        expectRefusal(again, 401, 'UNAUTHENTICATED');
        expect(again.setCookies).toEqual(cleared);
      }
      expect(await isAlive(call, session)).toBe(false);
      expect(await isAlive(call, other)).toBe(true);
    });

    // checks: 21
    test('after a logout no request succeeds, whatever was in flight', async () => {
      const { call } = scenario();
      const { session } = await loggedIn(scenario());
      const statusesOf = async (replies: Promise<Reply>[]) => (await Promise.all(replies)).map(({ status }) => status);
      const ask = () => Array.from({ length: 50 }, () => call('profile.get', undefined, { session }));
      expect(await statusesOf(ask())).toEqual(Array(50).fill(200));
      const inFlight = ask();
      expect((await call('auth.logout', undefined, { session })).status).toBe(200);
      expect(await statusesOf(ask())).toEqual(Array(50).fill(401));
      // Each was answered either before or after the logout.
      expect((await statusesOf(inFlight)).filter((status) => status !== 200 && status !== 401)).toEqual([]);
    });

    // checks: 22
    test('logging out everywhere ends all sessions of this user only', async () => {
      const { call } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const others = await Promise.all([1, 2, 3, 4].map(() => logIn(call, person)));
      const stranger = await loggedIn(scenario());
      const reply = await call('auth.logoutAll', undefined, { session });
      expect(reply.data).toEqual({ success: true, message: expect.any(String) });
      expect(sessionIn(reply)).toBe('');
      for (const ended of [session, ...others]) expect(await isAlive(call, ended)).toBe(false);
      expect(await isAlive(call, stranger.session)).toBe(true);
      expect(await isAlive(call, await logIn(call, person))).toBe(true);
      expectRefusal(await call('auth.logoutAll', undefined, { session }), 401, 'UNAUTHENTICATED');
    });

    // checks: 23
    test('using a session in its second half renews the cookie once; an unused one expires', async () => {
      const { call, stack } = scenario();
      const { session } = await loggedIn(scenario());
      const cookiesOnUse = async () => {
        const { status, setCookies } = await call('profile.get', undefined, { session });
        expect(status).toBe(200);
        return setCookies;
      };
      await ageSession(stack, session, 3 * DAY_MS);
      expect(await cookiesOnUse()).toEqual([]);
      await ageSession(stack, session, DAY_MS);
      const renewed = `auth_session=${session}; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800`;
      expect(await cookiesOnUse()).toEqual([renewed]);
      expect(await cookiesOnUse()).toEqual([]);
      await ageSession(stack, session, 7 * DAY_MS);
      expectRefusal(await call('profile.get', undefined, { session }), 401, 'UNAUTHENTICATED');
    });

    // checks: 23
    test('a session in constant use ends thirty days after its login', async () => {
      const { call, stack } = scenario();
      const { session } = await loggedIn(scenario());
      const days: number[] = [];
      for (let i = 0; i < 6; i++) {
        await ageSession(stack, session, 4 * DAY_MS);
        const { setCookies } = await call('profile.get', undefined, { session });
        days.push(Math.ceil(Number(/Max-Age=(\d+)/.exec(setCookies[0] ?? '')?.[1]) / (24 * 60 * 60)));
      }
      expect(days).toEqual([7, 7, 7, 7, 7, 6]);
      await ageSession(stack, session, 5 * DAY_MS);
      expect(await call('profile.get', undefined, { session })).toMatchObject({ status: 200, setCookies: [] });
      await ageSession(stack, session, DAY_MS);
      expectRefusal(await call('profile.get', undefined, { session }), 401, 'UNAUTHENTICATED');
    });

    test.each([
      'OK',
      '',
      'null',
      '"text"',
      '[]',
      '{}',
      '{"id":5,"userId":"user_1","epoch":0,"createdAt":0,"expiresAt":1e15}',
    ])('an unreadable stored value (%s) is no session and does not stop a login', async (value) => {
      const { call, stack } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const { key } = await sessionEntry(stack, session);
      await replaceEntry(stack, key, value);
      for (const procedure of ['profile.get', 'auth.logout']) {
        expectRefusal(await call(procedure, undefined, { session }), 401, 'UNAUTHENTICATED');
      }
      expect(await isAlive(call, await logIn(call, person, { session }))).toBe(true);
    });

    // checks: 76
    test.each([
      ['unchanged', (value: string) => value],
      ['without its name, as the release before stores it', (value: string) => value.replace(/"key":"[^"]*"/, '"x":0')],
    ])('the session of another user, %s, is an outage: nobody is logged in or out', async (_, change) => {
      const { call, stack } = scenario();
      const [ada, bob] = [await loggedIn(scenario()), await loggedIn(scenario())];
      const [own, other] = [await sessionEntry(stack, ada.session), await sessionEntry(stack, bob.session)];
      expect(change(other.value)).toContain(bob.id);
      await replaceEntry(stack, own.key, change(other.value));
      for (const [procedure, input] of [['profile.get'], ['profile.update', { name: 'Eve' }]] as const) {
        const reply = await call(procedure, input, { session: ada.session });
        expectRefusal(reply, 503, 'SERVICE_UNAVAILABLE');
        expect(reply.setCookies).toEqual([]);
      }
      await replaceEntry(stack, own.key, own.value);
      for (const { session, name } of [ada, bob]) {
        expect((await call('profile.get', undefined, { session })).data.user.name).toBe(name);
      }
    });

    // checks: 26
    test('a deleted user has no session', async () => {
      const { call, stack } = scenario();
      const { session, id } = await loggedIn(scenario());
      await stack.database('delete from users where id = ?', [id]);
      expect(await isAlive(call, session)).toBe(false);
    });

    describe('for one user', () => {
      let own = '';
      beforeAll(async () => {
        own = (await loggedIn(scenario())).session;
      });

      // checks: 27
      test.each([
        ['8 kB', 'x'.repeat(8000)],
        ['one character more', 'OWNx'],
        ['percent-encoded NUL', '%00'],
        ['text in UTF-8', 'Ã¼Ã¼'],
        ['bytes that are no UTF-8', '\xff\xfe'],
        ['nothing', ''],
        ['a key of the store', 'session:x'],
        ['a planted cookie before it', `${'B'.repeat(43)}; auth_session=OWN`],
        ['a planted cookie after it', `OWN; auth_session=${'B'.repeat(43)}`],
      ])('a cookie of %s is not a session', async (_, garbage) => {
        const { call } = scenario();
        const session = garbage.replace('OWN', own);
        expectRefusal(await call('profile.get', undefined, { session }), 401, 'UNAUTHENTICATED');
        expect(await isAlive(call, own)).toBe(true);
      });
    });

    test('only administrators can end the sessions of others', async () => {
      const { call, stack } = scenario();
      const admin = await loggedIn(scenario());
      const target = await loggedIn(scenario());
      const end = (id: string) => call('users.endSessions', { id }, { session: admin.session });
      expectRefusal(await call('users.endSessions', { id: target.id }), 401, 'UNAUTHENTICATED');
      expectRefusal(await end(target.id), 403, 'FORBIDDEN');
      expect(await isAlive(call, target.session)).toBe(true);
      await stack.database("update users set role = 'admin' where id = ?", [admin.id]);
      expect((await end(target.id)).status).toBe(200);
      expect(await isAlive(call, target.session)).toBe(false);
      expectRefusal(await end('user_none'), 404, 'NOT_FOUND', 'User not found');
    });
  });

  // checks: 20
  test('the store keeps a session for seven days, under the hash of its token', async () => {
    const { session } = await loggedIn({ stack: stack(), call: callerOf('rest', stack().url) });
    const { keptMs } = await sessionEntry(stack(), session);
    expect(keptMs).toBeGreaterThan(7 * DAY_MS - 60_000);
    expect(keptMs).toBeLessThanOrEqual(7 * DAY_MS);
  });

  // checks: 20
  test('neither the store nor the log contains a session token', async () => {
    const call = callerOf('rest', stack().url);
    const { session } = await loggedIn({ stack: stack(), call });
    const { headers } = await call('auth.logoutAll', undefined, { session });
    const output = () => stack().services[0]?.output() ?? '';
    await until(() => output().includes(headers.get('x-request-id') ?? '?'), { what: 'the line of the logout' });
    expect(output()).not.toContain(session);
    expect(JSON.stringify(await entriesOf(stack()))).not.toContain(session);
  });

  if (name === 'real') {
    // checks: F6
    test('flushing the store ends all sessions, and nothing else', async () => {
      const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
      const { session, ...person } = await loggedIn(scenario);
      const { redis } = stack();
      if (redis) await flush(redis);
      expect(await isAlive(scenario.call, session)).toBe(false);
      expect(await isAlive(scenario.call, await logIn(scenario.call, person))).toBe(true);
    });
  }
});
