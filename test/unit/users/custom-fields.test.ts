import { expect, test } from 'vitest';
import { createCustomFields } from '../../../server/accounts/users/index.ts';
import type { FieldType, ProfileField } from '../../../server/shared/profile-fields.ts';

const { uniqueIn } = createCustomFields([
  {
    name: 'username',
    type: 'text',
    maxLength: 30,
    labels: { en: 'Username' },
    read: 'public',
    write: 'owner',
    required: true,
    unique: true,
  },
]);
const hashOf = (username: string) => uniqueIn({ username })[0]?.value_hash;

test.each([
  ['case', 'ADA LOVELACE'],
  ['compatible characters', 'Ａda Lovelace'],
  ['a zero-width space', 'Ada\u200b Lovelace'],
  ['a soft hyphen', 'A\u00adda Lovelace'],
  ['a filler of Hangul', 'Ada Lovelace\u3164'],
  ['a filler of Hangul, halfwidth', 'Ada Lovelace\uffa0'],
  ['the blank of Braille', 'Ada\u2800 Lovelace\u2800'],
  ['a separator of lines', 'Ada\u2028 Lovelace\u2029'],
  ['a control character', 'Ada\u0007 Lovelace'],
  ['a control character outside of the first plane', 'Ada\u{e0001} Lovelace'],
  ['an interlinear annotation', 'Ada\ufff9 Lovelace'],
  ['a character for private use', 'Ada\ue000 Lovelace'],
  ['a hieroglyphic joiner', 'Ada\u{13430} Lovelace'],
  ['two spaces', 'Ada  Lovelace'],
  ['other spaces', 'Ada\u2003\u00a0Lovelace'],
  ['the Ogham space', 'Ada\u1680Lovelace'],
  ['spaces around', '\u2003Ada Lovelace\u3000'],
  ['a space beside an invisible character', 'Ada Lovelace \u200b'],
])('%s make no difference to a unique value', (_, spelled) => {
  expect(hashOf(spelled)).toBe(hashOf('Ada Lovelace'));
});

test.each(['AdaLovelace', 'Ada Lovelace1', 'Adá Lovelace', 'Ada-Lovelace'])('%s is another value', (other) => {
  expect(hashOf(other)).not.toBe(hashOf('Ada Lovelace'));
});

const field = (type: FieldType, bounds: Partial<ProfileField> = {}): ProfileField => ({
  name: 'own',
  type,
  labels: { en: 'Own' },
  read: 'owner',
  write: 'owner',
  required: false,
  unique: false,
  ...bounds,
});
const values = [
  'Ada',
  'Ada\nLovelace',
  'Ada\0',
  '\ud800',
  '\u200b',
  'much too long',
  'https://a.test',
  'ftp://a.test',
  'https://u:p@a.test',
  '1815-12-10',
  '1815-02-30',
  'pro',
  'free',
  12,
  13,
  -1,
  true,
  ['Ada'],
  { a: 1 },
];
test.each([
  field('text', { maxLength: 12 }),
  field('longText', { maxLength: 12 }),
  field('url', { maxLength: 18 }),
  field('date'),
  field('choice', { choices: ['pro', 'Ada'] }),
  field('boolean'),
  field('number', { min: 0, max: 12 }),
])('a stored value of a $type is shown if it could be written', (own) => {
  const { valuesFor, changeSchema } = createCustomFields([own]);
  const schema = changeSchema('owner');
  const writable = values.filter((value) => schema.safeParse({ own: value }).success);
  expect(writable.length).toBeGreaterThan(0);
  expect(writable.length).toBeLessThan(values.length);
  expect(values.filter((value) => valuesFor('owner')?.(JSON.stringify({ own: value }))['own'] !== null)).toEqual(
    writable,
  );
});
