import { describe, expect, test } from 'vitest';
import { changeSchema, fitting, jsonSchemaOf, MAX_BYTES } from '../../../server/accounts/users/field-schemas.ts';
import type { ProfileField } from '../../../server/shared/profile-fields.ts';

/** The values of operators' fields, and what is said of those that are refused. */

const field = (given: Partial<ProfileField> & Pick<ProfileField, 'type'>): ProfileField =>
  ({ name: 'own', labels: { en: 'A field' }, read: 'owner', write: 'owner', ...given }) as ProfileField;
const text = field({ type: 'text', maxLength: 5 });
const longText = field({ type: 'longText', maxLength: 5 });
const url = field({ type: 'url', maxLength: 30 });
const date = field({ type: 'date' });
const choice = field({ type: 'choice', choices: ['red', ' green '] });
const number = field({ type: 'number' });
const between = field({ type: 'number', min: 2, max: 4 });

/** The rules and messages by the path, or the stored values. */
const written = (fields: ProfileField[], sent: unknown, isNew = false) => {
  const parsed = changeSchema(fields, { writer: 'owner', isNew }).safeParse(sent);
  if (parsed.success) return parsed.data;
  return parsed.error.issues.map((issue) => {
    const { params } = issue as { params?: { rule?: string } };
    return [issue.path.join('.'), params?.rule ?? issue.code, issue.message];
  });
};

describe('a value', () => {
  test.each<[string, ProfileField, unknown, unknown]>([
    ['text is trimmed', text, ' abc ', 'abc'],
    ['an empty text is unset', text, '  ', null],
    ['null is unset', text, null, null],
    ['a long text may have lines', longText, 'a\nb', 'a\nb'],
    ['a url', url, ' https://example.com ', 'https://example.com'],
    ['a date', date, '2024-02-29', '2024-02-29'],
    ['a choice is not trimmed', choice, ' green ', ' green '],
    ['a boolean', field({ type: 'boolean' }), false, false],
    ['a number without a range', number, -1e9, -1e9],
    ['the least number', between, 2, 2],
    ['the greatest number', between, 4, 4],
  ])('is stored: %s', (_, one, sent, stored) => expect(written([one], { own: sent })).toEqual({ own: stored }));

  test.each<[string, ProfileField, unknown, string, string]>([
    ['a long one', text, 'abcdef', 'too_long', 'Must have at most 5 characters'],
    ['a text of two lines', text, 'a\nb', 'invalid_characters', 'Contains characters that are not allowed'],
    ['an invisible text', text, '\u200b', 'invisible', 'Must contain a visible character'],
    ['an invisible long text', longText, '\u200b', 'invisible', 'Must contain a visible character'],
    ['a long text that is too long', longText, 'abcdef', 'too_long', 'Must have at most 5 characters'],
    ['a script as a url', url, 'javascript:alert(1)', 'invalid_url', 'Must be an http or https URL'],
    ['a day that the month does not have', date, '2025-02-29', 'invalid_date', 'Must be a date like 2026-11-24'],
    ['a time', date, '2026-11-24T00:00', 'invalid_date', 'Must be a date like 2026-11-24'],
    ['a year of five digits', date, '12026-11-24', 'invalid_date', 'Must be a date like 2026-11-24'],
    ['another option', choice, 'blue', 'unknown_choice', 'Must be one of the options'],
    ['an option with spaces', choice, 'red ', 'unknown_choice', 'Must be one of the options'],
    ['infinity', number, Number.POSITIVE_INFINITY, 'invalid_number', 'Must be a number'],
    ['a number as text', number, '3', 'invalid_number', 'Must be a number'],
    ['too small a number', between, 1.9, 'out_of_range', 'Must be at least 2 and at most 4'],
    ['too large a number', between, 4.1, 'out_of_range', 'Must be at least 2 and at most 4'],
    ['below a minimum', field({ type: 'number', min: 2 }), 1, 'out_of_range', 'Must be at least 2'],
    ['above a maximum', field({ type: 'number', max: 4 }), 5, 'out_of_range', 'Must be at most 4'],
  ])('is refused: %s', (_, one, sent, rule, message) =>
    expect(written([one], { own: sent })).toEqual([['own', rule, message]]),
  );

  test('that is stored fits as long as it could be written', () => {
    expect([fitting(between)(3), fitting(between)(5), fitting(between)('3')]).toEqual([true, false, false]);
    expect([fitting(choice)('red'), fitting(choice)('blue')]).toEqual([true, false]);
    expect([fitting(text)('abcde'), fitting(text)('abcdef'), fitting(text)('\u200b')]).toEqual([true, false, false]);
    expect([fitting(date)('2024-02-29'), fitting(date)('2025-02-29')]).toEqual([true, false]);
  });
});

describe('a change', () => {
  const username = field({ type: 'text', name: 'username', maxLength: 30, required: true });
  const plan = field({ type: 'text', name: 'plan', maxLength: 30, write: 'services' });

  test('has only what was sent', () => {
    expect(written([username, text], {})).toEqual({});
    expect(written([username, text], { own: 'a', username: undefined })).toEqual({ own: 'a' });
  });

  test.each<[string, unknown, unknown]>([
    ['a list', [], [['', 'invalid_type', 'Must be an object']]],
    ['null', null, [['', 'invalid_type', 'Must be an object']]],
    ['a text', 'own', [['', 'invalid_type', 'Must be an object']]],
    ['an unknown field', { nope: 'x' }, [['nope', 'unknown_field', 'There is no such field']]],
    ['a long unknown name', { ['n'.repeat(99)]: 1 }, [['n'.repeat(64), 'unknown_field', 'There is no such field']]],
    ['a field of services', { plan: 'pro' }, [['plan', 'read_only', 'Cannot be changed here']]],
    ['a required field cleared', { username: null }, [['username', 'missing', 'Must not be empty']]],
    ['a required field emptied', { username: ' ' }, [['username', 'missing', 'Must not be empty']]],
  ])('is refused: %s', (_, sent, problems) => expect(written([username, plan, text], sent)).toEqual(problems));

  test('names at most a hundred problems', () => {
    const sent = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`n${i}`, 1]));
    expect(written([text], sent)).toHaveLength(100);
  });

  test('of a registration has the required fields', () => {
    expect(written([username], {}, true)).toEqual([['username', 'missing', 'Must not be empty']]);
    expect(written([username], { username: 'ada' }, true)).toEqual({ username: 'ada' });
  });

  test('has at most 16 kB', () => {
    const long = field({ type: 'longText', maxLength: 20_000 });
    const room = MAX_BYTES - JSON.stringify({ own: '' }).length;
    expect(written([long], { own: 'x'.repeat(room) })).toEqual({ own: 'x'.repeat(room) });
    expect(written([long], { own: 'x'.repeat(room + 1) })).toEqual([
      ['', 'fields_too_large', 'The fields are too long in total'],
    ]);
  });
});

test.each<[ProfileField, object]>([
  [text, { type: ['string', 'null'], maxLength: 5 }],
  [between, { type: ['number', 'null'], minimum: 2, maximum: 4 }],
  [date, { type: ['string', 'null'], format: 'date' }],
  [choice, { type: ['string', 'null'], enum: ['red', ' green ', null] }],
  [field({ type: 'boolean' }), { type: ['boolean', 'null'] }],
])('the JSON Schema of %j', (one, schema) => expect(jsonSchemaOf(one)).toEqual({ description: 'A field', ...schema }));
