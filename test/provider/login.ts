import { expect } from 'vitest';
import { callerOf } from '../contract/callers.ts';
import { freshEmail } from '../rig/address.ts';
import type { Stack } from '../rig/stack.ts';
import { Browser } from './browser.ts';
import type { Claims, HostileProvider, Lie } from './hostile.ts';

/** Begins a login; `request` is where the provider would show its page. */
export async function begin(stack: Pick<Stack, 'url'>, browser = new Browser(), name = 'acme') {
  const location = await browser.redirectOf(`${stack.url}/auth/${name}`);
  return { browser, request: new URL(location) };
}

/** The callback's address as the instance itself is reached: APP_URL is for browsers. */
export const atInstance = ({ url }: Pick<Stack, 'url'>, callback: URL) =>
  new URL(callback.pathname + callback.search, url);

/** Whole logins through a provider: where they end. */
export const loginsThrough =
  (provider: HostileProvider) =>
  async (stack: Stack, claims: Claims, { lie, browser }: { lie?: Lie; browser?: Browser } = {}) => {
    const begun = await begin(stack, browser);
    const location = await begun.browser.redirectOf(atInstance(stack, provider.authorize(begun.request, claims, lie)));
    return { location, browser: begun.browser, session: begun.browser.session };
  };

/** The callback is refused for its state, and opens no session. */
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

/** Somebody new whom his provider vouches for. */
export const somebody = (claims: Claims = {}) => ({
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
