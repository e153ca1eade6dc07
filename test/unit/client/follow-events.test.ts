import { createServiceClient, followEvents, isServiceError, type PublicEvent } from 'account-client';
import { afterEach, expect, test, vi } from 'vitest';

const page = (numbers: number[], next = numbers.at(-1) ?? 0) => ({
  data: numbers.map((number) => ({ number, type: 'user.verified' })),
  next,
  last: 100,
});
const refused = (code: string, httpStatus: number, headers = {}) =>
  Response.json({ error: { message: code, code: -1, data: { code, httpStatus } } }, { status: httpStatus, headers });

interface Asked {
  after: number;
  waitSeconds: number;
}

/** Follows a service whose calls are answered in turn; the last answer holds until the signal is aborted. */
async function followed(answers: (() => Response | Promise<Response>)[]) {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'performance'],
    shouldAdvanceTime: true,
    advanceTimeDelta: 1000,
  });
  const leaving = new AbortController();
  const requests: Asked[] = [];
  const times: number[] = [];
  /** With the number of events handled by then. */
  const positions: [number, number][] = [];
  const client = createServiceClient({
    url: 'https://accounts.example.com',
    token: 'secret',
    fetch: async (url, init) => {
      times.push(performance.now());
      requests.push(JSON.parse(new URL(String(url)).searchParams.get('input') ?? ''));
      const answer = answers.shift();
      if (answer) return answer();
      leaving.abort();
      init?.signal?.throwIfAborted();
      throw new TypeError('not aborted');
    },
  });
  const found: PublicEvent[] = [];
  const read = async () => {
    const onPosition = (number: number) => positions.push([number, found.length]);
    const events = followEvents(client, { after: 5, onPosition, signal: leaving.signal });
    for await (const event of events) found.push(event);
  };
  const error = await read().catch((thrown: unknown) => thrown);
  return { numbers: found.map(({ number }) => number), requests, times, positions, error };
}
afterEach(() => void vi.useRealTimers());

const answer = (data: object) => () => Response.json({ result: { data } });
const offline = () => {
  throw new TypeError('offline');
};

test('each page begins where the last one ended, also past events of other types', async () => {
  const { numbers, requests, positions, error } = await followed([
    answer(page([6, 8])),
    answer(page([], 20)),
    answer(page([21])),
  ]);
  expect(numbers).toEqual([6, 8, 21]);
  expect(requests.map(({ after }) => after)).toEqual([5, 8, 20, 21]);
  expect(requests.map(({ waitSeconds }) => waitSeconds)).toEqual([25, 25, 25, 25]);
  expect(positions).toEqual([
    [8, 2],
    [20, 2],
    [21, 3],
  ]);
  expect(error).toBeUndefined();
});

test('after an outage it continues from the last event, with growing pauses', async () => {
  const down = () => refused('SERVICE_UNAVAILABLE', 503);
  const { numbers, requests, times } = await followed([answer(page([6])), offline, down, offline, answer(page([7]))]);
  expect(numbers).toEqual([6, 7]);
  expect(requests.map(({ after }) => after)).toEqual([5, 6, 6, 6, 6, 7]);
  const pauses = times.slice(1).map((time, i) => time - (times[i] ?? 0));
  expect(pauses[1]).toBeGreaterThanOrEqual(250);
  expect(pauses[3]).toBeGreaterThanOrEqual(1000);
});

test('it waits as long as the service asks for', async () => {
  const { times } = await followed([() => refused('RATE_LIMITED', 429, { 'retry-after': '7' }), answer(page([6]))]);
  expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(7000);
});

test('it waits an hour if the service asks for a month', async () => {
  const MINUTE_MS = 60_000;
  let clock: NodeJS.Timeout | undefined;
  const inAMonth = () => {
    clock = setInterval(() => vi.advanceTimersByTime(MINUTE_MS), 5);
    return refused('SERVICE_UNAVAILABLE', 503, { 'retry-after': '2592000' });
  };
  const { times } = await followed([inAMonth, answer(page([6]))]);
  clearInterval(clock);
  const waited = (times[1] ?? 0) - (times[0] ?? 0);
  expect(waited).toBeGreaterThanOrEqual(60 * MINUTE_MS);
  expect(waited).toBeLessThan(120 * MINUTE_MS);
});

test.each([
  ['UNAUTHENTICATED', 401],
  ['EVENTS_EXPIRED', 410],
  ['VALIDATION_FAILED', 400],
])('%s ends it with an error', async (code, status) => {
  const { error, requests } = await followed([() => refused(code, status)]);
  expect(isServiceError(error) && error.code).toBe(code);
  expect(requests).toHaveLength(1);
});
