import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { administrator, logIn, PASSWORD, sessionIn, verified } from '../contract/rig/scenario.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';
import { AT_ONCE, allMailsSettled, inRounds, livesAt, patient, soon, tally } from './in-rounds.ts';
import { unlimited } from './load.ts';

/** Administrators at two instances act on each other and on users who log in, in many rounds. */
const ROUNDS = 200;

let stack: Stack;
let callers: ReturnType<typeof callerOf>[];

beforeAll(async () => {
  stack = await startStack('real', { instances: 2, env: unlimited });
  callers = stack.services.map(({ url }) => patient(callerOf('rest', url)));
});
afterAll(() => stack?.stop());
beforeEach(() => allMailsSettled(stack));

const caller = (i: number) => callers[i % callers.length] ?? callerOf('rest', stack.url);
const scenario = () => ({ stack, call: caller(0) });

describe(`in ${ROUNDS} rounds`, () => {
  test.each([
    ['the last two administrators', 0, 'LAST_ADMINISTRATOR'],
    ['two of three administrators', 1, 'FORBIDDEN'],
  ])('if %s concurrently take the role from each other, one remains', async (_, others, refusal) => {
    await stack.database("update users set role = 'user'");
    const two = [await administrator(scenario()), await administrator(scenario())];
    for (let i = 0; i < others; i++) await administrator(scenario());
    const outcomes: unknown[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      for (const { id } of two) await stack.database("update users set role = 'admin' where id = ?", [id]);
      const replies = await Promise.all(
        two.map(({ session }, i) => caller(i)('users.setRole', { id: two[1 - i]?.id, role: 'user' }, { session })),
      );
      const left = await stack.database("select id from users where role = 'admin'");
      outcomes.push([...replies.map(({ code = 'done' }) => code).sort(), left.length - others]);
    }
    // A late one is refused because it is no longer an administrator.
    const counts = tally(outcomes);
    const [beside = 0, late = 0] = [refusal, 'FORBIDDEN'].map((code) => counts[JSON.stringify([code, 'done', 1])]);
    expect(refusal === 'FORBIDDEN' ? late : beside + late, JSON.stringify(counts)).toBe(ROUNDS);
    expect(beside).toBeGreaterThan(ROUNDS / 10);
  });

  test('no login that races with a block has a session, during the block or after it', async () => {
    const admin = await administrator(scenario());
    const players = await Promise.all(Array.from({ length: AT_ONCE }, () => verified(scenario())));
    const done = async (act: string, id: string, i: number) =>
      until(async () => (await caller(i)(`users.${act}`, { id }, { session: admin.session })).status === 200);
    const outcomes = await inRounds(ROUNDS, async (round, player) => {
      const person = players[player] ?? (await verified(scenario()));
      const { id, email } = person;
      const open = await until(() => logIn(caller(round), person));
      const login = caller(round)('auth.login', { email, password: PASSWORD });
      await soon();
      await done('block', id, round + 1);
      const reply = await login;
      const sessions = [open, sessionIn(reply)].filter((session) => session !== undefined && session !== '');
      const alive = async () => (await Promise.all(sessions.map((each) => livesAt(callers, each ?? '')))).flat();
      const during = await alive();
      await done('unblock', id, round);
      return [...during, ...(await alive())].includes(true) ? 'alive' : reply.status === 200 ? 'opened' : 'refused';
    });
    const {
      opened = 0,
      refused = 0,
      ...others
    } = Object.fromEntries(Object.entries(tally(outcomes)).map(([outcome, count]) => [JSON.parse(outcome), count]));
    expect(others).toEqual({});
    console.log(`${opened} sessions opened beside blocks, ${refused} logins refused, survived 0`);
  });
});
