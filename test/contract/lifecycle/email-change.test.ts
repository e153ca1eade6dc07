import { afterAll, describe, expect, test } from 'vitest';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { loginsThrough, somebody } from '../provider/login.ts';
import { clientAddress, freshEmail } from '../rig/address.ts';
import type { Stack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';
import {
  everywhere,
  expectRefusal,
  growOld,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  mailsSettled,
  PASSWORD,
  registered,
  verified,
  visibleIn,
} from './scenario.ts';

/** Another address: asked for, confirmed by a link to the new one, undone by a link to the old one. */
const provider = await startHostileProvider();
const logInThrough = loginsThrough(provider);
afterAll(() => provider.close());

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
const NEW_PASSWORD = 'Difference-Engine-1822';

const expire = ({ database }: Stack, userId: string, byMs: number) =>
  database('update email_changes set expires_at = expires_at - ? where user_id = ?', [byMs, userId]);

const addressOf = async ({ database }: Stack, userId: string) =>
  (await database<{ email: string }>('select email from users where id = ?', [userId]))[0]?.email;

const subjectsTo = async (stack: Stack, email: string) => {
  await mailsSettled(stack, email);
  return (await stack.mailsTo(email)).map(({ subject }) => subject.replace(/ (?:for|at) \S+:\d+.*/, ''));
};

everywhere(
  (scenario) => {
    /** Changes the address of a session's user, who has had `former`. Answers the new one and the tokens of both mails. */
    const change = async (session: string, former: string) => {
      const { call, stack } = scenario();
      const email = freshEmail();
      expect((await call('account.changeEmail', { email }, { session })).status).toBe(200);
      const token = await mailedToken(stack, email, 'confirm-email');
      expect((await call('account.confirmEmail', { token }, { session })).status).toBe(200);
      return { email, token, undo: await mailedToken(stack, former, 'undo-email-change') };
    };

    /** A user who has another address since just now. */
    const changed = async () => {
      const { email: former, ...person } = await loggedIn(scenario());
      return { ...person, former, ...(await change(person.session, former)) };
    };

    test('nothing changes before the link is used; then the address does, and the old one is told', async () => {
      const { call, stack } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const other = await logIn(call, person);
      await call('auth.forgotPassword', { email: person.email });
      const reset = await mailedToken(stack, person.email, 'reset-password');
      const email = freshEmail();
      const asked = await call('account.changeEmail', { email: email.toUpperCase() }, { session });
      expect(asked).toMatchObject({
        status: 200,
        data: { success: true, message: expect.any(String) },
        setCookies: [],
      });
      const token = await mailedToken(stack, email, 'confirm-email');
      expect(await addressOf(stack, person.id)).toBe(person.email);
      expect(await subjectsTo(stack, person.email)).not.toContain('The email of your account');

      const reply = await call('account.confirmEmail', { token }, { session });
      expect(reply).toMatchObject({
        status: 200,
        data: { success: true, message: expect.any(String) },
        setCookies: [],
      });
      const profile = await call('profile.get', undefined, { session });
      expect(profile.data.user).toMatchObject({ id: person.id, email });
      expect(await isAlive(call, other)).toBe(true);
      const { text } = await stack.waitForMail({ to: person.email, subject: 'The email of your account' });
      expect(text).toContain(`is ${email} now`);
      expectRefusal(await call('auth.login', person), 401, 'INVALID_CREDENTIALS');
      await logIn(call, { ...person, email });
      for (const at of [person.email, email]) {
        const refused = await call('auth.resetPassword', { token: reset, email: at, password: NEW_PASSWORD });
        expectRefusal(refused, 400, 'INVALID_TOKEN');
      }
      const { data } = await call('activity.list', undefined, { session });
      expect(data.data.map(({ kind, details }: { kind: string; details: object }) => [kind, details])).toEqual(
        expect.arrayContaining([
          ['email-change-requested', { email }],
          ['email-changed', { from: person.email, to: email }],
        ]),
      );
    });

    test('a repeated link is no error, until the address has changed again', async () => {
      const { call } = scenario();
      const { session, token, email } = await changed();
      expect((await call('account.confirmEmail', { token }, { session })).status).toBe(200);
      await change(session, email);
      expectRefusal(await call('account.confirmEmail', { token }, { session }), 400, 'INVALID_TOKEN');
    });

    test('asking takes a recent session of a browser of ours, and an address that is another', async () => {
      const { call, stack } = scenario();
      const { session, id, email } = await loggedIn(scenario());
      const input = { email: freshEmail() };
      expectRefusal(await call('account.changeEmail', input), 401, 'UNAUTHENTICATED');
      const headers = { origin: 'https://evil.test' };
      expectRefusal(await call('account.changeEmail', input, { session, headers }), 403, 'ORIGIN_MISMATCH');
      for (const one of ['', 'x', `${freshEmail()}, ${freshEmail()}`, 'é@example.test', 1, null, undefined]) {
        expectRefusal(await call('account.changeEmail', { email: one }, { session }), 400, 'VALIDATION_FAILED');
      }
      const same = await call('account.changeEmail', { email: email.toUpperCase() }, { session });
      expectRefusal(same, 400, 'VALIDATION_FAILED');
      expect(same.details).toEqual({ email: { message: 'This is your email already', rule: 'unchanged' } });
      await growOld(stack, id);
      expectRefusal(await call('account.changeEmail', input, { session }), 403, 'REAUTHENTICATION_REQUIRED');
      expect(await stack.database('select id from outbox where email = ?', [input.email])).toEqual([]);
      await call('auth.reauthenticate', { password: PASSWORD }, { session });
      expect((await call('account.changeEmail', { ...input, userId: 'user_1', former: 'x' }, { session })).status).toBe(
        200,
      );
      await mailedToken(stack, input.email, 'confirm-email');
    });

    test('the link works in a session of its account only, once it is the newest, for a day', async () => {
      const { call, stack } = scenario();
      const { session, id, email: former } = await loggedIn(scenario());
      const stranger = await loggedIn(scenario());
      const email = freshEmail();
      await call('account.changeEmail', { email }, { session });
      const older = await mailedToken(stack, email, 'confirm-email');
      await call('account.changeEmail', { email }, { session });
      const token = await mailedToken(stack, email, 'confirm-email', 2);
      const confirm = (token: unknown, options: object = { session }) =>
        call('account.confirmEmail', { token }, options);
      expectRefusal(await confirm(older), 400, 'INVALID_TOKEN');
      expectRefusal(await confirm(token, {}), 401, 'UNAUTHENTICATED');
      expectRefusal(await confirm(token, { session: stranger.session }), 400, 'INVALID_TOKEN');
      expectRefusal(
        await confirm(token, { session, headers: { origin: 'https://evil.test' } }),
        403,
        'ORIGIN_MISMATCH',
      );
      for (const one of [undefined, null, 1, '', token.slice(1), `${token}A`, [token], { $ne: '' }]) {
        expectRefusal(await confirm(one), 400, 'INVALID_TOKEN');
      }
      // The undoing token of the change, which is not made yet, is another one.
      expectRefusal(await call('account.undoEmailChange', { token }), 400, 'INVALID_TOKEN');
      await expire(stack, id, DAY_MS + 1000);
      expectRefusal(await confirm(token), 400, 'INVALID_TOKEN');
      expect(await addressOf(stack, id)).toBe(former);
      expect(await subjectsTo(stack, former)).not.toContain('The email of your account');
    });

    test('refused tokens count, per client address', async () => {
      const { call } = scenario();
      const { session } = await loggedIn(scenario());
      const address = clientAddress();
      const guess = (i: number) => ({ token: `${i}`.padEnd(43, 'A') });
      for (let i = 0; i < 50; i++) {
        const reply = await (i % 2
          ? call('account.confirmEmail', guess(i), { session, address })
          : call('account.undoEmailChange', guess(i), { address }));
        expectRefusal(reply, 400, 'INVALID_TOKEN');
      }
      expectRefusal(await call('account.undoEmailChange', guess(50), { address }), 429, 'RATE_LIMITED');
      expectRefusal(await call('account.confirmEmail', guess(50), { session, address }), 429, 'RATE_LIMITED');
    });

    test('an address that is another’s is not revealed, and its owner is told', async () => {
      const { call, stack } = scenario();
      const { session, id } = await loggedIn(scenario());
      const owner = await verified(scenario());
      const free = await call('account.changeEmail', { email: freshEmail() }, { session });
      const taken = await call('account.changeEmail', { email: owner.email }, { session });
      expect(visibleIn(taken)).toEqual(visibleIn(free));
      const { text } = await stack.waitForMail({ to: owner.email, subject: 'was given for another account' });
      expect(text).not.toMatch(/confirm-email|token/);
      const outbox = await stack.database<{ kind: string; user_id: string; state: string }>(
        "select kind, user_id, state from outbox where user_id = ? and kind = 'confirm-email' order by id",
        [id],
      );
      await mailsSettled(stack, owner.email);
      expect(outbox.map(({ kind, user_id }) => [kind, user_id])).toEqual([
        ['confirm-email', id],
        ['confirm-email', id],
      ]);
      expect(await addressOf(stack, id)).not.toBe(owner.email);
    });

    test('an address whose account was never verified is free for who proves it', async () => {
      const { call, stack } = scenario();
      const { session, id } = await loggedIn(scenario());
      const squatter = await registered(scenario());
      await call('account.changeEmail', { email: squatter.email }, { session });
      const token = await mailedToken(stack, squatter.email, 'confirm-email');
      expect((await call('account.confirmEmail', { token }, { session })).status).toBe(200);
      expect(await addressOf(stack, id)).toBe(squatter.email);
      expect(await stack.database('select id from users where id = ?', [squatter.id])).toEqual([]);
    });

    test('who verifies the address in between has it', async () => {
      const { call, stack } = scenario();
      const { session, id, email: former } = await loggedIn(scenario());
      const email = freshEmail();
      await call('account.changeEmail', { email }, { session });
      const token = await mailedToken(stack, email, 'confirm-email');
      await verified(scenario(), { email });
      expectRefusal(await call('account.confirmEmail', { token }, { session }), 409, 'EMAIL_TAKEN');
      expect(await addressOf(stack, id)).toBe(former);
    });

    test('no inbox and no client’s network is flooded by changes', async () => {
      const { call, stack } = scenario();
      const { session } = await loggedIn(scenario());
      const victim = freshEmail();
      for (let i = 0; i < 12; i++) {
        expect((await call('account.changeEmail', { email: victim }, { session })).status).toBe(200);
      }
      const pending = () => stack.database("select id from outbox where email = ? and state = 'pending'", [victim]);
      await until(async () => (await pending()).length === 0, { what: 'the last mail', within: 20_000 });
      const admitted = 'select id from outbox where email = ? and token_id is not null';
      expect(await stack.database(admitted, [victim])).toHaveLength(10);
      // One whose link was replaced before it was sent is not sent at all.
      expect((await stack.mailsTo(victim)).length).toBeLessThanOrEqual(10);
      const address = clientAddress();
      for (let i = 0; i < 100; i++) await call('auth.forgotPassword', { email: 'nobody@example.test' }, { address });
      const reply = await call('account.changeEmail', { email: freshEmail() }, { session, address });
      expectRefusal(reply, 429, 'RATE_LIMITED');
    });

    describe('the link to the old address', () => {
      test('puts it back, ends every session, and leaves no way in but a mailed one', async () => {
        const { call, stack } = scenario();
        const { session, id, former, email, undo, ...person } = await changed();
        const thief = await logIn(call, { ...person, email });
        await call('auth.forgotPassword', { email });
        const reset = await mailedToken(stack, email, 'reset-password');
        const reply = await call('account.undoEmailChange', { token: undo }, { session });
        expect(reply).toMatchObject({ status: 200, data: { success: true, message: expect.any(String) } });
        expect(await addressOf(stack, id)).toBe(former);
        expect(await Promise.all([session, thief].map((one) => isAlive(call, one)))).toEqual([false, false]);
        for (const at of [former, email]) {
          expectRefusal(await call('auth.login', { ...person, email: at }), 401, 'INVALID_CREDENTIALS');
          const refused = await call('auth.resetPassword', { token: reset, email: at, password: NEW_PASSWORD });
          expectRefusal(refused, 400, 'INVALID_TOKEN');
        }
        for (const to of [former, email]) {
          const { text } = await stack.waitForMail({ to, subject: 'was put back' });
          expect(text).toContain(`it is ${former} again`);
        }
        expectRefusal(await call('account.undoEmailChange', { token: undo }), 400, 'INVALID_TOKEN');

        await call('auth.forgotPassword', { email: former });
        const token = await mailedToken(stack, former, 'reset-password');
        expect((await call('auth.resetPassword', { token, email: former, password: NEW_PASSWORD })).status).toBe(200);
        const again = await logIn(call, { ...person, email: former, password: NEW_PASSWORD });
        const { data } = await call('activity.list', undefined, { session: again });
        expect(data.data).toContainEqual(
          expect.objectContaining({
            kind: 'email-change-undone',
            details: { from: email, to: former, methods: 'password' },
          }),
        );
      });

      test('works after further changes, which it undoes with their own links', async () => {
        const { call, stack } = scenario();
        const { session, id, former, email, undo } = await changed();
        const second = await change(session, email);
        const third = await change(session, second.email);
        await call('account.changeEmail', { email: freshEmail() }, { session });
        expect((await call('account.undoEmailChange', { token: undo })).status).toBe(200);
        expect(await addressOf(stack, id)).toBe(former);
        for (const token of [undo, second.undo, third.undo]) {
          expectRefusal(await call('account.undoEmailChange', { token }), 400, 'INVALID_TOKEN');
        }
        expect(await stack.database('select id from email_changes where user_id = ?', [id])).toEqual([]);
      });

      test('of a later change leaves that of an earlier one', async () => {
        const { call, stack } = scenario();
        const { session, id, former, email, undo } = await changed();
        const second = await change(session, email);
        expect((await call('account.undoEmailChange', { token: second.undo })).status).toBe(200);
        expect(await addressOf(stack, id)).toBe(email);
        expect((await call('account.undoEmailChange', { token: undo })).status).toBe(200);
        expect(await addressOf(stack, id)).toBe(former);
      });

      test('is another than the one to the new address, and works for seven days', async () => {
        const { call, stack } = scenario();
        const { id, email, token, undo } = await changed();
        expectRefusal(await call('account.undoEmailChange', { token }), 400, 'INVALID_TOKEN');
        const headers = { origin: 'https://evil.test' };
        expectRefusal(await call('account.undoEmailChange', { token: undo }, { headers }), 403, 'ORIGIN_MISMATCH');
        for (const one of [undefined, null, 1, '', undo.slice(1), `${undo}A`, [undo]]) {
          expectRefusal(await call('account.undoEmailChange', { token: one }), 400, 'INVALID_TOKEN');
        }
        await expire(stack, id, 7 * DAY_MS - 60_000);
        const [row] = await stack.database(
          'select id from email_changes where user_id = ? and expires_at > created_at',
          [id],
        );
        expect(row).toBeDefined();
        await expire(stack, id, 61_000);
        expectRefusal(await call('account.undoEmailChange', { token: undo }), 400, 'INVALID_TOKEN');
        expect(await addressOf(stack, id)).toBe(email);
      });

      test('removes identities that were linked since, and keeps those from before', async () => {
        const { call, stack } = scenario();
        const owner = somebody();
        const { session = '' } = await logInThrough(stack, owner);
        const { data } = await call('profile.get', undefined, { session });
        await stack.database('update identities set created_at = created_at - ? where user_id = ?', [
          HOUR_MS,
          data.user.id,
        ]);
        const email = freshEmail();
        await call('account.changeEmail', { email }, { session });
        const token = await mailedToken(stack, email, 'confirm-email');
        await call('account.confirmEmail', { token }, { session });
        const undo = await mailedToken(stack, owner.email, 'undo-email-change');
        // The provider vouches for the new address: its identity is linked.
        await logInThrough(stack, somebody({ email }));
        const identities = () => stack.database('select subject from identities where user_id = ?', [data.user.id]);
        expect(await identities()).toHaveLength(2);
        expect((await call('account.undoEmailChange', { token: undo })).status).toBe(200);
        expect(await identities()).toEqual([{ subject: owner.sub }]);
      });
    });

    describe('a former address is kept for its user while the change can be undone:', () => {
      test('nobody registers it, and nobody comes with it from a provider', async () => {
        const { call, stack } = scenario();
        const { id, former } = await changed();
        const person = { name: 'Mallory', email: former, password: PASSWORD };
        expectRefusal(await call('auth.register', person), 409, 'EMAIL_TAKEN');
        expect((await logInThrough(stack, somebody({ email: former }))).session).toBeUndefined();
        expect(await stack.database('select id from users where email = ?', [former])).toEqual([]);
        await expire(stack, id, 7 * DAY_MS + 1000);
        expect(await call('auth.register', person)).toMatchObject({ code: undefined, data: { success: true } });
      });

      test('nobody changes to it, which is not revealed; its user does', async () => {
        const { call, stack } = scenario();
        const { session, id, former } = await changed();
        const other = await loggedIn(scenario());
        const free = await call('account.changeEmail', { email: freshEmail() }, { session: other.session });
        const kept = await call('account.changeEmail', { email: former }, { session: other.session });
        expect(visibleIn(kept)).toEqual(visibleIn(free));
        await stack.waitForMail({ to: former, subject: 'was given for another account' });
        await call('account.changeEmail', { email: former }, { session });
        const token = await mailedToken(stack, former, 'confirm-email');
        expect((await call('account.confirmEmail', { token }, { session })).status).toBe(200);
        expect(await addressOf(stack, id)).toBe(former);
      });

      test('who asked for it before it was given up does not get it', async () => {
        const { call, stack } = scenario();
        const other = await loggedIn(scenario());
        const email = freshEmail();
        await call('account.changeEmail', { email }, { session: other.session });
        const token = await mailedToken(stack, email, 'confirm-email');
        const { session } = await loggedIn(scenario(), { email });
        await change(session, email);
        expectRefusal(await call('account.confirmEmail', { token }, { session: other.session }), 409, 'EMAIL_TAKEN');
      });
    });

    test('neither table nor queue has a token', async () => {
      const { stack } = scenario();
      const { id, token, undo } = await changed();
      const tables = ['email_changes', 'outbox', 'activity', 'sessions'];
      const stored = JSON.stringify(await Promise.all(tables.map((table) => stack.database(`select * from ${table}`))));
      expect(stored).toContain(id);
      for (const each of [token, undo]) expect(stored).not.toContain(each);
      expect(token).not.toBe(undo);
    });
  },
  { env: environmentFor(provider) },
);
