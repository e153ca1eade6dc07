import { afterEach, expect, test, vi } from 'vitest';
import { createReportLimit } from '../../../server/lib/outage.ts';

afterEach(() => void vi.useRealTimers());

test('a message is reported at its first occurrence, then once a minute, each apart', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const mayReport = createReportLimit();
  const both = () => [mayReport('one'), mayReport('other')];
  expect(both()).toEqual([true, true]);
  expect(both()).toEqual([false, false]);
  vi.advanceTimersByTime(30_000);
  expect(mayReport('third')).toBe(true);
  vi.advanceTimersByTime(29_999);
  expect(both()).toEqual([false, false]);
  vi.advanceTimersByTime(1);
  expect(both()).toEqual([true, true]);
  // Counted from the latest report, not from the latest occurrence.
  expect([...both(), mayReport('third')]).toEqual([false, false, false]);
  vi.advanceTimersByTime(30_000);
  expect([...both(), mayReport('third')]).toEqual([false, false, true]);
});

test('each limit counts for itself', () => {
  expect([createReportLimit(), createReportLimit()].map((mayReport) => mayReport('one'))).toEqual([true, true]);
});
