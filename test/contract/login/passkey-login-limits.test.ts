import { expect, test } from 'vitest';
import type { Authenticator } from '../../rig/client/authenticator.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import { callerOf, refusalsOfBatch } from '../rig/callers.ts';
import {
  addPasskey,
  authenticatorFor,
  beginLogin,
  logInByPasskey,
  refusalsOf,
  sessionsOf,
  tryPasskey,
  withPasskey,
} from '../rig/passkey-scenario.ts';
import { expectRefusal, loggedIn, onBothStacks, onStack } from '../rig/scenario.ts';

/** Many logins by passkey: limits, and two instances. */

const MANY = { env: { LIMIT_LOGIN: '10000/900', LIMIT_PASSKEY_START: '10000/900', LIMIT_CHANGE: '10000/3600' } };

onBothStacks(
  (stack) => {
    test('starts and finishes are limited per address; finishes count with logins', async () => {
      const call = callerOf('rest', stack().url);
      const { authenticator, email, password } = await withPasskey({ stack: stack(), call });
      const [address, other] = [clientAddress(), clientAddress()];
      for (let i = 0; i < 3; i++) expect((await call('auth.beginPasskey', undefined, { address })).status).toBe(200);
      const refused = await call('auth.beginPasskey', undefined, { address });
      expectRefusal(refused, 429, 'RATE_LIMITED');
      expect(refused.setCookies).toEqual([]);

      const login = { email, password: `${password}!` };
      for (let i = 0; i < 2; i++) expect((await call('auth.login', login, { address: other })).status).toBe(401);
      const wrong = { userVerified: false };
      for (let i = 0; i < 3; i++) {
        expect((await tryPasskey(call, authenticator, wrong, { address: other })).status).toBe(401);
      }
      expectRefusal(await tryPasskey(call, authenticator, {}, { address: other }), 429, 'RATE_LIMITED');
      await logInByPasskey(call, authenticator);
    });
  },
  { env: { LIMIT_PASSKEY_START: '3/900' } },
);

onBothStacks((stack) => {
  test('a batch over /trpc tries no more passkeys than the limit allows', async () => {
    const call = callerOf('rest', stack().url);
    const { authenticator } = await withPasskey({ stack: stack(), call });
    const { browser } = await beginLogin(call);
    const wrong = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const { data } = await call('auth.beginPasskey', undefined, { browser });
        return authenticator.assert(data, { userVerified: false });
      }),
    );
    const codes = await refusalsOfBatch(stack().url, 'auth.finishPasskey', wrong, { browser });
    expect(codes.sort()).toEqual([...Array(5).fill('INVALID_CREDENTIALS'), ...Array(5).fill('RATE_LIMITED')]);
  });
});

onStack(
  'real',
  (stack) => {
    const callers = () => stack().services.map(({ url }) => callerOf('rest', url));

    test('a challenge of one instance works once, at any instance', async () => {
      const [first, second] = callers() as [ReturnType<typeof callerOf>, ReturnType<typeof callerOf>];
      const { authenticator } = await withPasskey({ stack: stack(), call: first });
      for (let round = 0; round < 10; round++) {
        const { options, browser } = await beginLogin(first);
        const response = authenticator.assert(options);
        const replies = await Promise.all(
          [first, second].map((call) => call('auth.finishPasskey', response, { browser })),
        );
        expect(replies.map(({ status }) => status).sort()).toEqual([200, 401]);
      }
    });

    test('of two copies used concurrently with the same counter, at two instances, one logs in', async () => {
      const [first] = callers();
      if (!first) throw new Error('no instance');
      const { authenticator, id } = await withPasskey({ stack: stack(), call: first }, { signCount: 1 });
      for (let round = 1; round <= 10; round++) {
        const copies: Authenticator[] = [authenticator, authenticator.clone()];
        const begun = await Promise.all(callers().map(async (call) => ({ call, ...(await beginLogin(call)) })));
        const replies = await Promise.all(
          begun.map(({ call, options, browser }, i) =>
            call('auth.finishPasskey', copies[i]?.assert(options), { browser }),
          ),
        );
        expect(replies.map(({ status }) => status).sort()).toEqual([200, 401]);
        expect(await refusalsOf(stack(), id, round)).toHaveLength(round);
      }
    });

    test('a login that races with the removal of its passkey leaves no session, twenty times', async () => {
      const [first, second] = callers() as [ReturnType<typeof callerOf>, ReturnType<typeof callerOf>];
      const { id: userId, session } = await loggedIn({ stack: stack(), call: first });
      for (let round = 0; round < 20; round++) {
        const authenticator = authenticatorFor(stack());
        const passkey = await addPasskey(first, session, authenticator);
        const { options, browser } = await beginLogin(second);
        const [removed] = await Promise.all([
          first('passkeys.remove', { id: passkey.id }, { session }),
          second('auth.finishPasskey', authenticator.assert(options), { browser }),
        ]);
        expect(removed.status).toBe(200);
        expect((await sessionsOf(stack(), userId)).map(({ method }) => method)).toEqual(['password']);
      }
    });
  },
  { instances: 2, ...MANY },
);
