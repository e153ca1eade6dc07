import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createPulse, SIGN_MS } from '../../../server/process/pulse.ts';

const HOUR_MS = 60 * 60_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
});
afterEach(() => void vi.useRealTimers());

/** The results of so many checks, each some time after the one before. */
const check = ({ isLost }: ReturnType<typeof createPulse>, times: number, afterMs = SIGN_MS) =>
  Array.from({ length: times }, () => {
    vi.advanceTimersByTime(afterMs);
    return isLost();
  });

test('a process without a sign for more than ten seconds hangs', () => {
  const pulse = createPulse();
  pulse.sign();
  expect(check(pulse, 6)).toEqual([false, false, false, false, false, true]);
});

test('each sign begins the ten seconds anew', () => {
  const pulse = createPulse();
  for (let n = 0; n < 3; n++) {
    pulse.sign();
    expect(check(pulse, 5)).not.toContain(true);
  }
});

test('a process that is still starting does not hang', () => {
  expect(check(createPulse(), 30)).not.toContain(true);
});

test('after the first process was frozen for an hour, the others have as many checks as before', () => {
  const pulse = createPulse();
  pulse.sign();
  expect(check(pulse, 1, HOUR_MS)).toEqual([false]);
  expect(check(pulse, 5)).toEqual([false, false, false, false, true]);
});
