import { expect, test } from 'vitest';
import {
  addPasskey,
  authenticatorFor,
  beginRegistration,
  logInByPasskey,
  passkeyRows,
  tryPasskey,
  withPasskey,
} from '../rig/passkey-scenario.ts';
import { browserIn, eventsOf, everywhere, expectRefusal, loggedIn } from '../rig/scenario.ts';

/** Passkeys that browsers add by themselves after a login by password, and what browsers are told about passkeys. */

const env = { LIMIT_PASSKEY_START: '10000/900' };
const REFUSED = 'This passkey was not accepted, please try again';
const mode = 'upgrade';
/** What a browser sends that did not ask its user. */
const silent = { userPresent: false, userVerified: false };

everywhere(
  (scenario) => {
    const beginUpgrade = async (session: string) => {
      const reply = await scenario().call('passkeys.beginRegistration', { mode }, { session });
      return { reply, options: reply.data, browser: browserIn(reply) ?? '' };
    };

    test('minutes after a login by password a browser may add a passkey without its user, who is told', async () => {
      const { call, stack } = scenario();
      const { id, email, session } = await loggedIn(scenario());
      const known = authenticatorFor(stack);
      await addPasskey(call, session, known);
      const { options, browser } = await beginUpgrade(session);
      expect(options).toMatchObject({
        authenticatorSelection: { residentKey: 'required', userVerification: 'preferred' },
        excludeCredentials: [{ id: known.credentialId.toString('base64url') }],
      });
      const authenticator = authenticatorFor(stack);
      const input = { ...authenticator.register(options, silent), mode };
      const reply = await call('passkeys.finishRegistration', input, { session, browser });
      expect(reply).toMatchObject({ code: undefined, data: { success: true } });
      expect(await eventsOf(stack, id, 'passkey-added')).toHaveLength(2);
      await stack.waitForMail({ to: email, subject: 'A new passkey', count: 2 });

      // Its first use must verify the user.
      expectRefusal(await tryPasskey(call, authenticator, { userVerified: false }), 401, 'INVALID_CREDENTIALS');
      await logInByPasskey(call, authenticator);
    });

    test.each<[when: string, change: string]>([
      ['six minutes ago', 'created_at = created_at - 360000'],
      ['by passkey', "method = 'passkey'"],
      ['at a provider', "method = 'acme'"],
    ])('a session that was opened %s gets no options for an upgrade', async (_, change) => {
      const { call, stack } = scenario();
      const { id, session } = await loggedIn(scenario());
      await stack.database(`update sessions set ${change} where user_id = ?`, [id]);
      expectRefusal((await beginUpgrade(session)).reply, 403, 'REAUTHENTICATION_REQUIRED');
      expect((await call('passkeys.beginRegistration', undefined, { session })).status).toBe(200);
    });

    test('a challenge is for the mode in which it was requested', async () => {
      const { call, stack } = scenario();
      const { id, session } = await loggedIn(scenario());
      const finish = (response: object, browser: string) =>
        call('passkeys.finishRegistration', response, { session, browser });

      const asked = await beginRegistration(call, session);
      const upgraded = { ...authenticatorFor(stack).register(asked.options, silent), mode };
      expectRefusal(await finish(upgraded, asked.browser), 400, 'VALIDATION_FAILED', REFUSED);
      const { options, browser } = await beginUpgrade(session);
      expectRefusal(
        await finish(authenticatorFor(stack).register(options), browser),
        400,
        'VALIDATION_FAILED',
        REFUSED,
      );
      expect(await passkeyRows(stack, id)).toEqual([]);
    });

    test('the list has what browsers take in a signal', async () => {
      const { call, stack } = scenario();
      const { id, session, authenticator } = await withPasskey(scenario());
      expect((await call('passkeys.list', undefined, { session })).data).toMatchObject({
        data: [{ credentialId: authenticator.credentialId.toString('base64url') }],
        rpId: new URL(stack.appUrl).hostname,
        userHandle: Buffer.from(id).toString('base64url'),
      });
    });

    test('only a login by an unknown passkey is told that it is unknown', async () => {
      const { call } = scenario();
      const { session, passkey, authenticator } = await withPasskey(scenario());
      const message = 'This passkey was not accepted';
      const wrong = await tryPasskey(call, authenticator, { userVerified: false });
      expect(wrong).toMatchObject({ status: 401, code: 'INVALID_CREDENTIALS', message });
      expect(wrong.details).toBeUndefined();
      expect((await call('passkeys.remove', { id: passkey.id }, { session })).status).toBe(200);
      const removed = await tryPasskey(call, authenticator);
      const details = { passkey: { message, rule: 'unknown' } };
      expect(removed).toMatchObject({ status: 401, code: 'INVALID_CREDENTIALS', message, details });
    });
  },
  { env },
);
