import { expect, test } from 'vitest';
import { addressIn, isStorableIdentity } from '../../../server/accounts/providers/identity-keys.ts';

test.each<[string, string, boolean]>([
  ['one character', 'x', true],
  ['255 characters', 'x'.repeat(255), true],
  ['256 characters', 'x'.repeat(256), false],
  ['a space inside', 'a b', true],
  ['the ends of printable ASCII', '!~', true],
  ['nothing', '', false],
  ['a leading space', ' a', false],
  ['a trailing space', 'a ', false],
  ['a line break', 'a\nb', false],
  ['a line break at the end', 'a\n', false],
  ['a letter beyond ASCII', 'aü', false],
])('a subject or issuer of %s: %s', (_, key, isStorable) => {
  expect(isStorableIdentity({ issuer: 'https://acme.test', subject: key })).toBe(isStorable);
  expect(isStorableIdentity({ issuer: key, subject: '1' })).toBe(isStorable);
});

test.each([
  ['Ada@Example.test', 'ada@example.test'],
  ['nobody', undefined],
  [undefined, undefined],
])('the stated address %s is usable as %s', (email, usable) => {
  expect(
    addressIn({ email, issuer: 'i', subject: 's', emailVerified: true, name: undefined, picture: undefined }),
  ).toBe(usable);
});
