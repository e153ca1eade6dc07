import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'vitest';

export interface OpenApiDocument {
  openapi: string;
  paths: Record<
    string,
    Record<
      string,
      { responses: Record<string, unknown>; requestBody?: unknown; parameters?: { name: string; in: string }[] }
    >
  >;
  components: { schemas: Record<string, unknown> };
}

export const documentOf = async (url: string) => (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument;

/** By content without the address, so that services with the same description share its compiled form. */
const documents = new Map<string, Promise<Conformance>>();
const compiled = new Map<string, Conformance>();

/** The parts of an answer that /openapi.json describes. */
interface Answer {
  status: number;
  body: unknown;
  setCookies?: string[];
}

/**
 * Asserts that /openapi.json describes an answer: its status, its body by the schema of that status, and whether success
 * may set the session cookie.
 */
export async function expectDocumented(url: string, method: string, path: string, answer: Answer) {
  const known = documents.get(url) ?? documentOf(url).then(conformanceTo);
  documents.set(url, known);
  (await known)(method.toLowerCase(), path, answer);
}

type Conformance = (method: string, path: string, answer: Answer) => void;

function conformanceTo(document: OpenApiDocument): Conformance {
  const text = JSON.stringify({ ...document, servers: [] });
  const conformance = compiled.get(text) ?? compile(document);
  compiled.set(text, conformance);
  return conformance;
}

function compile(document: OpenApiDocument): Conformance {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema(document, 'document');
  const validators = new Map<string, ValidateFunction>();

  return (method, path, { status, body, setCookies = [] }) => {
    const responses = document.paths[path]?.[method]?.responses ?? {};
    const statuses = Object.keys(responses);
    if (status < 400 && setCookies.some((cookie) => cookie.startsWith('auth_session=')))
      expect(responses[status], `${method} ${path}`).toMatchObject({ headers: { 'Set-Cookie': {} } });
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
