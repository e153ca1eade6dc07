import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { freshEmail } from '../../rig/servers/address.ts';
import { until } from '../../rig/until.ts';
import { refusalsOf, tryPasskey, withPasskey } from '../rig/passkey-scenario.ts';
import {
  administrator,
  eventsOf,
  everywhere,
  expectRefusal,
  inBrowser,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  PASSWORD,
  registered,
  sessionIn,
} from '../rig/scenario.ts';
import { codeOf, firstStep, pendingIn, withApp } from '../rig/totp-scenario.ts';

/** A blocked user has no session and opens none with any credential; only a right one reveals the block. */

const WRONG = `${PASSWORD}!`;
const SERVICE_TOKEN = 'billing-token';
const blocked = [403, 'ACCOUNT_BLOCKED', 'This account is blocked'] as const;

everywhere(
  (scenario) => {
    const act = async (name: 'block' | 'unblock', id: string) => {
      const { session } = await administrator(scenario());
      const reply = await scenario().call(`users.${name}`, { id }, { session });
      expect(reply).toMatchObject({ status: 200, code: undefined });
    };
    const block = (id: string) => act('block', id);
    const reasonsOf = async (id: string, count: number): Promise<string[]> => {
      await refusalsOf(scenario().stack, id, count);
      return (await eventsOf(scenario().stack, id, 'login-refused')).map(({ reason }) => reason);
    };

    test('a block ends every session; only the right password reveals the block', async () => {
      const { call } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const other = await logIn(call, person);
      await block(person.id);
      for (const token of [session, other]) expect(await isAlive(call, token)).toBe(false);
      const { email, id } = person;
      for (const procedure of ['auth.login', 'account.restore']) {
        expectRefusal(await call(procedure, { email, password: WRONG }), 401, 'INVALID_CREDENTIALS');
        expectRefusal(await call(procedure, { email, password: PASSWORD }), ...blocked);
      }
      const reasons = await reasonsOf(id, 4);
      expect(reasons.sort()).toEqual(['blocked', 'blocked', 'wrong-password', 'wrong-password']);

      await act('unblock', id);
      expect(await isAlive(call, session)).toBe(false);
      expect(await isAlive(call, await logIn(call, person))).toBe(true);
    });

    test('the user gets a mail about the block and about its end', async () => {
      const { stack } = scenario();
      const { id, email } = await loggedIn(scenario());
      await block(id);
      await stack.waitForMail({ to: email, subject: 'is blocked' });
      await act('unblock', id);
      await stack.waitForMail({ to: email, subject: 'is no longer blocked' });
    });

    test('“This was not me” in a verification mail does not remove a blocked account or free its email', async () => {
      const { call, stack } = scenario();
      const { id, email } = await registered(scenario());
      const token = await mailedToken(stack, email, 'verify-email');
      await block(id);
      expect((await call('account.notMe', { token })).status).toBe(200);
      const [row] = await stack.database('select blocked_at, password_hash from users where id = ?', [id]);
      expect(row).toMatchObject({ blocked_at: expect.any(Number), password_hash: null });
      const again = await call('auth.register', { name: 'Ada', email, password: PASSWORD });
      expectRefusal(again, 409, 'EMAIL_TAKEN');
    });

    test('undoing an email change does not restore a blocked account', async () => {
      const { call, stack } = scenario();
      const { id, email, session } = await loggedIn(scenario());
      const next = freshEmail();
      await call('account.changeEmail', { email: next }, inBrowser(session));
      const confirmation = await mailedToken(stack, next, 'confirm-email');
      await call('account.confirmEmail', { token: confirmation }, inBrowser(session));
      const token = await mailedToken(stack, email, 'undo-email-change');
      await block(id);
      const { session: admin } = await administrator(scenario());
      await call('users.delete', { id }, { session: admin });
      expect((await call('account.undoEmailChange', { token })).status).toBe(200);
      const [row] = await stack.database('select email, deleted_at from users where id = ?', [id]);
      expect(row).toEqual({ email, deleted_at: expect.any(Number) });
    });

    test('a blocked user cannot use a valid passkey', async () => {
      const { call } = scenario();
      const { authenticator, id } = await withPasskey(scenario());
      await block(id);
      expectRefusal(await tryPasskey(call, authenticator), ...blocked);
      expectRefusal(await tryPasskey(call, authenticator, { origin: 'https://evil.test' }), 401, 'INVALID_CREDENTIALS');
      expect(await reasonsOf(id, 1)).toEqual(['blocked']);
    });

    test('a block ends a pending login, and no new one starts', async () => {
      const { call } = scenario();
      const { secret, ...person } = await withApp(scenario());
      const [pending, another] = [await firstStep(call, person), await firstStep(call, person)];
      await block(person.id);
      const reply = await call('auth.secondFactor', { code: codeOf(secret) }, { pending });
      expectRefusal(reply, ...blocked);
      expect(pendingIn(reply)).toBe('');
      expectRefusal(await call('auth.beginPasskey', { purpose: 'second-factor' }, { pending: another }), ...blocked);
      expectRefusal(await call('auth.login', { email: person.email, password: PASSWORD }), ...blocked);
      expect(await reasonsOf(person.id, 3)).toEqual(['blocked', 'blocked', 'blocked']);
      // It started before the block, so it has ended.
      await act('unblock', person.id);
      const later = await call('auth.secondFactor', { code: codeOf(secret) }, { pending });
      expectRefusal(later, 401, 'UNAUTHENTICATED');
    });

    test('a pending login that is void for another reason does not reveal the block', async () => {
      const { call } = scenario();
      const { secret, session, ...person } = await withApp(scenario());
      const pending = await firstStep(call, person);
      await call('auth.logoutAll', undefined, { session });
      await block(person.id);
      const reply = await call('auth.secondFactor', { code: codeOf(secret) }, { pending });
      expectRefusal(reply, 401, 'UNAUTHENTICATED');
    });

    test('a password reset sets the password, but opens no session', async () => {
      const { call, stack } = scenario();
      const { email, id } = await loggedIn(scenario());
      await block(id);
      await call('auth.forgotPassword', { email });
      const token = await mailedToken(stack, email, 'reset-password');
      expect((await call('auth.resetPassword', { token, email, password: WRONG })).status).toBe(200);
      expectRefusal(await call('auth.login', { email, password: WRONG }), ...blocked);
      expectRefusal(await call('auth.login', { email, password: PASSWORD }), 401, 'INVALID_CREDENTIALS');
    });

    test('an unverified email or a pending deletion does not change the answer', async () => {
      const { call, stack } = scenario();
      const unverified = await registered(scenario());
      await block(unverified.id);
      const leaver = await loggedIn(scenario());
      await call('account.delete', undefined, { session: leaver.session });
      await block(leaver.id);
      for (const { email } of [unverified, leaver]) {
        for (const procedure of ['auth.login', 'account.restore']) {
          expectRefusal(await call(procedure, { email, password: PASSWORD }), ...blocked);
        }
      }
      expect(await stack.database('select user_id from removals where user_id = ?', [leaver.id])).toHaveLength(1);
      // An unverified address may be a stranger's.
      expect(
        await stack.database("select id from outbox where email = ? and kind = 'account-blocked'", [unverified.email]),
      ).toEqual([]);
    });

    test('the public profile stays, and other services learn of no session', async () => {
      const { call, stack } = scenario();
      const { id, email, session } = await loggedIn(scenario());
      await block(id);
      expect((await call('users.get', { id })).status).toBe(200);
      expect((await call('users.list', { q: email })).data.data).toMatchObject([{ id }]);
      const response = await fetch(`${stack.url}/trpc/service.session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${SERVICE_TOKEN}` },
        body: JSON.stringify({ token: session }),
      });
      expect(await response.json()).toEqual({ result: { data: null } });
    });

    test('a session opened by the previous release is invalid during a block', async () => {
      const { call, stack } = scenario();
      const { id, session } = await loggedIn(scenario());
      await stack.database('update users set blocked_at = 1 where id = ?', [id]);
      expect(await isAlive(call, session)).toBe(false);
    });

    test('no login that races with a block has a session afterwards', async () => {
      const { call, stack } = scenario();
      const admin = await administrator(scenario());
      const { session: _, email, id } = await loggedIn(scenario());
      const logins = Array.from({ length: 12 }, () => call('auth.login', { email, password: PASSWORD }));
      await until(async () => (await stack.database('select id from sessions where user_id = ?', [id])).length > 1);
      const isBlocked = call('users.block', { id }, { session: admin.session });
      const replies = await Promise.all(logins);
      expect((await isBlocked).status).toBe(200);
      const sessions = replies.map(sessionIn).filter((session) => session !== undefined);
      expect(replies.filter(({ status }) => status !== 403)).toHaveLength(sessions.length);
      // Each refusal is recorded, even if the block followed the password check.
      const refused = replies.length - sessions.length;
      expect(await reasonsOf(id, refused)).toEqual(Array.from({ length: refused }, () => 'blocked'));
      // Unblocking does not revive a session: the epoch has ended those that were stored later.
      for (const isOver of [false, true]) {
        if (isOver) await act('unblock', id);
        for (const session of sessions) expect(await isAlive(call, session)).toBe(false);
      }
    });
  },
  {
    env: {
      SERVICE_TOKENS: `billing:${createHash('sha256').update(SERVICE_TOKEN).digest('hex')}`,
      LIMIT_CODE: '1000/3600',
    },
  },
);
