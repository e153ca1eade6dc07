import { afterAll, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import {
  type Claims,
  environmentFor,
  namedEnvironmentFor,
  secondsFromNow,
  startHostileProvider,
} from '../../provider/hostile.ts';
import { atInstance, begin, identitiesOf, identityClaims, profileOf } from '../../provider/login.ts';
import type { Stack } from '../../rig/stack.ts';
import { callerOf } from '../rig/callers.ts';
import { eventsOf, expectRefusal, isAlive, onBothStacks, sessionIn } from '../rig/scenario.ts';
import { codeOf, forgetLastCode, setUpApp, withApp } from '../rig/totp-scenario.ts';

/** The second step of a provider login, unless the provider is trusted with it. */
const acme = await startHostileProvider();
const trusted = await startHostileProvider();
afterAll(() => Promise.all([acme.close(), trusted.close()]));

const providers = { acme, trusted };
type Name = keyof typeof providers;

const env = {
  ...environmentFor(acme),
  ...namedEnvironmentFor(trusted, 'trusted'),
  IDP_TRUSTED_TRUSTED_MFA: 'on',
  IDP_TRUSTED_MFA: 'off',
};

const through = async (
  stack: Stack,
  claims: Claims,
  { name = 'acme' as Name, query = '', browser = new Browser() } = {},
) => {
  const { request } = await begin(stack, browser, name + query);
  const location = await browser.redirectOf(atInstance(stack, providers[name].authorize(request, claims)));
  return { location, browser, session: browser.session, pending: browser.cookies.get('auth_pending') };
};

onBothStacks(
  (stack) => {
    const call = (...given: Parameters<ReturnType<typeof callerOf>>) => callerOf('rest', stack().url)(...given);

    /** A user of both providers with an app. */
    const user = async () => {
      const claims = identityClaims();
      const { session = '' } = await through(stack(), claims);
      await through(stack(), claims, { name: 'trusted' });
      const { id } = await profileOf(stack(), session);
      return { claims, id, ...(await setUpApp({ call, stack: stack() }, { id, session })) };
    };

    test('the browser is sent to the second step, and only its completion ends the former session', async () => {
      const { claims, id, session, secret } = await user();
      const browser = new Browser();
      browser.cookies.set('auth_session', session);
      const { location, pending } = await through(stack(), claims, { browser });
      expect(location).toBe('/second-factor');
      expect(pending).toMatch(/^[A-Za-z0-9_-]{43}$/);
      expect(browser.session).toBe(session);
      expect(await isAlive(call, session)).toBe(true);
      const reply = await call('auth.secondFactor', { code: codeOf(secret) }, { pending, session });
      expect(await profileOf(stack(), sessionIn(reply))).toMatchObject({ id });
      expect(await isAlive(call, session)).toBe(false);
      expect((await eventsOf(stack(), id, 'logged-in')).at(-1)).toMatchObject({ method: 'acme', secondFactor: 'totp' });
    });

    test('after the second step the session is recent, however old the login at the provider is', async () => {
      const { claims, secret } = await user();
      const { pending } = await through(stack(), { ...claims, auth_time: secondsFromNow(-3600) });
      const session = sessionIn(await call('auth.secondFactor', { code: codeOf(secret) }, { pending }));
      expectRefusal(await call('identities.unlink', { id: 'none' }, { session }), 404, 'NOT_FOUND');
    });

    test.each(['acme', 'trusted'] as const)(
      'an identity at %s is not linked by its email to an account with an app',
      async (name) => {
        const person = await withApp({ call, stack: stack() });
        const claims = identityClaims({ email: person.email });
        for (const query of ['', '?restore=1']) {
          const { location, session, pending } = await through(stack(), claims, { name, query });
          expect([location, session, pending]).toEqual(['/login?error=identity_not_linked', undefined, undefined]);
        }
        expect(await identitiesOf(stack(), claims.sub)).toEqual([]);
      },
    );

    test('an identity with another email is not moved to an account with an app', async () => {
      const claims = identityClaims();
      await through(stack(), claims);
      const person = await withApp({ call, stack: stack() });
      await stack().database('update users set email_verified = 0 where email = ?', [claims.email]);
      const { location } = await through(stack(), { ...claims, email: person.email });
      expect(location).toBe('/login?error=identity_not_linked');
      expect(await identitiesOf(stack(), claims.sub)).not.toMatchObject([{ user_id: person.id }]);
    });

    test('a trusted provider replaces the second factor', async () => {
      const { claims, id } = await user();
      const { location, session } = await through(stack(), claims, { name: 'trusted' });
      expect(location).toBe('/dashboard');
      expect(await profileOf(stack(), session)).toMatchObject({ id });
      expect((await eventsOf(stack(), id, 'logged-in')).at(-1)).not.toHaveProperty('secondFactor');
    });

    test('a deleted account is restored only after the second step; by a trusted provider immediately', async () => {
      const { claims, id, session, secret } = await user();
      expect((await call('account.delete', undefined, { session })).status).toBe(200);
      const { location, pending } = await through(stack(), claims, { query: '?restore=1' });
      expect(location).toBe('/second-factor');
      expect((await call('users.get', { id })).status).toBe(404);
      const reply = await call('auth.secondFactor', { code: codeOf(secret) }, { pending });
      expect(await profileOf(stack(), sessionIn(reply))).toMatchObject({ id });

      await forgetLastCode(stack(), id);
      await call('account.delete', undefined, { session: sessionIn(reply) });
      const back = await through(stack(), claims, { name: 'trusted', query: '?restore=1' });
      expect(back.location).toBe('/dashboard?notice=restored');
      expect(await profileOf(stack(), back.session)).toMatchObject({ id });
    });

    test('unlinking the identity ends its pending login', async () => {
      const { claims, id, secret } = await user();
      const { pending } = await through(stack(), claims);
      await stack().database('delete from identities where user_id = ?', [id]);
      expectRefusal(await call('auth.secondFactor', { code: codeOf(secret) }, { pending }), 401, 'UNAUTHENTICATED');
    });
  },
  { env },
);
