import { afterAll, describe, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import { startGithub } from '../../provider/github.ts';
import { type Claims, namedEnvironmentFor, secondsFromNow } from '../../provider/hostile.ts';
import { atInstance, identityClaims } from '../../provider/login.ts';
import { callerOf } from '../rig/callers.ts';
import { browserWith, comeBack, refusalOf, SECURITY, startTwoProviders, withPassword } from '../rig/linked-logins.ts';
import { eventsOf, growOld, isAlive, onBothStacks } from '../rig/scenario.ts';

/** Reauthentication at a provider before sensitive changes. */
const { acme, env, upToCallback, through, logInThrough, withLinked } = await startTwoProviders();
const github = await startGithub();
afterAll(() => github.close());

onBothStacks(
  (stack) => {
    describe('reauthentication at a provider', () => {
      const again = 'reauthenticate=1';
      const isRecent = async (session: string) =>
        (await callerOf('rest', stack().url)('identities.unlink', { id: 'none' }, { session })).code === 'NOT_FOUND';

      test('makes the session recent, and returns to the page', async () => {
        const { id, session, identity, browser } = await withLinked(stack());
        await growOld(stack(), id);
        expect(await isRecent(session)).toBe(false);
        const query = `${again}&page=/dashboard/activity`;
        const location = new URL(await browser.redirectOf(`${stack().url}/auth/acme?${query}`));
        expect(Object.fromEntries(location.searchParams)).toMatchObject({ prompt: 'login', max_age: '0' });
        const callback = atInstance(stack(), acme.authorize(location, { ...identity, auth_time: secondsFromNow(0) }));
        expect(await comeBack(browser, callback)).toBe('/dashboard/activity?notice=confirmed');
        expect(await isRecent(session)).toBe(true);
        expect(browser.session).toBe(session);
        expect(await eventsOf(stack(), id, 'reauthenticated')).toEqual([{ method: 'acme' }]);
        expect(
          await through({ stack: stack(), browser, query: again }, { ...identity, auth_time: secondsFromNow(0) }),
        ).toBe(`${SECURITY}?notice=confirmed`);
      });

      // checks: 42
      test.each<[string, Claims, string]>([
        ['no time', {}, 'login_not_fresh'],
        ['a login from before', { auth_time: secondsFromNow(-3600) }, 'login_not_fresh'],
        ['a login to come', { auth_time: secondsFromNow(3600) }, 'login_not_fresh'],
        ['an invalid time', { auth_time: 'now' }, 'oauth_failed'],
        ['an unknown user', { auth_time: secondsFromNow(0), ...identityClaims() }, 'identity_mismatch'],
      ])('does not count if the provider states %s', async (_, claims, error) => {
        const { id, session, identity, browser } = await withLinked(stack());
        await growOld(stack(), id);
        const before = await stack().database('select count(*) as users from users');
        expect(await through({ stack: stack(), browser, query: again }, { ...identity, ...claims })).toBe(
          `${SECURITY}?error=${error}`,
        );
        expect(await isRecent(session)).toBe(false);
        expect(await stack().database('select count(*) as users from users')).toEqual(before);
        expect(await eventsOf(stack(), id, 'reauthenticated')).toEqual([]);
      });

      test.each<[string, Claims, boolean]>([
        ['just now', { auth_time: secondsFromNow(0) }, true],
        ['an hour ago', { auth_time: secondsFromNow(-3600) }, false],
        ['at a time that it does not state', {}, true],
      ])('counts from the login at the provider %s', async (_, claims, recent) => {
        expect(await isRecent(await logInThrough(stack(), { ...identityClaims(), ...claims }))).toBe(recent);
      });

      test('by another user does not count', async () => {
        const other = await withLinked(stack());
        const { id, session, browser } = await withLinked(stack());
        await growOld(stack(), id);
        const claims = { ...other.identity, auth_time: secondsFromNow(0) };
        expect(await through({ stack: stack(), browser, query: again }, claims)).toBe(
          `${SECURITY}?error=identity_mismatch`,
        );
        expect(await isRecent(session)).toBe(false);
      });

      test('for a session that has ended leads to the login', async () => {
        const { session, identity, browser } = await withLinked(stack());
        const callback = await upToCallback(
          { stack: stack(), browser, query: again },
          { ...identity, auth_time: secondsFromNow(0) },
        );
        await callerOf('rest', stack().url)('auth.logout', undefined, { session });
        expect(await comeBack(browser, callback)).toBe('/login?error=session_ended');
        expect(await isAlive(callerOf('rest', stack().url), session)).toBe(false);
      });

      // checks: 41
      test('requires a provider that proves logins, and an own page to return to', async () => {
        const { session } = await withPassword(stack());
        const at = (path: string) => refusalOf(browserWith(session), stack().url + path);
        expect(await at(`/auth/github?${again}`)).toEqual([302, `${SECURITY}?error=login_not_fresh`]);
        for (const page of ['//evil.test', 'https://evil.test', '/login', '/dashboard/../x', '']) {
          expect(await at(`/auth/acme?${again}&page=${encodeURIComponent(page)}`)).toEqual([400, 'VALIDATION_FAILED']);
        }
        expect(await refusalOf(new Browser(), `${stack().url}/auth/acme?${again}`)).toEqual([401, 'UNAUTHENTICATED']);
      });
    });
  },
  { env: { ...env, ...namedEnvironmentFor(github, 'github') } },
);
