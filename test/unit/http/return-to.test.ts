import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { servicePaths } from '../../../server/shared/page-paths.ts';
import { returnAddress } from '../../../server/shared/return-to.ts';
import { anyCharacter, cases } from '../../rig/client/random.ts';

const ours = {
  origins: new Set(['https://accounts.example.com', 'https://app.example.com:8443']),
  acceptsLoopbackOrigins: false,
};
const onThisMachine = { origins: new Set(['http://localhost:3000']), acceptsLoopbackOrigins: true };

describe('a login may lead to', () => {
  test.each([
    ['/', '/'],
    ['/dashboard/security', '/dashboard/security'],
    ['/basket?item=1&from=/x//y#pay', '/basket?item=1&from=/x//y#pay'],
    ['/search?q=https://evil.test', '/search?q=https://evil.test'],
    ["/it's", "/it's"],
    ['/caf%C3%A9', '/caf%C3%A9'],
    ['/authors', '/authors'],
    ['/a/../b', '/b'],
    ['https://accounts.example.com', 'https://accounts.example.com/'],
    ['https://app.example.com:8443/a?b#c', 'https://app.example.com:8443/a?b#c'],
    ['HTTPS://APP.example.com:8443/A', 'https://app.example.com:8443/A'],
    ['https://accounts.example.com:443/', 'https://accounts.example.com/'],
    [`/${'x'.repeat(2047)}`, `/${'x'.repeat(2047)}`],
  ])('%s', (asked, admitted) => {
    expect(returnAddress(asked, ours)).toBe(admitted);
  });
});

/** Directus CVE-2024-28239 and CVE-2026-22032, Django CVE-2017-7233, NextAuth CVE-2022-24858, and other differences between browsers and parsers. */
describe('a login never leads to', () => {
  const evil = [
    '',
    ' ',
    'dashboard',
    './dashboard',
    '?next',
    '#next',
    '//evil.test',
    '///evil.test',
    '////evil.test/..',
    '/\\evil.test',
    '\\/evil.test',
    '\\\\evil.test',
    '\\evil.test',
    '/%5cevil.test',
    '/%5C%5Cevil.test',
    '/%2fevil.test',
    '/%2F%2Fevil.test',
    '/%252f%252fevil.test',
    '%2F%2Fevil.test',
    '%252F%252Fevil.test',
    '/./\\evil.test',
    '/.//evil.test',
    '/..//evil.test',
    '/%2e//evil.test',
    '/a/../..//evil.test',
    '/a//evil.test',
    '/\t/evil.test',
    '/\n/evil.test',
    '/\r\n/evil.test',
    '/\r\nSet-Cookie: auth_session=x',
    '/%0d%0aSet-Cookie:x',
    '/%09/evil.test',
    '/%00',
    '/\0/evil.test',
    '/ /evil.test',
    ' /dashboard',
    ' //evil.test',
    '\t//evil.test',
    '/\u00a0/evil.test',
    '/\u3000/evil.test',
    '\u2044\u2044evil.test',
    '/\u2044evil.test',
    '/\uff0fevil.test',
    '\uff0f\uff0fevil.test',
    '/\u2215evil.test',
    '/\ufeff/evil.test',
    '/\u202e/evil.test',
    '/\ud800',
    '/%ff',
    '/%',
    'https:evil.test',
    'http:999999999',
    'https:/evil.test',
    'https:///evil.test',
    'https:\\\\evil.test',
    'https:/\\evil.test',
    'https:accounts.example.com',
    'https:/accounts.example.com',
    'https:///accounts.example.com',
    'https://evil.test',
    'http://accounts.example.com',
    'https://accounts.example.com@evil.test',
    'https://accounts.example.com:x@evil.test',
    'https://accounts.example.com%40evil.test',
    'https://user@accounts.example.com',
    'https://user:word@accounts.example.com',
    'https://:@accounts.example.com@evil.test',
    'https://accounts.example.com.evil.test',
    'https://accounts.example.com.',
    'https://accounts.example.comevil.test',
    'https://evil.test/accounts.example.com',
    'https://evil.test?https://accounts.example.com',
    'https://evil.test#https://accounts.example.com',
    'https://evil.test\\.accounts.example.com',
    'https://evil.test\\@accounts.example.com',
    'https://accounts.example.com\\@evil.test',
    'https://accounts.example.com:8443',
    'https://accounts.example.com:0443x',
    'https://app.example.com',
    'https://sub.accounts.example.com',
    'https://example.com',
    'https://аccounts.example.com',
    'https://accounts。example。com.evil.test',
    'https://accounts.example.com//evil.test',
    'https://[::1]/',
    'https://localhost:5173',
    'http://localhost:5173/',
    'http://127.0.0.1:3000/',
    'https://',
    'https://?',
    'http:',
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    'java\nscript:alert(1)',
    'javascript://accounts.example.com/%0aalert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:https://accounts.example.com/1',
    'ftp://accounts.example.com/',
    'ws://accounts.example.com/',
    'wss://accounts.example.com/',
    'about:blank',
    'filesystem:https://accounts.example.com/x',
    'intent://accounts.example.com#Intent;end',
    '[//evil.test]',
    '<//evil.test',
    '/auth',
    '/auth/logout',
    '/auth/idp?link=1',
    '/AUTH/idp',
    '/%61uth/idp',
    '/x/../auth/idp?restore=1',
    '/x/%2e%2e/auth/idp',
    '/./auth/idp',
    'https://accounts.example.com/auth/idp?link=1',
    'https://app.example.com:8443/auth/idp?link=1',
    '/api/account/export',
    '/trpc/auth.idp.start',
    '/dev',
    '/dev/mail',
    '/uploads/x.pdf',
    '/docs',
    '/openapi.json',
    `/${'x'.repeat(2048)}`,
    `https://accounts.example.com/${'x'.repeat(100_000)}`,
  ];
  test.each(evil)('%j', (asked) => {
    expect(returnAddress(asked, ours)).toBeUndefined();
  });

  test.each<[unknown]>([[undefined], [null], [1], [true], [{}], [['/a', '/b']], [['/a']], [{ toString: () => '/a' }]])(
    'a value that is not text: %j',
    (asked) => expect(returnAddress(asked, ours)).toBeUndefined(),
  );

  test('any path that the service serves itself', () => {
    for (const path of servicePaths)
      for (const target of [path, `${path}/`, `${path}/x`, `${path}?x`, `${path}#x`, path.toUpperCase()])
        expect(returnAddress(target, ours)).toBeUndefined();
  });
});

test.each([
  ['http://localhost:5173/x', true],
  ['http://127.0.0.1:8080/', true],
  ['https://app.localhost:4200/', true],
  ['http://localhost:3000/dashboard', true],
  ['http://localhost/', false],
  ['http://localhost.evil.test:5173/', false],
  ['http://10.0.0.1:5173/', false],
  ['http://0.0.0.0:5173/', false],
  ['http://user@localhost:5173/', false],
  ['ftp://localhost:5173/', false],
  ['http://localhost:5173@evil.test/', false],
])('if any port of this machine is own, %s: %s', (target, isAdmitted) => {
  expect(returnAddress(target, onThisMachine) !== undefined).toBe(isAdmitted);
});

/** Around the rule: pieces of URLs, and any other characters. */
const piece = fc.oneof(
  fc.constantFrom(
    ...'/\\:@?#.%',
    '//',
    'https:',
    'http://',
    'evil.test',
    'accounts.example.com',
    '%2f',
    '%5c',
    '..',
    'auth',
  ),
  anyCharacter,
);

test('any accepted value leads browsers on every own page to an own origin, and not below /auth', () => {
  let admitted = 0;
  fc.assert(
    fc.property(
      fc.constantFrom('', '/', 'https://accounts.example.com'),
      fc.array(piece, { maxLength: 8 }),
      (start, rest) => {
        const address = returnAddress(start + rest.join(''), ours);
        if (address === undefined) return;
        admitted++;
        for (const page of ['https://accounts.example.com/login?x=1', 'https://app.example.com:8443/a/b/']) {
          const { origin, pathname } = new URL(address, page);
          expect(ours.origins).toContain(origin);
          expect(decodeURIComponent(pathname)).not.toMatch(/^\/auth(?:\/|$)|\/\/|\\/i);
        }
        expect(returnAddress(address, ours)).toBe(address);
      },
    ),
    cases(2000),
  );
  expect(admitted).toBeGreaterThan(50);
});
