import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMemoryQueue } from '../../../server/accounts/credentials/passwords/memory-queue.ts';
import { cases } from '../../rig/client/random.ts';

/** Tasks that end on demand. */
function controlled(limits: { atOnce: number; bytes: number }) {
  const queue = createMemoryQueue(limits);
  const begun: number[] = [];
  const add = (bytes: number) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = queue.run(bytes, () => {
      begun.push(bytes);
      return promise;
    });
    return async () => {
      resolve();
      await done;
    };
  };
  return { queue, begun, add };
}

// checks: 77
test('tasks start in order, within the limits of concurrency and memory', async () => {
  const { queue, begun, add } = controlled({ atOnce: 3, bytes: 100 });
  const ends = [60, 50, 10, 10, 10, 300, 1].map(add);
  await nextTurn();
  // The second does not fit beside the first, and later ones do not overtake it.
  expect(begun).toEqual([60]);
  expect([queue.running, queue.waiting]).toEqual([1, 6]);
  await ends[0]?.();
  expect(begun).toEqual([60, 50, 10, 10]);
  await ends[1]?.();
  expect(begun).toEqual([60, 50, 10, 10, 10]);
  // A task that needs more than there is runs alone.
  await ends[2]?.();
  await ends[3]?.();
  expect(begun).toHaveLength(5);
  await ends[4]?.();
  expect(begun).toEqual([60, 50, 10, 10, 10, 300]);
  await ends[5]?.();
  await ends[6]?.();
  expect([begun.length, queue.running, queue.waiting]).toEqual([7, 0, 0]);
});

test('a failing task frees its place, and rejects for its caller', async () => {
  const queue = createMemoryQueue({ atOnce: 1, bytes: 1 });
  const outcomes = await Promise.allSettled([
    queue.run(1, () => Promise.reject(new Error('broken'))),
    queue.run(1, async () => 'done'),
  ]);
  expect(outcomes).toMatchObject([{ reason: { message: 'broken' } }, { value: 'done' }]);
  expect([queue.running, queue.waiting]).toEqual([0, 0]);
});

// checks: 77
test('any tasks stay within the limits, and all run', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(150), { maxLength: 40 }), async (sizes) => {
      const queue = createMemoryQueue({ atOnce: 4, bytes: 100 });
      const live: number[] = [];
      let ran = 0;
      await Promise.all(
        sizes.map((bytes) =>
          queue.run(bytes, async () => {
            live.push(bytes);
            expect(live.length).toBeLessThanOrEqual(4);
            if (live.length > 1) expect(live.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(100);
            await Promise.resolve();
            live.splice(live.indexOf(bytes), 1);
            ran += 1;
          }),
        ),
      );
      expect(ran).toBe(sizes.length);
    }),
    cases(100),
  );
});
