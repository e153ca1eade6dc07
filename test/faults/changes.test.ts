import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Call, callerOf, type Reply } from '../contract/rig/callers.ts';
import { inBrowser, loggedIn, logIn, mailedToken, PASSWORD, sessionIn, verified } from '../contract/rig/scenario.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';
import { AT_ONCE, allMailsSettled, inRounds, livesAt, patient, soon, statuses, tally } from './in-rounds.ts';
import { unlimited } from './load.ts';

/** Concurrent changes of password and email at two instances, and concurrent requests that they affect. */
const ROUNDS = 500;
const MAILED_ROUNDS = 200;

let stack: Stack;
let call: Call;
let callers: Call[];

beforeAll(async () => {
  stack = await startStack('real', { instances: 2, env: unlimited });
  callers = stack.services.map(({ url }) => patient(callerOf('rest', url)));
  call = patient(callerOf('rest', stack.url));
});
afterAll(() => stack?.stop());
beforeEach(() => allMailsSettled(stack));

const caller = (i: number) => callers[i % callers.length] ?? call;
const aliveOf = async (sessions: (string | undefined)[]) =>
  (await Promise.all(sessions.map((session) => (session ? livesAt(callers, session) : [])))).flat().filter(Boolean)
    .length;

/** A new session; retried after a 503 of a busy machine. */
const opened = (round: number, person: Parameters<typeof logIn>[1]) =>
  until(() => logIn(caller(round), person), { what: 'a login' });

const newPassword = (round: number, i: number) => `Difference-Engine-${round}-${i}`;

const changePassword = (i: number, session: string, currentPassword: string, newPassword: string): Promise<Reply> =>
  caller(i)('account.changePassword', { currentPassword, newPassword }, { session });

describe(`in ${ROUNDS} rounds`, () => {
  // checks: F15
  test('of concurrent password changes one wins, and only its session continues', async () => {
    const users = await Promise.all(Array.from({ length: AT_ONCE }, () => verified({ stack, call })));
    const outcomes = await inRounds(ROUNDS, async (round, player) => {
      const user = users[player] ?? (await verified({ stack, call }));
      const sessions = [await opened(round, user), await opened(round + 1, user)];
      const used = [sessions[0], sessions[1], sessions[0], sessions[1]] as string[];
      const replies = await Promise.all(
        used.map((session, i) => changePassword(i, session, user.password, newPassword(round, i))),
      );
      const winner = replies.findIndex(({ status }) => status === 200);
      if (winner !== -1) user.password = newPassword(round, winner);
      const next = replies.map((reply) => sessionIn(reply) || undefined);
      const before = await aliveOf(sessions);
      const after = await aliveOf(next);
      await opened(round, user);
      const rows = await stack.database(
        'select id from sessions s where user_id = ? and epoch = (select session_epoch from users where id = s.user_id)',
        [user.id],
      );
      return [...statuses(replies), before, after, rows.length];
    });
    // Valid: the winner's new token on both instances. Rows: that session and the last login.
    expect(tally(outcomes)).toEqual({ '[200,401,401,401,0,2,2]': ROUNDS });
  });

  // checks: 36, F15
  test('no session of the old password outlives a password change', async () => {
    const users = await Promise.all(Array.from({ length: AT_ONCE }, () => verified({ stack, call })));
    let raced = 0;
    const outcomes = await inRounds(ROUNDS, async (round, player) => {
      const user = users[player] ?? (await verified({ stack, call }));
      const session = await opened(round, user);
      const [change, ...logins] = await Promise.all([
        changePassword(round, session, user.password, newPassword(round, 0)),
        ...[0, 1, 2].map((i) => soon().then(() => caller(i)('auth.login', user))),
      ]);
      user.password = newPassword(round, 0);
      const beside = logins.map((reply) => sessionIn(reply) || undefined).filter((one) => one !== undefined);
      raced += beside.length;
      return [change.status, await aliveOf([session, ...beside]), await aliveOf([sessionIn(change)])];
    });
    expect(tally(outcomes)).toEqual({ '[200,0,2]': ROUNDS });
    expect(raced).toBeGreaterThan(ROUNDS / 10);
    console.log(`${raced} sessions were opened beside ${ROUNDS} changes of the password, 0 survived`);
  });

  // checks: F15
  test('of a password change and a concurrent reset, one wins, and no session of the other remains', async () => {
    const outcomes = await inRounds(ROUNDS, async (round) => {
      const { session, ...person } = await loggedIn({ stack, call });
      const { email } = person;
      expect((await call('auth.forgotPassword', { email })).status).toBe(200);
      const token = await mailedToken(stack, email, 'reset-password');
      const [change, reset] = await Promise.all([
        soon().then(() => changePassword(round, session, PASSWORD, newPassword(round, 0))),
        soon().then(() => caller(round + 1)('auth.resetPassword', { token, email, password: newPassword(round, 1) })),
      ]);
      const isReset = reset.status === 200;
      const alive = [await aliveOf([session]), await aliveOf([sessionIn(change) || undefined])];
      await opened(round, { ...person, password: newPassword(round, isReset ? 1 : 0) });
      return isReset ? [change.status, ...alive] : [change.status, reset.status, ...alive];
    });
    const seen = tally(outcomes);
    // The old password was replaced or the session ended before the call: 401 in both cases.
    expect(Object.keys(seen).sort()).toEqual(['[200,400,0,2]', '[401,0,0]']);
    console.log(`a change of the password beside a reset: ${JSON.stringify(seen)}`);
  });
});

describe(`in ${MAILED_ROUNDS} rounds`, () => {
  /** Requests an email change and returns the mailed token. */
  const requestChange = async (session: string, email: string, count?: number) => {
    expect((await call('account.changeEmail', { email }, inBrowser(session))).status).toBe(200);
    return mailedToken(stack, email, 'confirm-email', count);
  };

  // checks: F14
  test('of two users who confirm one email concurrently, one gets it', async () => {
    const outcomes = await inRounds(MAILED_ROUNDS, async (round) => {
      const [ada, bob] = await Promise.all([0, 1].map(() => loggedIn({ stack, call })));
      if (!ada || !bob) throw new Error('two users');
      const email = freshEmail();
      const tokens = [await requestChange(ada.session, email), await requestChange(bob.session, email, 2)];
      const replies = await Promise.all(
        [ada, bob].map(({ session }, i) =>
          caller(round + i)('account.confirmEmail', { token: tokens[i] }, inBrowser(session)),
        ),
      );
      const owners = await stack.database<{ id: string }>('select id from users where email = ?', [email]);
      const winner = [ada, bob].find((_, i) => replies[i]?.status === 200);
      return [...statuses(replies), owners.length, owners[0]?.id === winner?.id];
    });
    expect(tally(outcomes)).toEqual({ '[200,409,1,true]': MAILED_ROUNDS });
  });

  // checks: F14
  test('an undo restores the former email despite a further change and logins, and ends earlier sessions', async () => {
    const outcomes = await inRounds(MAILED_ROUNDS, async (round) => {
      const { session, ...person } = await loggedIn({ stack, call });
      const [email, next] = [freshEmail(), freshEmail()];
      const token = await requestChange(session, email);
      expect((await call('account.confirmEmail', { token }, inBrowser(session))).status).toBe(200);
      const undo = await mailedToken(stack, person.email, 'undo-email-change');
      const further = await requestChange(session, next);
      const [undone, change, login, registration] = await Promise.all([
        soon().then(() => caller(round)('account.undoEmailChange', { token: undo })),
        soon().then(() => caller(round + 1)('account.confirmEmail', { token: further }, inBrowser(session))),
        soon().then(() => caller(round + 1)('auth.login', { ...person, email })),
        caller(round)('auth.register', { name: 'Mallory', email: person.email, password: PASSWORD }),
      ]);
      const [user] = await stack.database<{ email: string }>('select email from users where id = ?', [person.id]);
      const left = await stack.database('select id from email_changes where user_id = ?', [person.id]);
      const alive = await aliveOf([session, sessionIn(login) || undefined]);
      expect([200, 400, 401]).toContain(change.status);
      return [undone.status, registration.status, user?.email === person.email, left.length, alive];
    });
    expect(tally(outcomes)).toEqual({ '[200,409,true,0,0]': MAILED_ROUNDS });
  });

  // checks: F14
  test('nobody can register an email that is being given up', async () => {
    const outcomes = await inRounds(MAILED_ROUNDS, async (round) => {
      const { session, email: former } = await loggedIn({ stack, call });
      const token = await requestChange(session, freshEmail());
      const [change, registration] = await Promise.all([
        soon().then(() => caller(round)('account.confirmEmail', { token }, inBrowser(session))),
        caller(round + 1)('auth.register', { name: 'Mallory', email: former, password: PASSWORD }),
      ]);
      return [change.status, registration.status];
    });
    expect(tally(outcomes)).toEqual({ '[200,409]': MAILED_ROUNDS });
  });
});
