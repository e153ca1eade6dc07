import { expect, test } from 'vitest';
import {
  eventsOf,
  everywhere,
  expectRefusal,
  growOld,
  inBrowser,
  isAlive,
  kindsOf,
  loggedIn,
  logIn,
  mailedToken,
  PASSWORD,
  sessionIn,
} from '../rig/scenario.ts';
import { codeOf, firstStep, pendingIn, setUpApp, withApp, wrongCode } from '../rig/totp-scenario.ts';

/** Account changes do not bypass the second factor, and what ends the sessions also ends a pending login. */

everywhere(
  (scenario) => {
    test('a pending login ends when all sessions end, the password changes or the account is deleted', async () => {
      const { call, stack } = scenario();
      const ends: ((person: { id: string; email: string; session: string }) => Promise<unknown>)[] = [
        ({ session }) => call('auth.logoutAll', undefined, { session }),
        ({ session }) => call('account.delete', undefined, { session }),
        ({ session }) =>
          call('account.changePassword', { currentPassword: PASSWORD, newPassword: `${PASSWORD}!` }, { session }),
        async ({ email }) => {
          await call('auth.forgotPassword', { email });
          const token = await mailedToken(stack, email, 'reset-password');
          return call('auth.resetPassword', { token, email, password: `${PASSWORD}!` });
        },
        ({ id }) => stack.database('delete from users where id = ?', [id]),
      ];
      for (const end of ends) {
        const { secret, ...person } = await withApp(scenario());
        const pending = await firstStep(call, person);
        await end(person);
        const reply = await call('auth.secondFactor', { code: codeOf(secret) }, { pending });
        expectRefusal(reply, 401, 'UNAUTHENTICATED');
        expect(pendingIn(reply)).toBe('');
      }
    });

    test('a password reset does not bypass the second factor', async () => {
      const { call, stack } = scenario();
      const { secret, email, ...person } = await withApp(scenario());
      await call('auth.forgotPassword', { email });
      const token = await mailedToken(stack, email, 'reset-password');
      const password = `${PASSWORD}!`;
      const reply = await call('auth.resetPassword', { token, email, password });
      expect([reply.status, sessionIn(reply)]).toEqual([200, undefined]);
      const pending = await firstStep(call, { ...person, email, password });
      expect((await call('auth.secondFactor', { code: codeOf(secret) }, { pending })).status).toBe(200);
    });

    test('a password change does not bypass the second factor: it requires a recent session as well', async () => {
      const { call, stack } = scenario();
      const { session, secret, ...person } = await withApp(scenario());
      await growOld(stack, person.id);
      const change = { currentPassword: PASSWORD, newPassword: `${PASSWORD}!` };
      // The answer does not reveal whether the password is right.
      for (const input of [change, { ...change, currentPassword: 'Wrong-1' }]) {
        const reply = await call('account.changePassword', input, { session });
        expectRefusal(reply, 403, 'REAUTHENTICATION_REQUIRED');
      }
      await firstStep(call, person);
      expect((await call('auth.reauthenticate', { code: codeOf(secret) }, { session })).status).toBe(200);
      const wrong = await call('account.changePassword', { ...change, currentPassword: 'Wrong-1' }, { session });
      expectRefusal(wrong, 401, 'INVALID_CREDENTIALS');
      expect((await call('account.changePassword', change, { session })).status).toBe(200);
      await firstStep(call, { ...person, password: `${PASSWORD}!` });
    });

    test('an email change and its undo do not bypass the second factor', async () => {
      const { call, stack } = scenario();
      const { session, secret, ...person } = await withApp(scenario());
      // Older than what an undo removes.
      await stack.database('update totps set created_at = created_at - 691200000 where user_id = ?', [person.id]);
      const email = `new-${person.email}`;
      expect((await call('account.changeEmail', { email }, inBrowser(session))).status).toBe(200);
      const token = await mailedToken(stack, email, 'confirm-email');
      expect((await call('account.confirmEmail', { token }, inBrowser(session))).status).toBe(200);
      const pending = await firstStep(call, { ...person, email });
      expect((await call('auth.secondFactor', { code: codeOf(secret) }, { pending })).status).toBe(200);

      const undo = await mailedToken(stack, person.email, 'undo-email-change');
      expect((await call('account.undoEmailChange', { token: undo })).status).toBe(200);
      await call('auth.forgotPassword', { email: person.email });
      const reset = await mailedToken(stack, person.email, 'reset-password');
      await call('auth.resetPassword', { token: reset, email: person.email, password: PASSWORD });
      await firstStep(call, person);
    });

    test('a deleted account is restored only after the second step', async () => {
      const { call, stack } = scenario();
      const { session, secret, ...person } = await withApp(scenario());
      expect((await call('account.delete', undefined, { session })).status).toBe(200);
      const { email } = person;
      expectRefusal(await call('auth.login', { email, password: PASSWORD }), 403, 'ACCOUNT_DELETED');
      const pending = await firstStep(call, person, 'account.restore');
      expect(await stack.database('select user_id from removals where user_id = ?', [person.id])).toHaveLength(1);
      expectRefusal(await call('auth.secondFactor', { code: wrongCode(secret) }, { pending }), 401, 'INVALID_CODE');
      expect((await call('users.get', { id: person.id })).status).toBe(404);
      const reply = await call('auth.secondFactor', { code: codeOf(secret) }, { pending });
      expect(await isAlive(call, sessionIn(reply) ?? '')).toBe(true);
      expect((await call('users.get', { id: person.id })).status).toBe(200);
      expect((await kindsOf(stack, person.id)).slice(-2)).toEqual(['deletion-undone', 'logged-in']);
    });

    test('“This was not me” removes an app that was set up since', async () => {
      const { call, stack } = scenario();
      const { id, ...owner } = await loggedIn(scenario());
      const session = await logIn(call, owner);
      const token = await mailedToken(stack, owner.email, 'not-me');
      await setUpApp(scenario(), { id, session });
      expect((await call('account.notMe', { token })).status).toBe(200);
      expect(await stack.database('select user_id from totps where user_id = ?', [id])).toEqual([]);
      expect(await stack.database('select id from recovery_codes where user_id = ?', [id])).toEqual([]);
      expect(await eventsOf(stack, id, 'not-me')).toEqual([{ methods: 'password,totp,recovery' }]);
    });

    test('“This was not me” removes recovery codes created since, and keeps an older app', async () => {
      const { call, stack } = scenario();
      const { id, secret, session: own, ...owner } = await withApp(scenario());
      const ago = 'set created_at = created_at - 3600000 where user_id = ?';
      for (const table of ['totps', 'recovery_codes']) await stack.database(`update ${table} ${ago}`, [id]);
      const pending = await firstStep(call, owner);
      const thief = sessionIn(await call('auth.secondFactor', { code: codeOf(secret) }, { pending }));
      const token = await mailedToken(stack, owner.email, 'not-me');
      expect((await call('recoveryCodes.renew', undefined, { session: thief })).status).toBe(200);
      expect((await call('account.notMe', { token })).status).toBe(200);
      expect(await stack.database('select id from recovery_codes where user_id = ?', [id])).toEqual([]);
      expect(await stack.database('select user_id from totps where user_id = ?', [id])).toHaveLength(1);
      expect(await eventsOf(stack, id, 'not-me')).toEqual([{ methods: 'password,recovery' }]);
      expect(await isAlive(call, own)).toBe(false);
    });
  },
  { env: { LIMIT_CODE: '1000/3600' } },
);
