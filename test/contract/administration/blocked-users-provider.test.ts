import { afterAll, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import { type Claims, environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import { atInstance, begin, identityClaims, loginsThrough, profileOf, usersWith } from '../../provider/login.ts';
import type { Stack } from '../../rig/stack.ts';
import { type Call, callerOf } from '../rig/callers.ts';
import { refusalsOf } from '../rig/passkey-scenario.ts';
import { administrator, onBothStacks, verified } from '../rig/scenario.ts';

/** A blocked user cannot log in through a provider, and the browser is sent to a page with the reason. */
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
    const call: Call = (...given) => callerOf('rest', stack().url)(...given);
    const block = async (id: string) => {
      const { session } = await administrator({ stack: stack(), call });
      expect((await call('users.block', { id }, { session })).status).toBe(200);
    };

    test('with a linked identity', async () => {
      const claims = identityClaims();
      const { id } = await profileOf(stack(), (await logInThrough(stack(), claims)).session);
      await block(id);
      for (const enter of [logInThrough, restoreThrough]) {
        expect(await enter(stack(), claims)).toMatchObject({
          location: '/login?error=account_blocked',
          session: undefined,
        });
      }
      expect(await refusalsOf(stack(), id, 2)).toEqual([{ reason: 'blocked' }, { reason: 'blocked' }]);
      // Also with an email other than the account's.
      const moved = await logInThrough(stack(), { ...claims, email: identityClaims().email });
      expect(moved.location).toBe('/login?error=account_blocked');
    });

    test('with the email, and no identity is linked', async () => {
      const { id, email } = await verified({ stack: stack(), call });
      await block(id);
      const claims = identityClaims({ email });
      expect((await logInThrough(stack(), claims)).location).toBe('/login?error=account_blocked');
      expect(await stack().database('select id from identities where user_id = ?', [id])).toEqual([]);
      // A provider that does not verify the email learns nothing.
      const other = await logInThrough(stack(), identityClaims({ email, email_verified: false }));
      expect(other.location).toBe('/login?error=email_unverified');
    });

    test('with an identity that changes from a mistyped email to that of a blocked user', async () => {
      const { id, email } = await verified({ stack: stack(), call });
      await block(id);
      const typo = identityClaims({ email_verified: false });
      await logInThrough(stack(), typo);
      const right = await logInThrough(stack(), { ...typo, email, email_verified: true });
      expect(right.location).toBe('/login?error=account_blocked');
      expect(await usersWith(stack(), typo.email)).toHaveLength(1);
      expect(await stack().database('select id from identities where user_id = ?', [id])).toEqual([]);
    });
  },
  { env: environmentFor(provider) },
);
