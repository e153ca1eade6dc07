import { expect, test } from 'vitest';
import { makeAll } from '../../../server/cli/images/make-all.ts';

const image = {
  objectKey: 'uploads/a.webp',
  userId: 'user',
  purpose: 'post' as const,
  size: 1,
  width: null,
  height: null,
  placeholder: null,
  variants: null,
};

test.each([
  ['an image that failed and is left is one that failed', 1],
  ['an image that failed here, and that another process has made since, is none', 0],
])('%s', async (_title, left) => {
  let isTaken = false;
  const written: string[] = [];
  const variants = {
    waiting: async () => (isTaken ? left : 1),
    async take() {
      if (isTaken) return [];
      isTaken = true;
      return [image];
    },
    make: () => Promise.reject(new Error('the storage is away')),
    renew: async () => undefined,
    sweep: async () => undefined,
  };
  const output = { write: (text: string) => void written.push(text) };
  expect(await makeAll(variants, new AbortController().signal, output)).toBe(left);
  expect(written.at(-1)).toBe(`${1 - left} of 1 images\n`);
});
