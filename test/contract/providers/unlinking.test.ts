import { describe, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import { identityClaims, profileOf } from '../../provider/login.ts';
import { callerOf } from '../rig/callers.ts';
import { browserWith, listed, startTwoProviders, withPassword } from '../rig/linked-logins.ts';
import {
  eventsOf,
  expectRefusal,
  growOld,
  isAlive,
  onBothStacks,
  overSurfaces,
  PASSWORD,
  sessionIn,
} from '../rig/scenario.ts';

/** Linked logins: listed, and unlinked except the last login method. */
const { env, upToCallback, through, logInThrough, withLinked } = await startTwoProviders();

onBothStacks(
  (stack, name) => {
    overSurfaces(stack, name, (scenario) => {
      describe('unlinking', () => {
        test('removes the login method and its other sessions, with mail and event', async () => {
          const { call } = scenario();
          const { id, email, session, identity } = await withLinked(stack());
          const elsewhere = await logInThrough(stack(), identity);
          const [found] = await listed(stack(), session);
          const reply = await call('identities.unlink', { id: found.id }, { session });
          expect([reply.status, reply.data]).toEqual([200, { success: true, message: 'The login was unlinked.' }]);
          expect(await listed(stack(), session)).toEqual([]);
          expect(await isAlive(call, elsewhere)).toBe(false);
          expect(await isAlive(call, session)).toBe(true);
          expect(await eventsOf(stack(), id, 'identity-unlinked')).toEqual([{ provider: 'acme' }]);
          const mail = await stack().waitForMail({ to: email, subject: 'A way to log in' });
          expect(mail.text).toContain('through Acme');
          expectRefusal(await call('identities.unlink', { id: found.id }, { session }), 404, 'NOT_FOUND');
        });

        test('updates the provider of the account, and keeps the current session', async () => {
          const { call } = scenario();
          const [first, second] = [identityClaims(), identityClaims()];
          const session = await logInThrough(stack(), first);
          await through({ stack: stack(), browser: browserWith(session), name: 'work' }, second);
          const [atAcme, atWork] = await listed(stack(), session);
          expect([atAcme.provider, atWork.provider]).toEqual(['acme', 'work']);
          expect((await call('identities.unlink', { id: atAcme.id }, { session })).status).toBe(200);
          expect(await profileOf(stack(), session)).toMatchObject({ provider: 'work' });
          const reply = await call('identities.unlink', { id: atWork.id }, { session });
          expectRefusal(reply, 409, 'LAST_LOGIN_METHOD', 'This is the only login method of the account');
          expect(await profileOf(stack(), await logInThrough(stack(), second, 'work'))).toMatchObject({
            email: first.email,
          });
        });

        test('an identity at a provider that is no longer configured does not count as a login method', async () => {
          const { call } = scenario();
          const identity = identityClaims();
          const session = await logInThrough(stack(), identity);
          await through({ stack: stack(), browser: browserWith(session), name: 'work' }, identityClaims());
          await stack().database(
            "update identities set provider = 'gone' where provider = 'work' and user_id = (select user_id from (select user_id from identities where subject = ?) x)",
            [identity.sub],
          );
          const [atAcme, gone] = await listed(stack(), session);
          expectRefusal(await call('identities.unlink', { id: atAcme.id }, { session }), 409, 'LAST_LOGIN_METHOD');
          expect((await call('identities.unlink', { id: gone.id }, { session })).status).toBe(200);
        });

        test('requires the owner, and a session with a recent credential', async () => {
          const { call } = scenario();
          const [mine, theirs] = [await withLinked(stack()), await withLinked(stack())];
          const [foreign] = await listed(stack(), theirs.session);
          const { session } = mine;
          for (const id of [foreign.id, 'unknown', mine.id, "x' or '1'='1"]) {
            const reply = await call('identities.unlink', { id }, { session });
            expectRefusal(reply, 404, 'NOT_FOUND', 'Linked login not found');
          }
          expectRefusal(await call('identities.unlink', { id: foreign.id }), 401, 'UNAUTHENTICATED');
          expectRefusal(await call('identities.list'), 401, 'UNAUTHENTICATED');
          const headers = { origin: 'https://evil.test' };
          const [own] = await listed(stack(), session);
          expectRefusal(await call('identities.unlink', { id: own.id }, { session, headers }), 403, 'ORIGIN_MISMATCH');
          await growOld(stack(), mine.id);
          expectRefusal(await call('identities.unlink', { id: own.id }, { session }), 403, 'REAUTHENTICATION_REQUIRED');
          expect(await listed(stack(), theirs.session)).toHaveLength(1);
          expect(await listed(stack(), session)).toHaveLength(1);
        });
      });
    });

    overSurfaces(stack, name, (scenario) => {
      test('the list states whether there is a password', async () => {
        const { call } = scenario();
        const hasPassword = async (session: string) =>
          (await call('identities.list', undefined, { session })).data.hasPassword;
        const { session } = await withPassword(stack());
        expect((await call('identities.list', undefined, { session })).data).toEqual({ data: [], hasPassword: true });
        const user = await withLinked(stack());
        expect(await hasPassword(user.session)).toBe(true);
        // As after “This was not me”: the account still names the password as its login.
        await stack().database('update users set password_hash = null, password_proven = 0 where id = ?', [user.id]);
        expect((await profileOf(stack(), user.session)).provider).toBe('email');
        expect(await hasPassword(user.session)).toBe(false);

        const without = await logInThrough(stack(), identityClaims());
        expect(await hasPassword(without)).toBe(false);
        const changed = await call('account.changePassword', { newPassword: PASSWORD }, { session: without });
        expect(await hasPassword(sessionIn(changed) ?? '')).toBe(true);
      });
    });

    test('if two login methods are unlinked concurrently, one is refused (ten rounds)', async () => {
      const call = callerOf('rest', stack().url);
      for (let round = 0; round < 10; round++) {
        const session = await logInThrough(stack(), identityClaims());
        await through({ stack: stack(), browser: browserWith(session), name: 'work' }, identityClaims());
        const ids: { id: string }[] = await listed(stack(), session);
        const replies = await Promise.all(ids.map(({ id }) => call('identities.unlink', { id }, { session })));
        expect(replies.map(({ status, code }) => code ?? status).sort()).toEqual([200, 'LAST_LOGIN_METHOD']);
        expect(await listed(stack(), session)).toHaveLength(1);
      }
    });

    // checks: 21
    test('a login that races with the unlinking of its identity leaves no session, twenty times', async () => {
      const call = callerOf('rest', stack().url);
      const { id: userId, session, identity, browser } = await withLinked(stack());
      for (let round = 0; round < 20; round++) {
        await through({ stack: stack(), browser }, identity);
        const [linked] = await listed(stack(), session);
        const login = new Browser();
        const callback = await upToCallback(
          { stack: stack(), browser: login, query: '' },
          { ...identity, email: undefined },
        );
        const [unlinked] = await Promise.all([
          call('identities.unlink', { id: linked.id }, { session }),
          login.redirectOf(callback),
        ]);
        expect(unlinked.status).toBe(200);
        const left = await stack().database("select id from sessions where user_id = ? and method = 'acme'", [userId]);
        expect(left).toEqual([]);
      }
    });
  },
  // The test links more often than a user does.
  { env: { ...env, LIMIT_CHANGE: '100/3600' } },
);
