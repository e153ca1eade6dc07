import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Call, callerOf, paths } from '../contract/rig/callers.ts';
import { expectDocumented } from '../contract/rig/document.ts';
import { administrator, loggedIn, onBothStacks, PASSWORD, sessionIn } from '../contract/rig/scenario.ts';
import { cases, seed, timeLimit } from '../rig/client/random.ts';
import { clientAddress } from '../rig/servers/address.ts';
import { fromSchema, type Schema } from './arbitrary.ts';

const RUNS_PER_OPERATION = 30;
const SERVICE_TOKEN = 'token-of-another-service';

interface Operation {
  parameters?: { name: string; in: 'path' | 'query'; required?: boolean; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: object }>;
}

interface Request {
  path: string;
  init: RequestInit;
}

/** Logs in, even to an account that a call has deleted. */
async function enter(call: Call, { email, password }: { email: string; password: string }): Promise<string> {
  const reply = await call('account.restore', { email, password });
  expect(reply).toMatchObject({ code: undefined, status: 200 });
  return sessionIn(reply) ?? '';
}

onBothStacks(
  (stack) => {
    /** A logged-in administrator, and values that exist in the service. */
    const prepare = async () => {
      const { url } = stack();
      const call = callerOf('rest', url);
      const person = await administrator({ stack: stack(), call });
      const victim = await loggedIn({ stack: stack(), call });
      const known = {
        id: victim.id,
        cursor: victim.id,
        email: person.email,
        password: PASSWORD,
        currentPassword: PASSWORD,
        // So that the administrator can log in again.
        newPassword: PASSWORD,
        contentType: 'image/png',
        size: 1000,
        ids: [victim.id],
        userId: victim.id,
        token: person.session,
      };
      const { paths: documented } = (await (await fetch(`${url}/openapi.json`)).json()) as {
        paths: Record<string, Record<string, Operation>>;
      };
      return { url, call, person, known, documented };
    };

    // checks: 5
    test(
      `any request to a documented path gets a documented answer (FUZZ_SEED=${seed})`,
      async () => {
        const { url, call, person, known, documented } = await prepare();
        let { session } = person;
        const seen = new Set<string>();
        for (const [pattern, methods] of Object.entries(documented)) {
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
                seen.add(`${response.ok ? 'taken' : 'refused'} ${withSession ? 'with' : 'without'} a session`);
                await expectAnswer(url, method, pattern, operation, response);
                // One of the calls was a logout.
                if (withSession && response.headers.getSetCookie().length > 0) session = await enter(call, person);
              },
            );
            await fc.assert(property, cases(RUNS_PER_OPERATION));
          }
        }
        expect(seen.size).toBe(4);
      },
      timeLimit,
    );

    test(
      `any call or batch under /trpc gets documented answers (FUZZ_SEED=${seed})`,
      async () => {
        const { url, call, person, known, documented } = await prepare();
        let { session } = person;
        const seen = { results: 0, errors: 0 };
        await fc.assert(
          fc.asyncProperty(
            rpcRequest(documented, known),
            async ({ method, path, body, isBatch, withSession, withToken }) => {
              const response = await fetch(url + path, {
                method,
                ...(body !== undefined && { body }),
                headers: {
                  'content-type': 'application/json',
                  'x-forwarded-for': clientAddress(),
                  ...(withSession && { cookie: `auth_session=${session}` }),
                  ...(withToken && { authorization: `Bearer ${SERVICE_TOKEN}` }),
                },
              });
              expect(response.status).toBeLessThan(500);
              const answer = (await response.json()) as RpcAnswer | RpcAnswer[];
              const names = path.replace(/^\/trpc\/|\?.*$/g, '').split(',');
              // An invalid batch is refused as a whole.
              if (isBatch && Array.isArray(answer)) expect(answer).toHaveLength(names.length);
              for (const [i, entry] of [answer].flat().entries()) {
                seen[entry.error ? 'errors' : 'results']++;
                await expectRpcAnswer(url, documented, names[i] ?? '', entry);
              }
              if (withSession && response.headers.getSetCookie().length > 0) session = await enter(call, person);
            },
          ),
          cases(200),
        );
        expect(Math.min(seen.results, seen.errors)).toBeGreaterThan(20);
      },
      timeLimit,
    );
  },
  {
    env: {
      LIMIT_UPLOAD: '100000/3600',
      SERVICE_TOKENS: `fuzz:${createHash('sha256').update(SERVICE_TOKEN).digest('hex')}`,
    },
  },
);

interface RpcAnswer {
  result?: { data: unknown };
  error?: { message: string; code: number; data: { code: string; httpStatus: number } };
}

/** The answer of one procedure: as over REST, in tRPC's envelope. */
async function expectRpcAnswer(url: string, documented: Documented, name: string, { result, error }: RpcAnswer) {
  const [method = '', path = ''] = Object.hasOwn(paths, name) ? (paths[name] ?? []) : [];
  const responses = documented[path]?.[method.toLowerCase()]?.responses;
  if (error) {
    expect(error).toMatchObject({ message: expect.any(String), code: expect.any(Number) });
    const { code, httpStatus } = error.data;
    expect(code).toMatch(/^[A-Z]+(?:_[A-Z]+)*$/);
    expect(JSON.stringify(error)).not.toMatch(/\bat \S+:\d+|node_modules/);
    // A wrong method or an unknown name: not found.
    expect(responses ? [...Object.keys(responses), '404', '415'] : ['400', '401', '404', '415']).toContain(
      `${httpStatus}`,
    );
  } else if (responses && !('302' in responses)) {
    await expectDocumented(url, method, path, '201' in responses ? 201 : 200, result?.data);
  } else {
    expect(responses ? ['location'] : ['null', 'user', 'users', 'success']).toContain(
      Object.keys(result?.data ?? { null: 0 })[0],
    );
  }
}

type Documented = Record<string, Record<string, Operation>>;

/** Procedures without a REST path, for other services. */
const servicePaths: [name: string, method: string, input: Schema][] = [
  ['service.session', 'POST', { type: 'object', properties: { token: { type: 'string' } }, required: ['token'] }],
  [
    'service.users',
    'GET',
    { type: 'object', properties: { ids: { type: 'array', items: { type: 'string' } } }, required: ['ids'] },
  ],
  ['service.endSessions', 'POST', { type: 'object', properties: { userId: { type: 'string' } }, required: ['userId'] }],
];

/** One procedure, or a few in a batch, each with its input or another value; sometimes malformed as a whole. */
function rpcRequest(documented: Documented, known: Record<string, unknown>) {
  const described = Object.entries(paths).map(([name, [method, path]]): [string, string, Schema] => {
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
    return [name, method, { type: 'object', properties, required }];
  });
  const calls = (isQuery: boolean) =>
    fc.oneof(
      ...[...described, ...servicePaths]
        .filter(([, method]) => (method === 'GET') === isQuery)
        .map(([name, , schema]) => fc.record({ name: fc.constant(name), input: fromSchema(schema, '', known) })),
    );
  const odd = fc.constantFrom(
    undefined,
    undefined,
    undefined,
    undefined,
    'name',
    'method',
    'input',
    'count',
    'length' as const,
  );
  return fc.boolean().chain((isQuery) =>
    fc
      .record({
        calls: fc.array(calls(isQuery), { minLength: 1, maxLength: 3 }),
        isBatch: fc.boolean(),
        withSession: fc.boolean(),
        withToken: fc.boolean(),
        odd,
        text: fc.string({ unit: 'grapheme' }),
      })
      .map(({ calls, isBatch, odd, text, ...caller }) => {
        const sent = isBatch ? calls : calls.slice(0, 1);
        const names = sent.map(({ name }) => name);
        if (odd === 'name') names.push('constructor', 'users.list.call');
        if (odd === 'length') names.push(...Array<string>(20).fill('health'));
        const inputs = sent.map(({ input }) => input);
        if (odd === 'count') inputs.push({}, null);
        const input = odd === 'input' ? text : JSON.stringify(isBatch ? { ...inputs } : inputs[0]);
        const method = (odd === 'method') === isQuery ? 'POST' : 'GET';
        const query = new URLSearchParams({ ...(isBatch && { batch: '1' }), ...(method === 'GET' && { input }) });
        return {
          ...caller,
          isBatch,
          method,
          path: `/trpc/${names.join()}?${query}`,
          body: method === 'POST' ? input : undefined,
        };
      }),
  );
}

async function expectAnswer(url: string, method: string, path: string, operation: Operation, response: Response) {
  if (response.headers.get('content-type')?.startsWith('application/json')) {
    return expectDocumented(url, method, path, response.status, await response.json());
  }
  await response.body?.cancel();
  expect(Object.keys(operation.responses)).toContain(String(response.status));
  expect(operation.responses[response.status]?.content).toBeUndefined();
}

/** A request to an operation: its parameters, and its body in the documented or another form. */
function requestTo(
  pattern: string,
  method: string,
  { parameters = [], requestBody }: Operation,
  known: Record<string, unknown>,
): fc.Arbitrary<Request> {
  const values = fc.tuple(
    ...parameters.map(({ name, in: place, required = false, schema }) => {
      const entry = fromSchema(schema, name, known).map((value) => [{ name, place, value }]);
      return required ? entry : fc.oneof(entry, fc.constant([]));
    }),
  );
  return fc.tuple(values, bodyOf(requestBody, known)).map(([drawn, body]) => {
    let path = pattern;
    const query = new URLSearchParams();
    for (const { name, place, value } of drawn.flat()) {
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
