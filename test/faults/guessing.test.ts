import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { duration } from '../bench/measure.ts';
import { type Call, callerOf } from '../contract/callers.ts';
import { deviceIn, loggedIn } from '../contract/scenario.ts';
import { freshEmail } from '../rig/address.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { tally } from './in-rounds.ts';

/** One account is guessed at from as many addresses as there are guesses, at two instances, with the limits as they are. */
const GUESSES = 10_000;
const AT_ONCE = 50;
const LIMIT_ACCOUNT = 100;
// A bound for a machine that does much else.
vi.setConfig({ testTimeout: 240_000 });

let stack: Stack;
let callers: Call[];

beforeAll(async () => {
  stack = await startStack('real', { instances: 2 });
  callers = stack.services.map(({ url }) => callerOf('rest', url));
});
afterAll(() => stack?.stop());

const caller = (i: number) => callers[i % callers.length] as Call;

/** Sends all guesses, so many at once; answers their statuses. Each comes from an address of its own. */
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

test('of ten thousand guesses at an account from as many addresses a hundred are looked at, and its owner logs in all the time', async () => {
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
  // More than a device may give wrong ones, twice over.
  expect(times.length).toBeGreaterThan(20);
  times.sort((a, b) => a - b);
  const at = (share: number) => Math.round(times[Math.floor(times.length * share)] ?? Number.NaN);
  console.log(
    `guesses at one account: ${GUESSES}, looked at ${LIMIT_ACCOUNT}; its owner logged in ${times.length} times meanwhile, refused 0, median ${at(0.5)} ms, p99 ${at(0.99)} ms`,
  );
});

test('guesses at an address without an account are answered alike', async () => {
  expect(tally(await flood(freshEmail()))).toEqual(expected);
});
