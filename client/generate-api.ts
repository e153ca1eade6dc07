import { rmSync, writeFileSync } from 'node:fs';
import { compile, type JSONSchema } from 'json-schema-to-typescript';
import { z } from 'zod';
import { procedures } from '../routers/procedures.ts';
import { errorCodes } from '../server/errors.ts';

/**
 * Writes src/api.ts: the API as self-contained types for the client. They are printed from the schemas of the
 * procedures, with names and descriptions: the inferred type of the router would import the whole server and tRPC's
 * types. test/client/types.test.ts compares both.
 */

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** All named types, in order of appearance. */
const named = new Map<string, JsonSchema>();

/** `auth.register` → `Register`, `profile.update` → `ProfileUpdate`. */
const typeName = (procedure: string) =>
  procedure
    .replace(/^auth\./, '')
    .split('.')
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('');

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const json = z.toJSONSchema(schema, { io, unrepresentable: 'any', override: refine });
  const { $defs = {} } = json;
  for (const [name, definition] of Object.entries($defs)) named.set(name, { ...definition, $defs });
  return json;
}

/** Adds what JSON Schema cannot express. */
function refine({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: JsonSchema }): void {
  const { def } = zodSchema._zod;
  // A schema that names its type itself: fields of profiles.
  if (jsonSchema['tsType'] !== undefined) return;
  if (def.type === 'custom' && z.safeParse(zodSchema, new FormData()).success) jsonSchema['tsType'] = 'FormData';
  if (def.type !== 'object') return;
  // The service accepts any token, so that a malformed one is a wrong token; callers of the client pass a string.
  const sent = Object.entries(def.shape).filter(([, field]) => isLenient(field));
  const required = [...(jsonSchema.required ?? []), ...sent.map(([name]) => name)];
  jsonSchema.required = required;
  jsonSchema.properties = Object.fromEntries(
    Object.entries(jsonSchema.properties as Record<string, JsonSchema>).map(([name, property]) => {
      // An optional field may be undefined, even with exactOptionalPropertyTypes.
      const anyOf = required.includes(name) ? [property] : [property, { tsType: 'undefined' }];
      return [name, { anyOf, description: describe(property) }];
    }),
  );
}

function describe({ description, minLength, maxLength }: JsonSchema): string {
  const length =
    maxLength && (minLength ? `${minLength} to ${maxLength} characters` : `At most ${maxLength} characters`);
  return [description, length].filter(Boolean).join('. ');
}

/** Whether the schema accepts any input and then transforms it. */
function isLenient(schema: z.core.$ZodType): boolean {
  const { def } = schema._zod as z.core.$ZodTypes['_zod'];
  return def.type === 'pipe' && takesAnything(def.in);
}

function takesAnything(schema: z.core.$ZodType): boolean {
  const { def } = schema._zod as z.core.$ZodTypes['_zod'];
  if (def.type === 'pipe') return takesAnything(def.in);
  if (def.type === 'optional') return takesAnything(def.innerType);
  return def.type === 'unknown';
}

/** Returns the declaration of a type. */
const declare = (name: string, schema: JsonSchema): Promise<string> =>
  compile(schema as JSONSchema, name, {
    additionalProperties: false,
    bannerComment: '',
    // Named types have declarations of their own.
    declareExternallyReferenced: false,
    ignoreMinAndMaxItems: true,
    style: { singleQuote: true },
  });

const comment = (text: string) => (text ? `/** ${text} */\n` : '');

type Tree = { [name: string]: Tree | string };

/** The input of a procedure; several parsers are combined into one object. */
const wholeOf = ([input, ...others]: z.ZodType[]): z.ZodType | undefined =>
  others.reduce((whole, other) => z.object({ ...shapeOf(whole), ...shapeOf(other) }), input);

const shapeOf = (input: z.ZodType | undefined) => (input as z.ZodObject).shape;

/** The procedures, nested as in the router; collects the types of their inputs and outputs. */
function proceduresAsTree(): Tree {
  const tree: Tree = {};
  for (const { name: path, type, meta, inputs, output } of procedures) {
    const openapi = meta?.openapi;
    const name = typeName(path);
    const input = wholeOf(inputs);
    if (input) named.set(`${name}Input`, jsonSchema(input, 'input'));
    named.set(`${name}Output`, jsonSchema(output, 'output'));
    const isOptional = input?.safeParse(undefined).success;
    const inputType = input ? `${name}Input${isOptional ? ' | void' : ''}` : 'void';
    const kind = type === 'query' ? 'Query' : 'Mutation';
    const doc = comment([meta?.summary, openapi?.summary, openapi?.description].filter(Boolean).join('. '));
    const [leaf = '', ...parents] = path.split('.').reverse();
    let place = tree;
    for (const parent of parents.reverse()) {
      const next = place[parent] ?? {};
      if (typeof next === 'string') throw new Error(`${path} is a procedure and a router`);
      place[parent] = next;
      place = next;
    }
    place[leaf] = `${doc}${leaf}: ${kind}<${inputType}, ${name}Output>`;
  }
  return tree;
}

const printTree = (tree: Tree, indent = '  '): string =>
  Object.entries(tree)
    .map(([name, value]) =>
      typeof value === 'string'
        ? `${value.replace(/^/gm, indent)};\n`
        : `${indent}${name}: {\n${printTree(value, `${indent}  `)}${indent}};\n`,
    )
    .join('');

// The compiler leaves what a former build wrote, and the package would contain it.
rmSync(new URL('dist', import.meta.url), { recursive: true, force: true });

const tree = proceduresAsTree();
const types = await Promise.all([...named].map(([name, schema]) => declare(name, schema)));

writeFileSync(
  new URL('src/api.ts', import.meta.url),
  `// Made by generate-api.ts from the procedures of the service: change those, not this.

/** All error codes of the service. */
export type ErrorCode =
${errorCodes.map((code) => `  | '${code}'`).join('\n')};

/** The fields of your service (PROFILE_FIELDS). Declare them in this interface: \`npx account-client types\` prints how. */
export interface ProfileFields {}

/** The value of each field; null or absent if unset. Any fields, until \`ProfileFields\` is declared. */
export type ProfileFieldValues = [keyof ProfileFields] extends [never]
  ? { readonly [field: string]: string | number | boolean | null }
  : { readonly [Field in keyof ProfileFields]?: ProfileFields[Field] | null };

/** The problem of each field: a message for users, and the name of the broken rule for programs. */
export interface ErrorDetails {
  [field: string]:
    | {
        message: string;
        rule: string;
        /** The names of all broken rules of a field; \`rule\` is the first. */
        rules?: string[] | undefined;
        /** Of \`details.challenge\`: ALTCHA's fields, for CHALLENGE_REQUIRED. */
        algorithm?: string | undefined;
        challenge?: string | undefined;
        maxnumber?: number | undefined;
        salt?: string | undefined;
        signature?: string | undefined;
      }
    | undefined;
}

export interface CallOptions {
  /** Aborts the call. */
  signal?: AbortSignal;
}

/** A call that changes nothing. Rejects with ServiceError, NetworkError or TimeoutError. */
export interface Query<Input, Output> {
  query(input: Input, options?: CallOptions): Promise<Output>;
}

/** A call that may change something. Rejects with ServiceError, NetworkError or TimeoutError. */
export interface Mutation<Input, Output> {
  mutate(input: Input, options?: CallOptions): Promise<Output>;
}

${types.join('\n')}
/** Every procedure of the service. */
export interface Client {
${printTree(tree)}}
`,
);
