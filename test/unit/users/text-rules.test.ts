import { describe, expect, test } from 'vitest';
import {
  inboxOf,
  isMailAddress,
  isName,
  isOneLine,
  isStorable,
  isWebAddress,
  lengthOf,
  nameFromAddress,
  normalizeEmail,
} from '../../../server/accounts/users/text-rules.ts';

const label = 'x'.repeat(63);
/** 254 characters, 64 of them before the @. */
const longest = `${'a'.repeat(64)}@${`${label}.`.repeat(2)}${'y'.repeat(56)}.test`;

describe('an address', () => {
  test.each([
    'a@b.test',
    'first.last+tag@sub.example-1.test',
    "!#$%&'*+/=?^_{|}~-@b.test",
    'A@B.TEST',
    '0@0.a0',
    longest,
    `a@${label}.test`,
    `a@b.t${'e'.repeat(61)}t`,
  ])('%s is valid', (text) => expect(isMailAddress(text)).toBe(true));

  test.each([
    '',
    'a',
    '@b.test',
    'a@',
    'a@b',
    'a@.test',
    'a@b.1',
    'a@b.1t',
    'a@b.t-',
    'a@b.-t',
    'a@b.t',
    '.a@b.test',
    'a.@b.test',
    'a..b@c.test',
    'a@b..test',
    'a@-b.test',
    'a@b-.test',
    `a@${label}x.test`,
    `a@b.t${'e'.repeat(62)}t`,
    `a${longest}`,
    `${'a'.repeat(65)}@b.test`,
    `${longest}t`,
    'a b@c.test',
    'a@b.test\n',
    ' a@b.test',
    'a@b.test,c@d.test',
    '"a"@b.test',
    'ä@b.test',
    'a@ä.test',
    'a@b@c.test',
    'a`@b.test',
  ])('%j is invalid', (text) => expect(isMailAddress(text)).toBe(false));

  test('is compared in lower case, and its inbox without the tag', () => {
    expect(normalizeEmail('A.B@C.Test')).toBe('a.b@c.test');
    expect(inboxOf('ada+shop+2@example.test')).toBe('ada@example.test');
    expect(inboxOf('ada@example.test')).toBe('ada@example.test');
    for (const untagged of ['+tag@example.test', '+a+b@example.test']) expect(inboxOf(untagged)).toBe(untagged);
  });
});

describe('a name', () => {
  test.each(['Al', '李雷', 'x'.repeat(100), '😀'.repeat(100), 'a\u200b', '\u202eab', 'a b'])('%j is valid', (text) =>
    expect(isName(text)).toBe(true),
  );

  test.each([
    '',
    'x',
    '😀',
    'x'.repeat(101),
    '😀'.repeat(101),
    'a\0b',
    'a\nb',
    'a\u0085b',
    'a\ud800',
    '\u200b\u200b',
    '\u3164\u3164',
    '\u2800\u2800',
    '\u00a0\u2003',
  ])('%j is invalid', (text) => expect(isName(text)).toBe(false));

  test('is derived from the email of a user without one', () => {
    expect(nameFromAddress('ada.lovelace@example.test')).toBe('ada.lovelace');
    expect(nameFromAddress('a@example.test')).toBe('a@example.test');
    expect(nameFromAddress(`a@${'x'.repeat(120)}.test`)).toBe(`a@${'x'.repeat(98)}`);
  });
});

test('length counts code points, except for a text that is far too long', () => {
  expect(lengthOf('😀a')).toBe(2);
  expect(lengthOf('😀'.repeat(4096))).toBe(4096);
  expect(lengthOf('😀'.repeat(4097))).toBe(8194);
});

test('text that cannot be stored is refused, even with several lines', () => {
  expect([isStorable('a\nb'), isStorable('a\0'), isStorable('\udc00')]).toEqual([true, false, false]);
  expect([isOneLine('ab'), isOneLine('a\tb'), isOneLine('a\0'), isOneLine('\ud83d')]).toEqual([
    true,
    false,
    false,
    false,
  ]);
});

describe('a web address', () => {
  test.each([
    'https://example.test',
    'HTTP://example.test/a?b#c',
    'http://[::1]:8080/',
    `https://e.test/${'x'.repeat(2033)}`,
  ])('%.40s is valid', (text) => expect(isWebAddress(text)).toBe(true));

  test.each([
    '',
    'example.test',
    'ftp://example.test',
    'javascript:alert(1)',
    'xhttps://example.test',
    'https:/example.test',
    'https://',
    'https://user@example.test',
    'https://:secret@example.test',
    'https://exa mple.test',
    'https://example.test/\u0001',
    'https://example.test\\@evil.test',
    'https://example.test/\ud800',
    'https://example.test\n',
    ' https://example.test',
    'https://[',
    `https://e.test/${'x'.repeat(2034)}`,
  ])('%.40j is invalid', (text) => expect(isWebAddress(text)).toBe(false));
});
