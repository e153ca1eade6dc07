import { afterAll, beforeAll, expect, test } from 'vitest';
import { duration } from '../bench/measure.ts';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { deviceIn, loggedIn } from '../contract/rig/scenario.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { patient, tally } from './in-rounds.ts';

/** Guesses at one account, each from its own address, at two instances with the default limits. */
const GUESSES = 10_000;
const AT_ONCE = 50;
const LIMIT_ACCOUNT = 100;

let stack: Stack;
let callers: Call[];

beforeAll(async () => {
  stack = await startStack('real', { instances: 2 });
  callers = stack.services.map(({ url }) => patient(callerOf('rest', url)));
});
afterAll(() => stack?.stop());

const caller = (i: number) => callers[i % callers.length] as Call;

/** Sends all guesses with this concurrency, each from its own address; returns their statuses. */
async function flood(email: string): Promise<number[]> {
  const statuses: number[] = [];
  let next = 0;
  const guess = async () => {
    while (next < GUESSES) {
      const i = next++;
      const { status } = await caller(i)('auth.login', { email, password: `Analytical-Engine-${i}` });
      statuses.push(status);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, guess));
  return statuses;
}

const expected = { 401: LIMIT_ACCOUNT, 429: GUESSES - LIMIT_ACCOUNT };

test('of ten thousand guesses from as many addresses a hundred are checked, and the owner can log in throughout', async () => {
  const { email, password, session } = await loggedIn({ stack, call: caller(0) });
  const device = deviceIn(await caller(0)('auth.login', { email, password }));
  let isOver = false;
  const times: number[] = [];
  const logInAllTheTime = async () => {
    for (let i = 0; !isOver; i++) {
      const logIn = async () => {
        const { status } = await caller(i)('auth.login', { email, password }, { device });
        expect(status).toBe(200);
      };
      times.push(await duration(logIn));
      expect((await caller(i)('auth.reauthenticate', { password }, { session })).status).toBe(200);
    }
  };
  const flooding = flood(email).finally(() => {
    isOver = true;
  });
  const [statuses] = await Promise.all([flooding, logInAllTheTime()]);
  expect(tally(statuses)).toEqual(expected);
  // Twice as many as a device may get wrong.
  expect(times.length).toBeGreaterThan(20);
  times.sort((a, b) => a - b);
  const at = (share: number) => Math.round(times[Math.floor(times.length * share)] ?? Number.NaN);
  console.log(
    `guesses at one account: ${GUESSES}, looked at ${LIMIT_ACCOUNT}; its owner logged in ${times.length} times during the guesses, refused 0, median ${at(0.5)} ms, p99 ${at(0.99)} ms`,
  );
});

test('guesses at an unknown email get the same answers', async () => {
  expect(tally(await flood(freshEmail()))).toEqual(expected);
});
