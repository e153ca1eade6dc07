import { createSessionChecker, isNetworkError, isServiceError, sessionTokenIn } from 'account-client';
import { afterEach, expect, test, vi } from 'vitest';

const NOW = 1_800_000_000;
const tokenOf = (i: number) => `${i}`.padStart(43, 'x');
const found = (expiresAt = NOW + 3600) => ({
  user: { id: 'user_1' },
  session: { createdAt: NOW, expiresAt },
  fresh: true,
});

/** The account service: `answer` says what each call of `service.session` comes to. */
function service(answer: (token: string) => unknown, options: { cacheSeconds?: number; maxSessions?: number } = {}) {
  vi.useFakeTimers({ now: NOW * 1000, toFake: ['Date', 'performance'] });
  const asked: string[] = [];
  const checker = createSessionChecker({
    url: 'https://accounts.example.com',
    token: 'secret',
    cacheSeconds: 10,
    ...options,
    fetch: async (_, init) => {
      const inputs = Object.values<{ token: string }>(JSON.parse(String(init?.body)));
      const results = inputs.map(({ token }) => {
        asked.push(token);
        return { result: { data: answer(token) } };
      });
      return Response.json(results);
    },
  });
  return { ...checker, asked };
}
afterEach(() => void vi.useRealTimers());

test('asks once for what it knows, for so many seconds, and says only once that it is fresh', async () => {
  const { check, asked } = service(() => found());
  const answers = [await check(tokenOf(1)), await check(tokenOf(1))];
  expect(answers.map((answer) => answer?.fresh)).toEqual([true, false]);
  expect(answers[1]).toEqual({ ...answers[0], fresh: false });
  vi.advanceTimersByTime(9_999);
  await check(tokenOf(1));
  expect(asked).toHaveLength(1);
  vi.advanceTimersByTime(1);
  await check(tokenOf(1));
  expect(asked).toHaveLength(2);
});

test('checks of one session at once are one call, and of others are others', async () => {
  const { check, asked } = service(() => found());
  const answers = await Promise.all([1, 1, 2, 1].map((i) => check(tokenOf(i))));
  expect(answers.every(Boolean)).toBe(true);
  expect(asked.sort()).toEqual([tokenOf(1), tokenOf(2)]);
});

test('a session is known no longer than it lasts', async () => {
  const { check, asked } = service(() => found(NOW + 5));
  await check(tokenOf(1));
  vi.advanceTimersByTime(5_000);
  await check(tokenOf(1));
  expect(asked).toHaveLength(2);
});

test('an ended session is found out when its time is over, or it is forgotten', async () => {
  let isOver = false;
  const { check, forget } = service(() => (isOver ? null : found()));
  await check(tokenOf(1));
  isOver = true;
  expect(await check(tokenOf(1))).not.toBeNull();
  await forget(tokenOf(1));
  expect(await check(tokenOf(1))).toBeNull();
});

test('what is forgotten while it is asked for is not known afterwards', async () => {
  const { check, forget, asked } = service(() => found());
  const answer = check(tokenOf(1));
  await forget(tokenOf(1));
  expect(await answer).not.toBeNull();
  await check(tokenOf(1));
  expect(asked).toHaveLength(2);
});

test('no session is asked for each time, and takes no room of those that there are', async () => {
  const { check, asked } = service((token) => (token === tokenOf(1) ? found() : null), { maxSessions: 2 });
  await check(tokenOf(1));
  for (let i = 2; i < 50; i++) expect(await check(tokenOf(i))).toBeNull();
  expect(await check(tokenOf(2))).toBeNull();
  expect(asked).toHaveLength(50);
  await check(tokenOf(1));
  expect(asked).toHaveLength(50);
  expect(await check('')).toBeNull();
  expect(asked).toHaveLength(50);
});

test('of more sessions than it may know, those asked for longest ago are forgotten', async () => {
  const { check, asked } = service(() => found(), { maxSessions: 2 });
  for (const i of [1, 2, 1, 3, 1]) await check(tokenOf(i));
  expect(asked).toEqual([1, 2, 3].map(tokenOf));
  await check(tokenOf(2));
  expect(asked).toHaveLength(4);
});

test('a failure of the service is passed on to all who wait, and not remembered', async () => {
  let isDown = true;
  const fail = () => {
    throw new TypeError('no route');
  };
  const { check, asked } = service(() => (isDown ? fail() : found()));
  const outcomes = await Promise.allSettled([check(tokenOf(1)), check(tokenOf(1))]);
  for (const outcome of outcomes) expect(outcome.status === 'rejected' && isNetworkError(outcome.reason)).toBe(true);
  isDown = false;
  const before = asked.length;
  expect(await check(tokenOf(1))).not.toBeNull();
  expect(asked).toHaveLength(before + 1);
  const refused = createSessionChecker({
    url: 'https://accounts.example.com',
    token: 'wrong',
    cacheSeconds: 10,
    fetch: async () =>
      Response.json({ code: 'UNAUTHENTICATED', message: 'This takes a service token' }, { status: 401 }),
  });
  await expect(refused.check(tokenOf(1))).rejects.toSatisfy((error) => isServiceError(error, 'UNAUTHENTICATED'));
});

test.each([
  ['auth_session=abc', 'abc'],
  ['a=1; auth_session=abc; b=2', 'abc'],
  ['a=1;auth_session=abc;b=2', 'abc'],
  ['my_auth_session=evil', ''],
  ['auth_session=', ''],
  ['auth_session=a; auth_session=b', ''],
  ['', ''],
  [undefined, ''],
  [null, ''],
])('the token in %j is %j', (header, token) => expect(sessionTokenIn(header)).toBe(token));
