import { paths } from '../contract/rig/callers.ts';
import type { Schema } from './arbitrary.ts';

export interface Operation {
  parameters?: { name: string; in: 'path' | 'query'; required?: boolean; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: object }>;
}

/** The paths of /openapi.json, with their methods. */
export type Documented = Record<string, Record<string, Operation>>;

export const documentedAt = async (url: string): Promise<Documented> =>
  ((await (await fetch(`${url}/openapi.json`)).json()) as { paths: Documented }).paths;

/** Each procedure with a REST path, and the schema of its JSON input. */
export const inputsOf = (documented: Documented) =>
  Object.entries(paths).map(([name, [method, path]]) => {
    const { parameters = [], requestBody } = documented[path]?.[method.toLowerCase()] ?? {};
    const body = requestBody?.content['application/json']?.schema;
    const properties = {
      ...body?.properties,
      ...Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])),
    };
    const required = [
      ...(body?.required ?? []),
      ...parameters.filter(({ required }) => required).map(({ name }) => name),
    ];
    const schema: Schema = { type: 'object', properties, required };
    return { name, method, path, schema };
  });
