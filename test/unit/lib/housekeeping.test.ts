import { afterEach, expect, test, vi } from 'vitest';
import { createHousekeeping } from '../../../server/workers/housekeeping.ts';

const MINUTE_MS = 60_000;
const log = { warn: vi.fn() } as never;

afterEach(() => void vi.useRealTimers());

test('a run that takes longer than the interval gets no second one beside it', async () => {
  vi.useFakeTimers();
  const { promise, resolve } = Promise.withResolvers<void>();
  const sweep = vi.fn(() => promise);
  const housekeeping = createHousekeeping({ sweeps: [sweep], log });
  housekeeping.start();
  await vi.advanceTimersByTimeAsync(60 * MINUTE_MS);
  expect(sweep).toHaveBeenCalledOnce();
  resolve();
  await vi.advanceTimersByTimeAsync(15 * MINUTE_MS);
  expect(sweep.mock.calls.length).toBeGreaterThan(1);
  await housekeeping.stop();
});

test('a sweep that fails stops no other', async () => {
  vi.useFakeTimers();
  const next = vi.fn(async () => undefined);
  const housekeeping = createHousekeeping({ sweeps: [() => Promise.reject(new Error('too slow')), next], log });
  housekeeping.start();
  await vi.advanceTimersByTimeAsync(15 * MINUTE_MS);
  expect(next).toHaveBeenCalled();
  await housekeeping.stop();
});
