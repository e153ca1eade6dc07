import { expect, test } from 'vitest';
import { FIELDS_MARK } from '../../../routers/schemas/profile-fields.ts';
import { withProfileFields } from '../../../server/http/api/profile-fields.ts';
import type { ProfileField } from '../../../server/shared/profile-fields.ts';

/** The operator's own fields in public documents. */

const field = (name: string, given: Partial<ProfileField> = {}): ProfileField => ({
  ...{ name, type: 'text', labels: { en: name.toUpperCase() } },
  ...{ read: 'public', write: 'owner', required: false, unique: false },
  ...given,
});
const all = [
  field('nick', { maxLength: 30, required: true }),
  field('size', { type: 'number', min: 1, max: 9 }),
  field('born', { type: 'date', read: 'owner' }),
  field('site', { type: 'url' }),
  field('plan', { type: 'choice', choices: ['a', 'b'], write: 'administrators' }),
  field('crm', { read: 'services', write: 'services' }),
];

/** The schema that a mark becomes, and what of its object is required. */
function completed(mark: object, required: string[] | undefined, fields = all) {
  const marked = { type: 'object', tsType: 'x', [FIELDS_MARK]: mark };
  const schema = { properties: { id: { type: 'string' }, fields: marked }, ...(required && { required }) };
  const { some } = withProfileFields({ some: [schema] }, fields) as unknown as { some: [typeof schema] };
  return some[0];
}

const nick = { type: ['string', 'null'], description: 'NICK', maxLength: 30 };
const size = { type: ['number', 'null'], description: 'SIZE', minimum: 1, maximum: 9 };
const born = { type: ['string', 'null'], description: 'BORN', format: 'date' };
const site = { type: ['string', 'null'], description: 'SITE' };
const plan = { type: ['string', 'null'], description: 'PLAN', enum: ['a', 'b', null] };

test('an output has the fields that its reader may read, all of them always', () => {
  expect(completed({ read: 'public' }, ['id', 'fields'])).toEqual({
    properties: {
      id: { type: 'string' },
      fields: {
        type: 'object',
        properties: { nick, size, site, plan },
        required: ['nick', 'size', 'site', 'plan'],
        additionalProperties: false,
      },
    },
    required: ['id', 'fields'],
  });
  expect(completed({ read: 'owner' }, ['id']).properties.fields).toMatchObject({
    properties: { nick, size, born, site, plan },
    additionalProperties: false,
  });
});

test('fields that only services read are not named, but possible', () => {
  const { fields } = completed({ read: 'services' }, undefined).properties;
  expect(fields).toMatchObject({ properties: { nick, size, born, site, plan }, additionalProperties: true });
  expect(JSON.stringify(fields)).not.toContain('crm');
});

test('an input has the fields that its writer may write; only a new profile needs the required ones', () => {
  const change = completed({ write: 'owner', isNew: false }, ['id']);
  expect(change.properties.fields).toEqual({
    type: 'object',
    properties: { nick, size, born, site },
    additionalProperties: false,
  });
  expect(change.required).toEqual(['id']);
  const made = completed({ write: 'owner', isNew: true }, ['id']);
  expect(made.properties.fields).toMatchObject({ required: ['nick'] });
  expect(made.required).toEqual(['id', 'fields']);
});

test('without fields there is no place for them', () => {
  expect(completed({ read: 'public' }, ['id', 'fields'], [])).toEqual({
    properties: { id: { type: 'string' } },
    required: ['id'],
  });
});
