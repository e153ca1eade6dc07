import { afterAll, describe, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import { environmentFor, namedEnvironmentFor, startHostileProvider } from '../../provider/hostile.ts';
import {
  atInstance,
  begin,
  expectStateRefused,
  identitiesOf,
  identityClaims,
  profileOf,
  usersWith,
} from '../../provider/login.ts';
import { startOpenIdProvider } from '../../provider/openid.ts';
import type { Stack } from '../../rig/stack.ts';
import { until } from '../../rig/until.ts';
import { callerOf } from '../rig/callers.ts';
import { documentOf } from '../rig/document.ts';
import { expectRefusal, onBothStacks, sessionIn } from '../rig/scenario.ts';

/** Two providers at once: acme from the variables without a name, work from its own. */
const acme = await startHostileProvider();
const work = await startOpenIdProvider();
afterAll(() => Promise.all([acme.close(), work.close()]));

type User = ReturnType<typeof identityClaims>;
const names = ['acme', 'work'] as const;
type Name = (typeof names)[number];
const other = { acme: 'work', work: 'acme' } as const;

/** Starts a login and logs the user in at the provider: returns the callback that the browser would follow. */
async function upToCallback(stack: Stack, name: Name, user: User, browser = new Browser()) {
  const { request } = await begin(stack, browser, name);
  if (name === 'acme') return { browser, callback: atInstance(stack, acme.authorize(request, user)) };
  work.allow(`${stack.appUrl}/auth/work/callback`);
  work.setClaims(user.sub, user);
  return { browser, callback: atInstance(stack, await work.authorize(browser, request, user.sub)) };
}

async function logIn(stack: Stack, name: Name, user: User) {
  const { browser, callback } = await upToCallback(stack, name, user);
  expect(await browser.redirectOf(callback)).toBe('/dashboard');
  return profileOf(stack, browser.session);
}

onBothStacks(
  (stack) => {
    // checks: 46
    test('each provider logs in its own users: the same subject at both is two users', async () => {
      const user = identityClaims();
      const atAcme = await logIn(stack(), 'acme', user);
      const namesake = identityClaims({ sub: user.sub });
      const atWork = await logIn(stack(), 'work', namesake);
      expect(atAcme).toMatchObject({ email: user.email, provider: 'acme' });
      expect(atWork).toMatchObject({ email: namesake.email, provider: 'work' });
      expect(atWork.id).not.toBe(atAcme.id);
      expect((await identitiesOf(stack(), user.sub)).map(({ issuer }) => issuer).sort()).toEqual(
        [acme.url, work.url].sort(),
      );
    });

    test('a user with an email that both verify can log in through either', async () => {
      const user = identityClaims();
      const atAcme = await logIn(stack(), 'acme', user);
      expect(await logIn(stack(), 'work', { ...user, sub: identityClaims().sub })).toEqual(atAcme);
    });

    test.each<[Name, Name]>([
      ['acme', 'work'],
      ['work', 'acme'],
    ])('of two concurrent logins %s ends first, and %s too', async (first, second) => {
      const user = { acme: identityClaims(), work: identityClaims() };
      const { browser, callback: toAcme } = await upToCallback(stack(), 'acme', user.acme);
      const acmeCookie = browser.cookies.get('acme_oauth_state');
      const { callback: toWork } = await upToCallback(stack(), 'work', user.work, browser);
      expect(acmeCookie).toBe(toAcme.searchParams.get('state'));
      expect(browser.cookies.get('acme_oauth_state')).toBe(acmeCookie);
      expect(browser.cookies.get('work_oauth_state')).toBe(toWork.searchParams.get('state'));
      const callbacks = { acme: toAcme, work: toWork };
      for (const name of [first, second]) {
        expect(await browser.redirectOf(callbacks[name])).toBe('/dashboard');
        expect(browser.setCookies).toContain(`${name}_oauth_state=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0; Secure`);
        expect(await profileOf(stack(), browser.session)).toMatchObject({ email: user[name].email });
      }
    });

    describe.each(names)('a flow started at %s', (name) => {
      const elsewhere = other[name];

      test.each<[string, (browser: Browser) => void]>([
        ['unchanged', () => undefined],
        ['with its state in the other’s cookie', (browser) => copyState(browser)],
      ])('is refused at the callback of the other, %s', async (_, change) => {
        const user = identityClaims();
        const { browser, callback } = await upToCallback(stack(), name, user);
        change(browser);
        callback.pathname = `/auth/${elsewhere}/callback`;
        const calls = acme.calls.length;
        await expectStateRefused(browser, callback);
        expect(acme.calls).toHaveLength(calls);
        expect(await usersWith(stack(), user.email)).toEqual([]);
      });

      const copyState = ({ cookies }: Browser) =>
        cookies.set(`${elsewhere}_oauth_state`, cookies.get(`${name}_oauth_state`) ?? '');

      test('cannot be passed off as the other’s by a query', async () => {
        const { browser, callback } = await upToCallback(stack(), name, identityClaims());
        callback.searchParams.set('provider', elsewhere);
        expect(await browser.redirectOf(callback)).toBe('/dashboard');
        const location = await browser.redirectOf(`${stack().url}/auth/${name}?provider=${elsewhere}`);
        expect(new URL(location).origin).toBe({ acme, work }[name].url);
      });
    });

    test.each(['GET', 'HEAD'])('%s finds exactly the configured names', async (method) => {
      const statusOf = async (path: string) => (await new Browser().go(stack().url + path, { method })).status;
      for (const name of names) expect(await statusOf(`/auth/${name}`)).toBe(method === 'GET' ? 302 : 204);
      for (const name of ['login', 'register', 'idp', 'unknown', '{provider}', '*', 'WORK', '%77ork', 'work/', '']) {
        expect(await statusOf(`/auth/${name}`)).toBe(404);
        expect(await statusOf(`/auth/${name}/callback`)).toBe(404);
      }
    });

    test('over tRPC the name is an input, by default the first provider', async () => {
      const call = callerOf('trpc', stack().url);
      const originOf = async (input?: object) => new URL((await call('auth.idp.start', input)).data.location).origin;
      expect(await originOf()).toBe(acme.url);
      expect(await originOf({})).toBe(acme.url);
      expect(await originOf({ provider: 'work' })).toBe(work.url);
      for (const provider of ['unknown', 'constructor', 'WORK', 'a; b=c']) {
        expectRefusal(await call('auth.idp.start', { provider }), 404, 'NOT_FOUND');
        expectRefusal(await call('auth.idp.callback', { provider, error: 'access_denied' }), 404, 'NOT_FOUND');
      }
      const user = identityClaims();
      const { browser, callback } = await upToCallback(stack(), 'work', user);
      const headers = { cookie: browser.cookie };
      const input = Object.fromEntries(callback.searchParams);
      expectRefusal(await call('auth.idp.callback', input, { headers }), 400, 'INVALID_STATE');
      const ended = await call('auth.idp.callback', { ...input, provider: 'work' }, { headers });
      expect(ended.data).toEqual({ location: '/dashboard' });
      expect(await profileOf(stack(), sessionIn(ended))).toMatchObject({ email: user.email });
    });

    test('/openapi.json lists the names, the log has the pattern, and the banner each address', async () => {
      const { paths } = await documentOf(stack().url);
      for (const path of ['/auth/{provider}', '/auth/{provider}/callback']) {
        const parameter = { name: 'provider', in: 'path', required: true, schema: { type: 'string', enum: names } };
        expect(paths[path]?.['get']?.parameters).toContainEqual(expect.objectContaining(parameter));
      }
      await begin(stack(), new Browser(), 'work');
      const [service] = stack().services;
      const line = /302 GET \/auth\/\{provider\} in/;
      await until(async () => line.test(service?.output() ?? '') || undefined, { what: 'the line of the request' });
      for (const name of names) expect(service?.output()).toContain(`${stack().appUrl}/auth/${name}\n`);
    });
  },
  { env: { ...environmentFor(acme), ...namedEnvironmentFor(work, 'work') } },
);
