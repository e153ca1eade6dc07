import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import { environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import {
  atInstance,
  begin,
  expectStateRefused,
  identityClaims,
  loginsThrough,
  profileOf,
  usersWith,
} from '../../provider/login.ts';
import { entriesOf } from '../../rig/observe/key-value-view.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { callerOf } from '../rig/callers.ts';
import { documentOf } from '../rig/document.ts';
import { isAlive, loggedIn, logIn, mailedToken, onBothStacks, PASSWORD, sessionIn, verified } from '../rig/scenario.ts';

/** GET /auth/idp and GET /auth/idp/callback of interface.md, with an operator's provider. */
const provider = await startHostileProvider();
const logInAs = loginsThrough(provider);
afterAll(() => provider.close());

/** All pending logins. */
const storedFlows = async (stack: Stack) => (await entriesOf(stack)).filter(({ key }) => key.startsWith('login-flow:'));

/** As if this many milliseconds had passed for all pending logins. */
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
      // checks: 42
      test('redirects to the provider with state, nonce and S256 challenge, without secrets', async () => {
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
          expect.stringMatching(/^auth_browser=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=86400$/),
          `acme_oauth_state=${request.searchParams.get('state')}; Path=/; HttpOnly; SameSite=Lax; Max-Age=600; Secure`,
        ]);
      });

      test('never repeats a state, nonce or challenge', async () => {
        const [one, two] = await Promise.all([begin(stack()), begin(stack())]);
        for (const name of ['state', 'nonce', 'code_challenge']) {
          expect(one.request.searchParams.get(name)).not.toBe(two.request.searchParams.get(name));
        }
      });

      // checks: 41
      test.each(['?redirect=https://evil.test', '?next=//evil.test', '?return_to=/\\evil.test', '?state=mine'])(
        'ignores the request: %s',
        async (query) => {
          const browser = new Browser();
          const location = await browser.redirectOf(`${stack().url}/auth/acme${query}`, {
            headers: { 'x-forwarded-host': 'evil.test' },
          });
          expect(location).not.toContain('evil');
          const callback = provider.authorize(new URL(location), identityClaims());
          callback.searchParams.set('redirect', 'https://evil.test');
          expect(await browser.redirectOf(atInstance(stack(), callback))).toBe('/dashboard');
        },
      );

      test.each(['/auth/idp', '/auth/idp/callback', '/auth/google', '/auth/acme/', '/auth/ACME', '/auth/%61cme'])(
        '%s is not a path of this provider',
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
      // checks: 40
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
        ['without the cookie of the browser', (_, browser) => browser.cookies.delete('auth_browser')],
        ['with the cookie of another browser', (_, browser) => browser.cookies.set('auth_browser', 'A'.repeat(43))],
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
      ])('a callback %s is refused without a request to the provider', async (_, change) => {
        const { browser, request } = await begin(stack());
        const person = identityClaims();
        const callback = atInstance(stack(), provider.authorize(request, person));
        change(callback, browser);
        const calls = provider.calls.length;
        await expectStateRefused(browser, callback);
        expect(provider.calls).toHaveLength(calls);
        expect(await usersWith(stack(), person.email)).toEqual([]);
      });

      // checks: 40
      test('of another browser is refused, and its own browser can still log in', async () => {
        const [mine, theirs] = await Promise.all([begin(stack()), begin(stack())]);
        const callback = atInstance(stack(), provider.authorize(theirs.request, identityClaims()));
        await expectStateRefused(mine.browser, callback);
        expect(await theirs.browser.redirectOf(callback)).toBe('/dashboard');
      });

      // checks: 40
      test('works once', async () => {
        const { browser, request } = await begin(stack());
        const callback = atInstance(stack(), provider.authorize(request, identityClaims()));
        const again = browser.copy();
        expect(await browser.redirectOf(callback)).toBe('/dashboard');
        expect(browser.setCookies).toContain('acme_oauth_state=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0; Secure');
        await expectStateRefused(again, callback);
      });

      // checks: 40
      test('lasts ten minutes', async () => {
        const { browser, request } = await begin(stack());
        const callback = atInstance(stack(), provider.authorize(request, identityClaims()));
        await makeFlowsOlder(stack(), 599_000);
        const late = await begin(stack());
        const lateCallback = atInstance(stack(), provider.authorize(late.request, identityClaims()));
        expect(await browser.redirectOf(callback)).toBe('/dashboard');
        await makeFlowsOlder(stack(), 600_000);
        await expectStateRefused(late.browser, lateCallback);
      });

      // checks: 41
      test('is used up by a cancelled login', async () => {
        const { browser, request } = await begin(stack());
        const callback = new URL(`${stack().url}/auth/acme/callback`);
        callback.searchParams.set('state', request.searchParams.get('state') ?? '');
        callback.searchParams.set('error', 'access_denied');
        callback.searchParams.set('error_description', '<script>alert(1)</script>');
        const cookie = browser.cookies.get('acme_oauth_state') ?? '';
        expect(await browser.redirectOf(callback)).toBe('/login?error=cancelled');
        expect(browser.cookies.has('acme_oauth_state')).toBe(false);
        browser.cookies.set('acme_oauth_state', cookie);
        await expectStateRefused(browser, atInstance(stack(), provider.authorize(request, identityClaims())));
      });

      // checks: 47
      test.each<[string, (callback: URL, browser: Browser) => void]>([
        ['without its cookie', (_, browser) => browser.cookies.clear()],
        ['without a state', (callback) => callback.searchParams.delete('state')],
        ['with another state', (callback) => callback.searchParams.set('state', 'A'.repeat(43))],
        ['with a code too', (callback) => callback.searchParams.set('code', 'x')],
      ])('an error %s leads to the log-in page and changes nothing', async (_, change) => {
        const { browser, request } = await begin(stack());
        const right = atInstance(stack(), provider.authorize(request, identityClaims()));
        const before = browser.copy();
        const refusal = new URL(`${stack().url}/auth/acme/callback?error=access_denied`);
        refusal.searchParams.set('state', 'B'.repeat(43));
        change(refusal, browser);
        expect(await browser.redirectOf(refusal)).toBe('/login?error=cancelled');
        expect(browser.setCookies).toEqual([]);
        expect(await before.redirectOf(right)).toBe('/dashboard');
      });

      test('an error over tRPC leads to the log-in page, whatever the state', async () => {
        const reply = await callerOf('trpc', stack().url)('auth.idp.callback', { error: 'access_denied', state: 'x' });
        expect([reply.data, reply.setCookies]).toEqual([{ location: '/login?error=cancelled' }, []]);
      });

      test('is stored only as a hash', async () => {
        const { request } = await begin(stack());
        const state = request.searchParams.get('state') ?? '';
        expect(state).toMatch(/^[A-Za-z0-9_-]{43}$/);
        const flows = await storedFlows(stack());
        expect(flows.length).toBeGreaterThan(0);
        expect(JSON.stringify(flows)).not.toContain(state);
      });
    });

    test('a login ends the session that the request carried', async () => {
      const call = callerOf('rest', stack().url);
      const { session } = await loggedIn({ stack: stack(), call });
      const browser = new Browser();
      browser.cookies.set('auth_session', session);
      const after = await logInAs(stack(), identityClaims(), { browser });
      expect(after.session).not.toBe(session);
      expect(await isAlive(call, session)).toBe(false);
    });

    // checks: 48
    test('an account without a password refuses password logins as wrong, and a reset sets one', async () => {
      const call = callerOf('rest', stack().url);
      const user = identityClaims();
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
          const shown = Object.fromEntries([...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date'));
          return { status, shown, data };
        }),
      );
      expect(ours).toEqual(wrong);
      expect(ours).toMatchObject({ status: 401, data: { message: 'Invalid email or password' } });
      const both = await Promise.all([user.email, other.email].map((email) => call('auth.forgotPassword', { email })));
      expect(both.map(({ status, data }) => [status, data])).toEqual(Array(2).fill([200, both[0]?.data]));
      const token = await mailedToken(stack(), user.email, 'reset-password');
      expect((await call('auth.resetPassword', { token, email: user.email, password: PASSWORD })).status).toBe(200);
      expect(await profileOf(stack(), await logIn(call, { ...user, password: PASSWORD }))).toMatchObject({
        email: user.email,
      });
      // The identity still logs in.
      expect((await logInAs(stack(), user)).location).toBe('/dashboard');
    });

    test('/openapi.json shows the paths with the name of the provider', async () => {
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

    test('over tRPC a wrong state gets the same refusal', async () => {
      const reply = await callerOf('trpc', stack().url)('auth.idp.callback', { code: 'x', state: 'y' });
      expect([reply.status, reply.code, reply.message]).toEqual([400, 'INVALID_STATE', 'Invalid state parameter']);
    });

    test('over tRPC the login ends with the output', async () => {
      const call = callerOf('trpc', stack().url);
      const started = await call('auth.idp.start');
      const request = new URL(started.data.location);
      const browser = new Browser();
      browser.keep(started.setCookies);
      const { cookie } = browser;
      const { searchParams } = provider.authorize(request, identityClaims());
      const ended = await call('auth.idp.callback', Object.fromEntries(searchParams), { headers: { cookie } });
      expect(ended.data).toEqual({ location: '/dashboard' });
      expect(await isAlive(call, sessionIn(ended) ?? '')).toBe(true);
    });
  },
  { env: environmentFor(provider) },
);
