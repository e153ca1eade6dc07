import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createClock } from '../../server/parts/database/clock.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

test('the clock is asked for when it is used, and goes on from the answer', async () => {
  const ask = vi.fn(async () => 1_700_000_000_000);
  const clock = createClock(ask);
  expect(ask).not.toHaveBeenCalled();
  expect(clock()).toBeUndefined();
  await setImmediate();
  expect(clock()).toBe(1_700_000_000_000);
  vi.advanceTimersByTime(1500);
  expect(clock()).toBe(1_700_000_001_500);
  expect(ask).toHaveBeenCalledOnce();
});

test('an answer that was long on its way leaves the clock behind, not ahead', async () => {
  const answer = Promise.withResolvers<number>();
  const clock = createClock(() => answer.promise);
  clock();
  vi.advanceTimersByTime(3000);
  answer.resolve(1_700_000_000_000);
  await setImmediate();
  expect(clock()).toBe(1_700_000_000_000);
});

test('what is known for a minute is asked for anew', async () => {
  const ask = vi.fn(async () => 1_700_000_000_000);
  const clock = createClock(ask);
  clock();
  await setImmediate();
  expect(clock()).toBeDefined();
  vi.advanceTimersByTime(60_001);
  expect(clock()).toBeUndefined();
  await setImmediate();
  expect(clock()).toBe(1_700_000_000_000);
  expect(ask).toHaveBeenCalledTimes(2);
});

test('while the database is out of reach the clock is unknown, and asked for with each use', async () => {
  const ask = vi.fn(async () => 1_700_000_000_000).mockRejectedValueOnce(new Error('out of reach'));
  const clock = createClock(ask);
  expect(clock()).toBeUndefined();
  await setImmediate();
  expect(clock()).toBeUndefined();
  await setImmediate();
  expect(clock()).toBe(1_700_000_000_000);
  expect(ask).toHaveBeenCalledTimes(2);
});
