import fc from 'fast-check';
import { addressParser } from 'postal-mime';
import { expect, test } from 'vitest';
import type { z } from 'zod';
import { email, filename, mailedEmail, name, profile } from '../../../routers/schemas/fields.ts';
import { anyCharacter, cases } from '../../rig/client/random.ts';

/** Characters that often cause faults, among letters. */
const odd = [
  '\0',
  '\r',
  '\n',
  '\t',
  '\u0085',
  '\u200b',
  '\u202e',
  '\u2028',
  '\ufeff',
  '\u00a0',
  '\ud800',
  '\udc00',
  '😀',
  '\u0301',
];
const anyText = (maxLength: number) =>
  fc.string({
    unit: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(...'aB9 é') },
      { weight: 1, arbitrary: fc.constantFrom(...odd) },
      { weight: 1, arbitrary: anyCharacter },
    ),
    maxLength,
    size: 'max',
  });
const long = (max: number) =>
  fc
    .tuple(fc.constantFrom('a', '😀', ' ', '\u200b'), fc.integer({ min: max - 2, max: max + 2 }))
    .map(([one, times]) => one.repeat(times));

const pointsOf = (text: string) => Array.from(text);

/** Checks all texts, and the results for accepted ones; both kinds must occur. */
function holds(
  schema: z.ZodType,
  texts: fc.Arbitrary<string>,
  check: (text: string, accepted: string | undefined) => void,
) {
  const seen = { accepted: 0, refused: 0 };
  fc.assert(
    fc.property(texts, (text) => {
      const { success, data } = schema.safeParse(text);
      seen[success ? 'accepted' : 'refused']++;
      const accepted = success ? (data as string) : undefined;
      check(text, accepted);
      if (accepted === undefined) return;
      // Stored values are returned unchanged, and can be sent back.
      expect(schema.parse(accepted)).toBe(accepted);
      expect(Buffer.from(accepted).toString()).toBe(accepted);
    }),
    cases(400),
  );
  expect(seen.accepted).toBeGreaterThan(10);
  expect(seen.refused).toBeGreaterThan(10);
}

const isVisible = (point: string) => !/[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u.test(point);

test('a name is trimmed, one line, 2 to 100 characters, one of them visible; anything else is refused', () => {
  holds(name, fc.oneof(anyText(6), anyText(110), long(100)), (text, accepted) => {
    const trimmed = text.trim();
    const points = pointsOf(trimmed);
    const isRight =
      points.length >= 2 &&
      points.length <= 100 &&
      trimmed.isWellFormed() &&
      !/\p{Cc}/u.test(trimmed) &&
      points.some(isVisible);
    expect(accepted).toBe(isRight ? trimmed : undefined);
  });
});

test.each([
  ['bio', 500, /\0/],
  ['location', 100, /\p{Cc}/u],
] as const)('a %s is trimmed and has at most %i storable characters', (field, max, forbidden) => {
  holds(profile[field], fc.oneof(anyText(20), anyText(max), long(max)), (text, accepted) => {
    const trimmed = text.trim();
    const isRight = pointsOf(trimmed).length <= max && trimmed.isWellFormed() && !forbidden.test(trimmed);
    expect(accepted).toBe(isRight ? trimmed : undefined);
  });
});

test('an email is one lower-case ASCII address of one recipient', () => {
  const unit = fc.constantFrom(
    ...'aZ0.-+_',
    ...'aZ0',
    ...'"\',;:<>()[] \\',
    '@',
    '\r\n',
    '\0',
    'é',
    'ı',
    'İ',
    '\u212a',
    'ſ',
    '．',
  );
  const part = (maxLength: number) =>
    fc.oneof(
      { weight: 3, arbitrary: fc.string({ unit: fc.constantFrom(...'aZ09'), minLength: 1, maxLength, size: 'max' }) },
      { weight: 1, arbitrary: fc.string({ unit, maxLength: 8 }) },
    );
  const address = fc
    .tuple(
      part(66),
      fc.constantFrom('@', '@', '@', '', '@@'),
      part(66),
      fc.constantFrom('.test', '.Test', '.co.uk', '', '.1', '.'),
    )
    .map((parts) => parts.join(''));
  const lengths = fc.integer({ min: 62, max: 66 }).map((size) => `${'a'.repeat(size)}@example.test`);
  const lookAlike = fc.constantFrom(
    '\u212aate@example.test',
    'grace@\u017fite.test',
    'ada@exampl\u00e9.test',
    'ad\u0131@example.test',
  );
  const some = fc.oneof(
    lengths,
    lookAlike,
    address,
    fc.emailAddress(),
    fc.emailAddress().map((one) => one.toUpperCase()),
    fc.string({ unit }),
  );
  holds(email, some, (text, accepted) => {
    if (accepted === undefined) return;
    expect(accepted).toMatch(/^[!-~]+$/);
    expect(accepted).not.toMatch(/[A-Z\s,;:<>()[\]"\\]/);
    expect(accepted.length).toBeLessThanOrEqual(254);
    const [local = '', domain = '', ...more] = accepted.split('@');
    expect([local.length > 0, local.length <= 64, domain.includes('.'), more]).toEqual([true, true, true, []]);
    // The same letters, whatever their case.
    expect(text).toMatch(/^[!-~]+$/);
    expect(accepted.toUpperCase()).toBe(text.toUpperCase());
    expect([text.toUpperCase(), text.toLowerCase()].map((spelled) => email.parse(spelled))).toEqual([
      accepted,
      accepted,
    ]);
    expect(mailedEmail.parse(text)).toBe(accepted);
    expect(addressParser(accepted)).toEqual([{ name: '', address: accepted }]);
  });
});

test('a web address is kept unchanged, and must be http or https without credentials', () => {
  const unit = fc.constantFrom(...'aB0./?#&=%-:@', ' ', '\\', '\n', '\0', '\u2028', 'é', '😀', '\ud800', '"', '<', '[');
  const tail = fc.oneof(
    fc.string({ unit, maxLength: 12 }),
    fc.string({ unit: fc.constantFrom(...'aB0/'), maxLength: 30 }),
  );
  const scheme = fc.constantFrom(
    'http://',
    'https://',
    'HTTPS://',
    'http:',
    '//',
    'ftp://',
    'javascript:',
    'data:',
    ' http://',
    'https://a@',
    '',
  );
  const length = fc.integer({ min: 2040, max: 2055 }).map((size) => 'https://a.test/'.padEnd(size, 'x'));
  const some = fc.oneof(
    fc.tuple(scheme, tail).map((parts) => parts.join('')),
    fc.domain().map((host) => `https://${host}/ada?a=1#b`),
    length,
    anyText(20),
  );
  for (const field of ['website', 'avatar'] as const) {
    holds(profile[field], some, (text, accepted) => {
      if (accepted === undefined || accepted === '') return expect(text === '').toBe(accepted === '');
      expect(accepted).toBe(text);
      expect(accepted.length).toBeLessThanOrEqual(2048);
      expect(accepted).not.toMatch(/[\s\p{Cc}\\]/u);
      const { protocol, username, password, href } = new URL(accepted);
      expect(protocol).toMatch(/^https?:$/);
      expect([username, password]).toEqual(['', '']);
      // Also on a page of another site that shows it as a link.
      expect(new URL(accepted, 'https://elsewhere.test/a/').href).toBe(href);
    });
  }
});

test('a file name is any text of 1 to 1024 characters, kept unchanged', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        anyText(30),
        fc.integer({ min: 1020, max: 1030 }).map((size) => 'x'.repeat(size)),
      ),
      (text) => {
        const { data } = filename.safeParse(text);
        expect(data).toBe(text.length >= 1 && text.length <= 1024 ? text : undefined);
      },
    ),
    cases(200),
  );
});
