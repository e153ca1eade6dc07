import { writeFileSync } from 'node:fs';
import type { AnyTRPCProcedure } from '@trpc/server';
import { compile, type JSONSchema } from 'json-schema-to-typescript';
import { z } from 'zod';
import { appRouter } from '../routers/index.ts';
import type { Meta } from '../routers/trpc.ts';
import { errorCodes } from '../server/errors.ts';

/**
 * Writes src/api.ts: the service as the client sees it, in types that stand by themselves. They are printed from the
 * procedures' own schemas, with their names and descriptions: the router's inferred type would bring the whole server
 * along, and tRPC's types with it. test/client/types.test.ts holds them against that inferred type.
 */

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Every type that has a name, in order of appearance. */
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
  if (def.type === 'custom' && z.safeParse(zodSchema, new FormData()).success) jsonSchema['tsType'] = 'FormData';
  if (def.type !== 'object') return;
  // A mailed token is read leniently, so that any other input is a wrong token; callers of the client have a string.
  const sent = Object.entries(def.shape).filter(([, field]) => isLenient(field));
  const required = [...(jsonSchema.required ?? []), ...sent.map(([name]) => name)];
  jsonSchema.required = required;
  jsonSchema.properties = Object.fromEntries(
    Object.entries(jsonSchema.properties as Record<string, JsonSchema>).map(([name, property]) => {
      // An optional field may be given as undefined, also where exactOptionalPropertyTypes is on.
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

/** The declaration of a type. */
const declare = (name: string, schema: JsonSchema): Promise<string> =>
  compile(schema as JSONSchema, name, {
    additionalProperties: false,
    bannerComment: '',
    // Types with a name of their own have a declaration of their own.
    declareExternallyReferenced: false,
    ignoreMinAndMaxItems: true,
    style: { singleQuote: true },
  });

const comment = (text: string) => (text ? `/** ${text} */\n` : '');

/** tRPC's own record of a procedure. */
type Definition = AnyTRPCProcedure['_def'] & {
  meta: Meta | undefined;
  inputs: z.ZodType[];
  output: z.ZodType;
};

type Tree = { [name: string]: Tree | string };

/** The procedures, nested as in the router, and on the way the types of their inputs and outputs. */
function procedures(): Tree {
  const tree: Tree = {};
  for (const [path, procedure] of Object.entries<AnyTRPCProcedure>(appRouter._def.procedures as never)) {
    const { type, meta, inputs, output } = procedure._def as Definition;
    const openapi = meta?.openapi;
    const name = typeName(path);
    const [input] = inputs;
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

const tree = procedures();
const types = await Promise.all([...named].map(([name, schema]) => declare(name, schema)));

writeFileSync(
  new URL('src/api.ts', import.meta.url),
  `// Made by generate-api.ts from the procedures of the service: change those, not this.

/** Every code that the service refuses a call with. */
export type ErrorCode =
${errorCodes.map((code) => `  | '${code}'`).join('\n')};

/** What was wrong with each field: a sentence for users, and the name of the broken rule for programs. */
export interface ErrorDetails {
  [field: string]:
    | {
        message: string;
        rule: string;
        /** The names of all broken rules of a text; the first of them is \`rule\`. */
        rules?: string[] | undefined;
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
