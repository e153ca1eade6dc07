import { describe, expect, test } from 'vitest';
import { CONNECTIONS, createRowQueue } from '../../../server/parts/database/row-queue.ts';

describe('transactions that run at the same time', () => {
  test.each([
    ['of one row: two', ['row'], 2],
    ['of two rows: two of each', ['row', 'other'], 4],
    ['that name no row: half of the connections', [undefined], CONNECTIONS / 2],
    ['of a row, and without one: their sum', ['row', undefined], 2 + CONNECTIONS / 2],
  ] as const)('%s', async (_, rows, most) => {
    const inTurn = createRowQueue();
    const end = Promise.withResolvers<void>();
    let begun = 0;
    const work = () => {
      begun++;
      return end.promise;
    };
    const all = rows.flatMap((row) => Array.from({ length: 20 }, () => inTurn(row, work)));
    // Each begins in a microtask.
    await new Promise(setImmediate);
    expect(begun).toBe(most);
    end.resolve();
    await Promise.all(all);
    expect(begun).toBe(all.length);
  });
});
