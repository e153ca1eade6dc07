import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { inBatches } from '../../../server/lib/batch-loader.ts';

/** Look-ups that return `key:n`, n the number of the read, each read held until `answer` is called. */
function heldReads(options: { most?: number; gatherMs?: number } = {}) {
  const reads: { keys: readonly string[]; answer: () => void }[] = [];
  const find = inBatches(
    (keys: readonly string[]) =>
      new Promise<string[]>((resolve) => {
        const n = reads.length + 1;
        reads.push({ keys, answer: () => resolve(keys.map((key) => `${key}:${n}`)) });
      }),
    { most: 100, ...options },
  );
  return { find, reads };
}

test('the look-ups of one turn share one read, with each key once', async () => {
  const { find, reads } = heldReads();
  const values = Promise.all(['a', 'b', 'a'].map(find));
  await nextTurn();
  expect(reads.map(({ keys }) => keys)).toEqual([['a', 'b']]);
  reads[0]?.answer();
  expect(await values).toEqual(['a:1', 'b:1', 'a:1']);
});

test('a look-up after a read has started needs another read', async () => {
  const { find, reads } = heldReads();
  const first = find('a');
  await nextTurn();
  const second = find('a');
  await nextTurn();
  expect(reads).toHaveLength(2);
  for (const { answer } of reads) answer();
  expect(await Promise.all([first, second])).toEqual(['a:1', 'a:2']);
  const third = find('a');
  await nextTurn();
  reads[2]?.answer();
  expect(await third).toBe('a:3');
});

test('a read has a maximum number of keys', async () => {
  const { find, reads } = heldReads({ most: 2 });
  const values = Promise.all(['a', 'b', 'c'].map(find));
  await nextTurn();
  for (const { answer } of reads) answer();
  expect(await values).toEqual(['a:1', 'b:1', 'c:2']);
});

test('a gathering read collects the keys that arrive during the read before it', async () => {
  const { find, reads } = heldReads({ gatherMs: 60_000 });
  const first = find('a');
  while (reads.length === 0) await nextTurn();
  const others = [find('b')];
  await nextTurn();
  others.push(find('c'));
  await nextTurn();
  expect(reads).toHaveLength(1);
  reads[0]?.answer();
  expect(await first).toBe('a:1');
  while (reads.length === 1) await nextTurn();
  reads[1]?.answer();
  expect(await Promise.all(others)).toEqual(['b:2', 'c:2']);
});

test('a gathering read does not wait for a hanging one', async () => {
  const { find, reads } = heldReads({ gatherMs: 1 });
  void find('a');
  while (reads.length === 0) await nextTurn();
  const second = find('b');
  while (reads.length === 1) await nextTurn();
  reads[1]?.answer();
  expect(await second).toBe('b:2');
});

test('a failing read fails its own look-ups only', async () => {
  let fails = true;
  const find = inBatches(
    async (keys: readonly string[]) => {
      if (fails) throw new Error('down');
      return [...keys];
    },
    { most: 100 },
  );
  const both = await Promise.allSettled([find('a'), find('b')]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  fails = false;
  expect(await find('a')).toBe('a');
});

test('an error value fails the look-ups of its key only', async () => {
  const find = inBatches(
    async (keys: readonly string[]) => keys.map((key) => (key === 'bad' ? new Error('not this one') : key)),
    { most: 100 },
  );
  const [good, bad] = await Promise.allSettled([find('good'), find('bad')]);
  expect(good).toEqual({ status: 'fulfilled', value: 'good' });
  expect(bad).toMatchObject({ status: 'rejected', reason: { message: 'not this one' } });
});
