import { expect, test } from 'vitest';
import { pauseAfter } from '../../../server/webhooks/schedule.ts';

const [SECOND, MINUTE, HOUR] = [1000, 60_000, 3_600_000];
const NOW = Date.parse('2026-11-23T09:30:00Z');

test('there are ten tries, at growing intervals with jitter', () => {
  const expected = [5 * SECOND, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 24 * HOUR, 48 * HOUR];
  for (const [i, pause] of expected.entries()) {
    const found = Array.from({ length: 50 }, () => pauseAfter(i + 1) ?? 0);
    expect(Math.min(...found)).toBeGreaterThanOrEqual(pause);
    expect(Math.max(...found)).toBeLessThanOrEqual(pause * 1.1);
    expect(new Set(found).size).toBeGreaterThan(1);
  }
  expect(pauseAfter(10)).toBeUndefined();
});

test.each([
  ['seconds', '120', 120 * SECOND],
  ['a date', 'Mon, 23 Nov 2026 09:40:00 GMT', 10 * MINUTE],
  ['at most two days', '99999999', 48 * HOUR],
])('Retry-After is obeyed: %s', (_what, header, wait) => {
  expect(pauseAfter(1, header, NOW)).toBe(wait);
});

test.each(['soon', '-5', '', 'Mon, 23 Nov 2020 09:40:00 GMT'])(
  'Retry-After that is no wait changes nothing: %s',
  (header) => {
    expect(pauseAfter(1, header, NOW)).toBeLessThanOrEqual(5.5 * SECOND);
  },
);

test('Retry-After is not a shorter pause', () => {
  expect(pauseAfter(3, '1', NOW)).toBeGreaterThanOrEqual(5 * MINUTE);
});
