import { afterAll, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import { environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import { atInstance, begin, identityClaims } from '../../provider/login.ts';
import { ask } from '../../rig/client/raw.ts';
import { entriesOf } from '../../rig/observe/key-value-view.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { callerOf } from '../rig/callers.ts';
import { expectRefusal, onBothStacks } from '../rig/scenario.ts';

const provider = await startHostileProvider();
afterAll(() => provider.close());

/** The number of pending logins that the service stores. */
const openFlows = async (stack: Stack): Promise<number> =>
  (await entriesOf(stack)).filter(({ key }) => key.startsWith('login-flow:')).length;

onBothStacks(
  (stack) => {
    test.each(['rest', 'trpc'] as const)('starts of logins over %s are limited per address', async (surface) => {
      const address = clientAddress();
      const before = await openFlows(stack());
      const start = async () =>
        surface === 'trpc'
          ? callerOf('trpc', stack().url)('auth.idp.start', undefined, { address })
          : fetch(`${stack().url}/auth/acme`, { redirect: 'manual', headers: { 'x-forwarded-for': address } });
      const statuses = (await Promise.all(Array.from({ length: 20 }, start))).map(({ status }) => status);
      expect(statuses.filter((status) => status !== 429)).toHaveLength(3);
      expect(await openFlows(stack())).toBe(before + 3);
      const refused = await callerOf('trpc', stack().url)('auth.idp.start', undefined, { address });
      expectRefusal(refused, 429, 'RATE_LIMITED');
      expect(refused.setCookies).toEqual([]);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      await begin(stack(), new Browser());
    });

    test.each([
      ['a picture', { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }],
      ['a call', { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }],
      ['a frame', { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }],
    ])('a start that another site loads as %s is refused and does not count', async (_what, fetched) => {
      const headers = { 'sec-fetch-site': 'cross-site', 'x-forwarded-for': clientAddress() };
      const start = (more: Record<string, string>) =>
        ask(`${stack().url}/auth/acme`, { headers: { ...headers, ...more } });
      for (let i = 0; i < 5; i++) {
        const { status, body } = await start(fetched);
        expect([status, JSON.parse(body).code]).toEqual([403, 'ORIGIN_MISMATCH']);
      }
      // A page that leads on, so that the cookies of this site are sent.
      expect((await start({ 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' })).status).toBe(200);
    });

    test('HEAD starts no login and does not count', async () => {
      const browser = new Browser();
      const before = await openFlows(stack());
      for (let i = 0; i < 5; i++) {
        const response = await browser.go(`${stack().url}/auth/acme`, { method: 'HEAD' });
        expect([response.status, browser.setCookies]).toEqual([204, []]);
        expect((await browser.go(`${stack().url}/trpc/auth.idp.start`, { method: 'HEAD' })).status).toBe(204);
        expect(browser.setCookies).toEqual([]);
      }
      expect(await openFlows(stack())).toBe(before);
      await begin(stack(), browser);
    });

    test('HEAD completes no login', async () => {
      const { browser, request } = await begin(stack());
      const callback = atInstance(stack(), provider.authorize(request, identityClaims()));
      for (const url of [callback, `${stack().url}/trpc/auth.idp.callback`]) {
        expect((await browser.go(url, { method: 'HEAD' })).status).toBe(204);
        expect(browser.setCookies).toEqual([]);
      }
      expect(await browser.redirectOf(callback)).toBe('/dashboard');
    });
  },
  { env: { ...environmentFor(provider), LIMIT_IDP_START: '3/900' } },
);
