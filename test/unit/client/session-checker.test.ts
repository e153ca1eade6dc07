import { createSessionChecker, isNetworkError, isServiceError, sessionTokenIn } from 'account-client';
import { afterEach, expect, test, vi } from 'vitest';

const NOW = 1_800_000_000;
const tokenOf = (i: number) => `${i}`.padStart(43, 'x');
const found = (expiresAt = NOW + 3600) => ({
  user: { id: 'user_1' },
  session: { createdAt: NOW, expiresAt },
  fresh: true,
});

/** The account service: `answer` is the result of each `service.session` call. */
function service(answer: (token: string) => unknown, options: { cacheSeconds?: number; maxSessions?: number } = {}) {
  vi.useFakeTimers({ now: NOW * 1000, toFake: ['Date', 'performance'] });
  const tokensAsked: string[] = [];
  const checker = createSessionChecker({
    url: 'https://accounts.example.com',
    token: 'secret',
    cacheSeconds: 10,
    ...options,
    fetch: async (_, init) => {
      const inputs = Object.values<{ token: string }>(JSON.parse(String(init?.body)));
      const results = inputs.map(({ token }) => {
        tokensAsked.push(token);
        return { result: { data: answer(token) } };
      });
      return Response.json(results);
    },
  });
  return { ...checker, tokensAsked };
}
afterEach(() => void vi.useRealTimers());

test('a session is cached for cacheSeconds and is fresh only once', async () => {
  const { check, tokensAsked } = service(() => found());
  const answers = [await check(tokenOf(1)), await check(tokenOf(1))];
  expect(answers.map((answer) => answer?.fresh)).toEqual([true, false]);
  expect(answers[1]).toEqual({ ...answers[0], fresh: false });
  vi.advanceTimersByTime(9_999);
  await check(tokenOf(1));
  expect(tokensAsked).toHaveLength(1);
  vi.advanceTimersByTime(1);
  await check(tokenOf(1));
  expect(tokensAsked).toHaveLength(2);
});

test('concurrent checks of one session share a call; checks of different sessions do not', async () => {
  const { check, tokensAsked } = service(() => found());
  const answers = await Promise.all([1, 1, 2, 1].map((i) => check(tokenOf(i))));
  expect(answers.every(Boolean)).toBe(true);
  expect(tokensAsked.sort()).toEqual([tokenOf(1), tokenOf(2)]);
});

test('a session is not cached beyond its end', async () => {
  const { check, tokensAsked } = service(() => found(NOW + 5));
  await check(tokenOf(1));
  vi.advanceTimersByTime(5_000);
  await check(tokenOf(1));
  expect(tokensAsked).toHaveLength(2);
});

test('a forgotten session is checked again', async () => {
  let isOver = false;
  const { check, forget } = service(() => (isOver ? null : found()));
  await check(tokenOf(1));
  isOver = true;
  expect(await check(tokenOf(1))).not.toBeNull();
  await forget(tokenOf(1));
  expect(await check(tokenOf(1))).toBeNull();
});

test('a session forgotten during its check is not cached, whichever hash is computed first', async () => {
  const { check, forget, tokensAsked } = service(() => found());
  const digest = crypto.subtle.digest.bind(crypto.subtle);
  const second = Promise.withResolvers<void>();
  vi.spyOn(crypto.subtle, 'digest')
    .mockImplementationOnce((...input) => second.promise.then(() => digest(...input)))
    .mockImplementationOnce((...input) => digest(...input).finally(second.resolve));
  const answer = check(tokenOf(1));
  await forget(tokenOf(1));
  expect(await answer).not.toBeNull();
  await check(tokenOf(1));
  expect(tokensAsked).toHaveLength(2);
});

test('an invalid session is not cached', async () => {
  const { check, tokensAsked } = service((token) => (token === tokenOf(1) ? found() : null), { maxSessions: 2 });
  await check(tokenOf(1));
  for (let i = 2; i < 50; i++) expect(await check(tokenOf(i))).toBeNull();
  expect(await check(tokenOf(2))).toBeNull();
  expect(tokensAsked).toHaveLength(50);
  await check(tokenOf(1));
  expect(tokensAsked).toHaveLength(50);
  expect(await check('')).toBeNull();
  expect(tokensAsked).toHaveLength(50);
});

test('beyond maxSessions the least recently checked session is dropped', async () => {
  const { check, tokensAsked } = service(() => found(), { maxSessions: 2 });
  for (const i of [1, 2, 1, 3, 1]) await check(tokenOf(i));
  expect(tokensAsked).toEqual([1, 2, 3].map(tokenOf));
  await check(tokenOf(2));
  expect(tokensAsked).toHaveLength(4);
});

test('a failure is passed to all waiting callers, and not cached', async () => {
  let isDown = true;
  const fail = () => {
    throw new TypeError('no route');
  };
  const { check, tokensAsked } = service(() => (isDown ? fail() : found()));
  const outcomes = await Promise.allSettled([check(tokenOf(1)), check(tokenOf(1))]);
  for (const outcome of outcomes) expect(outcome.status === 'rejected' && isNetworkError(outcome.reason)).toBe(true);
  isDown = false;
  const before = tokensAsked.length;
  expect(await check(tokenOf(1))).not.toBeNull();
  expect(tokensAsked).toHaveLength(before + 1);
  const refused = createSessionChecker({
    url: 'https://accounts.example.com',
    token: 'wrong',
    cacheSeconds: 10,
    fetch: async () =>
      Response.json({ code: 'UNAUTHENTICATED', message: 'A service token is required' }, { status: 401 }),
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
