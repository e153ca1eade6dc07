import { describe, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import { type Claims, secondsFromNow } from '../../provider/hostile.ts';
import { atInstance, begin, identityClaims } from '../../provider/login.ts';
import { ask as get } from '../../rig/client/raw.ts';
import { entriesOf } from '../../rig/observe/key-value-view.ts';
import type { Stack } from '../../rig/stack.ts';
import { callerOf } from '../rig/callers.ts';
import { SECURITY, startTwoProviders, withPassword } from '../rig/linked-logins.ts';
import { growOld, isAlive, onBothStacks, verified } from '../rig/scenario.ts';
import { setUpApp } from '../rig/totp-scenario.ts';

/** `returnTo` at GET /auth/{provider}. Allowed values are tested in unit/http/return-to. */
const { acme, env, through, logInThrough, withLinked } = await startTwoProviders();

const FRONT_END = 'https://app.example.test';
const ask = (returnTo: string, query = '') => `${query}${query && '&'}${new URLSearchParams({ returnTo })}`;
const kept = (page: string, returnTo: string) =>
  `${page}${page.includes('?') ? '&' : '?'}${new URLSearchParams({ returnTo })}`;

const openFlows = async (stack: Stack): Promise<number> =>
  (await entriesOf(stack)).filter(({ key }) => key.startsWith('login-flow:')).length;

onBothStacks(
  (stack) => {
    const call = (...given: Parameters<ReturnType<typeof callerOf>>) => callerOf('rest', stack().url)(...given);

    describe('returnTo', () => {
      test.each([
        ['/basket?item=1#pay', '/basket?item=1#pay'],
        [`${FRONT_END}/orders?open=1`, `${FRONT_END}/orders?open=1`],
        [FRONT_END, `${FRONT_END}/`],
        ['http://localhost:5173/a', 'http://localhost:5173/a'],
      ])('%s is where a login ends', async (returnTo, location) => {
        const browser = new Browser();
        expect(await through({ stack: stack(), browser, query: ask(returnTo) }, identityClaims())).toBe(location);
        expect(await isAlive(call, browser.session ?? '')).toBe(true);
      });

      test('is kept over /trpc too', async () => {
        const reply = await callerOf('trpc', stack().url)('auth.idp.start', { provider: 'acme', returnTo: FRONT_END });
        const request = new URL(reply.data.location);
        const browser = new Browser();
        browser.keep(reply.setCookies);
        const callback = atInstance(stack(), acme.authorize(request, identityClaims()));
        expect(await browser.redirectOf(callback)).toBe(`${FRONT_END}/`);
      });

      // checks: 41
      test.each([
        'https://evil.test',
        '//evil.test',
        '/\\evil.test',
        '/%5cevil.test',
        '/\t/evil.test',
        'https:evil.test',
        `${FRONT_END}@evil.test`,
        `${FRONT_END}.evil.test`,
        `${FRONT_END}:8443`,
        'javascript:alert(1)',
        '/auth/acme?link=1',
        '',
      ])('%j is refused, and no login starts', async (returnTo) => {
        const before = await openFlows(stack());
        for (const query of [ask(returnTo), ask(returnTo, 'restore=1'), ask(returnTo, 'link=1')]) {
          const browser = new Browser();
          const response = await browser.go(`${stack().url}/auth/acme?${query}`);
          const details = { returnTo: { message: expect.any(String), rule: 'not_allowed' } };
          expect([response.status, await response.json()]).toEqual([
            400,
            { message: 'Validation failed', code: 'VALIDATION_FAILED', details },
          ]);
          expect(browser.setCookies).toEqual([]);
        }
        expect(await openFlows(stack())).toBe(before);
      });

      test.each(['returnTo=/a&returnTo=/b', 'returnTo=/a&returnTo=//evil.test', 'returnTo=&returnTo=/b'])(
        'given twice is refused: %s',
        async (query) => {
          const response = await new Browser().go(`${stack().url}/auth/acme?${query}`);
          expect([response.status, await response.json()]).toMatchObject([
            400,
            { code: 'VALIDATION_FAILED', details: { returnTo: { rule: 'invalid_type' } } },
          ]);
        },
      );

      test('in the callback is ignored', async () => {
        const { browser, request } = await begin(stack());
        const callback = atInstance(stack(), acme.authorize(request, identityClaims()));
        callback.searchParams.set('returnTo', FRONT_END);
        expect(await browser.redirectOf(callback)).toBe('/dashboard');
      });

      test('is passed to the page of a failure or of the second step', async () => {
        const returnTo = `${FRONT_END}/orders?a=1&b=2`;
        const query = ask(returnTo);
        const { email } = await verified({ stack: stack(), call });
        const outcomes: [Claims, string][] = [
          [identityClaims({ email, email_verified: false }), '/login?error=email_unverified'],
          [identityClaims({ sub: '' }), '/login?error=oauth_failed'],
          [identityClaims({ email_verified: false }), '/verify-email'],
        ];
        for (const [claims, page] of outcomes) {
          const browser = new Browser();
          expect(await through({ stack: stack(), browser, query }, claims)).toBe(kept(page, returnTo));
          expect(browser.session).toBeUndefined();
        }

        const claims = identityClaims();
        const session = await logInThrough(stack(), claims);
        const { id } = (await call('profile.get', undefined, { session })).data.user;
        await setUpApp({ call, stack: stack() }, { id, session });
        expect(await through({ stack: stack(), browser: new Browser(), query }, claims)).toBe(
          kept('/second-factor', returnTo),
        );
      });

      test('is passed on after a cancelled login, only in the browser that started it', async () => {
        const cancelled = (state: string) =>
          `${stack().url}/auth/acme/callback?${new URLSearchParams({ error: 'access_denied', state })}`;
        const { browser, request } = await begin(stack(), new Browser(), `acme?${ask(FRONT_END)}`);
        const state = request.searchParams.get('state') ?? '';
        expect(await new Browser().redirectOf(cancelled(state))).toBe('/login?error=cancelled');
        expect(await browser.redirectOf(cancelled(state))).toBe(kept('/login?error=cancelled', `${FRONT_END}/`));
      });

      test('is where a link, a reauthentication and a restored account end', async () => {
        const returnTo = `${FRONT_END}/settings`;
        const { identity, browser } = await withLinked(stack());
        const claims = { ...identity, auth_time: secondsFromNow(0) };
        const end = (query: string, given: Claims = claims) => through({ stack: stack(), browser, query }, given);
        expect(await end(ask(returnTo, 'link=1'), identityClaims())).toBe(returnTo);
        expect(await end(ask(returnTo, 'link=1'))).toBe(returnTo);
        expect(await end(ask(returnTo, 'reauthenticate=1&page=/dashboard/data'))).toBe(returnTo);
        expect(await end(ask(returnTo, 'reauthenticate=1'), identityClaims({ auth_time: secondsFromNow(0) }))).toBe(
          kept(`${SECURITY}?error=identity_mismatch`, returnTo),
        );
        expect(await end(ask(returnTo, 'restore=1'))).toBe(returnTo);
      });

      test('is passed to the page that requires a session first', async () => {
        const { id, session } = await withPassword(stack());
        await growOld(stack(), id);
        const url = `${stack().url}/auth/acme?${ask('/orders', 'link=1')}`;
        const at = async (cookie: string) => {
          const headers = { 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'same-origin', cookie };
          return (await get(url, { headers })).headers['location'];
        };
        expect(await at('')).toBe(kept('/login', '/orders'));
        expect(await at(`auth_session=${session}`)).toBe(
          kept(`${SECURITY}?error=reauthentication_required`, '/orders'),
        );
      });
    });
  },
  { env: { ...env, ALLOWED_ORIGINS: FRONT_END } },
);
