import { afterAll, expect } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import {
  type Claims,
  environmentFor,
  type Lie,
  namedEnvironmentFor,
  startHostileProvider,
} from '../../provider/hostile.ts';
import { atInstance, identityClaims } from '../../provider/login.ts';
import type { Stack } from '../../rig/stack.ts';
import { callerOf } from './callers.ts';
import { loggedIn } from './scenario.ts';

/** Flows of users with several logins, in a browser and at two providers. */

export const SECURITY = '/dashboard/security';

/** A browser with a session. The service's first answer sets its browser cookie. */
export function browserWith(session: string): Browser {
  const browser = new Browser();
  browser.cookies.set('auth_session', session);
  return browser;
}

export const withPassword = (stack: Stack) => loggedIn({ stack, call: callerOf('rest', stack.url) });

/** The linked logins of the session's user. */
export const listed = async (stack: Stack, session: string) =>
  (await callerOf('rest', stack.url)('identities.list', undefined, { session })).data.data;

/** The status, and the code or location of the answer. */
export const refusalOf = async (browser: Browser, url: URL | string, headers: Record<string, string> = {}) => {
  const response = await browser.go(url, { headers });
  const body = response.status === 302 ? undefined : ((await response.json()) as { code: string });
  return [response.status, body?.code ?? response.headers.get('location')];
};

/** Browsers return from a provider without their Strict cookie. */
export async function comeBack(browser: Browser, callback: URL): Promise<string> {
  const session = browser.session;
  browser.cookies.delete('auth_session');
  const location = await browser.redirectOf(callback);
  if (session && !browser.session) browser.cookies.set('auth_session', session);
  return location;
}

interface Begun {
  stack: Stack;
  browser: Browser;
  name?: 'acme' | 'work';
  query?: string;
}

/** Two providers for the tests of this file, and flows through them. */
export async function startTwoProviders() {
  const [acme, work] = await Promise.all([startHostileProvider(), startHostileProvider()]);
  afterAll(() => Promise.all([acme.close(), work.close()]));
  const providers = { acme, work };

  /** Starts a flow and logs the user in at the provider: returns the callback that the browser would follow. */
  async function upToCallback({ stack, browser, name = 'acme', query = 'link=1' }: Begun, claims: Claims, lie?: Lie) {
    const location = await browser.redirectOf(`${stack.url}/auth/${name}?${query}`);
    expect(location).toMatch(providers[name].url);
    return atInstance(stack, providers[name].authorize(new URL(location), claims, lie));
  }

  /** A whole flow; returns the final location. */
  const through = async (begun: Begun, claims: Claims, lie?: Lie) =>
    comeBack(begun.browser, await upToCallback(begun, claims, lie));

  return {
    acme,
    env: { ...environmentFor(acme), ...namedEnvironmentFor(work, 'work') },
    upToCallback,
    through,

    /** The session opened by a login. */
    async logInThrough(stack: Stack, claims: Claims, name: Begun['name'] = 'acme'): Promise<string> {
      const browser = new Browser();
      expect(await through({ stack, browser, name, query: '' }, claims)).toBe('/dashboard');
      return browser.session ?? '';
    },

    /** A user with a password and an identity at acme. */
    async withLinked(stack: Stack) {
      const user = await withPassword(stack);
      const identity = identityClaims();
      const browser = browserWith(user.session);
      expect(await through({ stack, browser }, identity)).toBe(`${SECURITY}?notice=linked`);
      return { ...user, identity, browser };
    },
  };
}
