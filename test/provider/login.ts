import { expect } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { freshEmail } from '../rig/servers/address.ts';
import type { Stack } from '../rig/stack.ts';
import { Browser } from './browser.ts';
import type { Claims, HostileProvider, Lie } from './hostile.ts';

/** The headers of a login started by a page of another site. */
export const fromAnotherSite = { 'sec-fetch-site': 'cross-site', referer: 'https://evil.test/' };

/** Starts a login; `request` is where the provider would show its page. */
export async function begin(
  stack: Pick<Stack, 'url'> & Partial<Pick<Stack, 'services'>>,
  browser = new Browser(),
  name = 'acme',
  headers = {},
) {
  const location = await browser.redirectOf(`${stack.url}/auth/${name}`, { headers });
  if (!URL.canParse(location)) {
    const cause = stack.services?.map((service) => service.output().slice(-2000)).join('\n');
    throw new Error(`/auth/${name} leads to ${location}, not to the provider`, { cause });
  }
  return { browser, request: new URL(location) };
}

/** The callback URL at the address of the instance: APP_URL is for browsers. */
export const atInstance = ({ url }: Pick<Stack, 'url'>, callback: URL) =>
  new URL(callback.pathname + callback.search, url);

/** Complete provider logins; return the final location. */
export const loginsThrough =
  (provider: HostileProvider) =>
  async (
    stack: Stack,
    claims: Claims,
    { lie, browser, headers }: { lie?: Lie; browser?: Browser; headers?: Record<string, string> } = {},
  ) => {
    const begun = await begin(stack, browser, undefined, headers);
    const location = await begun.browser.redirectOf(atInstance(stack, provider.authorize(begun.request, claims, lie)));
    return { location, browser: begun.browser, session: begun.browser.session };
  };

/** The callback is refused because of its state, and opens no session. */
export async function expectStateRefused(browser: Browser, callback: URL | string): Promise<void> {
  const response = await browser.go(callback);
  expect([response.status, await response.json()]).toEqual([
    400,
    { message: 'Invalid state parameter', code: 'INVALID_STATE' },
  ]);
  expect(browser.session).toBeUndefined();
}

let people = 0;
export const freshSubject = () => `subject-${process.pid}-${people++}`;

/** A new user with an email that the provider verifies. */
export const identityClaims = (claims: Claims = {}) => ({
  sub: freshSubject(),
  email: freshEmail(),
  email_verified: true,
  name: 'Grace Hopper',
  picture: 'https://img.example.test/grace.png',
  ...claims,
});

export const profileOf = async ({ url }: Stack, session: string | undefined) =>
  (await callerOf('rest', url)('profile.get', undefined, { session })).data?.user;

export const usersWith = ({ database }: Stack, email: string) =>
  database<{ id: string; email_verified: number }>('select id, email_verified from users where email = ?', [email]);

export const identitiesOf = ({ database }: Stack, subject: string) =>
  database<{ user_id: string; issuer: string }>('select user_id, issuer from identities where subject = ?', [subject]);
