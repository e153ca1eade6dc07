import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { issue, type Keys, solvedBy } from '../../../server/challenge/proof-of-work.ts';

// Without its types, which need those of browsers.
const file = '../../../client/src/challenge/solve.ts';
const { solve } = (await import(file)) as {
  solve(challenge: ReturnType<typeof issue>, signal?: AbortSignal): Promise<string>;
};

const keys: Keys = ['the current key'];

/** A browser's worker, as far as the client uses it. `messages` are those that it posts, by their time. */
function workers(messages: Record<number, unknown>) {
  const ended: unknown[] = [];
  class Worker extends EventTarget {
    constructor() {
      super();
      for (const [time, data] of Object.entries(messages))
        setTimeout(() => this.dispatchEvent(new MessageEvent('message', { data })), Number(time));
    }
    postMessage() {}
    terminate() {
      ended.push(this);
    }
  }
  vi.stubGlobal('Worker', Worker);
  return ended;
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('a worker that does not tell within 3 s that it is ready is ended, and the page solves by itself', async () => {
  const ended = workers({});
  const challenge = issue(keys, 'auth.login', 2000);
  const solution = solve(challenge);
  await vi.advanceTimersByTimeAsync(2999);
  expect(ended).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(ended).toHaveLength(1);
  const isSolved = solution.then(() => true);
  while (!(await Promise.race([isSolved, vi.advanceTimersByTimeAsync(10).then(() => false)])));
  expect(solvedBy(keys, 'auth.login', await solution)).toBe(challenge.challenge);
});

test('a worker that is ready gets all the time that it needs', async () => {
  const ended = workers({ 2000: 'ready', 60000: 7 });
  const solution = solve(issue(keys, 'auth.login', 2000));
  await vi.advanceTimersByTimeAsync(59_999);
  expect(ended).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(JSON.parse(atob(await solution))).toMatchObject({ number: 7 });
  expect(ended).toHaveLength(1);
});

test('a call that is already given up solves nothing; a signal keeps no listener of a solved challenge', async () => {
  const ended = workers({ 1: 'ready', 2: 7 });
  const { signal } = new AbortController();
  const listened: AbortSignal[] = [];
  signal.addEventListener = (_type: string, _listener: unknown, options?: { signal?: AbortSignal } | boolean) => {
    if (typeof options === 'object' && options.signal) listened.push(options.signal);
  };
  const solution = solve(issue(keys, 'auth.login', 2000), signal);
  await vi.advanceTimersByTimeAsync(2);
  await solution;
  expect(listened.map(({ aborted }) => aborted)).toEqual([true]);

  await expect(solve(issue(keys, 'auth.login', 2000), AbortSignal.abort(new Error('given up')))).rejects.toThrow(
    'given up',
  );
  expect(ended).toHaveLength(1);
});
