import { afterAll, expect, test } from 'vitest';
import { environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import { atInstance, begin, identityClaims } from '../../provider/login.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import { askForCode, mailedCode } from '../rig/mailed-codes.ts';
import {
  administrator,
  everywhere,
  expectRefusal,
  mailedToken,
  PASSWORD,
  registered,
  verified,
} from '../rig/scenario.ts';

/** `returnTo` of requests that mail a link. Allowed values are tested in unit/http/return-to. */
const provider = await startHostileProvider();
afterAll(() => provider.close());

const FRONT_END = 'https://app.example.test';
const BASKET = `${FRONT_END}/basket?item=1#pay`;
const NEW_PASSWORD = 'Difference-Engine-1822';
const person = () => ({ name: 'Ada Lovelace', email: freshEmail(), password: PASSWORD });

const done = { success: true, message: expect.any(String) };

everywhere(
  (scenario) => {
    const register = async (returnTo?: string) => {
      const ada = person();
      const reply = await scenario().call('auth.register', { ...ada, returnTo });
      expect(reply.data).toEqual({ ...done, user: expect.anything() });
      return ada.email;
    };
    const invite = async (email: string, returnTo = BASKET) => {
      const { session } = await administrator(scenario());
      const reply = await scenario().call('users.invite', { email, returnTo }, { session });
      expect(reply.data).toMatchObject({ success: true });
    };
    const verify = async (token: string) => (await scenario().call('auth.verifyEmail', { token })).data;

    test('that of a registration is told by the confirmation, again at a second use, and by no other', async () => {
      const { stack } = scenario();
      const email = await register(BASKET);
      const token = await mailedToken(stack, email, 'verify-email');
      expect(await verify(token)).toMatchObject({ ...done, returnTo: BASKET });
      expect(await verify(token)).toMatchObject({ ...done, returnTo: BASKET });
      const other = await register();
      expect(await verify(await mailedToken(stack, other, 'verify-email'))).not.toHaveProperty('returnTo');
    });

    test('a newer link has its own', async () => {
      const { stack, call } = scenario();
      const email = await register(BASKET);
      await mailedToken(stack, email, 'verify-email');
      expect((await call('auth.resendVerification', { email, returnTo: '/page?a=1' })).data).toEqual(done);
      expect(await verify(await mailedToken(stack, email, 'verify-email', 2))).toMatchObject({ returnTo: '/page?a=1' });
    });

    test('that of a forgotten password is told by the reset', async () => {
      const { stack, call } = scenario();
      const { email } = await verified(scenario());
      expect((await call('auth.forgotPassword', { email, returnTo: BASKET })).data).toEqual(done);
      const token = await mailedToken(stack, email, 'reset-password');
      const reply = await call('auth.resetPassword', { token, email, password: NEW_PASSWORD });
      expect(reply.data).toEqual({ ...done, returnTo: BASKET });
    });

    test('that of an invitation is told by the registration', async () => {
      const { stack, call } = scenario();
      const ada = person();
      await invite(ada.email);
      const invitation = await mailedToken(stack, ada.email, 'register');
      // What the form was opened with does not count: the invitation does.
      const reply = await call('auth.register', { ...ada, invitation, returnTo: '/elsewhere' });
      expect(reply.data).toMatchObject({ success: true, returnTo: BASKET });
    });

    test('that of an invitation is where a first login through a provider ends, unless it began with another', async () => {
      const { stack } = scenario();
      const endOf = async (claims = identityClaims(), name = 'acme') => {
        await invite(claims.email);
        const { browser, request } = await begin(stack, undefined, name);
        const location = await browser.redirectOf(atInstance(stack, provider.authorize(request, claims)));
        const invitations = await stack.database('select id from invitations where email = ?', [claims.email]);
        return { location, isUsed: invitations.length === 0 };
      };
      expect(await endOf()).toEqual({ location: BASKET, isUsed: true });
      const other = await endOf(undefined, `acme?${new URLSearchParams({ returnTo: '/elsewhere' })}`);
      expect(other).toEqual({ location: '/elsewhere', isUsed: true });
      // Another person may have stated the address.
      const unproven = await endOf(identityClaims({ email_verified: false }));
      expect(unproven).toEqual({ location: '/verify-email', isUsed: false });
    });

    test('that of an invitation is told by the first login by a mailed code', async () => {
      const { stack, call } = scenario();
      const told = async (email: string) => {
        const pending = await askForCode(call, email);
        return (await call('auth.finishEmailCode', { code: await mailedCode(stack, email) }, { pending })).data;
      };
      const email = freshEmail();
      await invite(email);
      expect(await told(email)).toMatchObject({ success: true, returnTo: BASKET });
      const other = freshEmail();
      await invite(other);
      await stack.database('update invitations set return_to = ? where email = ?', [
        'https://gone.example.test/',
        other,
      ]);
      expect(await told(other)).not.toHaveProperty('returnTo');
    });

    test('that of a provider login whose address must be confirmed is told by the confirmation', async () => {
      const { stack } = scenario();
      const claims = identityClaims({ email_verified: false });
      const { browser, request } = await begin(stack, undefined, `acme?${new URLSearchParams({ returnTo: BASKET })}`);
      await browser.redirectOf(atInstance(stack, provider.authorize(request, claims)));
      const token = await mailedToken(stack, String(claims.email), 'verify-email');
      expect(await verify(token)).toMatchObject({ returnTo: BASKET });
    });

    test('one that is no longer allowed is told by nothing', async () => {
      const { stack } = scenario();
      const email = await register(BASKET);
      const token = await mailedToken(stack, email, 'verify-email');
      const gone = 'https://gone.example.test/';
      await stack.database('update one_time_tokens set return_to = ? where return_to = ?', [gone, BASKET]);
      expect(await verify(token)).not.toHaveProperty('returnTo');
    });

    // checks: 41
    test.each(['https://evil.test/', '//evil.test', '/\\evil.test', 'javascript:alert(1)', '/auth/logout', ''])(
      '%j is refused, and nothing is done',
      async (returnTo) => {
        const { stack, call } = scenario();
        const ada = person();
        const { email } = await registered(scenario());
        const { session } = await administrator(scenario());
        const count = async () => (await stack.database('select id from outbox')).length;
        await mailedToken(stack, email, 'verify-email');
        const before = await count();
        for (const [procedure, input] of [
          ['auth.register', ada],
          ['auth.resendVerification', { email }],
          ['auth.forgotPassword', { email }],
          ['users.invite', { email: freshEmail() }],
        ] as const) {
          const reply = await call(procedure, { ...input, returnTo }, { session });
          expectRefusal(reply, 400, 'VALIDATION_FAILED');
          expect(reply.details).toEqual({ returnTo: { message: expect.any(String), rule: 'not_allowed' } });
        }
        expect(await count()).toBe(before);
        expect(await stack.database('select id from users where email = ?', [ada.email])).toEqual([]);
      },
    );
  },
  { env: { ...environmentFor(provider), ALLOWED_ORIGINS: FRONT_END, EMAIL_CODES: 'on' } },
);
