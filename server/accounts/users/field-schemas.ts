import { z } from 'zod';
import {
  type FieldValue,
  type FieldValues,
  type FieldWriter,
  fieldTypes,
  mayAccess,
  type ProfileField,
} from '../../shared/profile-fields.ts';
import { hasVisible, isOneLine, isStorable } from './text-rules.ts';
import { type Check, isUnsetOr, rule, textChecks, webAddressCheck } from './text-schemas.ts';

/** The schemas of values, made from the configuration. */

/** Of the JSON of all fields of a user, also of fields that are no longer configured. */
export const MAX_BYTES = 16 * 1024;
export const tooLarge = rule('fields_too_large', 'The fields are too long in total');

const isDate = (value: string): boolean =>
  // A day that the month does not have is a day of the next one.
  /^\d{4}-\d\d-\d\d$/.test(value) && new Date(`${value}T00:00:00Z`).getUTCDate() === Number(value.slice(8));

/** What a value must be beyond its type. An empty text is an unset field. */
const checksOf = ({ type, maxLength = 0, min, max, choices = [] }: ProfileField): Check<never>[] => {
  const visible: Check = [isUnsetOr(hasVisible), rule('invisible', 'Must contain a visible character')];
  switch (type) {
    case 'text':
      return [...textChecks(maxLength, isOneLine), visible];
    case 'longText':
      return [...textChecks(maxLength, isStorable), visible];
    case 'url':
      return [webAddressCheck, ...textChecks(maxLength, isOneLine)];
    case 'date':
      return [[isUnsetOr(isDate), rule('invalid_date', 'Must be a date like 2026-11-24')]];
    case 'choice':
      return [[isUnsetOr((value) => choices.includes(value)), rule('unknown_choice', 'Must be one of the options')]];
    case 'boolean':
      return [];
    case 'number':
      return [
        [
          (value: number) => value >= (min ?? -Infinity) && value <= (max ?? Infinity),
          rule('out_of_range', `Must be ${rangeOf(min, max)}`),
        ],
      ];
  }
};

const typeSchemaOf = ({ type }: ProfileField): z.ZodType<FieldValue> => {
  switch (fieldTypes[type]) {
    case 'string':
      return type === 'choice' ? z.string() : z.string().trim();
    case 'boolean':
      return z.boolean();
    case 'number':
      return z.custom<number>(Number.isFinite, { ...rule('invalid_number', 'Must be a number'), abort: true });
  }
};

const schemaOf = (field: ProfileField): z.ZodType<FieldValue> =>
  checksOf(field).reduce((schema, [passes, broken]) => schema.refine(passes as never, broken), typeSchemaOf(field));

/** Whether a stored value is one that could be written. Without zod, because every profile read does it. */
export const fitting = (field: ProfileField): ((value: unknown) => boolean) => {
  const type = fieldTypes[field.type];
  const rules = (checksOf(field) as Check<unknown>[]).map(([passes]) => passes);
  return (value) => typeof value === type && rules.every((passes) => passes(value));
};

const rangeOf = (min: number | undefined, max: number | undefined): string =>
  [...(min === undefined ? [] : [`at least ${min}`]), ...(max === undefined ? [] : [`at most ${max}`])].join(' and ');

/**
 * What `writer` sends: only sent fields change, null and the empty text clear. A field that is unknown, or not open to the
 * writer, is refused by its name.
 */
export const changeSchema = (
  fields: readonly ProfileField[],
  { writer, isNew = false }: { writer: FieldWriter; isNew?: boolean },
): z.ZodType<FieldValues> => {
  const known = new Map(fields.map((field) => [field.name, { field, schema: schemaOf(field).nullable() }]));
  const required = fields.filter((field) => field.required);
  return z
    .custom<Record<string, unknown>>(
      (given) => typeof given === 'object' && given !== null && !Array.isArray(given),
      rule('invalid_type', 'Must be an object'),
    )
    .transform((given, { addIssue }) => {
      const refuse = (path: string, { error, params }: ReturnType<typeof rule>) =>
        addIssue({ code: 'custom', path: [path], message: error, params });
      const values: Record<string, FieldValue | null> = {};
      // More than there can be fields: at least one is refused.
      for (const [name, value] of Object.entries(given).slice(0, 100)) {
        const found = known.get(name);
        if (value === undefined) continue;
        if (!found) refuse(name.slice(0, 64), rule('unknown_field', 'There is no such field'));
        else if (!mayAccess(writer, found.field.write)) refuse(name, rule('read_only', 'Cannot be changed here'));
        else {
          const parsed = found.schema.safeParse(value);
          if (parsed.success) values[name] = parsed.data === '' ? null : parsed.data;
          else for (const issue of parsed.error.issues) addIssue({ ...issue, path: [name] } as never);
        }
      }
      const isMissing = ({ name }: ProfileField) => values[name] === null || (isNew && given[name] === undefined);
      for (const field of required.filter(isMissing)) refuse(field.name, rule('missing', 'Must not be empty'));
      if (Buffer.byteLength(JSON.stringify(values)) > MAX_BYTES)
        addIssue({ code: 'custom', message: tooLarge.error, params: tooLarge.params });
      return values;
    });
};

/** A value in JSON Schema. */
export const jsonSchemaOf = ({ type, maxLength, min, max, choices, labels }: ProfileField): object => {
  const isOfList = type === 'choice' && choices !== undefined;
  return {
    type: [fieldTypes[type], 'null'],
    description: labels.en,
    ...(maxLength !== undefined && { maxLength }),
    ...(min !== undefined && { minimum: min }),
    ...(max !== undefined && { maximum: max }),
    ...(isOfList && { enum: [...choices, null] }),
    ...(type === 'date' && { format: 'date' }),
  };
};
