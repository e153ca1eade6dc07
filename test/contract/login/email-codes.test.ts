import { randomBytes } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import { identitiesOf, identityClaims, loginsThrough } from '../../provider/login.ts';
import { entriesOf } from '../../rig/observe/key-value-view.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import { until } from '../../rig/until.ts';
import { askForCode, mailedCode, otherThan } from '../rig/mailed-codes.ts';
import {
  administrator,
  deviceIn,
  eventsOf,
  everywhere,
  expectRefusal,
  inBrowser,
  isAlive,
  kindsOf,
  loggedIn,
  mailedToken,
  mailsSettled,
  PASSWORD,
  registered,
  type Scenario,
  sessionIn,
  verified,
  visibleIn,
} from '../rig/scenario.ts';
import { storedUser } from '../rig/stored-user.ts';
import { codeOf, forgetLastCode, pendingIn, withApp } from '../rig/totp-scenario.ts';

/** Logins by a code that is mailed: EMAIL_CODES=on. */
const provider = await startHostileProvider();
const logInThrough = loginsThrough(provider);
afterAll(() => provider.close());

const usersWith = ({ stack }: Scenario, email: string) =>
  stack.database<{ id: string; email_verified: number; name: string; password_hash: string | null }>(
    'select * from users where email = ?',
    [email],
  );

/** Asks for a code and reads it. */
async function codeFor({ call, stack }: Scenario, email: string, count = 1) {
  const pending = await askForCode(call, email);
  return { pending, code: await mailedCode(stack, email, 'login', count) };
}

everywhere(
  (scenario) => {
    // checks: 37
    test('neither the key-value store nor the log has the token of the browser that asked', async () => {
      const { call, stack } = scenario();
      const pending = await askForCode(call, freshEmail());
      const stored = JSON.stringify(await entriesOf(stack));
      expect(stored).toContain('email-code:');
      expect(stored).not.toContain(pending);
      expect(stack.services.map((service) => service.output()).join('')).not.toContain(pending);
    });

    test('a code logs in once, in the browser that asked, and the login is reported like any other', async () => {
      const { call, stack } = scenario();
      const person = await verified(scenario());
      const { pending, code } = await codeFor(scenario(), person.email);
      expectRefusal(await call('auth.finishEmailCode', { code }), 401, 'UNAUTHENTICATED');
      const elsewhere = await askForCode(call, freshEmail());
      expectRefusal(await call('auth.finishEmailCode', { code }, { pending: elsewhere }), 401, 'INVALID_CODE');

      const reply = await call('auth.finishEmailCode', { code }, { pending });
      const { id, email, name } = person;
      expect(reply.data).toEqual({
        success: true,
        message: 'You are logged in.',
        user: { id, email, name, provider: 'email' },
      });
      expect(pendingIn(reply)).toBe('');
      expect(await isAlive(call, sessionIn(reply) ?? '')).toBe(true);
      expect((await eventsOf(stack, id, 'logged-in')).at(-1)).toMatchObject({ method: 'email-code', device: 'new' });
      await stack.waitForMail({ to: email, subject: 'New login' });
      expectRefusal(await call('auth.finishEmailCode', { code }, { pending }), 401, 'UNAUTHENTICATED');
    });

    test('the mail has no link and ends with the line for autofill, in HTML too', async () => {
      const { call, stack } = scenario();
      const { email } = await verified(scenario());
      await askForCode(call, email);
      const { text, html = '' } = await stack.waitForMail({ to: email, subject: 'Your code' });
      const lines = text.trimEnd().split('\n');
      expect(lines.at(-1)).toMatch(/^@\S+ #\d{6}$/);
      expect(text).not.toContain('http');
      expect(html.replace(/<[^>]*>/g, '').trimEnd()).toMatch(new RegExp(`${lines.at(-1)}$`));
    });

    test('two concurrent finishes open one session', async () => {
      const { call, stack } = scenario();
      const { id, email } = await verified(scenario());
      const { pending, code } = await codeFor(scenario(), email);
      const replies = await Promise.all(
        Array.from({ length: 3 }, () => call('auth.finishEmailCode', { code }, { pending })),
      );
      expect(replies.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
      expect(await stack.database('select id from sessions where user_id = ?', [id])).toHaveLength(1);
    });

    test('five guesses are looked at, and no more of fifty at once', async () => {
      const { call } = scenario();
      const [patient, guesser] = [await verified(scenario()), await verified(scenario())];
      const first = await codeFor(scenario(), patient.email);
      for (let guess = 1; guess < 5; guess++) {
        const reply = await call('auth.finishEmailCode', { code: otherThan(first.code) }, { pending: first.pending });
        expectRefusal(reply, 401, 'INVALID_CODE');
        expect(pendingIn(reply)).toBeUndefined();
      }
      expect((await call('auth.finishEmailCode', { code: first.code }, { pending: first.pending })).status).toBe(200);

      const { pending, code } = await codeFor(scenario(), guesser.email);
      const replies = await Promise.all(
        Array.from({ length: 50 }, () => call('auth.finishEmailCode', { code: otherThan(code) }, { pending })),
      );
      expect(replies.filter((reply) => reply.code === 'INVALID_CODE')).toHaveLength(5);
      expect(replies.filter((reply) => reply.code === 'UNAUTHENTICATED')).toHaveLength(45);
      expect(replies.filter((reply) => pendingIn(reply) === '')).toHaveLength(1);
      expectRefusal(await call('auth.finishEmailCode', { code }, { pending }), 401, 'UNAUTHENTICATED');
    });

    test('wrong codes count per account, known or not (LIMIT_CODE), but a known device counts by itself', async () => {
      const { call, stack } = scenario();
      const person = await verified(scenario());
      for (const email of [person.email, freshEmail()]) {
        const codes: (string | undefined)[] = [];
        for (let count = 1; count <= 3; count++) {
          const { pending, code } = await codeFor(scenario(), email, count);
          for (let guess = 0; guess < 4; guess++)
            codes.push((await call('auth.finishEmailCode', { code: otherThan(code) }, { pending })).code);
        }
        expect(codes).toEqual([...Array(10).fill('INVALID_CODE'), 'RATE_LIMITED', 'RATE_LIMITED']);
      }
      const refusals = async () => (await eventsOf(stack, person.id, 'login-refused')).map(({ reason }) => reason);
      await until(async () => (await refusals()).length === 12, { what: 'the events' });
      expect((await refusals()).sort()).toEqual([...Array(2).fill('limited'), ...Array(10).fill('wrong-code')]);
      const { pending, code } = await codeFor(scenario(), person.email, 4);
      expectRefusal(await call('auth.finishEmailCode', { code }, { pending }), 429, 'RATE_LIMITED');
      const reply = await call('auth.finishEmailCode', { code }, { pending, device: person.device });
      expect(reply.status).toBe(200);
    });

    test('a new code replaces the old one of this browser, and only of this one', async () => {
      const { call } = scenario();
      const { email } = await verified(scenario());
      const other = await codeFor(scenario(), email);
      const former = await codeFor(scenario(), email, 2);
      const reply = await call('auth.beginEmailCode', { email }, { pending: former.pending });
      expect(pendingIn(reply)).not.toBe(former.pending);
      const late = await call('auth.finishEmailCode', { code: former.code }, { pending: former.pending });
      expectRefusal(late, 401, 'UNAUTHENTICATED');
      expect((await call('auth.finishEmailCode', { code: other.code }, { pending: other.pending })).status).toBe(200);
    });

    test('the answer is the same for every address, and every address gets one mail', async () => {
      const { call, stack } = scenario();
      const { email: unverified } = await registered(scenario());
      const { email: known } = await verified(scenario());
      const blocked = await verified(scenario());
      await stack.database('update users set blocked_at = 1 where id = ?', [blocked.id]);
      const deleted = await verified(scenario());
      await stack.database('update users set deleted_at = ? where id = ?', [Date.now(), deleted.id]);
      const emails = [known, freshEmail(), unverified, blocked.email, deleted.email];
      const [first, ...others] = await Promise.all(
        emails.map(async (email) => {
          const { setCookies, ...reply } = visibleIn(await call('auth.beginEmailCode', { email }));
          const headers = { ...reply.headers, 'set-cookie': undefined };
          return { ...reply, headers, cookies: setCookies.map((line) => line.replace(/=[\w-]{43};/, '=token;')) };
        }),
      );
      for (const other of others) expect(other).toEqual(first);
      for (const email of emails) {
        await mailedCode(stack, email);
        await mailsSettled(stack, email);
        const mails = (await stack.mailsTo(email)).filter(({ subject }) => subject.startsWith('Your code'));
        expect(mails).toHaveLength(1);
      }
    });

    test('an address without an account gets a verified one, without a mail about its first login', async () => {
      const { call, stack } = scenario();
      const email = `grace-hopper.${freshEmail()}`;
      const { pending, code } = await codeFor(scenario(), email);
      expect(await usersWith(scenario(), email)).toEqual([]);
      const reply = await call('auth.finishEmailCode', { code }, { pending });
      expect(reply.status).toBe(200);
      const [user] = await usersWith(scenario(), email);
      expect(user).toMatchObject({ id: reply.data.user.id, email_verified: 1, password_hash: null });
      const words = await stack.database<{ word: string }>('select word from name_words where user_id = ?', [
        reply.data.user.id,
      ]);
      expect(words.map(({ word }) => word)).toContainEqual(expect.stringMatching(/^hopper\./));
      expect(await kindsOf(stack, user?.id ?? '')).toEqual(['registered', 'verified', 'logged-in']);
      expect(await eventsOf(stack, user?.id ?? '', 'registered')).toEqual([{ method: 'email-code' }]);
      await mailsSettled(stack, email);
      expect(await stack.mailsTo(email)).toHaveLength(1);
      const session = sessionIn(reply) ?? '';
      expect((await call('account.changePassword', { newPassword: PASSWORD }, { session })).status).toBe(200);
      expect((await call('auth.login', { email, password: PASSWORD })).status).toBe(200);
    });

    test('of two codes for one new address, both log in to one account', async () => {
      const { call } = scenario();
      const email = freshEmail();
      const codes = [await codeFor(scenario(), email), await codeFor(scenario(), email, 2)];
      const replies = await Promise.all(
        codes.map(({ pending, code }) => call('auth.finishEmailCode', { code }, { pending })),
      );
      expect(replies.map(({ status }) => status)).toEqual([200, 200]);
      expect(await usersWith(scenario(), email)).toHaveLength(1);
    });

    test('the second factor is still required', async () => {
      const { call, stack } = scenario();
      const { id, email, secret } = await withApp(scenario());
      const { pending, code } = await codeFor(scenario(), email);
      const reply = await call('auth.finishEmailCode', { code }, { pending });
      expectRefusal(reply, 403, 'SECOND_FACTOR_REQUIRED');
      await forgetLastCode(stack, id);
      const second = await call('auth.secondFactor', { code: codeOf(secret) }, { pending: pendingIn(reply) });
      expect(second.status).toBe(200);
      expect((await eventsOf(stack, id, 'logged-in')).at(-1)).toMatchObject({
        method: 'email-code',
        secondFactor: 'totp',
      });
    });

    // checks: 70
    test('a code proves the inbox: what another person registered goes, with sessions and name', async () => {
      const { call, stack } = scenario();
      const stranger = await registered(scenario(), { name: 'Mallory' });
      const { pending, code } = await codeFor(scenario(), stranger.email);
      const reply = await call('auth.finishEmailCode', { code }, { pending });
      expect(reply.status).toBe(200);
      expect(reply.data.user.name).not.toBe('Mallory');
      const [user] = await usersWith(scenario(), stranger.email);
      expect(user).toMatchObject({ id: stranger.id, email_verified: 1, password_hash: null });
      expect(await eventsOf(stack, stranger.id, 'profile-changed')).toEqual([{ fields: 'name' }]);
      expect(await eventsOf(stack, stranger.id, 'verified')).toHaveLength(1);
      expectRefusal(
        await call('auth.login', { email: stranger.email, password: PASSWORD }),
        401,
        'INVALID_CREDENTIALS',
      );
      const token = await mailedToken(stack, stranger.email, 'verify-email');
      expectRefusal(await call('auth.verifyEmail', { token }, { browser: stranger.browser }), 400, 'INVALID_TOKEN');
      await stack.waitForMail({ to: stranger.email, subject: 'Login methods' });
    });

    test('in the browser that registered, a code proves the password, as the link does', async () => {
      const { call, stack } = scenario();
      const person = await registered(scenario());
      const { pending, code } = await codeFor(scenario(), person.email);
      const reply = await call('auth.finishEmailCode', { code }, { pending, browser: person.browser });
      expect(reply.data.user.name).toBe(person.name);
      expect((await call('auth.login', person)).status).toBe(200);
      expect(await eventsOf(stack, person.id, 'verified')).toHaveLength(1);
      // An account that is verified already becomes so no second time.
      const again = await codeFor(scenario(), person.email, 2);
      expect((await call('auth.finishEmailCode', { code: again.code }, { pending: again.pending })).status).toBe(200);
      expect(await eventsOf(stack, person.id, 'verified')).toHaveLength(1);
    });

    test('an unproven identity goes, also of a verified account, and its sessions end', async () => {
      const { call, stack } = scenario();
      const claims = identityClaims({ email_verified: false });
      await logInThrough(stack, claims);
      const token = await mailedToken(stack, claims.email, 'verify-email');
      expect((await call('auth.verifyEmail', { token })).data.unproven).toHaveLength(1);
      const [user] = await usersWith(scenario(), claims.email);
      const { session = '' } = await logInThrough(stack, claims);
      expect(await isAlive(call, session)).toBe(true);
      expect(await identitiesOf(stack, claims.sub)).toHaveLength(1);
      const { pending, code } = await codeFor(scenario(), claims.email);
      const reply = await call('auth.finishEmailCode', { code }, { pending });
      expect(reply.data.user.id).toBe(user?.id);
      expect(await isAlive(call, session)).toBe(false);
      expect(await identitiesOf(stack, claims.sub)).toHaveLength(0);
    });

    describe('between the mail and the code', () => {
      const ends: [string, (of: { id: string; email: string; session: string }) => Promise<unknown>][] = [
        ['a logout on all devices', ({ session }) => scenario().call('auth.logoutAll', undefined, { session })],
        [
          'a change of the password',
          ({ session }) =>
            scenario().call(
              'account.changePassword',
              { currentPassword: PASSWORD, newPassword: 'Another-Engine-1844' },
              { session },
            ),
        ],
        [
          'a reset',
          async ({ email }) => {
            await scenario().call('auth.forgotPassword', { email });
            const token = await mailedToken(scenario().stack, email, 'reset-password');
            return scenario().call('auth.resetPassword', { token, email, password: PASSWORD });
          },
        ],
        ['a deletion', ({ session }) => scenario().call('account.delete', undefined, { session })],
      ];
      test.each(ends)('%s ends the code', async (_, end) => {
        const { call } = scenario();
        const person = await loggedIn(scenario());
        const { pending, code } = await codeFor(scenario(), person.email);
        expect(await end(person)).toMatchObject({ status: 200 });
        expectRefusal(await call('auth.finishEmailCode', { code }, { pending }), 401, 'UNAUTHENTICATED');
      });
    });

    test('what a blocked user, or one who is being deleted, is told comes after the right code', async () => {
      const { call, stack } = scenario();
      const admin = await administrator(scenario());
      const [before, since, deleted] = [
        await verified(scenario()),
        await verified(scenario()),
        await loggedIn(scenario()),
      ];
      await call('users.block', { id: before.id }, { session: admin.session });
      const early = await codeFor(scenario(), before.email);
      const late = await codeFor(scenario(), since.email);
      await call('users.block', { id: since.id }, { session: admin.session });
      for (const { pending, code } of [early, late]) {
        expectRefusal(await call('auth.finishEmailCode', { code: otherThan(code) }, { pending }), 401, 'INVALID_CODE');
        expectRefusal(await call('auth.finishEmailCode', { code }, { pending }), 403, 'ACCOUNT_BLOCKED');
      }
      await call('account.delete', undefined, { session: deleted.session });
      const { pending, code } = await codeFor(scenario(), deleted.email);
      expectRefusal(await call('auth.finishEmailCode', { code }, { pending }), 403, 'ACCOUNT_DELETED');
      const refusals = () => eventsOf(stack, deleted.id, 'login-refused');
      await until(async () => (await refusals()).length === 1, { what: 'the event' });
      expect(await refusals()).toEqual([{ reason: 'deleted' }]);
      // Blocked since its mail, but with a change that ended all sessions before: the code is void.
      const ended = await verified(scenario());
      const mailed = await codeFor(scenario(), ended.email);
      await stack.database('update users set session_epoch = session_epoch + 1 where id = ?', [ended.id]);
      await call('users.block', { id: ended.id }, { session: admin.session });
      const refused = await call('auth.finishEmailCode', { code: mailed.code }, { pending: mailed.pending });
      expectRefusal(refused, 401, 'UNAUTHENTICATED');
    });

    test('a code for an account that has another address by now makes no second account', async () => {
      const { call, stack } = scenario();
      const { id, email } = await verified(scenario());
      const { pending, code } = await codeFor(scenario(), email);
      await stack.database('update users set email = ? where id = ?', [freshEmail(), id]);
      expectRefusal(await call('auth.finishEmailCode', { code }, { pending }), 401, 'UNAUTHENTICATED');
      expect(await usersWith(scenario(), email)).toEqual([]);
    });

    test('a code makes no account of an address that was given up after its mail', async () => {
      const { call, stack } = scenario();
      const [email, next] = [freshEmail(), freshEmail()];
      const { pending, code } = await codeFor(scenario(), email);
      const { session } = await loggedIn(scenario(), { email });
      await call('account.changeEmail', { email: next }, inBrowser(session));
      const token = await mailedToken(stack, next, 'confirm-email');
      expect((await call('account.confirmEmail', { token }, inBrowser(session))).code).toBeUndefined();
      expectRefusal(await call('auth.finishEmailCode', { code }, { pending }), 409, 'EMAIL_TAKEN');
      expect(await usersWith(scenario(), email)).toEqual([]);
    });

    test('past the limit of the inbox the answer is the same, and no code works', async () => {
      const { call, stack } = scenario();
      const email = freshEmail();
      for (let count = 1; count <= 10; count++) await codeFor(scenario(), email, count);
      const pending = await askForCode(call, email);
      await mailsSettled(stack, email);
      expect(await stack.mailsTo(email)).toHaveLength(10);
      expectRefusal(await call('auth.finishEmailCode', { code: '123456' }, { pending }), 401, 'INVALID_CODE');
    });

    test('the login ends the session of the request, and keeps a known device known', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      const { pending, code } = await codeFor(scenario(), person.email);
      const { session, device } = person;
      const reply = await call('auth.finishEmailCode', { code }, { pending, session, device });
      expect(deviceIn(reply)).toBeDefined();
      expect(await isAlive(call, session)).toBe(false);
      expect((await eventsOf(stack, person.id, 'logged-in')).at(-1)).not.toHaveProperty('device');
    });
  },
  { env: { ...environmentFor(provider), EMAIL_CODES: 'on' } },
);

describe('where registration is closed', () => {
  everywhere(
    (scenario) => {
      test('an unknown address is told by mail, an invited one gets its account', async () => {
        const { call, stack } = scenario();
        const [unknown, invited] = [freshEmail(), freshEmail()];
        const { session } = await storedUser(scenario(), { role: 'admin' });
        const answers = [await call('auth.beginEmailCode', { email: unknown })];
        const { text } = await stack.waitForMail({ to: unknown, subject: 'No account' });
        expect(text).not.toMatch(/\d{6}/);
        const pending = pendingIn(answers[0] as never);
        expectRefusal(await call('auth.finishEmailCode', { code: '123456' }, { pending }), 401, 'INVALID_CODE');
        expect(await usersWith(scenario(), unknown)).toEqual([]);

        expect((await call('users.invite', { email: invited }, { session })).code).toBeUndefined();
        const asked = await codeFor(scenario(), invited);
        const reply = await call('auth.finishEmailCode', { code: asked.code }, { pending: asked.pending });
        expect(reply.status).toBe(200);
        expect(await eventsOf(stack, reply.data.user.id, 'registered')).toEqual([
          { method: 'email-code', invitedBy: 'administrator' },
        ]);
        expect(await stack.database('select id from invitations where email = ?', [invited])).toEqual([]);
      });

      test('a code mailed while an invitation was open makes no account once it is revoked', async () => {
        const { call, stack } = scenario();
        const { session } = await storedUser(scenario(), { role: 'admin' });
        const email = `${randomBytes(6).toString('hex')}.${freshEmail()}`;
        await call('users.invite', { email }, { session });
        const { pending, code } = await codeFor(scenario(), email);
        await stack.database('delete from invitations where email = ?', [email]);
        expectRefusal(await call('auth.finishEmailCode', { code }, { pending }), 403, 'REGISTRATION_CLOSED');
        expect(await usersWith(scenario(), email)).toEqual([]);
      });
    },
    { env: { EMAIL_CODES: 'on', REGISTRATION: 'invited' } },
  );
});

describe('with few registrations', () => {
  everywhere(
    (scenario) => {
      test('accounts that codes make count as registrations of the address, logins do not', async () => {
        const { call } = scenario();
        const { email } = await verified(scenario());
        const address = clientAddress();
        const finish = async (to: string) => {
          const asked = await codeFor(scenario(), to);
          return call('auth.finishEmailCode', { code: asked.code }, { pending: asked.pending, address });
        };
        expect((await finish(freshEmail())).status).toBe(200);
        expect((await finish(email)).status).toBe(200);
        const refused = freshEmail();
        expectRefusal(await finish(refused), 429, 'RATE_LIMITED');
        expect(await usersWith(scenario(), refused)).toEqual([]);
      });
    },
    { env: { EMAIL_CODES: 'on', LIMIT_REGISTER: '1/3600' } },
  );
});
