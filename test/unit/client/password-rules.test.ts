import { type PasswordRule, passwordRules } from 'account-client';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newPassword } from '../../../routers/schemas/fields.ts';
import { anyCharacter, cases } from '../../rig/client/random.ts';

/** The rules that a password breaks, by the service's names. */
const broken = (password: string): string[] => {
  const issues = newPassword.safeParse(password).error?.issues ?? [];
  return issues.map((issue) => (issue.code === 'custom' ? String(issue.params?.['rule']) : issue.code));
};

/** The client's entries for these names. */
const listed = (names: string[]) => passwordRules.filter(({ rules }) => rules.some((rule) => names.includes(rule)));
const unmetBy = (password: string) => passwordRules.filter(({ isMet }) => !isMet(password));
const labels = (rules: readonly PasswordRule[]) => rules.map(({ label }) => label);

test('each rule of the service is in one entry of the client’s list', () => {
  const every = new Set(['', 'x'.repeat(129)].flatMap(broken));
  expect(passwordRules.flatMap(({ rules }) => rules).sort()).toEqual([...every].sort());
});

test.each([
  '',
  'Aa1!',
  'Analytical-1843',
  'ANALYTICAL-1843',
  'analytical-1843',
  'Analytical-Engine',
  'Analytical1843',
  'Ünïcödé٣٣ äß',
  `${'😀'.repeat(5)}Aa1`,
  `${'😀'.repeat(4)}Aa1`,
  `Aa1!${'x'.repeat(124)}`,
  `Aa1!${'x'.repeat(125)}`,
  '        ',
])('the page ticks off for %j what the service accepts', (password) => {
  expect(labels(unmetBy(password))).toEqual(labels(listed(broken(password))));
});

/** Characters around each rule: its own, similar ones, and any others. */
const character = fc.oneof(
  fc.constantFrom(...'AZaz09!- ', 'Ä', 'ß', 'ǅ', 'ª', '٣', '²', 'Ⅷ', '😀', '\u0301', '\0', '\n'),
  anyCharacter.filter((character) => character.isWellFormed()),
);
const candidate = fc.oneof(
  fc.string({ unit: character, maxLength: 12, size: 'max' }),
  fc
    .tuple(fc.constantFrom('', 'Aa1!', 'Aa1', 'a1!'), character, fc.integer({ min: 0, max: 130 }))
    .map(([start, one, times]) => start + one.repeat(times)),
);

test('for any password the page ticks off what the service accepts, and the service keeps it unchanged', () => {
  let accepted = 0;
  fc.assert(
    fc.property(candidate, (password) => {
      const unmet = labels(unmetBy(password));
      // The service does not check more of one that is too long.
      if ([...password].length <= 128) expect(unmet).toEqual(labels(listed(broken(password))));
      const parsed = newPassword.safeParse(password);
      expect(parsed.success).toBe(unmet.length === 0);
      if (!parsed.success) return;
      expect(parsed.data).toBe(password);
      accepted++;
    }),
    cases(500),
  );
  expect(accepted).toBeGreaterThan(10);
});

test('of ASCII passwords, exactly those of 8 to 128 characters with one of each kind are accepted', () => {
  const one = (from: string, to: string) => fc.integer({ min: from.charCodeAt(0), max: to.charCodeAt(0) });
  const kinds = [
    one('A', 'Z'),
    one('a', 'z'),
    one('0', '9'),
    fc.constantFrom(...'!"/:@[`{~ \t').map((c) => c.charCodeAt(0)),
  ];
  const isOf = [/[A-Z]/, /[a-z]/, /[0-9]/, /[^A-Za-z0-9]/];
  fc.assert(
    fc.property(
      fc
        .subarray(kinds, { minLength: 1 })
        .chain((kinds) => fc.array(fc.oneof(...kinds), { minLength: 5, maxLength: 135, size: 'max' })),
      (codes) => {
        const password = String.fromCharCode(...codes);
        const isRight = codes.length >= 8 && codes.length <= 128 && isOf.every((kind) => kind.test(password));
        expect(newPassword.safeParse(password).success).toBe(isRight);
      },
    ),
    cases(500),
  );
});
