import { expect, test } from 'vitest';
import { figuresOf } from '../../prove/figures.ts';

/** The figures of a fault, from calls made by hand. */

const call = (start: number, end: number, status: number | undefined = 200) => ({ start, end, status });

test('refusals, the gap, the way back and p99 are those of the calls in their span', () => {
  const history = [
    call(9_000, 9_020),
    call(10_100, 10_200),
    call(10_300, 10_400, 503),
    { start: 10_500, end: 13_000, status: undefined },
    call(12_000, 13_100),
    call(13_200, 13_250),
    call(30_000, 30_900),
  ];
  const { calls, refused, gapMs, recoveryMs, p99Ms } = figuresOf(history, {
    began: 10_000,
    injected: 10_050,
    over: 14_000,
  });
  expect({ calls, refused, gapMs, recoveryMs }).toEqual({ calls: 5, refused: 2, gapMs: 2900, recoveryMs: 3000 });
  expect(p99Ms).toEqual([20, 100, 1100]);
});
