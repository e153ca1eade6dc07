import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { hashOf, isToken, newToken } from '../../../server/lib/random-token.ts';

test('a token is 32 random bytes in base64url', () => {
  const token = newToken();
  expect(Buffer.from(token, 'base64url')).toHaveLength(32);
  expect(isToken(token)).toBe(true);
  expect(newToken()).not.toBe(token);
});

test('only text with the form of a token is looked up', () => {
  expect(['x'.repeat(43), 'A-z_09'.padEnd(43, 'x')].filter(isToken)).toHaveLength(2);
  const others = [
    '',
    'x'.repeat(42),
    'x'.repeat(44),
    `${'x'.repeat(42)}=`,
    `${'x'.repeat(42)}+`,
    `${'x'.repeat(43)}\n`,
  ];
  expect(others.filter(isToken)).toEqual([]);
});

test('a token is stored as its SHA-256', () => {
  const token = newToken();
  expect(hashOf(token)).toBe(createHash('sha256').update(token).digest('base64url'));
});
