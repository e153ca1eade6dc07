import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, test } from 'vitest';
import { Browser } from '../provider/browser.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import {
  atInstance,
  begin,
  expectStateRefused,
  loginsThrough,
  profileOf,
  somebody,
  usersWith,
} from '../provider/login.ts';
import { clientAddress } from '../rig/address.ts';
import { entriesOf } from '../rig/key-value-view.ts';
import type { Stack } from '../rig/stack.ts';
import { callerOf } from './callers.ts';
import { documentOf } from './document.ts';
import { isAlive, loggedIn, logIn, mailedToken, onBothStacks, PASSWORD, sessionIn, verified } from './scenario.ts';

/** GET /auth/idp and GET /auth/idp/callback of interface.md, for a provider that an operator names. */
const provider = await startHostileProvider();
const logInAs = loginsThrough(provider);
afterAll(() => provider.close());

/** Every login that has begun and not ended. */
const storedFlows = async (stack: Stack) => (await entriesOf(stack)).filter(({ key }) => key.startsWith('login-flow:'));

/** As if so many milliseconds had passed for every login that has begun and not ended. */
async function makeFlowsOlder(stack: Stack, ms: number): Promise<void> {
  const { redis, services } = stack;
  if (redis) {
    for (const { key, keptMs } of await storedFlows(stack)) await redis.pexpire(key, Math.round(keptMs - ms));
    return;
  }
  const store = new DatabaseSync(join(services[0]?.dataDir ?? '', 'key-value.sqlite'), { timeout: 5_000 });
  store.prepare("update entries set expires_at = expires_at - ? where key like 'login-flow:%'").run(ms);
  store.close();
}

onBothStacks(
  (stack) => {
    describe('the start of a login', () => {
      test('goes to the configured provider with state, nonce and an S256 challenge, and no secret in it', async () => {
        const { browser, request } = await begin(stack());
        expect(request.origin + request.pathname).toBe(`${provider.url}/authorize`);
        expect(Object.fromEntries(request.searchParams)).toEqual({
          response_type: 'code',
          client_id: 'accounts',
          redirect_uri: `${stack().appUrl}/auth/acme/callback`,
          scope: 'openid email profile',
          state: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
          nonce: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
          code_challenge: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
          code_challenge_method: 'S256',
        });
        expect(browser.setCookies).toEqual([
          `acme_oauth_state=${request.searchParams.get('state')}; Path=/; HttpOnly; SameSite=Lax; Max-Age=600; Secure`,
        ]);
      });

      test('never repeats a state, a nonce or a challenge', async () => {
        const [one, two] = await Promise.all([begin(stack()), begin(stack())]);
        for (const name of ['state', 'nonce', 'code_challenge']) {
          expect(one.request.searchParams.get(name)).not.toBe(two.request.searchParams.get(name));
        }
      });

      test.each(['?redirect=https://evil.test', '?next=//evil.test', '?return_to=/\\evil.test', '?state=mine'])(
        'takes nothing from the request: %s',
        async (query) => {
          const browser = new Browser();
          const location = await browser.redirectOf(`${stack().url}/auth/acme${query}`, {
            headers: { 'x-forwarded-host': 'evil.test' },
          });
          expect(location).not.toContain('evil');
          const callback = provider.authorize(new URL(location), somebody());
          callback.searchParams.set('redirect', 'https://evil.test');
          expect(await browser.redirectOf(atInstance(stack(), callback))).toBe('/dashboard');
        },
      );

      test.each(['/auth/idp', '/auth/idp/callback', '/auth/google', '/auth/acme/', '/auth/ACME', '/auth/%61cme'])(
        '%s is no path of this provider',
        async (path) => {
          const response = await new Browser().go(stack().url + path);
          expect([response.status, await response.json()]).toEqual([
            404,
            expect.objectContaining({ code: 'NOT_FOUND' }),
          ]);
        },
      );
    });

    describe('the state', () => {
      test.each<[string, (callback: URL, browser: Browser) => void]>([
        ['without its cookie', (_, browser) => browser.cookies.clear()],
        ['without a state', (callback) => callback.searchParams.delete('state')],
        ['with an empty state', (callback) => callback.searchParams.set('state', '')],
        ['with another state', (callback) => callback.searchParams.set('state', 'A'.repeat(43))],
        ['with the state twice', (callback) => callback.searchParams.append('state', 'x')],
        ['with a longer state', (callback) => callback.searchParams.set('state', 'A'.repeat(100_000 / 10))],
        [
          'with the cookie of another name',
          (_, browser) => {
            browser.cookies.set('idp_oauth_state', browser.cookies.get('acme_oauth_state') ?? '');
            browser.cookies.delete('acme_oauth_state');
          },
        ],
        [
          'with a state that nobody was given',
          (callback, browser) => {
            callback.searchParams.set('state', 'A'.repeat(43));
            browser.cookies.set('acme_oauth_state', 'A'.repeat(43));
          },
        ],
        [
          'with nothing at all',
          (callback, browser) => {
            callback.search = '';
            browser.cookies.clear();
          },
        ],
        [
          'with another error than a refusal',
          (callback) => {
            callback.search = 'error=server_error';
          },
        ],
      ])('a callback %s is refused, and the provider not asked', async (_, change) => {
        const { browser, request } = await begin(stack());
        const person = somebody();
        const callback = atInstance(stack(), provider.authorize(request, person));
        change(callback, browser);
        const asked = provider.calls.length;
        await expectStateRefused(browser, callback);
        expect(provider.calls).toHaveLength(asked);
        expect(await usersWith(stack(), person.email)).toEqual([]);
      });

      test('of another browser is refused, and its own browser still gets in', async () => {
        const [mine, theirs] = await Promise.all([begin(stack()), begin(stack())]);
        const callback = atInstance(stack(), provider.authorize(theirs.request, somebody()));
        await expectStateRefused(mine.browser, callback);
        expect(await theirs.browser.redirectOf(callback)).toBe('/dashboard');
      });

      test('works once', async () => {
        const { browser, request } = await begin(stack());
        const callback = atInstance(stack(), provider.authorize(request, somebody()));
        const cookie = browser.cookies.get('acme_oauth_state') ?? '';
        expect(await browser.redirectOf(callback)).toBe('/dashboard');
        expect(browser.setCookies).toContain('acme_oauth_state=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0; Secure');
        const again = new Browser();
        again.cookies.set('acme_oauth_state', cookie);
        await expectStateRefused(again, callback);
      });

      test('lasts ten minutes', async () => {
        const { browser, request } = await begin(stack());
        const callback = atInstance(stack(), provider.authorize(request, somebody()));
        await makeFlowsOlder(stack(), 599_000);
        const late = await begin(stack());
        const lateCallback = atInstance(stack(), provider.authorize(late.request, somebody()));
        expect(await browser.redirectOf(callback)).toBe('/dashboard');
        await makeFlowsOlder(stack(), 600_000);
        await expectStateRefused(late.browser, lateCallback);
      });

      test('is used up by a login that was declined', async () => {
        const { browser, request } = await begin(stack());
        const callback = new URL(`${stack().url}/auth/acme/callback`);
        callback.searchParams.set('state', request.searchParams.get('state') ?? '');
        callback.searchParams.set('error', 'access_denied');
        callback.searchParams.set('error_description', '<script>alert(1)</script>');
        const cookie = browser.cookies.get('acme_oauth_state') ?? '';
        expect(await browser.redirectOf(callback)).toBe('/login?error=cancelled');
        expect(browser.cookies.has('acme_oauth_state')).toBe(false);
        browser.cookies.set('acme_oauth_state', cookie);
        await expectStateRefused(browser, atInstance(stack(), provider.authorize(request, somebody())));
      });

      test.each<[string, (callback: URL, browser: Browser) => void]>([
        ['without its cookie', (_, browser) => browser.cookies.clear()],
        ['without a state', (callback) => callback.searchParams.delete('state')],
        ['with another state', (callback) => callback.searchParams.set('state', 'A'.repeat(43))],
        ['with a code too', (callback) => callback.searchParams.set('code', 'x')],
      ])('a refusal %s leads to the log-in page, and changes nothing', async (_, change) => {
        const { browser, request } = await begin(stack());
        const right = atInstance(stack(), provider.authorize(request, somebody()));
        const cookie = browser.cookies.get('acme_oauth_state') ?? '';
        const refusal = new URL(`${stack().url}/auth/acme/callback?error=access_denied`);
        refusal.searchParams.set('state', 'B'.repeat(43));
        change(refusal, browser);
        expect(await browser.redirectOf(refusal)).toBe('/login?error=cancelled');
        expect(browser.setCookies).toEqual([]);
        browser.cookies.set('acme_oauth_state', cookie);
        expect(await browser.redirectOf(right)).toBe('/dashboard');
      });

      test('a refusal over tRPC ends at the log-in page, whatever the state', async () => {
        const reply = await callerOf('trpc', stack().url)('auth.idp.callback', { error: 'access_denied', state: 'x' });
        expect([reply.data, reply.setCookies]).toEqual([{ location: '/login?error=cancelled' }, []]);
      });

      test('is kept nowhere in the clear', async () => {
        const { request } = await begin(stack());
        const state = request.searchParams.get('state') ?? '';
        expect(state).toMatch(/^[A-Za-z0-9_-]{43}$/);
        const flows = await storedFlows(stack());
        expect(flows.length).toBeGreaterThan(0);
        expect(JSON.stringify(flows)).not.toContain(state);
      });
    });

    test('the session that came along ends', async () => {
      const call = callerOf('rest', stack().url);
      const { session } = await loggedIn({ stack: stack(), call });
      const browser = new Browser();
      browser.cookies.set('auth_session', session);
      const after = await logInAs(stack(), somebody(), { browser });
      expect(after.session).not.toBe(session);
      expect(await isAlive(call, session)).toBe(false);
    });

    test('an account without a password is to a password login what a wrong password is, and a reset gives it one', async () => {
      const call = callerOf('rest', stack().url);
      const user = somebody();
      const { session } = await logInAs(stack(), user);
      expect(Object.keys(await profileOf(stack(), session)).sort()).toEqual(
        Object.keys(await profileOf(stack(), (await loggedIn({ stack: stack(), call })).session)).sort(),
      );
      const other = await verified({ stack: stack(), call });
      const [ours, wrong] = await Promise.all(
        [user.email, other.email].map(async (email) => {
          const address = clientAddress();
          const { status, headers, data } = await call(
            'auth.login',
            { email, password: 'Wrong-Password-1' },
            { address },
          );
          const told = Object.fromEntries([...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date'));
          return { status, told, data };
        }),
      );
      expect(ours).toEqual(wrong);
      expect(ours).toMatchObject({ status: 401, data: { message: 'Invalid email or password' } });
      const asked = await Promise.all([user.email, other.email].map((email) => call('auth.forgotPassword', { email })));
      expect(asked.map(({ status, data }) => [status, data])).toEqual(Array(2).fill([200, asked[0]?.data]));
      const token = await mailedToken(stack(), user.email, 'reset-password');
      expect((await call('auth.resetPassword', { token, email: user.email, password: PASSWORD })).status).toBe(200);
      expect(await profileOf(stack(), await logIn(call, { ...user, password: PASSWORD }))).toMatchObject({
        email: user.email,
      });
      // The identity stays a way in.
      expect((await logInAs(stack(), user)).location).toBe('/dashboard');
    });

    test('/openapi.json shows the paths with the provider’s name', async () => {
      const { paths } = await documentOf(stack().url);
      expect(Object.keys(paths['/auth/{provider}']?.['get']?.responses ?? {})).toContain('302');
      expect(Object.keys(paths['/auth/{provider}/callback']?.['get']?.responses ?? {})).toEqual(
        expect.arrayContaining(['302', '400']),
      );
      for (const path of ['/auth/{provider}', '/auth/{provider}/callback']) {
        expect(paths[path]?.['get']?.parameters).toContainEqual(
          expect.objectContaining({ name: 'provider', in: 'path', schema: { type: 'string', enum: ['acme'] } }),
        );
      }
    });

    test('over tRPC a foreign state is refused alike', async () => {
      const reply = await callerOf('trpc', stack().url)('auth.idp.callback', { code: 'x', state: 'y' });
      expect([reply.status, reply.code, reply.message]).toEqual([400, 'INVALID_STATE', 'Invalid state parameter']);
    });

    test('over tRPC the same login ends in the output', async () => {
      const call = callerOf('trpc', stack().url);
      const started = await call('auth.idp.start');
      const request = new URL(started.data.location);
      const cookie = started.setCookies[0]?.split(';')[0] ?? '';
      const { searchParams } = provider.authorize(request, somebody());
      const ended = await call('auth.idp.callback', Object.fromEntries(searchParams), { headers: { cookie } });
      expect(ended.data).toEqual({ location: '/dashboard' });
      expect(await isAlive(call, sessionIn(ended) ?? '')).toBe(true);
    });
  },
  { env: environmentFor(provider) },
);
