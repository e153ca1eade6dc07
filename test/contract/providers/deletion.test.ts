import { afterAll, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import { type Claims, environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import { atInstance, begin, identityClaims, loginsThrough, profileOf, usersWith } from '../../provider/login.ts';
import type { Stack } from '../../rig/stack.ts';
import { callerOf } from '../rig/callers.ts';
import { onBothStacks, PASSWORD, verified } from '../rig/scenario.ts';

/** Users of a provider delete and restore their account through the provider. */
const provider = await startHostileProvider();
const logInThrough = loginsThrough(provider);
afterAll(() => provider.close());

const restoreThrough = async (stack: Stack, claims: Claims) => {
  const { browser, request } = await begin(stack, new Browser(), 'acme?restore=1');
  const location = await browser.redirectOf(atInstance(stack, provider.authorize(request, claims)));
  return { location, session: browser.session };
};

onBothStacks(
  (stack) => {
    const call = (...given: Parameters<ReturnType<typeof callerOf>>) => callerOf('rest', stack().url)(...given);

    const gone = async () => {
      const claims = identityClaims();
      const { session } = await logInThrough(stack(), claims);
      const { id } = await profileOf(stack(), session);
      expect((await call('account.delete', undefined, { session })).status).toBe(200);
      return { claims, id };
    };

    test('a login to a deleted account leads to the log-in page; restoring logs in', async () => {
      const { claims, id } = await gone();
      const refused = await logInThrough(stack(), claims);
      expect(refused.location).toBe('/login?error=account_deleted');
      expect(refused.session).toBeUndefined();
      expect((await call('users.get', { id })).status).toBe(404);
      const back = await restoreThrough(stack(), claims);
      expect(back.location).toBe('/dashboard?notice=restored');
      expect(await profileOf(stack(), back.session)).toMatchObject({ id, email: claims.email });
      expect(await stack().database('select user_id from removals where user_id = ?', [id])).toEqual([]);
      expect((await call('users.get', { id })).status).toBe(200);
    });

    test('restoring an account that is not deleted is a login; restoring creates no account', async () => {
      const claims = identityClaims();
      expect((await restoreThrough(stack(), claims)).location).toBe('/login?error=account_removed');
      expect(await usersWith(stack(), claims.email)).toEqual([]);
      const { session } = await logInThrough(stack(), claims);
      const again = await restoreThrough(stack(), claims);
      expect(await profileOf(stack(), again.session)).toMatchObject({ id: (await profileOf(stack(), session)).id });
    });

    // checks: 44
    test('a provider that does not verify the email neither restores nor reveals', async () => {
      const { email, id } = await verified({ stack: stack(), call });
      const reply = await call('auth.login', { email, password: PASSWORD });
      const session = /auth_session=([^;]*)/.exec(reply.setCookies.join())?.[1];
      expect((await call('account.delete', undefined, { session })).status).toBe(200);
      for (const enter of [logInThrough, restoreThrough]) {
        const { location } = await enter(stack(), identityClaims({ email, email_verified: false }));
        expect(location).toBe('/login?error=email_unverified');
      }
      expect((await call('users.get', { id })).status).toBe(404);
    });

    // checks: 24
    test('a page of another site cannot restore an account', async () => {
      const headers = { 'sec-fetch-site': 'cross-site' };
      const answer = await fetch(`${stack().url}/auth/acme?restore=1`, { headers, redirect: 'manual' });
      expect(answer.status).toBe(403);
      expect(answer.headers.getSetCookie()).toEqual([]);
    });
  },
  { env: environmentFor(provider) },
);
