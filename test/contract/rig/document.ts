import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'vitest';
import { isMutationRun } from '../rig/mutation-run.ts';

export interface OpenApiDocument {
  openapi: string;
  paths: Record<
    string,
    Record<string, { responses: Record<string, unknown>; requestBody?: unknown; parameters?: unknown[] }>
  >;
  components: { schemas: Record<string, unknown> };
}

export const documentOf = async (url: string) => (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument;

const documents = new Map<string, Promise<Conformance>>();

/** Asserts that an answer is one that /openapi.json describes: its status, and its body by the schema of that status. */
export async function expectDocumented(url: string, method: string, path: string, status: number, body: unknown) {
  // One for all in a mutation run, which starts a service for each mutant.
  const key = isMutationRun ? 'any' : url;
  const known = documents.get(key) ?? load(url);
  documents.set(key, known);
  (await known)(method.toLowerCase(), path, status, body);
}

type Conformance = (method: string, path: string, status: number, body: unknown) => void;

async function load(url: string): Promise<Conformance> {
  const document = await documentOf(url);
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema(document, 'document');
  const validators = new Map<string, ValidateFunction>();

  return (method, path, status, body) => {
    const statuses = Object.keys(document.paths[path]?.[method]?.responses ?? {});
    expect(statuses, `${method} ${path} answered ${status}`).toContain(String(status));
    const pointer = ['paths', path, method, 'responses', `${status}`, 'content', 'application/json', 'schema']
      .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
      .join('/');
    const validate = validators.get(pointer) ?? ajv.compile({ $ref: `document#/${pointer}` });
    validators.set(pointer, validate);
    validate(body);
    expect(validate.errors, `${method} ${path} ${status} ${JSON.stringify(body)}`).toBeNull();
  };
}
