import { writeFileSync } from 'node:fs';
import type { AnyTRPCProcedure } from '@trpc/server';
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
  const { $defs, ...json } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override: (part) => refine(part) });
  for (const [name, definition] of Object.entries($defs ?? {})) named.set(name, definition);
  return json;
}

/** Adds what JSON Schema cannot express. */
function refine({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: JsonSchema }): void {
  const { def } = zodSchema._zod;
  if (def.type === 'custom' && z.safeParse(zodSchema, new FormData()).success) jsonSchema['formData'] = true;
  // A mailed token is read leniently, so that any other input is a wrong token; callers of the client have a string.
  if (def.type === 'object') {
    const sent = Object.entries(def.shape).filter(([, field]) => isLenient(field));
    jsonSchema.required = [...(jsonSchema.required ?? []), ...sent.map(([name]) => name)];
  }
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

const comment = (text: string | undefined, indent: string) => (text ? `${indent}/** ${text} */\n` : '');

function describe({ description, minLength, maxLength }: JsonSchema): string | undefined {
  const length =
    maxLength && (minLength ? `${minLength} to ${maxLength} characters` : `At most ${maxLength} characters`);
  return [description, length].filter(Boolean).join('. ') || undefined;
}

/** A JSON schema as a TypeScript type. Throws at anything it cannot express, rather than print `any`. */
function print(schema: JsonSchema, indent = ''): string {
  if (schema['formData']) return 'FormData';
  if (schema.$ref) return schema.$ref.replace('#/$defs/', '');
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(' | ');
  if (schema.anyOf) return schema.anyOf.map((option) => print(subschema(option), indent)).join(' | ');
  if (Array.isArray(schema.type)) return schema.type.join(' | ');
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
    case 'number':
      return schema.type;
    case 'integer':
      return 'number';
    case 'array':
      return `Array<${print(subschema(schema.items), indent)}>`;
    case 'object':
      return printObject(schema, indent);
    default:
      throw new Error(`There is no type for ${JSON.stringify(schema)}`);
  }
}

function subschema(schema: unknown): JsonSchema {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    throw new Error(`There is no type for ${JSON.stringify(schema)}`);
  }
  return schema as JsonSchema;
}

const literal = (value: unknown) => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value));

function printObject({ properties = {}, required = [] }: JsonSchema, indent: string): string {
  const inner = `${indent}  `;
  const lines = Object.entries(properties).map(([name, value]) => {
    const property = subschema(value);
    const type = print(property, inner);
    const field = required.includes(name) ? `${name}: ${type}` : `${name}?: ${type} | undefined`;
    return `${comment(describe(property), inner)}${inner}${field};\n`;
  });
  return `{\n${lines.join('')}${indent}}`;
}

const declare = (name: string, schema: JsonSchema) =>
  schema.type === 'object'
    ? `export interface ${name} ${print(schema)}\n`
    : `export type ${name} = ${print(schema)};\n`;

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
    const doc = comment([meta?.summary, openapi?.summary, openapi?.description].filter(Boolean).join('. '), '');
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
const types = [...named].map(([name, schema]) => declare(name, schema)).join('\n');

writeFileSync(
  new URL('src/api.ts', import.meta.url),
  `// Made by generate-api.ts from the procedures of the service: change those, not this.

/** Every code that the service refuses a call with. */
export type ErrorCode =
${errorCodes.map((code) => `  | '${code}'`).join('\n')};

/** What was wrong with each field: a sentence for people, and the name of the broken rule for programs. */
export interface ErrorDetails {
  [field: string]: { message: string; rule: string } | undefined;
}

export interface CallOptions {
  /** Gives the call up. */
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

${types}
/** Every procedure of the service. */
export interface Client {
${printTree(tree)}}
`,
);
