import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import { freshSubject, identityClaims, loginsThrough } from '../../provider/login.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { until } from '../../rig/until.ts';
import {
  everywhere,
  expectRefusal,
  growOld,
  inBrowser,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  mailsSettled,
  PASSWORD,
  registered,
  verified,
  visibleIn,
} from '../rig/scenario.ts';

/** An email change: requested, confirmed by a link to the new address, undone by a link to the former one. */
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
    /** Changes the email of a session's user from `former`. Returns the new one and the tokens of both mails. */
    const change = async (session: string, former: string) => {
      const { call, stack } = scenario();
      const email = freshEmail();
      expect((await call('account.changeEmail', { email }, inBrowser(session))).status).toBe(200);
      const token = await mailedToken(stack, email, 'confirm-email');
      expect((await call('account.confirmEmail', { token }, inBrowser(session))).status).toBe(200);
      return { email, token, undo: await mailedToken(stack, former, 'undo-email-change') };
    };

    /** A user with a just changed email. */
    const changed = async () => {
      const { email: former, ...person } = await loggedIn(scenario());
      return { ...person, former, ...(await change(person.session, former)) };
    };

    test('the email changes when the link is used, and the former email gets a mail', async () => {
      const { call, stack } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const other = await logIn(call, person);
      await call('auth.forgotPassword', { email: person.email });
      const reset = await mailedToken(stack, person.email, 'reset-password');
      const email = freshEmail();
      const requested = await call('account.changeEmail', { email: email.toUpperCase() }, inBrowser(session));
      expect(requested).toMatchObject({
        status: 200,
        data: { success: true, message: expect.any(String) },
        setCookies: [expect.stringMatching(/^auth_browser=B{43}; .*Max-Age=86400$/)],
      });
      const token = await mailedToken(stack, email, 'confirm-email');
      expect(await addressOf(stack, person.id)).toBe(person.email);
      expect(await subjectsTo(stack, person.email)).not.toContain('The email of your account');

      const reply = await call('account.confirmEmail', { token }, inBrowser(session));
      expect(reply).toMatchObject({
        status: 200,
        data: { success: true, message: expect.any(String) },
        setCookies: [],
      });
      const profile = await call('profile.get', undefined, { session });
      expect(profile.data.user).toMatchObject({ id: person.id, email });
      expect(await isAlive(call, other)).toBe(true);
      const { text } = await stack.waitForMail({ to: person.email, subject: 'The email of your account' });
      expect(text).toContain(`is now ${email}`);
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

    test('a repeated link succeeds until the email changes again', async () => {
      const { call } = scenario();
      const { session, token, email } = await changed();
      expect((await call('account.confirmEmail', { token }, inBrowser(session))).status).toBe(200);
      await change(session, email);
      expectRefusal(await call('account.confirmEmail', { token }, inBrowser(session)), 400, 'INVALID_TOKEN');
    });

    test('a change requires a recent session, an own page and a different email', async () => {
      const { call, stack } = scenario();
      const { session, id, email } = await loggedIn(scenario());
      const input = { email: freshEmail() };
      expectRefusal(await call('account.changeEmail', input), 401, 'UNAUTHENTICATED');
      const headers = { origin: 'https://evil.test' };
      expectRefusal(
        await call('account.changeEmail', input, { ...inBrowser(session), headers }),
        403,
        'ORIGIN_MISMATCH',
      );
      for (const one of ['', 'x', `${freshEmail()}, ${freshEmail()}`, 'é@example.test', 1, null, undefined]) {
        expectRefusal(await call('account.changeEmail', { email: one }, inBrowser(session)), 400, 'VALIDATION_FAILED');
      }
      const same = await call('account.changeEmail', { email: email.toUpperCase() }, inBrowser(session));
      expectRefusal(same, 400, 'VALIDATION_FAILED');
      expect(same.details).toEqual({ email: { message: 'This is already your email', rule: 'unchanged' } });
      await growOld(stack, id);
      expectRefusal(await call('account.changeEmail', input, inBrowser(session)), 403, 'REAUTHENTICATION_REQUIRED');
      expect(await stack.database('select id from outbox where email = ?', [input.email])).toEqual([]);
      await call('auth.reauthenticate', { password: PASSWORD }, { session });
      expect(
        (await call('account.changeEmail', { ...input, userId: 'user_1', former: 'x' }, inBrowser(session))).status,
      ).toBe(200);
      await mailedToken(stack, input.email, 'confirm-email');
    });

    test('only the newest link works, for a day, in a session of its account', async () => {
      const { call, stack } = scenario();
      const { session, id, email: former } = await loggedIn(scenario());
      const stranger = await loggedIn(scenario());
      const email = freshEmail();
      await call('account.changeEmail', { email }, inBrowser(session));
      const older = await mailedToken(stack, email, 'confirm-email');
      await call('account.changeEmail', { email }, inBrowser(session));
      const token = await mailedToken(stack, email, 'confirm-email', 2);
      const confirm = (token: unknown, options: object = inBrowser(session)) =>
        call('account.confirmEmail', { token }, options);
      expectRefusal(await confirm(older), 400, 'INVALID_TOKEN');
      expectRefusal(await confirm(token, {}), 401, 'UNAUTHENTICATED');
      expectRefusal(await confirm(token, { session: stranger.session }), 400, 'INVALID_TOKEN');
      expectRefusal(
        await confirm(token, { ...inBrowser(session), headers: { origin: 'https://evil.test' } }),
        403,
        'ORIGIN_MISMATCH',
      );
      for (const one of [undefined, null, 1, '', token.slice(1), `${token}A`, [token], { $ne: '' }]) {
        expectRefusal(await confirm(one), 400, 'INVALID_TOKEN');
      }
      // The token that undoes the change is another one.
      expectRefusal(await call('account.undoEmailChange', { token }), 400, 'INVALID_TOKEN');
      await expire(stack, id, DAY_MS + 1000);
      expectRefusal(await confirm(token), 400, 'INVALID_TOKEN');
      expect(await addressOf(stack, id)).toBe(former);
      expect(await subjectsTo(stack, former)).not.toContain('The email of your account');
    });

    test('the link works only in the browser that requested it; elsewhere it stays valid', async () => {
      const { call, stack } = scenario();
      const { session, id, email: former } = await loggedIn(scenario());
      const email = freshEmail();
      await call('account.changeEmail', { email }, inBrowser(session));
      const token = await mailedToken(stack, email, 'confirm-email');
      const refusal = 'Please open the link in the browser in which you requested the change';
      const address = clientAddress();
      for (const browser of [undefined, 'C'.repeat(43), 'B'.repeat(42)]) {
        const reply = await call('account.confirmEmail', { token }, { session, browser, address });
        expectRefusal(reply, 403, 'FORBIDDEN', refusal);
      }
      expect(await addressOf(stack, id)).toBe(former);
      expect(await subjectsTo(stack, former)).not.toContain('The email of your account');
      expect((await call('account.confirmEmail', { token }, inBrowser(session))).status).toBe(200);
      expect(await addressOf(stack, id)).toBe(email);
      expectRefusal(await call('account.confirmEmail', { token }, { session }), 403, 'FORBIDDEN', refusal);
    });

    // checks: 68
    test('a click of an owner with a planted session does not give the email to the attacker', async () => {
      const { call, stack } = scenario();
      const identity = identityClaims();
      const attacker = await logInThrough(stack, identity);
      const victim = freshEmail();
      const own = attacker.browser.cookies.get('auth_browser');
      const session = attacker.session ?? '';
      expect((await call('account.changeEmail', { email: victim }, { session, browser: own })).status).toBe(200);
      const token = await mailedToken(stack, victim, 'confirm-email');
      expectRefusal(await call('account.confirmEmail', { token }, inBrowser(session)), 403, 'FORBIDDEN');

      // The owner can register the address, and nothing of the attacker works there.
      const { id, ...owner } = await verified(scenario(), { email: victim });
      expectRefusal(await call('account.confirmEmail', { token }, { session, browser: own }), 409, 'EMAIL_TAKEN');
      await call('auth.forgotPassword', { email: victim });
      const reset = {
        token: await mailedToken(stack, victim, 'reset-password'),
        email: victim,
        password: NEW_PASSWORD,
      };
      expect((await call('auth.resetPassword', reset)).status).toBe(200);
      await logIn(call, { ...owner, password: NEW_PASSWORD });
      expect(await stack.database('select subject from identities where user_id = ?', [id])).toEqual([]);
      expect(await subjectsTo(stack, identity.email)).not.toContain('The email of your account');
    });

    test('wrong tokens count per client address', async () => {
      const { call } = scenario();
      const { session } = await loggedIn(scenario());
      const address = clientAddress();
      const guess = (i: number) => ({ token: `${i}`.padEnd(43, 'A') });
      for (let i = 0; i < 50; i++) {
        const reply = await (i % 2
          ? call('account.confirmEmail', guess(i), { ...inBrowser(session), address })
          : call('account.undoEmailChange', guess(i), { address }));
        expectRefusal(reply, 400, 'INVALID_TOKEN');
      }
      expectRefusal(await call('account.undoEmailChange', guess(50), { address }), 429, 'RATE_LIMITED');
      expectRefusal(
        await call('account.confirmEmail', guess(50), { ...inBrowser(session), address }),
        429,
        'RATE_LIMITED',
      );
    });

    // checks: 29
    test('a taken email is not revealed, and its owner gets a mail', async () => {
      const { call, stack } = scenario();
      const { session, id } = await loggedIn(scenario());
      const owner = await verified(scenario());
      const free = await call('account.changeEmail', { email: freshEmail() }, inBrowser(session));
      const taken = await call('account.changeEmail', { email: owner.email }, inBrowser(session));
      expect(visibleIn(taken)).toEqual(visibleIn(free));
      const { text } = await stack.waitForMail({ to: owner.email, subject: 'was entered for another account' });
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

    test('the email of an unverified account goes to the user who proves it', async () => {
      const { call, stack } = scenario();
      const { session, id } = await loggedIn(scenario());
      const squatter = await registered(scenario());
      await call('account.changeEmail', { email: squatter.email }, inBrowser(session));
      const token = await mailedToken(stack, squatter.email, 'confirm-email');
      expect((await call('account.confirmEmail', { token }, inBrowser(session))).status).toBe(200);
      expect(await addressOf(stack, id)).toBe(squatter.email);
      expect(await stack.database('select id from users where id = ?', [squatter.id])).toEqual([]);
    });

    test('the email of an account that was blocked before its verification stays taken', async () => {
      const { call, stack } = scenario();
      const { session, id, email: former } = await loggedIn(scenario());
      const holder = await registered(scenario());
      await stack.database('update users set blocked_at = 1 where id = ?', [holder.id]);
      await call('account.changeEmail', { email: holder.email }, inBrowser(session));
      const token = await mailedToken(stack, holder.email, 'confirm-email');
      expectRefusal(await call('account.confirmEmail', { token }, inBrowser(session)), 409, 'EMAIL_TAKEN');
      expect(await addressOf(stack, id)).toBe(former);
      expect(await addressOf(stack, holder.id)).toBe(holder.email);
    });

    test('a password change cancels the pending email change, and no other mail', async () => {
      const { call, stack } = scenario();
      const { session, id, email } = await loggedIn(scenario());
      // Due in a hundred years.
      for (const kind of ['confirm-email', 'identity-linked']) {
        await stack.database(
          `insert into outbox (id, kind, email, inbox, user_id, detail, state, attempts, due_at, expires_at, created_at)
           values (?, ?, ?, ?, ?, 'acme', 'pending', 0, 4900000000000, 4900000000000, 1)`,
          [randomUUID(), kind, email, email, id],
        );
      }
      const passwords = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD };
      expect((await call('account.changePassword', passwords, { session })).status).toBe(200);
      const waiting = await stack.database('select kind from outbox where user_id = ? and created_at = 1', [id]);
      expect(waiting).toEqual([{ kind: 'identity-linked' }]);
      await stack.database('delete from outbox where user_id = ? and created_at = 1', [id]);
    });

    test('the first to verify the email keeps it', async () => {
      const { call, stack } = scenario();
      const { session, id, email: former } = await loggedIn(scenario());
      const email = freshEmail();
      await call('account.changeEmail', { email }, inBrowser(session));
      const token = await mailedToken(stack, email, 'confirm-email');
      await verified(scenario(), { email });
      expectRefusal(await call('account.confirmEmail', { token }, inBrowser(session)), 409, 'EMAIL_TAKEN');
      expect(await addressOf(stack, id)).toBe(former);
    });

    test('requests are limited per inbox and per client address', async () => {
      const { call, stack } = scenario();
      const [{ session }, other] = [await loggedIn(scenario()), await loggedIn(scenario())];
      const victim = freshEmail();
      for (let i = 0; i < 6; i++) {
        for (const one of [session, other.session]) {
          expect((await call('account.changeEmail', { email: victim }, inBrowser(one))).status).toBe(200);
        }
      }
      const pending = () => stack.database("select id from outbox where email = ? and state = 'pending'", [victim]);
      await until(async () => (await pending()).length === 0, { what: 'the last mail' });
      const admitted = 'select id from outbox where email = ? and token_id is not null';
      expect(await stack.database(admitted, [victim])).toHaveLength(10);
      // A mail whose link was replaced before sending is not sent.
      expect((await stack.mailsTo(victim)).length).toBeLessThanOrEqual(10);
      const address = clientAddress();
      for (let i = 0; i < 100; i++) await call('auth.forgotPassword', { email: 'nobody@example.test' }, { address });
      const reply = await call('account.changeEmail', { email: freshEmail() }, { ...inBrowser(session), address });
      expectRefusal(reply, 429, 'RATE_LIMITED');
    });

    describe('the link to the old address', () => {
      test('restores the former email, ends all sessions and removes every login method but a mailed link', async () => {
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
          const { text } = await stack.waitForMail({ to, subject: 'was restored' });
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

      test('works after further changes, and undoes them and their links', async () => {
        const { call, stack } = scenario();
        const { session, id, former, email, undo } = await changed();
        const second = await change(session, email);
        const third = await change(session, second.email);
        await call('account.changeEmail', { email: freshEmail() }, inBrowser(session));
        expect((await call('account.undoEmailChange', { token: undo })).status).toBe(200);
        expect(await addressOf(stack, id)).toBe(former);
        for (const token of [undo, second.undo, third.undo]) {
          expectRefusal(await call('account.undoEmailChange', { token }), 400, 'INVALID_TOKEN');
        }
        expect(await stack.database('select id from email_changes where user_id = ?', [id])).toEqual([]);
      });

      test('of a later change leaves the link of an earlier one valid', async () => {
        const { call, stack } = scenario();
        const { session, id, former, email, undo } = await changed();
        const second = await change(session, email);
        expect((await call('account.undoEmailChange', { token: second.undo })).status).toBe(200);
        expect(await addressOf(stack, id)).toBe(email);
        expect((await call('account.undoEmailChange', { token: undo })).status).toBe(200);
        expect(await addressOf(stack, id)).toBe(former);
      });

      test('differs from the link to the new email, and works for seven days', async () => {
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

      // checks: 69
      test('removes login methods added since seven days before the request, and reports older ones', async () => {
        const { call, stack } = scenario();
        const owner = identityClaims();
        const { session = '' } = await logInThrough(stack, owner);
        const { data } = await call('profile.get', undefined, { session });
        const { id } = data.user;
        const link = (subject: string, beforeMs: number) =>
          stack.database(
            `insert into identities (id, user_id, issuer, subject, provider, proven, browser, created_at)
             values (?, ?, ?, ?, 'acme', 1, null, ?)`,
            [crypto.randomUUID(), id, provider.url, subject, Date.now() - beforeMs],
          );
        const [older, newer] = [identityClaims().sub, identityClaims().sub];
        await link(older, 7 * DAY_MS + HOUR_MS);
        await link(newer, 7 * DAY_MS - HOUR_MS);
        const email = freshEmail();
        await call('account.changeEmail', { email }, inBrowser(session));
        const token = await mailedToken(stack, email, 'confirm-email');
        // Confirmed a day after the request and undone almost seven days later: neither moves the period.
        const pass = (ms: number) =>
          Promise.all([
            stack.database('update identities set created_at = created_at - ? where user_id = ?', [ms, id]),
            stack.database(
              'update email_changes set created_at = created_at - ?, confirmed_at = confirmed_at - ? where user_id = ?',
              [ms, ms, id],
            ),
          ]);
        await pass(DAY_MS - HOUR_MS / 2);
        await call('account.confirmEmail', { token }, inBrowser(session));
        const undo = await mailedToken(stack, owner.email, 'undo-email-change');
        await pass(7 * DAY_MS - HOUR_MS / 2);
        // The provider verifies the new address, so its identity is linked.
        await logInThrough(stack, identityClaims({ email }));
        const identities = () => stack.database('select subject from identities where user_id = ?', [id]);
        expect(await identities()).toHaveLength(4);
        const reply = await call('account.undoEmailChange', { token: undo });
        expect(reply).toMatchObject({ code: undefined, status: 200 });
        expect(await identities()).toEqual([{ subject: older }]);
        expect(reply.data.kept).toEqual([{ method: 'acme', addedAt: expect.any(Number) }]);
        const [former, other] = await Promise.all(
          [owner.email, email].map((to) => stack.waitForMail({ to, subject: 'was restored' })),
        );
        expect(former?.text).toContain('You can still log in through Acme. This was added earlier');
        expect(other?.text).not.toContain('Acme');
      });
    });

    test('the undo removes login methods added between request and confirmation', async () => {
      const { call, stack } = scenario();
      const { session, id, email: former } = await loggedIn(scenario());
      const email = freshEmail();
      await call('account.changeEmail', { email }, inBrowser(session));
      const token = await mailedToken(stack, email, 'confirm-email');
      await stack.database('update email_changes set created_at = created_at - ? where user_id = ?', [3 * HOUR_MS, id]);
      await stack.database(
        `insert into identities (id, user_id, issuer, subject, provider, proven, created_at)
         select ?, id, ?, ?, 'acme', 1, ? from users where id = ?`,
        [randomUUID(), provider.url, freshSubject(), Date.now() - 2 * HOUR_MS, id],
      );
      expect((await call('account.confirmEmail', { token }, inBrowser(session))).status).toBe(200);
      const undo = await mailedToken(stack, former, 'undo-email-change');
      expect((await call('account.undoEmailChange', { token: undo })).status).toBe(200);
      expect(await stack.database('select id from identities where user_id = ?', [id])).toEqual([]);
    });

    describe('the former email is reserved while the change can be undone:', () => {
      test('nobody can register it or bring it from a provider', async () => {
        const { call, stack } = scenario();
        const { id, former } = await changed();
        const person = { name: 'Mallory', email: former, password: PASSWORD };
        expectRefusal(await call('auth.register', person), 409, 'EMAIL_TAKEN');
        expect((await logInThrough(stack, identityClaims({ email: former }))).session).toBeUndefined();
        expect(await stack.database('select id from users where email = ?', [former])).toEqual([]);
        await expire(stack, id, 7 * DAY_MS + 1000);
        expect(await call('auth.register', person)).toMatchObject({ code: undefined, data: { success: true } });
      });

      test('nobody else can change to it, and this is not revealed; its user can', async () => {
        const { call, stack } = scenario();
        const { session, id, former } = await changed();
        const other = await loggedIn(scenario());
        const free = await call('account.changeEmail', { email: freshEmail() }, inBrowser(other.session));
        const reserved = await call('account.changeEmail', { email: former }, inBrowser(other.session));
        expect(visibleIn(reserved)).toEqual(visibleIn(free));
        await stack.waitForMail({ to: former, subject: 'was entered for another account' });
        await call('account.changeEmail', { email: former }, inBrowser(session));
        const token = await mailedToken(stack, former, 'confirm-email');
        expect((await call('account.confirmEmail', { token }, inBrowser(session))).status).toBe(200);
        expect(await addressOf(stack, id)).toBe(former);
      });

      test('a change to it that was requested before does not succeed', async () => {
        const { call, stack } = scenario();
        const other = await loggedIn(scenario());
        const email = freshEmail();
        await call('account.changeEmail', { email }, inBrowser(other.session));
        const token = await mailedToken(stack, email, 'confirm-email');
        const { session } = await loggedIn(scenario(), { email });
        await change(session, email);
        expectRefusal(await call('account.confirmEmail', { token }, inBrowser(other.session)), 409, 'EMAIL_TAKEN');
      });
    });

    test('no token is stored in a table or in the queue', async () => {
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
