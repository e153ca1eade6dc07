import { afterAll, expect, test } from 'vitest';
import { environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import { identityClaims, loginsThrough, usersWith } from '../../provider/login.ts';
import { remainsOf } from '../../rig/observe/remains.ts';
import { until } from '../../rig/until.ts';
import {
  addPasskey,
  authenticatorFor,
  beginLogin,
  beginRegistration,
  forgetPassword,
  logInByPasskey,
  passkeyRows,
  passkeysOf,
  tryPasskey,
  withPasskey,
} from '../rig/passkey-scenario.ts';
import {
  eventsOf,
  everywhere,
  expectRefusal,
  growOld,
  isAlive,
  loggedIn,
  mailedToken,
  mailsSettled,
} from '../rig/scenario.ts';

/** A user's passkeys: added, listed, renamed and removed. */
const provider = await startHostileProvider();
const logInThrough = loginsThrough(provider);
afterAll(() => provider.close());

const env = { ...environmentFor(provider), LIMIT_PASSKEY_START: '10000/900' };
const now = () => Math.floor(Date.now() / 1000);

everywhere(
  (scenario) => {
    test('a new passkey is named after its authenticator and reported by mail and event', async () => {
      const { call, stack } = scenario();
      const { id, email, session } = await loggedIn(scenario());
      expect(await passkeysOf(call, session)).toEqual([]);
      const authenticator = authenticatorFor(stack);
      const { options, browser } = await beginRegistration(call, session);
      const response = authenticator.register(options, { aaguid: 'd548826e-79b4-db40-a3d8-11116f7e8349' });
      const reply = await call('passkeys.finishRegistration', response, { session, browser });
      const listed = {
        id: expect.any(String),
        credentialId: authenticator.credentialId.toString('base64url'),
        name: 'Bitwarden',
        createdAt: expect.any(Number),
        lastUsedAt: null,
      };
      expect(reply.data).toEqual({
        success: true,
        message: 'You can now log in with this passkey.',
        passkey: listed,
      });
      expect(await passkeysOf(call, session)).toEqual([listed]);
      expect(await passkeyRows(stack, id)).toMatchObject([
        {
          credential_id: authenticator.credentialId.toString('base64url'),
          aaguid: 'd548826e-79b4-db40-a3d8-11116f7e8349',
          transports: 'internal,hybrid',
          proven: 1,
        },
      ]);
      expect(await eventsOf(stack, id, 'passkey-added')).toEqual([{ name: 'Bitwarden', id: expect.any(String) }]);
      const mail = await stack.waitForMail({ to: email, subject: 'A new passkey' });
      expect(mail.text).toContain('with a new passkey');
      expect(mail.text).not.toContain('Bitwarden');
      await logInByPasskey(call, authenticator);
      const [used] = await passkeysOf(call, session);
      expect(Math.abs((used?.lastUsedAt ?? 0) - now())).toBeLessThan(60);
    });

    test('a user can rename a passkey', async () => {
      const { call, stack } = scenario();
      const { session } = await loggedIn(scenario());
      const { id } = await addPasskey(call, session, authenticatorFor(stack), '  Work laptop ');
      expect(await passkeysOf(call, session)).toMatchObject([{ id, name: 'Work laptop' }]);
      await addPasskey(call, session, authenticatorFor(stack));
      expect(await passkeysOf(call, session)).toMatchObject([{ id }, { name: 'Passkey' }]);
      const longest = '💻'.repeat(64);
      expect((await call('passkeys.rename', { id, name: longest }, { session })).status).toBe(200);
      for (const name of ['', '  ', '💻'.repeat(65), 'a\u0000b', 'a\nb', '\u200b', '\ud800', 7, null, undefined]) {
        expectRefusal(await call('passkeys.rename', { id, name }, { session }), 400, 'VALIDATION_FAILED');
      }
      expect(await passkeysOf(call, session)).toMatchObject([{ id, name: longest }, { name: 'Passkey' }]);
    });

    test('changes require the owner, an own page, and a session with a recent credential', async () => {
      const { call, stack } = scenario();
      const { id, session, passkey } = await withPasskey(scenario());
      const other = await withPasskey(scenario());
      const { options, browser } = await beginRegistration(call, session);
      const response = authenticatorFor(stack).register(options);
      const calls: [string, unknown][] = [
        ['passkeys.beginRegistration', undefined],
        ['passkeys.finishRegistration', response],
        ['passkeys.remove', { id: passkey.id }],
        ['passkeys.rename', { id: passkey.id, name: 'Mine' }],
      ];
      const headers = { origin: 'https://evil.test' };
      for (const [procedure, input] of calls) {
        expectRefusal(await call(procedure, input, { browser }), 401, 'UNAUTHENTICATED');
        expectRefusal(await call(procedure, input, { session, browser, headers }), 403, 'ORIGIN_MISMATCH');
      }
      expectRefusal(await call('passkeys.list'), 401, 'UNAUTHENTICATED');
      for (const otherId of [other.passkey.id, 'unknown', '\u0080', "x' or '1'='1", id]) {
        for (const [procedure, input] of [
          ['passkeys.remove', {}],
          ['passkeys.rename', { name: 'Mine' }],
        ] as const) {
          const reply = await call(procedure, { ...input, id: otherId }, { session });
          expectRefusal(reply, 404, 'NOT_FOUND', 'Passkey not found');
        }
      }
      await growOld(stack, id);
      for (const [procedure, input] of calls.slice(0, 3)) {
        expectRefusal(await call(procedure, input, { session, browser }), 403, 'REAUTHENTICATION_REQUIRED');
      }
      expect(await passkeyRows(stack, id)).toHaveLength(1);
      expect(await passkeysOf(call, other.session)).toMatchObject([{ id: other.passkey.id, name: 'Passkey' }]);
      const login = await beginLogin(call);
      const asserted = other.authenticator.assert(login.options);
      for (const [procedure, input] of [['auth.beginPasskey'], ['auth.finishPasskey', asserted]] as const) {
        const reply = await call(procedure, input, { browser: login.browser, headers });
        expectRefusal(reply, 403, 'ORIGIN_MISMATCH');
        expect(reply.setCookies).toEqual([]);
      }
    });

    test('removing a passkey ends its other sessions, and is reported by mail and event', async () => {
      const { call, stack } = scenario();
      const { id, email, session: byPassword, authenticator, passkey } = await withPasskey(scenario());
      const [here, elsewhere] = [await logInByPasskey(call, authenticator), await logInByPasskey(call, authenticator)];
      const reply = await call('passkeys.remove', { id: passkey.id }, { session: here });
      expect([reply.status, reply.data]).toEqual([200, { success: true, message: 'The passkey was removed.' }]);
      expect(await Promise.all([here, elsewhere, byPassword].map((one) => isAlive(call, one)))).toEqual([
        true,
        false,
        true,
      ]);
      expect(await passkeyRows(stack, id)).toEqual([]);
      expect(await eventsOf(stack, id, 'passkey-removed')).toEqual([{ name: 'Passkey', id: passkey.id }]);
      await stack.waitForMail({ to: email, subject: 'was removed' });
      expectRefusal(await tryPasskey(call, authenticator), 401, 'INVALID_CREDENTIALS');
      expectRefusal(await call('passkeys.remove', { id: passkey.id }, { session: here }), 404, 'NOT_FOUND');
    });

    test('the last login method cannot be removed', async () => {
      const { call, stack } = scenario();
      const { id, session, authenticator, passkey } = await withPasskey(scenario());
      await forgetPassword(stack, id);
      const refused = await call('passkeys.remove', { id: passkey.id }, { session });
      expectRefusal(refused, 409, 'LAST_LOGIN_METHOD');
      expect(await eventsOf(stack, id, 'passkey-removed')).toEqual([]);
      await logInByPasskey(call, authenticator);
      await addPasskey(call, session, authenticatorFor(stack));
      expect((await call('passkeys.remove', { id: passkey.id }, { session })).status).toBe(200);
      const [last] = await passkeysOf(call, session);
      expectRefusal(await call('passkeys.remove', { id: last?.id }, { session }), 409, 'LAST_LOGIN_METHOD');
    });

    test('with an identity and a passkey, either can be removed; if both are removed concurrently, one is refused', async () => {
      const { call, stack } = scenario();
      for (let round = 0; round < 5; round++) {
        const identity = identityClaims();
        const session = (await logInThrough(stack, identity)).session ?? '';
        const passkey = await addPasskey(call, session, authenticatorFor(stack));
        const [linked] = (await call('identities.list', undefined, { session })).data.data;
        const replies = await Promise.all([
          call('passkeys.remove', { id: passkey.id }, { session }),
          call('identities.unlink', { id: linked.id }, { session }),
        ]);
        expect(replies.map(({ status, code }) => code ?? status).sort()).toEqual([200, 'LAST_LOGIN_METHOD']);
        const [user] = await usersWith(stack, identity.email);
        const left = await stack.database('select id from identities where user_id = ?', [user?.id ?? '']);
        expect(left.length + (await passkeyRows(stack, user?.id ?? '')).length).toBe(1);
      }
    });

    test('the export contains the passkey without its key', async () => {
      const { call, stack } = scenario();
      const { id, session, authenticator } = await withPasskey(scenario());
      const { data } = await call('account.export', undefined, { session });
      expect(data.passkeys).toMatchObject([
        {
          credentialId: authenticator.credentialId.toString('base64url'),
          name: 'Passkey',
          transports: 'internal,hybrid',
          proven: true,
          lastUsedAt: null,
        },
      ]);
      const [row] = await passkeyRows(stack, id);
      expect(JSON.stringify(data)).not.toContain(row?.['public_key']);
    });

    test('removing the account removes its passkeys', async () => {
      const { call, stack } = scenario();
      const { id, email, session, authenticator } = await withPasskey(scenario());
      await logInByPasskey(call, authenticator);
      const credential = authenticator.credentialId.toString('base64url');
      expect(await remainsOf(stack, [credential])).toEqual(['passkeys']);
      expect((await call('account.delete', undefined, { session })).status).toBe(200);
      await mailsSettled(stack, email);
      await stack.database('update removals set due_at = 1 where user_id = ?', [id]);
      await until(async () => (await passkeyRows(stack, id)).length === 0);
      expect(await remainsOf(stack, [credential])).toEqual([]);
    });

    test('a passkey in an account with an unproven method is unproven, and a reset removes it', async () => {
      const { call, stack } = scenario();
      const { id, email, session, passkey } = await withPasskey(scenario());
      await stack.database('update users set password_proven = 0 where id = ?', [id]);
      await addPasskey(call, session, authenticatorFor(stack));
      expect(await passkeyRows(stack, id)).toMatchObject([{ proven: 1 }, { proven: 0 }]);
      await call('auth.forgotPassword', { email });
      const token = await mailedToken(stack, email, 'reset-password');
      const reset = await call('auth.resetPassword', { token, email, password: 'Difference-Engine-1822' });
      expect(reset.status).toBe(200);
      expect(await passkeyRows(stack, id)).toMatchObject([{ id: passkey.id }]);
      expect(await eventsOf(stack, id, 'login-methods-removed')).toEqual([{ methods: 'passkey' }]);
    });
  },
  { env },
);
