import type { Schema } from './arbitrary.ts';

/** A text anywhere in the values of a schema. */
interface TextField {
  /** Its property; of a text in an array, that of the array. */
  name: string;
  /** A valid text, '' if none is known. */
  example: string;
  /** A value with this text there; the rest is valid. */
  valueWith(text: string): unknown;
}

/** Every text of a schema. `known` has valid values of properties by their names; getters make one for each value. */
export function* textFieldsOf(
  schema: Schema,
  known: Readonly<Record<string, unknown>>,
  name = '',
): Generator<TextField> {
  if (schema.const !== undefined || schema.enum) return;
  for (const option of schema.anyOf ?? []) yield* textFieldsOf(withExample(option, schema.example), known, name);
  const documented = sample(schema, known, name);
  const type = typeOf(schema);
  if (type === 'string') yield { name, example: String(documented ?? ''), valueWith: (text) => text };
  if (type === 'array') {
    const [example] = documented as unknown[];
    for (const field of textFieldsOf(withExample(schema.items ?? {}, example), known))
      yield { ...field, name: field.name || name, valueWith: (text) => [field.valueWith(text)] };
  }
  for (const [property, inner] of Object.entries(schema.properties ?? {}))
    for (const field of textFieldsOf(inner, known, property))
      yield {
        ...field,
        valueWith: (text) => ({ ...(sample(schema, known, name) as object), [property]: field.valueWith(text) }),
      };
}

const typeOf = ({ type }: Schema) => (Array.isArray(type) ? type[0] : type);

const withExample = (schema: Schema, example: unknown): Schema =>
  example === undefined ? schema : { example, ...schema };

/** A valid value. An object has the required properties, and those that are known. */
function sample(schema: Schema, known: Readonly<Record<string, unknown>>, name: string): unknown {
  const value = known[name] ?? schema.const ?? schema.enum?.[0] ?? schema.example;
  if (value !== undefined) return value;
  if (schema.anyOf?.[0]) return sample(schema.anyOf[0], known, name);
  switch (typeOf(schema)) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {})
          .filter(([property]) => schema.required?.includes(property) || property in known)
          .map(([property, inner]) => [property, sample(inner, known, property)]),
      );
    case 'array':
      return [];
    case 'integer':
      return schema.minimum ?? 1;
    case 'boolean':
      return false;
    default:
      return '';
  }
}

/** The texts of a property, or of an array in it, anywhere in an answer. */
export const textsNamed = (name: string, answer: unknown): unknown[] =>
  Object.entries(Object(answer)).flatMap(([property, value]) =>
    typeof value === 'object' && !Array.isArray(value)
      ? textsNamed(name, value)
      : [value]
          .flat()
          .flatMap((item) => (typeof item === 'object' ? textsNamed(name, item) : property === name ? [item] : [])),
  );
