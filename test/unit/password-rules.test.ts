import { expect, test } from 'vitest';
import { passwordRules } from '../../client/pages/form/password-rules.ts';
import { newPassword } from '../../routers/fields.ts';

/** The rules that a password breaks, by the names that the service gives them. */
const broken = (password: string) => {
  const issues = newPassword.safeParse(password).error?.issues ?? [];
  const rules = issues.map((issue) => (issue.code === 'custom' ? issue.params?.['rule'] : issue.code));
  // The page tells both ends of the length in one sentence.
  return [...new Set(rules.map((rule) => (rule === 'too_short' || rule === 'too_long' ? 'length' : rule)))];
};

const order = ['length', 'uppercase', 'lowercase', 'digit', 'symbol'];

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
  const unmet = passwordRules.map(({ isMet }, i) => (isMet(password) ? undefined : order[i])).filter(Boolean);
  expect(unmet).toEqual(broken(password));
});
