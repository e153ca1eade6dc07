import { describe, expect, test } from 'vitest';
import { remainsOf } from '../../rig/observe/remains.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { until } from '../../rig/until.ts';
import type { Call } from '../rig/callers.ts';
import { withKey } from '../rig/key-scenario.ts';
import { relyingParty } from '../rig/relying-party.ts';
import {
  everywhere,
  expectRefusal,
  growOld,
  inBrowser,
  isAlive,
  kindsOf,
  loggedIn,
  logIn,
  mailedToken,
  mailsSettled,
  PASSWORD,
  registered,
  sessionIn,
} from '../rig/scenario.ts';

/** A user deletes the account, restores it, or is removed with all stored data. */

const DAY = 24 * 60 * 60;
const WRONG = `${PASSWORD}!`;
const CLEARED = 'auth_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0';
const MAIL = 'is being deleted';

const leave = async (call: Call, session: string) => {
  const reply = await call('account.delete', undefined, { session });
  expect(reply).toMatchObject({ status: 200, code: undefined });
  return reply;
};

/** A user with a deleted account. */
const gone = async (scenario: { call: Call; stack: Stack }) => {
  const person = await loggedIn(scenario);
  await leave(scenario.call, person.session);
  return person;
};

/** As if the grace period had passed. */
const passTime = ({ database }: Stack, userId: string) =>
  database('update removals set due_at = 1 where user_id = ?', [userId]);

/** As if the removal had started, and mails been sent, more than an hour ago. */
const passHour = async ({ database }: Stack, userId: string, email: string) => {
  await database('update outbox set created_at = created_at - 3600001 where email = ?', [email]);
  await database('update removals set begun_at = begun_at - 3600000, due_at = 1 where user_id = ?', [userId]);
};

/** A user who registers an email that another account had. */
const nextOwnerOf = async (scenario: { call: Call; stack: Stack }, email: string) => {
  const person = await registered(scenario, { email });
  const token = await mailedToken(scenario.stack, email, 'verify-email', 2);
  await scenario.call('auth.verifyEmail', { token }, { browser: person.browser });
  return { ...person, session: await logIn(scenario.call, person) };
};

/** Whether the user is visible: in the list, the search, by id. */
const isSeen = async (call: Call, { id, email }: { id: string; email: string }, session?: string) => {
  const list = await call('users.list', { limit: 100 });
  const search = await call('users.list', { q: email });
  const one = await call('users.get', { id });
  const own = await call('users.get', { id }, { session });
  expect(own.status).toBe(one.status);
  const found = [list, search].map(({ data }) => data.data.some((user: { id: string }) => user.id === id));
  return [...found, one.status === 200];
};

everywhere((scenario) => {
  // checks: 26
  test('a deletion ends all sessions, hides the user, keeps the email and states the day of removal', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const other = await logIn(call, person);
    const onlooker = await loggedIn(scenario());
    expect(await isSeen(call, person, onlooker.session)).toEqual([true, true, true]);
    const reply = await leave(call, session);
    expect(reply.setCookies).toEqual([CLEARED]);
    expect(reply.data).toEqual({
      success: true,
      message: expect.any(String),
      deletedAt: expect.any(Number),
      removedAfter: reply.data.deletedAt + 14 * DAY,
    });
    expect(Math.abs(reply.data.deletedAt - Date.now() / 1000)).toBeLessThan(60);
    expect(await Promise.all([session, other].map((one) => isAlive(call, one)))).toEqual([false, false]);
    expect(await isSeen(call, person, onlooker.session)).toEqual([false, false, false]);
    expectRefusal(await call('auth.register', { ...person, name: 'Bob' }), 409, 'EMAIL_TAKEN');
    expect(await kindsOf(stack, person.id)).toEqual(expect.arrayContaining(['deletion-requested']));
    const { text } = await stack.waitForMail({ to: person.email, subject: MAIL });
    const day = new Date(reply.data.removedAfter * 1000).toLocaleDateString('en-GB', {
      day: 'numeric',
      month: 'long',
      year: 'numeric',
      timeZone: 'UTC',
    });
    expect(text).toContain(`log in by ${day}`);
    expect(text).toContain(`${stack.appUrl}/login`);
    expect(text).not.toContain(person.name);
  });

  // checks: 24
  test('a deletion requires an own page and a session with a recent credential', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    expectRefusal(await call('account.delete'), 401, 'UNAUTHENTICATED');
    const headers = { origin: 'https://evil.test' };
    expectRefusal(await call('account.delete', undefined, { session, headers }), 403, 'ORIGIN_MISMATCH');
    await growOld(stack, person.id);
    expectRefusal(await call('account.delete', undefined, { session }), 403, 'REAUTHENTICATION_REQUIRED');
    expect(await isSeen(call, person)).toEqual([true, true, true]);
    await call('auth.reauthenticate', { password: PASSWORD }, { session });
    await leave(call, session);
  });

  test('twenty concurrent deletions count as one, with one mail', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const replies = await Promise.all(Array.from({ length: 20 }, () => call('account.delete', undefined, { session })));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(401)]);
    await mailsSettled(stack, person.email);
    expect((await stack.mailsTo(person.email)).filter(({ subject }) => subject.includes(MAIL))).toHaveLength(1);
  });

  test('a deletion invalidates mailed links', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    await call('auth.forgotPassword', { email: person.email });
    const token = await mailedToken(stack, person.email, 'reset-password');
    await leave(call, session);
    const input = { token, email: person.email, password: `${PASSWORD}-2` };
    expectRefusal(await call('auth.resetPassword', input), 400, 'INVALID_TOKEN');
  });

  test('only the right password reveals the deletion; restoring logs in', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await gone(scenario());
    const { email } = person;
    expectRefusal(await call('auth.login', { email, password: WRONG }), 401, 'INVALID_CREDENTIALS');
    expectRefusal(await call('auth.login', { email, password: PASSWORD }), 403, 'ACCOUNT_DELETED');
    expectRefusal(await call('account.restore', { email, password: WRONG }), 401, 'INVALID_CREDENTIALS');
    expect(await isSeen(call, person)).toEqual([false, false, false]);
    const reply = await call('account.restore', { email, password: PASSWORD });
    expect(reply.data).toEqual({
      success: true,
      message: expect.any(String),
      user: { id: person.id, email, name: person.name, provider: 'email' },
    });
    expect(await isAlive(call, sessionIn(reply) ?? '')).toBe(true);
    expect(await isAlive(call, session)).toBe(false);
    expect(await isSeen(call, person)).toEqual([true, true, true]);
    expect(await stack.database('select user_id from removals where user_id = ?', [person.id])).toEqual([]);
    expect((await kindsOf(stack, person.id)).slice(-2)).toEqual(['deletion-undone', 'logged-in']);
    await until(async () => (await kindsOf(stack, person.id)).filter((kind) => kind === 'login-refused').length === 3);
    expect((await call('auth.login', { email, password: PASSWORD })).status).toBe(200);
  });

  test('restoring an account that is not deleted is a login, if the account may log in', async () => {
    const { call, stack } = scenario();
    const { email, id } = await loggedIn(scenario());
    expect((await call('account.restore', { email, password: PASSWORD })).status).toBe(200);
    expect(await kindsOf(stack, id)).not.toContain('deletion-undone');
    const unverified = await registered(scenario());
    const input = { email: unverified.email, password: PASSWORD };
    expectRefusal(await call('account.restore', input), 403, 'EMAIL_NOT_VERIFIED');
    expectRefusal(await call('account.restore', { ...input, password: WRONG }), 401, 'INVALID_CREDENTIALS');
  });

  // checks: 13
  test('restores share the limit of logins', async () => {
    const { call } = scenario();
    const { email } = await gone(scenario());
    const address = clientAddress();
    for (const procedure of ['auth.login', 'account.restore', 'auth.login', 'account.restore', 'auth.login']) {
      expect((await call(procedure, { email, password: WRONG }, { address })).status).toBe(401);
    }
    expectRefusal(await call('account.restore', { email, password: PASSWORD }, { address }), 429, 'RATE_LIMITED');
  });

  test('a password reset works and does not restore the account', async () => {
    const { call, stack } = scenario();
    const { email, ...person } = await gone(scenario());
    await call('auth.forgotPassword', { email });
    const token = await mailedToken(stack, email, 'reset-password');
    const password = `${PASSWORD}-2`;
    expect((await call('auth.resetPassword', { token, email, password })).status).toBe(200);
    expect(await isSeen(call, { ...person, email })).toEqual([false, false, false]);
    expectRefusal(await call('auth.login', { email, password }), 403, 'ACCOUNT_DELETED');
    expectRefusal(await call('account.restore', { email, password: PASSWORD }), 401, 'INVALID_CREDENTIALS');
    expect((await call('account.restore', { email, password })).status).toBe(200);
  });

  test('after the grace period nothing is left, and the email is free', async () => {
    const { call, stack } = scenario();
    const { email, id, session } = await withKey(scenario());
    await (await relyingParty(scenario())).logIn(session);
    await leave(call, session);
    await call('auth.forgotPassword', { email });
    await mailedToken(stack, email, 'reset-password');
    await mailsSettled(stack, email);
    await passTime(stack, id);
    await until(async () => (await stack.database('select id from users where id = ?', [id])).length === 0);
    expectRefusal(await call('account.restore', { email, password: PASSWORD }), 401, 'INVALID_CREDENTIALS');
    expectRefusal(await call('auth.login', { email, password: PASSWORD }), 401, 'INVALID_CREDENTIALS');
    await passHour(stack, id, email);
    await until(async () => (await remainsOf(stack, [id, email])).length === 0, { what: 'nothing' });
    const next = await nextOwnerOf(scenario(), email);
    expect(next.id).not.toBe(id);
    expect(await kindsOf(stack, next.id)).toEqual(['registered', 'verified', 'logged-in']);
  });

  test('the removal does not touch what the next owner of the email does', async () => {
    const { call, stack } = scenario();
    const { email, id } = await gone(scenario());
    await passTime(stack, id);
    await until(async () => (await stack.database('select id from users where id = ?', [id])).length === 0);
    const next = await nextOwnerOf(scenario(), email);
    await call('auth.forgotPassword', { email });
    await mailedToken(stack, email, 'reset-password');
    await mailsSettled(stack, email);
    const before = await remainsOf(stack, [next.id]);
    await stack.database('update removals set begun_at = begun_at - 600001, due_at = 1 where user_id = ?', [id]);
    await stack.database('update outbox set created_at = created_at - 3600001 where user_id = ?', [id]);
    await until(async () => (await remainsOf(stack, [id])).length === 0, { what: 'nothing' });
    expect(await remainsOf(stack, [next.id])).toEqual(before);
    expect(await isAlive(call, next.session)).toBe(true);
  });
});

describe('with a grace period shorter than the life of mailed links', () => {
  everywhere(
    (scenario) => {
      test('a deleted account is kept until its links expire, and each of them works', async () => {
        const { call, stack } = scenario();
        const { session, email: former, ...person } = await loggedIn(scenario());
        const email = freshEmail();
        await call('account.changeEmail', { email }, inBrowser(session));
        const token = await mailedToken(stack, email, 'confirm-email');
        expect((await call('account.confirmEmail', { token }, inBrowser(session))).status).toBe(200);
        const undo = await mailedToken(stack, former, 'undo-email-change');
        // Another person deletes the account.
        const thief = await logIn(call, { ...person, email });
        const notMe = await mailedToken(stack, email, 'not-me');
        const { data } = await leave(call, thief);
        expect(data.removedAfter).toBe(data.deletedAt + 7 * DAY);
        const [change] = await stack.database<{ expires_at: number }>(
          'select expires_at from email_changes where user_id = ?',
          [person.id],
        );
        expect(data.removedAfter * 1000).toBeGreaterThanOrEqual(Number(change?.expires_at) - 1000);
        // Both addresses get a mail about the deletion.
        for (const to of [former, email]) await stack.waitForMail({ to, subject: MAIL });
        expect((await call('account.notMe', { token: notMe })).status).toBe(200);
        expect((await call('account.undoEmailChange', { token: undo })).status).toBe(200);
        expect((await call('users.get', { id: person.id })).status).toBe(200);
      });
    },
    { env: { DELETION_GRACE_DAYS: '1' } },
  );
});
