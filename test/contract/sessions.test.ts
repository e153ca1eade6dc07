import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { clientAddress, freshEmail } from '../rig/address.ts';
import { slowClock } from '../rig/clock.ts';
import { startService } from '../rig/service.ts';
import type { Stack } from '../rig/stack.ts';
import { callerOf, type Reply } from './callers.ts';
import {
  everywhere,
  expectRefusal,
  isAlive,
  loggedIn,
  logIn,
  onBothStacks,
  onStack,
  PASSWORD,
  registered,
  sessionIn,
  verified,
} from './scenario.ts';

const DAY_MS = 24 * 60 * 60_000;

everywhere((scenario) => {
  test('login answers the user, and the session only as the documented cookie', async () => {
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
    expect(reply.setCookies).toEqual([`auth_session=${session}; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800`]);
    expect(Buffer.from(session, 'base64url')).toHaveLength(32);
    expect(JSON.stringify(reply.data)).not.toContain(session);
  });

  test('unknown address, wrong password and an unverified account with a wrong password look the same', async () => {
    const { call } = scenario();
    const person = await verified(scenario());
    const waiting = await registered(scenario());
    const replies = await Promise.all(
      [person.email, waiting.email, freshEmail()].map((email) =>
        call('auth.login', { email, password: 'Wrong-Password-1' }),
      ),
    );
    for (const reply of replies) {
      expectRefusal(reply, 401, 'INVALID_CREDENTIALS', 'Invalid email or password');
      expect(reply.data).toEqual(replies[0]?.data);
    }
  });

  test('the sixth attempt in a quarter of an hour is refused, right or wrong, and says when to come back', async () => {
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

  test('of fifty attempts at once five are looked at', async () => {
    const { call } = scenario();
    const address = clientAddress();
    const attempt = { email: freshEmail(), password: PASSWORD };
    const replies = await Promise.all(Array.from({ length: 50 }, () => call('auth.login', attempt, { address })));
    expect(replies.filter(({ status }) => status === 401)).toHaveLength(5);
    expect(replies.filter(({ status }) => status === 429)).toHaveLength(45);
  });

  test('login gives a new session and ends the one that came along', async () => {
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

  test('logout ends the session, and only that one; a second logout is told so', async () => {
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

  test('after a logout no request gets through, whatever was in flight', async () => {
    const { call } = scenario();
    const { session } = await loggedIn(scenario());
    const statusesOf = async (replies: Promise<Reply>[]) => (await Promise.all(replies)).map(({ status }) => status);
    const ask = () => Array.from({ length: 50 }, () => call('profile.get', undefined, { session }));
    expect(await statusesOf(ask())).toEqual(Array(50).fill(200));
    const inFlight = ask();
    expect((await call('auth.logout', undefined, { session })).status).toBe(200);
    expect(await statusesOf(ask())).toEqual(Array(50).fill(401));
    // Each of these was answered before the logout or after it.
    expect((await statusesOf(inFlight)).filter((status) => status !== 200 && status !== 401)).toEqual([]);
  });

  test('logging out everywhere ends all sessions of the user and nobody else’s', async () => {
    const { call } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const others = [await logIn(call, person), await logIn(call, person), await logIn(call, person)];
    const stranger = await loggedIn(scenario());
    const reply = await call('auth.logoutAll', undefined, { session });
    expect(reply.data).toEqual({ success: true, message: expect.any(String) });
    expect(sessionIn(reply)).toBe('');
    for (const ended of [session, ...others]) expect(await isAlive(call, ended)).toBe(false);
    expect(await isAlive(call, stranger.session)).toBe(true);
    expect(await isAlive(call, await logIn(call, person))).toBe(true);
    expectRefusal(await call('auth.logoutAll', undefined, { session }), 401, 'UNAUTHENTICATED');
  });

  test('a session that is used in its second half gets its cookie again, for its whole life, once', async () => {
    const { call, stack } = scenario();
    const person = await verified(scenario());
    const [now] = stack.services;
    const { PORT, ...env } = now?.env ?? {};
    const before = await startService({ env: { ...env, ...slowClock(4 * DAY_MS) } });
    try {
      const session = await logIn(callerOf('rest', before.url), person);
      const { status, setCookies } = await call('profile.get', undefined, { session });
      expect(status).toBe(200);
      expect(setCookies).toEqual([`auth_session=${session}; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800`]);
      expect((await call('profile.get', undefined, { session })).setCookies).toEqual([]);
    } finally {
      await before.stop({ by: 'SIGINT' });
    }
  });

  test('a user that is gone has no session', async () => {
    const { call, stack } = scenario();
    const { session, id } = await loggedIn(scenario());
    await stack.database('delete from users where id = ?', [id]);
    expect(await isAlive(call, session)).toBe(false);
  });

  test.each([
    ['8 kB', 'x'.repeat(8000)],
    ['one character more', 'EXTENDED'],
    ['percent-encoded NUL', '%00'],
    ['bytes beyond ASCII', 'Ã¼Ã¼'],
    ['nothing', ''],
    ['a key of the store', 'session:x'],
    ['a planted cookie before it', `${'B'.repeat(43)}; auth_session=OWN`],
    ['a planted cookie after it', `OWN; auth_session=${'B'.repeat(43)}`],
  ])('a session cookie of %s is no session', async (_, garbage) => {
    const { call } = scenario();
    const { session } = await loggedIn(scenario());
    const value = garbage.replace('EXTENDED', `${session}x`).replace('OWN', session);
    expectRefusal(await call('profile.get', undefined, { session: value }), 401, 'UNAUTHENTICATED');
  });

  test('only administrators end the sessions of others', async () => {
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

describe('who is asking', () => {
  onBothStacks((stack) => {
    const attempts = async (headersOf: (i: number) => Record<string, string>) => {
      const call = callerOf('rest', stack().url);
      const statuses: number[] = [];
      for (let i = 0; i < 6; i++) {
        const { status } = await call(
          'auth.login',
          { email: freshEmail(), password: PASSWORD },
          { headers: headersOf(i) },
        );
        statuses.push(status);
      }
      return statuses;
    };
    const limited = [401, 401, 401, 401, 401, 429];

    test('only the entry that our proxy wrote counts, however many stand before it', async () => {
      const own = clientAddress();
      expect(await attempts(() => ({ 'x-forwarded-for': `${clientAddress()}, ${own}` }))).toEqual(limited);
    });

    test.each(['x-real-ip', 'forwarded', 'cf-connecting-ip', 'x-client-ip', 'true-client-ip'])(
      'the header %s changes nothing',
      async (header) => {
        const own = clientAddress();
        expect(await attempts(() => ({ 'x-forwarded-for': own, [header]: clientAddress() }))).toEqual(limited);
      },
    );

    test('six addresses of one IPv6 /64 are one', async () => {
      const prefix = `2001:db8:${(Math.random() * 0xffff) | 0}:7`.replace(
        /:(\d+):7/,
        (_, n) => `:${Number(n).toString(16)}:7`,
      );
      expect(await attempts((i) => ({ 'x-forwarded-for': `${prefix}::${i + 1}` }))).toEqual(limited);
    });

    test('an IPv4 address is the same in IPv6 notation', async () => {
      const own = clientAddress();
      expect(await attempts((i) => ({ 'x-forwarded-for': i % 2 ? own : `::ffff:${own}` }))).toEqual(limited);
    });

    test('another spelling of the path is no other path', async () => {
      for (const path of ['/auth/login/', '//auth/login', '/AUTH/LOGIN', '/auth%2Flogin']) {
        const response = await fetch(stack().url + path, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-forwarded-for': clientAddress() },
          body: JSON.stringify({ email: freshEmail(), password: PASSWORD }),
        });
        expect(response.status).toBe(404);
      }
    });
  });
});

describe('without a proxy in front', () => {
  onStack(
    'embedded',
    (stack) => {
      test('X-Forwarded-For is what anybody can write', async () => {
        const call = callerOf('rest', stack().url);
        const statuses: number[] = [];
        for (let i = 0; i < 6; i++) {
          statuses.push((await call('auth.login', { email: freshEmail(), password: PASSWORD })).status);
        }
        expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
      });
    },
    { env: { TRUST_PROXY: '0' } },
  );
});

describe('what the store holds', () => {
  /** How long the store keeps a session from now on; `Infinity` for ever. */
  const keptMs = async ({ redis, services }: Stack, session: string): Promise<number> => {
    const key = `session:${createHash('sha256').update(session).digest('base64url')}`;
    if (redis) {
      const ms = await redis.pttl(key);
      return ms === -1 ? Infinity : ms;
    }
    const store = new DatabaseSync(join(services[0]?.dataDir ?? '', 'key-value.sqlite'), { timeout: 5_000 });
    const row = store.prepare('select expires_at from entries where key = ?').get(key);
    store.close();
    return Number(row?.['expires_at'] ?? Infinity) - Date.now();
  };

  onBothStacks((stack) => {
    test('a session goes when it ends, seven days after its login', async () => {
      const { session } = await loggedIn({ stack: stack(), call: callerOf('rest', stack().url) });
      const kept = await keptMs(stack(), session);
      expect(kept).toBeGreaterThan(7 * DAY_MS - 60_000);
      expect(kept).toBeLessThanOrEqual(7 * DAY_MS);
    });
  });
});

describe('what Redis holds', () => {
  onStack('real', (stack) => {
    test('a session is known by the hash of its token only', async () => {
      const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
      const { session } = await loggedIn(scenario);
      const keys = (await stack().redis?.keys('*')) ?? [];
      expect(keys).toContain(`session:${createHash('sha256').update(session).digest('base64url')}`);
      const values = await Promise.all(
        keys.filter((key) => key.startsWith('session:')).map((key) => stack().redis?.get(key)),
      );
      expect([...keys, ...values].join()).not.toContain(session);
    });

    test('all sessions end with a flushed store, nothing else does', async () => {
      const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
      const { session, ...person } = await loggedIn(scenario);
      await stack().redis?.flushdb();
      expect(await isAlive(scenario.call, session)).toBe(false);
      expect(await isAlive(scenario.call, await logIn(scenario.call, person))).toBe(true);
    });
  });
});
