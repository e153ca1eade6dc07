import { expect, test } from 'vitest';
import { keyAt, normalizedAddress } from '../../../server/uploads/upload-address.ts';

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

test.each([
  ['with the default port', 'https://files.example:443/uploads/1.webp', 'https://files.example/uploads/1.webp'],
  ['in capitals', 'HTTPS://Files.EXAMPLE/uploads/1.webp?v=A', 'https://files.example/uploads/1.webp?v=A'],
  ['with dots', 'https://files.example/a/../uploads/1.webp', 'https://files.example/uploads/1.webp'],
  ['of another host', 'https://other.example:443/uploads/1.webp', 'https://other.example:443/uploads/1.webp'],
  ['of a private image', 'https://files.example:443/private/1.webp', 'https://files.example:443/private/1.webp'],
  ['that is missing', null, null],
])('only an address of an upload gets the spelling of browsers: one %s', (_name, address, normalized) => {
  expect(normalizedAddress(address, 'https://files.example/')).toBe(normalized);
});
