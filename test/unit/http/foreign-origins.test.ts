import { expect, test } from 'vitest';
import { foreignOriginWarning } from '../../../server/http/foreign-origins.ts';

test('the log names each origin once an hour, and at most a hundred origins an hour', () => {
  let now = 0;
  const said: unknown[] = [];
  const warn = foreignOriginWarning({ warn: (about: unknown) => said.push(about) }, () => now);
  const times = (count: number, from = 0) => {
    for (let i = 0; i < count; i++) warn(`https://x${from + i}.test`);
    return said.length;
  };
  expect(times(3)).toBe(3);
  expect(times(3)).toBe(3);
  now = 3_599_999;
  expect(times(3)).toBe(3);
  now = 3_600_000;
  expect(times(3)).toBe(6);
  expect(times(1000, 10)).toBe(6 + 97);
  now = 7_200_000;
  expect(times(1, 1)).toBe(104);
});
