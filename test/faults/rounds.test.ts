import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Call, callerOf, type Reply } from '../contract/rig/callers.ts';
import {
  loggedIn,
  logIn,
  mailedToken,
  PASSWORD,
  type Person,
  registered,
  sessionIn,
  verified,
} from '../contract/rig/scenario.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { atInstance, begin, identitiesOf, identityClaims, usersWith } from '../provider/login.ts';
import { ageSession, type Entry, restoreEntries, sessionEntry } from '../rig/observe/key-value-view.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';
import { AT_ONCE, allMailsSettled, inRounds, livesAt, patient, soon, statuses, tally } from './in-rounds.ts';
import { unlimited } from './load.ts';

/** One race in many rounds at two instances, to find faults that occur once in a hundred times. */
const ROUNDS = 200;
const SESSION_ROUNDS = 500;
const HALF_A_LIFE_MS = 3.6 * 24 * 60 * 60_000;

const provider = await startHostileProvider();
let stack: Stack;
let call: Call;
let callers: Call[];

beforeAll(async () => {
  stack = await startStack('real', { instances: 2, env: { ...unlimited, ...environmentFor(provider) } });
  callers = stack.services.map(({ url }) => patient(callerOf('rest', url)));
  call = patient(callerOf('rest', stack.url));
});
afterAll(() => Promise.all([stack?.stop(), provider.close()]));
beforeEach(() => allMailsSettled(stack));

const caller = (i: number) => callers[i % callers.length] ?? call;

const both = (ask: (call: Call, i: number) => Promise<Reply>) =>
  Promise.all([0, 1, 2, 3].map((i) => ask(caller(i), i)));

const resetTokenOf = async (email: string) => {
  expect((await call('auth.forgotPassword', { email })).status).toBe(200);
  return mailedToken(stack, email, 'reset-password');
};

const lives = (session: string) => livesAt(callers, session);

/** A new session; retried after a 503 of a busy machine. */
const opened = (round: number, person: Person) => until(() => logIn(caller(round), person), { what: 'a login' });

describe(`in ${ROUNDS} rounds`, () => {
  // checks: F14
  test('one registration of an email wins', async () => {
    const outcomes = await inRounds(ROUNDS, async () => {
      const person = { name: 'Ada Lovelace', email: freshEmail(), password: PASSWORD };
      const replies = await both((caller) => caller('auth.register', person));
      return [...statuses(replies), (await usersWith(stack, person.email)).length];
    });
    expect(tally(outcomes)).toEqual({ '[201,409,409,409,1]': ROUNDS });
  });

  // checks: 32, F14
  test('one use of a reset token wins, and sets its password', async () => {
    const outcomes = await inRounds(ROUNDS, async () => {
      const { email } = await verified({ stack, call });
      const token = await resetTokenOf(email);
      const passwordOf = (i: number) => `Difference-Engine-${i}`;
      const replies = await both((caller, i) =>
        caller('auth.resetPassword', { token, email, password: passwordOf(i) }),
      );
      const logins = await both((caller, i) => caller('auth.login', { email, password: passwordOf(i) }));
      return [...statuses(replies), replies.every(({ status }, i) => (status === 200) === (logins[i]?.status === 200))];
    });
    expect(tally(outcomes)).toEqual({ '[200,400,400,400,true]': ROUNDS });
  });

  // checks: 10, F14
  test('concurrent uses of a verification token all verify the account, without logging in', async () => {
    const outcomes = await inRounds(ROUNDS, async () => {
      const { email, browser } = await registered({ stack, call });
      const token = await mailedToken(stack, email, 'verify-email');
      const replies = await both((caller) => caller('auth.verifyEmail', { token }, { browser }));
      const [user] = await usersWith(stack, email);
      return [...statuses(replies), user?.email_verified, replies.some((reply) => sessionIn(reply) !== undefined)];
    });
    expect(tally(outcomes)).toEqual({ '[200,200,200,200,1,false]': ROUNDS });
  });

  // checks: F14
  test('one callback of a provider login wins, and creates one user with one identity', async () => {
    const outcomes = await inRounds(ROUNDS, async () => {
      const { browser, request } = await begin(stack);
      const claims = identityClaims();
      const callback = provider.authorize(request, claims);
      const browsers = [0, 1, 2, 3].map(() => browser.copy());
      const locations = await Promise.all(
        browsers.map((copy, i) =>
          copy.redirectOf(atInstance(stack.services[i % stack.services.length] ?? stack, callback)),
        ),
      );
      const won = locations.filter((location) => location === '/dashboard').length;
      const refused = locations.filter((location) => location.startsWith('(400')).length;
      const sessions = browsers.filter(({ session }) => session).length;
      const stored = [await usersWith(stack, claims.email), await identitiesOf(stack, claims.sub)];
      return [won, refused, sessions, ...stored.map(({ length }) => length)];
    });
    expect(tally(outcomes)).toEqual({ '[1,3,1,1,1]': ROUNDS });
  });

  // checks: F14
  test('a profile change that races with a reset is stored completely or refused', async () => {
    const outcomes = await inRounds(ROUNDS, async (round) => {
      const { email, session } = await loggedIn({ stack, call });
      const token = await resetTokenOf(email);
      const password = 'Difference-Engine-1';
      const [reset, change] = await Promise.all([
        caller(round)('auth.resetPassword', { token, email, password }),
        soon().then(() => caller(round + 1)('profile.update', { bio: 'raced' }, { session })),
      ]);
      const again = await caller(round)('profile.update', { bio: 'late' }, { session });
      const [row] = await stack.database<{ bio: string }>('select bio from users where email = ?', [email]);
      expect((await call('auth.login', { email, password })).status).toBe(200);
      const isRight = row?.bio === 'raced' ? change.status === 200 : change.status === 401;
      return [reset.status, again.status, isRight];
    });
    expect(tally(outcomes)).toEqual({ '[200,401,true]': ROUNDS });
  });
});

describe(`in ${SESSION_ROUNDS} rounds`, () => {
  // checks: 35, 36, F15
  test('no session of the old password outlives a reset', async () => {
    let raced = 0;
    const survivors = await inRounds(SESSION_ROUNDS, async (round) => {
      const person = await verified({ stack, call });
      const token = await resetTokenOf(person.email);
      const [reset, ...logins] = await Promise.all([
        caller(round)('auth.resetPassword', { token, email: person.email, password: 'Difference-Engine-1' }),
        ...[0, 1, 2].map((i) => soon().then(() => caller(i)('auth.login', person))),
      ]);
      expect(reset?.status).toBe(200);
      const sessions = logins.map(sessionIn).filter((session) => session !== undefined);
      raced += sessions.length;
      const alive = await Promise.all(sessions.map(lives));
      return alive.flat().filter(Boolean).length;
    });
    expect(tally(survivors)).toEqual({ 0: SESSION_ROUNDS });
    // Otherwise no login has raced.
    expect(raced).toBeGreaterThan(SESSION_ROUNDS / 10);
    console.log(`F15: ${raced} sessions were opened beside ${SESSION_ROUNDS} resets, 0 survived`);
  });

  // checks: 22, F15
  test('no earlier session outlives a logout everywhere; one opened concurrently works everywhere or nowhere', async () => {
    const users = await Promise.all(Array.from({ length: AT_ONCE }, () => verified({ stack, call })));
    let raced = 0;
    const outcomes = await inRounds(SESSION_ROUNDS, async (round, player) => {
      const person = users[player] ?? (await verified({ stack, call }));
      const [first, second] = [await opened(round, person), await opened(round + 1, person)];
      const [ended, login] = await Promise.all([
        caller(round)('auth.logoutAll', undefined, { session: first }),
        soon().then(() => caller(round + 1)('auth.login', person)),
      ]);
      expect(ended.status).toBe(200);
      const before = await Promise.all([first, second].map(lives));
      const beside = sessionIn(login);
      const states = beside ? await lives(beside) : [];
      if (beside) raced++;
      return [before.flat().filter(Boolean).length, new Set(states).size <= 1];
    });
    expect(tally(outcomes)).toEqual({ '[0,true]': SESSION_ROUNDS });
    expect(raced).toBeGreaterThan(SESSION_ROUNDS / 10);
    console.log(
      `F15: ${raced} sessions were opened beside ${SESSION_ROUNDS} logouts everywhere, none from before survived`,
    );
  });

  // checks: F15
  test('an ended session does not come back by use, renewal or a Redis snapshot', async () => {
    const users = await Promise.all(Array.from({ length: AT_ONCE }, () => loggedIn({ stack, call })));
    const ended: { session: string; id: string }[] = [];
    const snapshot: Entry[] = [];
    let renewed = 0;
    const outcomes = await inRounds(SESSION_ROUNDS, async (round, player) => {
      const user = users[player] ?? (await loggedIn({ stack, call }));
      const session = await opened(round, user);
      const { data } = await call('sessions.list', undefined, { session });
      const { id } = data.data.find(({ current }: { current: boolean }) => current);
      await ageSession(stack, session, HALF_A_LIFE_MS);
      snapshot.push(await sessionEntry(stack, session));
      const [end, ...uses] = await Promise.all([
        round % 2
          ? soon().then(() => caller(round)('auth.logout', undefined, { session }))
          : soon().then(() => caller(round)('sessions.end', { id }, { session: user.session })),
        ...[0, 1, 2, 3].map((i) => soon().then(() => caller(i)('profile.get', undefined, { session }))),
      ]);
      ended.push({ session, id });
      if (uses.some(sessionIn)) renewed++;
      const alive = await lives(session);
      return [end?.status, uses.every(({ status }) => status === 200 || status === 401), alive.filter(Boolean).length];
    });
    expect(tally(outcomes)).toEqual({ '[200,true,0]': SESSION_ROUNDS });
    expect(renewed).toBeGreaterThan(SESSION_ROUNDS / 10);

    await restoreEntries(stack, snapshot);
    const alive = await Promise.all(ended.map(({ session }) => lives(session)));
    expect(alive.flat().filter(Boolean)).toEqual([]);
    const marks = ended.map(() => '?').join(', ');
    const ids = ended.map(({ id }) => id);
    expect(await stack.database(`select id from sessions where id in (${marks})`, ids)).toEqual([]);
    console.log(
      `F15: ${renewed} of ${SESSION_ROUNDS} sessions were renewed beside their end, 0 survived, even after Redis was restored to an earlier state`,
    );
  });
});
