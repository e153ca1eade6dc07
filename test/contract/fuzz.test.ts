import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clientAddress } from '../rig/address.ts';
import { fromSchema, type Schema } from './arbitrary.ts';
import { callerOf } from './callers.ts';
import { expectDocumented } from './document.ts';
import { loggedIn, logIn, onBothStacks, PASSWORD } from './scenario.ts';

const RUNS_PER_OPERATION = 30;
/** FUZZ_SEED=… repeats a run. */
const seed = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31));

interface Operation {
  parameters?: { name: string; in: 'path' | 'query'; required?: boolean; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: object }>;
}

interface Request {
  path: string;
  init: RequestInit;
}

onBothStacks(
  (stack) => {
    test(`whatever is sent to a documented path, the answer is a documented one (FUZZ_SEED=${seed})`, async () => {
      console.log(`FUZZ_SEED=${seed}`);
      const { url } = stack();
      const call = callerOf('rest', url);
      const person = await loggedIn({ stack: stack(), call });
      await stack().database("update users set role = 'admin' where id = ?", [person.id]);
      let { session } = person;
      const victim = await loggedIn({ stack: stack(), call });
      const known = {
        id: victim.id,
        cursor: victim.id,
        email: person.email,
        password: PASSWORD,
        contentType: 'image/png',
        size: 1000,
      };

      const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as {
        paths: Record<string, Record<string, Operation>>;
      };
      for (const [pattern, methods] of Object.entries(paths)) {
        for (const [method, operation] of Object.entries(methods)) {
          const property = fc.asyncProperty(
            requestTo(pattern, method, operation, known),
            fc.boolean(),
            async ({ path, init }, withSession) => {
              const response = await fetch(url + path, {
                ...init,
                redirect: 'manual',
                headers: {
                  ...init.headers,
                  'x-forwarded-for': clientAddress(),
                  ...(withSession && { cookie: `auth_session=${session}` }),
                },
              });
              expect(response.status).toBeLessThan(500);
              await expectAnswer(url, method, pattern, operation, response);
              // Logging out was one of the calls.
              if (withSession && response.headers.getSetCookie().length > 0) session = await logIn(call, person);
            },
          );
          await fc.assert(property, { seed, numRuns: RUNS_PER_OPERATION });
        }
      }
    }, 60_000);
  },
  { env: { LIMIT_UPLOAD: '100000/3600' } },
);

async function expectAnswer(url: string, method: string, path: string, operation: Operation, response: Response) {
  if (response.headers.get('content-type')?.startsWith('application/json')) {
    return expectDocumented(url, method, path, response.status, await response.json());
  }
  await response.body?.cancel();
  expect(Object.keys(operation.responses)).toContain(String(response.status));
  expect(operation.responses[response.status]?.content).toBeUndefined();
}

/** A request to one operation: its parameters, and its body in the documented type, or as something else. */
function requestTo(
  pattern: string,
  method: string,
  { parameters = [], requestBody }: Operation,
  known: Record<string, unknown>,
): fc.Arbitrary<Request> {
  const values = fc.tuple(
    ...parameters.map(({ name, in: place, required = false, schema }) => {
      const given = fromSchema(schema, name, known).map((value) => [{ name, place, value }]);
      return required ? given : fc.oneof(given, fc.constant([]));
    }),
  );
  return fc.tuple(values, bodyOf(requestBody, known)).map(([given, body]) => {
    let path = pattern;
    const query = new URLSearchParams();
    for (const { name, place, value } of given.flat()) {
      const text = (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed();
      if (place === 'query') query.append(name, text);
      // An empty segment, or one of dots, is another path.
      else path = path.replace(`{${name}}`, encodeURIComponent(/^\.{0,2}$/.test(text) ? 'x' : text));
    }
    return { path: query.size > 0 ? `${path}?${query}` : path, init: { method: method.toUpperCase(), ...body } };
  });
}

const asJson = (body: string, type = 'application/json'): RequestInit => ({ headers: { 'content-type': type }, body });

function bodyOf(requestBody: Operation['requestBody'], known: Record<string, unknown>): fc.Arbitrary<RequestInit> {
  if (!requestBody) return fc.constant({});
  const form = requestBody.content['multipart/form-data'];
  if (form)
    return fc
      .tuple(fc.oneof(fc.constant(png), fc.uint8Array()), fc.constantFrom('avatar', 'post', '', '\0'))
      .map(asForm);
  const schema = requestBody.content['application/json']?.schema ?? {};
  const documented = fromSchema(schema, '', known).map((value) => asJson(JSON.stringify(value)));
  const odd = fc.oneof(
    fc.jsonValue().map((value) => asJson(JSON.stringify(value))),
    fc.string().map((text) => asJson(text)),
    fc
      .constantFrom('text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=x')
      .map((type) => asJson('{}', type)),
    fc.constant({}),
  );
  return fc.oneof({ weight: 6, arbitrary: documented }, { weight: 1, arbitrary: odd });
}

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

function asForm([bytes, type]: [Uint8Array<ArrayBuffer>, string]): RequestInit {
  const body = new FormData();
  body.set('file', new File([bytes], 'fuzz.png', { type: 'image/png' }));
  body.set('type', type);
  return { body };
}
