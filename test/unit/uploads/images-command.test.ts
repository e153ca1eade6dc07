import { expect, test } from 'vitest';
import { makeAll } from '../../../server/cli/images/make-all.ts';

const imageOf = (objectKey: string) => ({
  objectKey,
  userId: 'user',
  purpose: 'post' as const,
  size: 1,
  width: null,
  height: null,
  placeholder: null,
  variants: null,
});

/** This process takes A, and fails. `looks`: the images that wait whenever it looks for another one. */
test.each<[string, { looks: string[][]; left: number; total: number }]>([
  ['an image that failed and is left is one that failed', { looks: [['a']], left: 1, total: 1 }],
  ['an image that failed here, and that another process has made since, is none', { looks: [[]], left: 0, total: 1 }],
  [
    'an image that another process still makes is waited for, though as many failed here',
    { looks: [['c'], []], left: 0, total: 2 },
  ],
])('%s', async (_title, { looks, left, total }) => {
  let waiting = ['a', 'c'].slice(0, total);
  let isTaken = false;
  const written: string[] = [];
  const variants = {
    waiting: async () => waiting.length,
    waitingKeys: async (most: number) => waiting.slice(0, most),
    async take() {
      if (isTaken) {
        waiting = looks.shift() ?? waiting;
        return [];
      }
      isTaken = true;
      return [imageOf('a')];
    },
    make: () => Promise.reject(new Error('the storage is away')),
    renew: async () => undefined,
    sweep: async () => undefined,
  };
  const output = { write: (text: string) => void written.push(text) };
  expect(await makeAll(variants, new AbortController().signal, output)).toBe(left);
  expect(written.at(-1)).toBe(`${total - left} of ${total} images\n`);
});
