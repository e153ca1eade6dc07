import fc from 'fast-check';
import { anyCharacter } from '../rig/client/random.ts';

/** The part of JSON Schema that the document uses. */
export interface Schema {
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  format?: string;
  example?: unknown;
}

/** Inputs that often cause faults, for any text or number. */
export const nasty: unknown[] = [
  '',
  ' ',
  '\0',
  '\ud800',
  '\r\nSet-Cookie: a=b',
  '../../etc/passwd',
  '%2e%2e%2f%00',
  "' or 1=1 --",
  '<script>alert(1)</script>',
  '{"$gt":""}',
  '👩‍👩‍👧‍👦'.repeat(30),
  'x'.repeat(5000),
  'javascript:alert(1)',
  'https://user:password@example.test/',
  '__proto__',
  'constructor',
  'null',
  '0',
  '-1',
  '1e309',
  null,
  true,
  0,
  -1,
  1.5,
  1e18,
  Number.MAX_SAFE_INTEGER,
  [],
  {},
  [['x']],
  { toString: 'x' },
];

const broken = fc.oneof(fc.constantFrom(...nasty), fc.jsonValue({ maxDepth: 3 }), fc.string({ unit: anyCharacter }));

/** Mostly valid values of the schema, sometimes others. `known` contains values that exist in the service. */
export const fromSchema = (schema: Schema, name: string, known: Record<string, unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 5, arbitrary: valid(schema, name, known) }, { weight: 1, arbitrary: broken });

function valid(schema: Schema, name: string, known: Record<string, unknown>): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((option) => valid(option, name, known)));
  const meaningful = [known[name], schema.example].filter((value) => value !== undefined);
  const typed = ofType(schema, known);
  return meaningful.length > 0 ? fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...meaningful) }, typed) : typed;
}

function ofType(schema: Schema, known: Record<string, unknown>): fc.Arbitrary<unknown> {
  const { type, minLength = 0, maxLength = 200, minimum = -1000, maximum = 1_000_000 } = schema;
  switch (Array.isArray(type) ? type[0] : type) {
    case 'string':
      if (schema.format === 'email') return fc.uuid().map((id) => `${id}@example.test`);
      return fc.string({ unit: 'grapheme', minLength, maxLength });
    case 'integer':
      return fc.integer({ min: Math.max(minimum, -(2 ** 31)), max: Math.min(maximum, 2 ** 31 - 1) });
    case 'boolean':
      return fc.boolean();
    case 'array':
      return fc.array(fromSchema(schema.items ?? {}, '', known), { maxLength: 5 });
    case 'object':
      return objectOf(schema, known);
    default:
      return broken;
  }
}

/** Required fields are mostly present, others half of the time, sometimes with an unknown one. */
function objectOf({ properties = {}, required = [] }: Schema, known: Record<string, unknown>): fc.Arbitrary<object> {
  const fields = Object.entries(properties).map(([name, schema]) => {
    const field = fromSchema(schema, name, known).map((value) => [[name, value]]);
    return fc.oneof({ weight: required.includes(name) ? 12 : 1, arbitrary: field }, fc.constant([]));
  });
  const extra = fc
    .constantFrom('role', 'emailVerified', 'id', '__proto__', 'passwordHash', '')
    .map((name) => [[name, true]]);
  return fc
    .tuple(...fields, fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, extra))
    .map((entries) => Object.fromEntries(entries.flat()) as object);
}
