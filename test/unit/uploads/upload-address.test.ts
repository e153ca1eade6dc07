import { expect, test } from 'vitest';
import { keyAt } from '../../../server/uploads/upload-address.ts';

test.each([
  ['an image', 'https://files.example/uploads/1.webp', 'uploads/1.webp'],
  ['a variant', 'https://files.example/uploads/1_48.webp', 'uploads/1.webp'],
  ['an image with a query', 'https://files.example/uploads/1.webp?v=2', 'uploads/1.webp'],
  ['a private image', 'https://files.example/private/1.webp', undefined],
  ['an image of another storage', 'https://other.example/uploads/1.webp', undefined],
  ['no URL', 'uploads/1.webp', undefined],
  ['nothing', null, undefined],
])('the key at the address of %s', (_name, address, key) => {
  expect(keyAt(address, 'https://files.example/')).toBe(key);
});
