import { expect, test } from 'vitest';
import { createServiceTokens, hashServiceToken } from '../../../server/config/service-tokens.ts';
import { newToken } from '../../../server/lib/random-token.ts';

test('a token has 256 random bits, and is known by its SHA-256', () => {
  const token = newToken();
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(newToken()).not.toBe(token);
  expect(hashServiceToken('token')).toBe('3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0');
});

test('each token of a service identifies it, and no other text does', () => {
  const entry = (name: string, token: string) => ({ name, sha256: hashServiceToken(token) });
  const { nameOf } = createServiceTokens([entry('shop', 'a'), entry('billing', 'b'), entry('billing', 'c')]);
  expect(['a', 'b', 'c', 'd', '', hashServiceToken('a')].map(nameOf)).toEqual([
    'shop',
    'billing',
    'billing',
    undefined,
    undefined,
    undefined,
  ]);
  expect(createServiceTokens([]).nameOf('a')).toBeUndefined();
});
