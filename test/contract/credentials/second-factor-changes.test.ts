import { expect, test } from 'vitest';
import {
  eventsOf,
  everywhere,
  expectRefusal,
  isAlive,
  kindsOf,
  loggedIn,
  logIn,
  mailedToken,
  PASSWORD,
  sessionIn,
} from './scenario.ts';
import { codeOf, firstStep, pendingIn, setUpApp, withApp, wrongCode } from './totp-scenario.ts';

/** What changes an account goes round no second factor, and what ends its sessions ends a login that waits. */

everywhere(
  (scenario) => {
    test('a login that waits is void once all sessions are ended, the password changed or the account deleted', async () => {
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

    test('a reset of the password goes round nothing', async () => {
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

    test('a change of the address goes round nothing, and neither does undoing it', async () => {
      const { call, stack } = scenario();
      const { session, secret, ...person } = await withApp(scenario());
      await stack.database('update totps set created_at = created_at - 3600000 where user_id = ?', [person.id]);
      const email = `new-${person.email}`;
      expect((await call('account.changeEmail', { email }, { session })).status).toBe(200);
      const token = await mailedToken(stack, email, 'confirm-email');
      expect((await call('account.confirmEmail', { token }, { session })).status).toBe(200);
      const pending = await firstStep(call, { ...person, email });
      expect((await call('auth.secondFactor', { code: codeOf(secret) }, { pending })).status).toBe(200);

      const undo = await mailedToken(stack, person.email, 'undo-email-change');
      expect((await call('account.undoEmailChange', { token: undo })).status).toBe(200);
      await call('auth.forgotPassword', { email: person.email });
      const reset = await mailedToken(stack, person.email, 'reset-password');
      await call('auth.resetPassword', { token: reset, email: person.email, password: PASSWORD });
      await firstStep(call, person);
    });

    test('a deleted account is restored after the second step only', async () => {
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

    test('"this was not me" removes an app that was set up since', async () => {
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

    test('it removes recovery codes that were made since, too, and leaves an app from before', async () => {
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
