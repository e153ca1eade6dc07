import { expect, test } from 'vitest';
import { createFairQueue } from '../../../server/lib/fair-queue.ts';

/** Tasks that report their start and end on demand. */
function tasks(atOnce: number) {
  const queue = createFairQueue(atOnce);
  const started: string[] = [];
  const ends: (() => void)[] = [];
  const add = (name: string) =>
    queue.run(name.charAt(0), async () => {
      started.push(name);
      await new Promise<void>((end) => ends.push(end));
      return name;
    });
  const endOne = async () => {
    await new Promise(setImmediate);
    ends.shift()?.();
    await new Promise(setImmediate);
  };
  return { queue, started, add, endOne };
}

test('waiting users take turns, one task each, in order of arrival', async () => {
  const { started, add, endOne } = tasks(1);
  const all = Promise.all(['a1', 'a2', 'a3', 'b1', 'c1', 'b2', 'a4'].map(add));
  for (let i = 0; i < 7; i++) await endOne();
  expect(started).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  expect(await all).toEqual(['a1', 'a2', 'a3', 'b1', 'c1', 'b2', 'a4']);
});

test('a late user waits for one task of each other user', async () => {
  const { started, add, endOne } = tasks(1);
  for (let i = 0; i < 50; i++) void add(`a${i}`);
  for (let i = 0; i < 50; i++) void add(`b${i}`);
  await endOne();
  void add('c');
  for (let i = 0; i < 3; i++) await endOne();
  expect(started).toEqual(['a0', 'a1', 'b0', 'a2', 'c']);
});

test('tasks run up to the limit, and a failing task frees its place', async () => {
  const { queue, started, add, endOne } = tasks(2);
  const failing = queue.run('x', () => Promise.reject(new Error('no')));
  for (const name of ['a1', 'a2', 'b1', 'b2']) void add(name);
  await expect(failing).rejects.toThrow('no');
  expect(started).toHaveLength(2);
  expect([queue.waiting(), queue.waiting('b'), queue.waiting('nobody')]).toEqual([2, 2, 0]);
  for (let i = 0; i < 4; i++) await endOne();
  expect(started).toHaveLength(4);
  expect(queue.waiting()).toBe(0);
});
