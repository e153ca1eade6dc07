import { expect, test } from 'vitest';
import { orderViolations } from '../../rig/observe/stream.ts';

test('only events of one user in another order than their causes are violations', () => {
  const events = [
    { number: 1, userId: 'a', at: 20 },
    { number: 2, userId: 'b', at: 10 },
    { number: 3, userId: 'a', at: 20 },
    { number: 4, userId: 'a', at: 21 },
  ];
  expect(orderViolations(events.toReversed())).toEqual([]);
  expect(orderViolations([...events, { number: 5, userId: 'a', at: 19 }])).toEqual([
    'swapped in the stream: 5 of a happened before 4',
  ]);
});
