import { describe, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import { profileOf } from '../../provider/login.ts';
import { ask } from '../../rig/client/raw.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { callerOf } from '../rig/callers.ts';
import { frontEnds, loginFrom } from '../rig/front-ends.ts';
import { onBothStacks, PASSWORD } from '../rig/scenario.ts';

const portOf = (stack: Stack) => stack.services[0]?.port;

describe('with APP_URL unset', () => {
  onBothStacks(
    (stack) => {
      test.each(['localhost', '127.0.0.1'])('a provider login started at %s ends there', async (name) => {
        const base = `http://${name}:${portOf(stack())}`;
        const browser = new Browser();
        const request = new URL(await browser.redirectOf(`${base}/auth/idp`));
        expect(request.searchParams.get('redirect_uri')).toBe(`${base}/auth/idp/callback`);
        const page = new URL(await browser.redirectOf(request), request);
        const email = freshEmail();
        const resume = await browser.redirectOf(page, {
          method: 'POST',
          headers: { origin: page.origin },
          body: new URLSearchParams({ email, name: 'Ada', verified: 'yes', action: 'login' }),
        });
        const callback = new URL(await browser.redirectOf(resume));
        expect(callback.origin).toBe(base);
        expect(await browser.redirectOf(callback)).toBe('/dashboard');
        expect(await profileOf(stack(), browser.session)).toMatchObject({ email });
      });

      // checks: 42
      test.each([
        ['[::1]:PORT', '[::1]:PORT'],
        ['evil.test', 'localhost:PORT'],
        ['evil.test:PORT', 'localhost:PORT'],
        ['127.0.0.2:PORT', 'localhost:PORT'],
        ['localhost:1', 'localhost:PORT'],
      ])('a request to %s is redirected to %s', async (asked, expected) => {
        const named = (host: string) => host.replace('PORT', String(portOf(stack())));
        const { headers } = await ask(`${stack().url}/auth/idp`, { headers: { host: named(asked) } });
        const redirectUri = new URL(String(headers['location'])).searchParams.get('redirect_uri');
        expect(redirectUri).toBe(`http://${named(expected)}/auth/idp/callback`);
      });

      test.each(['http://localhost:PORT', 'http://127.0.0.1:PORT', 'http://[::1]:PORT'])(
        'pages of %s count as own pages',
        async (address) => {
          const origin = address.replace('PORT', String(portOf(stack())));
          expect(await loginFrom(stack(), origin)).toMatchObject({ code: 'INVALID_CREDENTIALS', allowed: origin });
        },
      );
    },
    { env: { APP_URL: undefined } },
  );
});

describe('a front end on another port of this machine', () => {
  onBothStacks((stack) => {
    // checks: 24
    test.each(frontEnds)('%s may send requests with credentials', async (origin) => {
      expect(await loginFrom(stack(), origin)).toEqual({
        code: 'INVALID_CREDENTIALS',
        allowed: origin,
        credentials: 'true',
      });
      const preflight = await fetch(`${stack().url}/auth/login`, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' },
      });
      expect(preflight.headers.get('access-control-allow-origin')).toBe(origin);
    });

    test('may read when to try again, what is left, and the id of the request', async () => {
      const options = { address: clientAddress(), headers: { origin: 'http://localhost:5173' } };
      const limits = ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'];
      const promised = ['retry-after', ...limits, 'x-request-id'];
      const call = callerOf('rest', stack().url);
      const attempt = () => call('auth.login', { email: freshEmail(), password: PASSWORD }, options);
      for (let i = 0; i < 5; i++) await attempt();
      const { code, headers } = await attempt();
      expect(code).toBe('RATE_LIMITED');
      expect(promised.filter((name) => !headers.has(name))).toEqual([]);
      expect(headers.get('access-control-expose-headers')?.toLowerCase().split(',').sort()).toEqual(promised.sort());
    });

    test.each([
      'http://localhost.evil.test:5173',
      'http://evil.test:5173',
      'http://127.0.0.1.evil.test:5173',
      'http://0.0.0.0:5173',
      'http://10.0.0.1:5173',
      'ftp://localhost:5173',
      'http://localhost:5173/',
      'http://user@localhost:5173',
    ])('%s may not', async (origin) => {
      expect(await loginFrom(stack(), origin)).toMatchObject({ code: 'ORIGIN_MISMATCH', allowed: null });
    });
  });
});
