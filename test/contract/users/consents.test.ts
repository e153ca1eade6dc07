import { afterAll, describe, expect, test } from 'vitest';
import { environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import { freshSubject, fromAnotherSite, identityClaims, loginsThrough, usersWith } from '../../provider/login.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { until } from '../../rig/until.ts';
import { callerOf } from '../rig/callers.ts';
import {
  everywhere,
  expectRefusal,
  inBrowser,
  logIn,
  mailedToken,
  onBothStacks,
  PASSWORD,
  type Person,
  registered,
  verified,
} from '../rig/scenario.ts';

/** Terms, and the accepted versions of each user with their times. */

const provider = await startHostileProvider();
const logInAs = loginsThrough(provider);
afterAll(() => provider.close());

const VERSION = '2026-11 „Entwurf“';
const NEW_PASSWORD = 'Difference-Engine-1822';
const terms = { TERMS_URL: 'https://example.test/terms', PRIVACY_URL: '/privacy', TERMS_VERSION: VERSION };
const env = { ...terms, ...environmentFor(provider) };

const person = () => ({ name: 'Ada Lovelace', email: freshEmail(), password: PASSWORD });

/** A user's stored versions, oldest first. */
const storedFor = async ({ database }: Stack, userId: string) =>
  (await database<{ version: string }>('select version from consents where user_id = ? order by id', [userId])).map(
    ({ version }) => version,
  );

const accepting = { acceptTerms: true };

const idOf = async (stack: Stack, email: string) => (await usersWith(stack, email))[0]?.id ?? '';

/** As if the user had accepted another version instead of the current one. */
const acceptedBefore = ({ database }: Stack, userId: string, version: string) =>
  database('update consents set version = ?, created_at = 1700000000000 where user_id = ?', [version, userId]);

const secondsNow = () => Math.floor(Date.now() / 1000);

everywhere(
  (scenario) => {
    /** A user with a session who accepted the terms at the registration. */
    const member = async () => {
      const ada = { ...person(), acceptTerms: true };
      const { id } = await verified(scenario(), ada);
      return { ...ada, id, session: await logIn(scenario().call, ada) };
    };

    test.each([
      ['without', {}],
      ['with a refusal of', { acceptTerms: false }],
    ])('a registration %s the terms is refused and leaves nothing', async (_, given) => {
      const { call, stack } = scenario();
      const ada = person();
      const reply = await call('auth.register', { ...ada, ...given });
      expectRefusal(reply, 400, 'VALIDATION_FAILED', 'Validation failed');
      expect(reply.details).toEqual({ acceptTerms: { message: expect.any(String), rule: 'terms_not_accepted' } });
      expect(await usersWith(stack, ada.email)).toEqual([]);
      expect(await stack.database('select id from outbox where email = ?', [ada.email])).toEqual([]);
      expect((await call('auth.register', { ...ada, acceptTerms: true })).data).toMatchObject({ success: true });
    });

    test('a registration with outdated terms is refused and leaves nothing', async () => {
      const { call, stack } = scenario();
      const ada = { ...person(), ...accepting };
      const reply = await call('auth.register', { ...ada, termsVersion: 'former' });
      expectRefusal(reply, 400, 'VALIDATION_FAILED', 'Validation failed');
      expect(reply.details?.['acceptTerms']).toMatchObject({ message: expect.any(String), rule: 'terms_changed' });
      expect(await usersWith(stack, ada.email)).toEqual([]);
      const refused = await call('auth.register', { ...ada, acceptTerms: false, termsVersion: VERSION });
      expect(refused.details).toHaveProperty('acceptTerms.rule', 'terms_not_accepted');
      const { data } = await call('auth.register', { ...ada, termsVersion: VERSION });
      expect(await storedFor(stack, data.user.id)).toEqual([VERSION]);
    });

    test('an invitation is refused without consent, and can still be used', async () => {
      const { call, stack } = scenario();
      const admin = await member();
      await stack.database("update users set role = 'admin' where id = ?", [admin.id]);
      const ada = { ...person(), ...accepting };
      expect(await call('users.invite', { email: ada.email }, { session: admin.session })).toMatchObject({
        code: undefined,
      });
      const invited = { ...ada, invitation: await mailedToken(stack, ada.email, 'register') };
      const reply = await call('auth.register', { ...invited, termsVersion: 'former' });
      expect(reply.details).toHaveProperty('acceptTerms.rule', 'terms_changed');
      const { data } = await call('auth.register', { ...invited, termsVersion: VERSION });
      expect(await storedFor(stack, data.user.id)).toEqual([VERSION]);
    });

    test.each(['yes', 1, null])('%j is not a consent', async (acceptTerms) => {
      const reply = await scenario().call('auth.register', { ...person(), acceptTerms });
      expectRefusal(reply, 400, 'VALIDATION_FAILED');
      expect(reply.details).toHaveProperty('acceptTerms.rule', 'invalid_type');
    });

    test('a taken email stores no consent', async () => {
      const { call, stack } = scenario();
      const ada = await member();
      const before = await stack.database('select id from consents');
      expectRefusal(await call('auth.register', { ...ada }), 409, 'EMAIL_TAKEN');
      expect(await stack.database('select id from consents')).toEqual(before);
    });

    test('version and time are stored, listed and exported', async () => {
      const { call, stack } = scenario();
      const { id, session } = await member();
      expect(await storedFor(stack, id)).toEqual([VERSION]);
      const { data } = await call('consents.list', undefined, { session });
      expect(data).toEqual({ data: [{ version: VERSION, acceptedAt: expect.any(Number) }], current: VERSION });
      expect(Math.abs(data.data[0].acceptedAt - secondsNow())).toBeLessThan(60);
      const { data: exported } = await call('account.export', undefined, { session });
      expect(exported.consents).toEqual([
        { id: expect.any(String), version: VERSION, createdAt: data.data[0].acceptedAt },
      ]);
    });

    test('a newer version can be accepted once, and earlier consents stay', async () => {
      const { call, stack } = scenario();
      const { id, session } = await member();
      await acceptedBefore(stack, id, 'former');
      expect((await call('consents.list', undefined, { session })).data).toEqual({
        data: [{ version: 'former', acceptedAt: 1_700_000_000 }],
        current: VERSION,
      });
      const accept = () => call('consents.accept', { version: VERSION }, { session });
      const replies = await Promise.all([accept(), accept(), accept()]);
      for (const reply of [...replies, await accept()]) expect(reply).toMatchObject({ status: 200, code: undefined });
      expect(await storedFor(stack, id)).toEqual(['former', VERSION]);
      const { data } = await call('consents.list', undefined, { session });
      expect(data.data.map(({ version }: { version: string }) => version)).toEqual([VERSION, 'former']);
    });

    test('only the current version can be accepted, with a session', async () => {
      const { call, stack } = scenario();
      const { id, session } = await member();
      const reply = await call('consents.accept', { version: 'former' }, { session });
      expectRefusal(reply, 400, 'VALIDATION_FAILED');
      expect(reply.details).toHaveProperty('version.rule', 'terms_changed');
      expect(await storedFor(stack, id)).toEqual([VERSION]);
      expectRefusal(await call('consents.accept', { version: VERSION }), 401, 'UNAUTHENTICATED');
      expectRefusal(await call('consents.list'), 401, 'UNAUTHENTICATED');
    });

    test('removing the account removes its consents', async () => {
      const { call, stack } = scenario();
      const { id, session } = await member();
      expect((await call('account.delete', undefined, { session })).status).toBe(200);
      expect(await storedFor(stack, id)).toEqual([VERSION]);
      await stack.database('update removals set due_at = 1 where user_id = ?', [id]);
      await until(async () => (await storedFor(stack, id)).length === 0, { what: 'the removal' });
    });

    /** Sets a new password by a mailed link, and logs in with it. */
    const reset = async ({ email, name }: Person) => {
      const { call, stack } = scenario();
      await call('auth.forgotPassword', { email });
      const token = await mailedToken(stack, email, 'reset-password');
      expect((await call('auth.resetPassword', { token, email, password: NEW_PASSWORD })).status).toBe(200);
      return logIn(call, { email, name, password: NEW_PASSWORD });
    };

    /** The dashboard's question: accepted versions and the current one. */
    const expectAccepted = async (session: string, versions: string[]) => {
      const { data } = await scenario().call('consents.list', undefined, { session });
      expect(data.data.map(({ version }: { version: string }) => version)).toEqual(versions);
      expect(data.current).toBe(VERSION);
    };

    /** A registrant with a session, after the owner of the inbox confirmed the account elsewhere. */
    const stranger = async () => {
      const { call, stack } = scenario();
      const account = await registered(scenario(), { ...person(), ...accepting });
      const token = await mailedToken(stack, account.email, 'verify-email');
      expect((await call('auth.verifyEmail', { token })).status).toBe(200);
      return { ...account, session: await logIn(call, account) };
    };

    test('a reset of an unverified account has no consent', async () => {
      await expectAccepted(await reset(await registered(scenario(), { ...person(), ...accepting })), []);
    });

    test('a reset after a confirmation in another browser removes the registrant’s consents', async () => {
      const { call, stack } = scenario();
      const { session, ...account } = await stranger();
      await acceptedBefore(stack, account.id, 'former');
      expect((await call('consents.accept', { version: VERSION }, { session })).status).toBe(200);
      await expectAccepted(await reset(account), []);
      expectRefusal(await call('consents.accept', { version: VERSION }, { session }), 401, 'UNAUTHENTICATED');
    });

    test('a reset after a confirmation in the browser of the registration keeps the consent', async () => {
      await expectAccepted(await reset(await member()), [VERSION]);
    });

    test('“This was not me” removes a consent given since the login, and keeps an older one', async () => {
      const { call, stack } = scenario();
      const ada = await member();
      await acceptedBefore(stack, ada.id, 'former');
      const thief = await logIn(call, ada);
      expect((await call('consents.accept', { version: VERSION }, { session: thief })).status).toBe(200);
      const token = await mailedToken(stack, ada.email, 'not-me');
      const disown = async () => {
        expect((await call('account.notMe', { token })).status).toBe(200);
        expect(await storedFor(stack, ada.id)).toEqual(['former']);
      };
      await disown();
      // As if its mail had been sent later: no login is left to disown.
      await stack.database('update one_time_tokens set used = 0 where user_id = ?', [ada.id]);
      await disown();
    });

    test('“This was not me” removes all consents of an unproven account', async () => {
      const { call, stack } = scenario();
      const account = await stranger();
      await acceptedBefore(stack, account.id, 'former');
      await logIn(call, account);
      expect((await call('account.notMe', { token: await mailedToken(stack, account.email, 'not-me') })).status).toBe(
        200,
      );
      expect(await storedFor(stack, account.id)).toEqual([]);
    });

    test.each([
      ['proven', member, ['former']],
      ['not proven', stranger, []],
    ])('undoing an email change removes consents: all of an account that is %s', async (_, make, left) => {
      const { call, stack } = scenario();
      const { session, ...ada } = await make();
      await acceptedBefore(stack, ada.id, 'former');
      const to = freshEmail();
      await call('account.changeEmail', { email: to }, inBrowser(session));
      const token = await mailedToken(stack, to, 'confirm-email');
      expect((await call('account.confirmEmail', { token }, inBrowser(session))).status).toBe(200);
      expect((await call('consents.accept', { version: VERSION }, { session })).status).toBe(200);
      const undo = await mailedToken(stack, ada.email, 'undo-email-change');
      expect((await call('account.undoEmailChange', { token: undo })).status).toBe(200);
      expect(await storedFor(stack, ada.id)).toEqual(left);
    });
  },
  { env },
);

onBothStacks(
  (stack) => {
    test('a first login through a provider is a consent, a later one is not', async () => {
      const claims = identityClaims();
      const first = await logInAs(stack(), claims);
      expect(first.location).toBe('/dashboard');
      const id = await idOf(stack(), claims.email);
      expect(await storedFor(stack(), id)).toEqual([VERSION]);
      await acceptedBefore(stack(), id, 'former');
      expect((await logInAs(stack(), claims)).location).toBe('/dashboard');
      expect(await storedFor(stack(), id)).toEqual(['former']);
    });

    test.each([
      ['a page of another site', fromAnotherSite],
      ['a link in a mail', { 'sec-fetch-site': 'none' }],
    ])('a first login that %s started is no consent: the dashboard asks', async (_, headers) => {
      const call = callerOf('rest', stack().url);
      const claims = identityClaims();
      const { location, session } = await logInAs(stack(), claims, { headers });
      expect(location).toBe('/dashboard');
      const consents = () => call('consents.list', undefined, { session });
      expect((await consents()).data).toEqual({ data: [], current: VERSION });
      await logInAs(stack(), claims);
      expect((await consents()).data.data).toEqual([]);

      const squatted = await registered({ stack: stack(), call }, { ...person(), ...accepting });
      const owner = await logInAs(stack(), identityClaims({ email: squatted.email }), { headers });
      expect(owner.location).toBe('/dashboard');
      expect(await storedFor(stack(), squatted.id)).toEqual([]);
    });

    test('a login that links the provider to an account is no consent', async () => {
      const ada = { ...person(), acceptTerms: true };
      const { id, email } = await verified({ stack: stack(), call: callerOf('rest', stack().url) }, ada);
      await acceptedBefore(stack(), id, 'former');
      expect((await logInAs(stack(), identityClaims({ email }))).location).toBe('/dashboard');
      expect(await storedFor(stack(), id)).toEqual(['former']);
    });

    test.each([
      ['never verified', false],
      ['verified elsewhere', true],
    ])(
      'the owner of the inbox who logs in through a provider accepts the terms anew, for an account %s',
      async (_, isVerified) => {
        const call = callerOf('rest', stack().url);
        const { id, email } = await registered({ stack: stack(), call }, { ...person(), ...accepting });
        if (isVerified) {
          const token = await mailedToken(stack(), email, 'verify-email');
          expect((await call('auth.verifyEmail', { token })).status).toBe(200);
        }
        await acceptedBefore(stack(), id, 'former');
        expect((await logInAs(stack(), identityClaims({ email }))).location).toBe('/dashboard');
        expect(await storedFor(stack(), id)).toEqual([VERSION]);
      },
    );

    test('“This was not me” removes the registrant’s consents, even if the owner has a login method', async () => {
      const call = callerOf('rest', stack().url);
      const { id, email } = await registered({ stack: stack(), call }, { ...person(), ...accepting });
      const token = await mailedToken(stack(), email, 'verify-email');
      expect((await call('auth.verifyEmail', { token })).status).toBe(200);
      await stack().database(
        `insert into identities (id, user_id, issuer, subject, provider, proven, created_at)
         select ?, id, ?, ?, 'acme', 1, created_at from users where id = ?`,
        [freshSubject(), provider.url, freshSubject(), id],
      );
      expect((await call('account.notMe', { token })).status).toBe(200);
      expect(await storedFor(stack(), id)).toEqual([]);
    });
  },
  { env },
);

describe('without terms', () => {
  everywhere((scenario) => {
    test.each([{}, { acceptTerms: true }, { acceptTerms: false }, { acceptTerms: true, termsVersion: VERSION }])(
      'with %j an account is created, and no consent stored',
      async (given) => {
        const { call, stack } = scenario();
        const ada = { ...person(), ...given };
        const { id } = await verified(scenario(), ada);
        const session = await logIn(call, ada);
        expect(await storedFor(stack, id)).toEqual([]);
        expect((await call('consents.list', undefined, { session })).data).toEqual({ data: [] });
        const reply = await call('consents.accept', { version: VERSION }, { session });
        expectRefusal(reply, 400, 'VALIDATION_FAILED');
      },
    );
  });
});
