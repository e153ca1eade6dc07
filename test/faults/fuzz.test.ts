import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { callerOf, paths } from '../contract/rig/callers.ts';
import { expectDocumented } from '../contract/rig/document.ts';
import { CALLBACK, relyingParty } from '../contract/rig/relying-party.ts';
import { administrator, loggedIn, onBothStacks, PASSWORD, sessionIn } from '../contract/rig/scenario.ts';
import { cases, seed, timeLimit } from '../rig/client/random.ts';
import { clientAddress } from '../rig/servers/address.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { fromSchema, nasty, type Schema } from './arbitrary.ts';
import { type Documented, documentedAt, inputsOf, type Operation } from './operations.ts';

const RUNS_PER_OPERATION = 30;
const SERVICE_TOKEN = 'token-of-another-service';

const labels = { en: 'A field' };
const fieldsFile = join(temporaryDirectory('fuzz'), 'fields.json');
const ownFields = [
  { name: 'username', type: 'text', maxLength: 30, labels, read: 'public', write: 'owner', unique: true },
  { name: 'height', type: 'number', min: 50, max: 250, labels, read: 'owner', write: 'owner' },
  { name: 'color', type: 'choice', choices: ['red', 'green'], labels, read: 'public', write: 'owner' },
];
writeFileSync(fieldsFile, JSON.stringify(ownFields));

interface Request {
  path: string;
  init: RequestInit;
}

onBothStacks(
  (stack) => {
    /** A logged-in administrator, and values that exist in the service. */
    const prepare = async () => {
      const { url } = stack();
      const call = callerOf('rest', url);
      const person = await administrator({ stack: stack(), call });
      const victim = await loggedIn({ stack: stack(), call });
      const [stored] = await stack().database<{ password_hash: string }>(
        'select password_hash from users where id = ?',
        [person.id],
      );
      /** Logs in, even if a call has deleted the account or changed its password. */
      const enter = async (): Promise<string> => {
        const { email, password } = person;
        await stack().database('update users set password_hash = ? where id = ?', [
          stored?.password_hash ?? '',
          person.id,
        ]);
        const reply = await call('account.restore', { email, password });
        expect(reply).toMatchObject({ code: undefined, status: 200 });
        return sessionIn(reply) ?? '';
      };
      const known = {
        id: victim.id,
        cursor: victim.id,
        email: person.email,
        password: PASSWORD,
        currentPassword: PASSWORD,
        newPassword: `${PASSWORD}-2`,
        contentType: 'image/png',
        size: 1000,
        ids: [victim.id],
        userId: victim.id,
        token: person.session,
      };
      return { url, person, enter, known, documented: await documentedAt(url) };
    };

    // checks: 5
    test(
      `any request to a documented path gets a documented answer (FUZZ_SEED=${seed})`,
      async () => {
        const { url, person, enter, known, documented } = await prepare();
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
                // One of the calls was a logout, or changed the password.
                if (withSession && response.headers.getSetCookie().length > 0) session = await enter();
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
        const { url, person, enter, known, documented } = await prepare();
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
              if (withSession && response.headers.getSetCookie().length > 0) session = await enter();
            },
          ),
          cases(200),
        );
        expect(Math.min(seen.results, seen.errors)).toBeGreaterThan(10);
      },
      timeLimit,
    );

    test(
      `any request to the OpenID provider gets JSON, a redirect to its own places, or a line of text (FUZZ_SEED=${seed})`,
      async () => {
        const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
        const api = 'https://api.example.com';
        const scopes = ['openid', 'profile', 'email', 'offline_access', 'orders:read'];
        const party = await relyingParty(scenario, { scopes, resources: [api] });
        const { session } = await loggedIn(scenario);
        const tokens = await party.logIn(session);
        const known = knownParameters(party, { ...tokens, api });
        const basic = `Basic ${btoa(`${party.id}:${party.secret}`)}`;
        const authorizations = [undefined, undefined, basic, `Bearer ${tokens.access_token}`, 'DPoP x', 'Basic !', ''];
        const seen = new Map<string, number>();
        const property = fc.asyncProperty(
          providerRequest(known, authorizations),
          async ({ path, method, query, body, headers }) => {
            const response = await fetch(`${stack().url}${path}${query && `?${query}`}`, {
              method,
              redirect: 'manual',
              headers: { ...headers, 'x-forwarded-for': clientAddress() },
              ...(body !== undefined && { body }),
            });
            const sent = `${method} ${path}?${query} ${body}`;
            const form = await formOf(response, stack().appUrl);
            expect([sent, response.status < 500, form]).toEqual([sent, true, expect.stringMatching(/^(?!other)/)]);
            seen.set(form, (seen.get(form) ?? 0) + 1);
          },
        );
        await fc.assert(property, cases(600));
        expect([...seen.keys()].sort()).toEqual(expect.arrayContaining(['account page', 'error', 'result', 'text']));
      },
      timeLimit,
    );
  },
  {
    env: {
      EMAIL_CODES: 'on',
      IMPERSONATION: 'on',
      PROFILE_FIELDS: fieldsFile,
      LIMIT_UPLOAD: '100000/3600',
      LIMIT_UPLOAD_CHECK: '100000/3600',
      SERVICE_TOKENS: `fuzz:${createHash('sha256').update(SERVICE_TOKEN).digest('hex')}`,
    },
  },
);

/** Values of each parameter that mean something to the provider. */
function knownParameters(party: { id: string; secret: string | undefined }, tokens: Record<string, unknown>) {
  const { access_token: access = '', refresh_token: refresh = '', id_token: hint = '', api } = tokens;
  const all: Record<string, unknown[]> = {
    client_id: [party.id],
    client_secret: [party.secret],
    response_type: ['code', 'code', 'code', 'code', 'token', 'code id_token', 'none'],
    response_mode: ['query', 'form_post', 'fragment', 'web_message', 'jwt'],
    redirect_uri: [CALLBACK, CALLBACK, CALLBACK, CALLBACK, `${CALLBACK}?x`, 'http://127.0.0.1/'],
    scope: ['openid', 'openid email', 'orders:read', 'offline_access', 'admin'],
    state: ['s'],
    nonce: ['n'],
    code_challenge: ['v'.repeat(43)],
    code_challenge_method: ['S256', 'S256', 'S256', 'S256', 'plain'],
    prompt: ['none', 'login', 'consent', 'none login', 'create', 'select_account'],
    max_age: ['0', '60', '-1', '1e9'],
    id_token_hint: [hint],
    login_hint: ['ada@example.com'],
    acr_values: ['x'],
    claims: ['{"userinfo":{"email":null}}', '{"id_token":{"sub":{"value":"x"}}}'],
    ui_locales: ['de'],
    display: ['popup'],
    resource: [api, 'https://other.example.com', '#'],
    request: ['e30.e30.', 'eyJhbGciOiJub25lIn0.e30.'],
    request_uri: ['urn:ietf:params:oauth:request_uri:x', 'http://127.0.0.1:1/'],
    dpop_jkt: ['x'.repeat(43)],
    registration: ['{}'],
    grant_type: ['authorization_code', 'refresh_token', 'client_credentials', 'password', 'urn:x'],
    code: ['x'.repeat(43)],
    code_verifier: ['v'.repeat(43)],
    refresh_token: [refresh, 'x'.repeat(43)],
    token: [access, refresh, hint, 'x'.repeat(43)],
    token_type_hint: ['access_token', 'refresh_token', 'urn:x'],
    client_assertion: ['e30.e30.'],
    client_assertion_type: ['urn:ietf:params:oauth:client-assertion-type:jwt-bearer'],
    access_token: [access],
  };
  return Object.entries(all);
}

/** The parameters without which most requests are refused at once. */
const usual = ['client_id', 'response_type', 'redirect_uri', 'code_challenge', 'code_challenge_method', 'grant_type'];

function providerRequest(known: [string, unknown[]][], authorizations: (string | undefined)[]) {
  const value = (values: unknown[]) =>
    fc
      .oneof({ weight: 12, arbitrary: fc.constantFrom(...values) }, { weight: 1, arbitrary: fc.constantFrom(...nasty) })
      .map((drawn) => (typeof drawn === 'string' ? drawn : JSON.stringify(drawn)).toWellFormed());
  const parameters = fc
    .tuple(
      ...known.map(([name, values]) =>
        fc.option(fc.tuple(fc.constant(name), value(values)), { freq: usual.includes(name) ? 30 : 1, nil: undefined }),
      ),
      fc.option(fc.tuple(fc.constantFrom('client_id', 'scope', '__proto__', 'a[b]'), value(['x'])), { freq: 1 }),
    )
    .map((drawn) => new URLSearchParams(drawn.filter((pair) => pair !== null && pair !== undefined)).toString());
  const path = fc.constantFrom(
    ...['authorize', 'authorize', 'token', 'par', 'introspect', 'revoke', 'userinfo', 'jwks', 'authorize/x'].map(
      (name) => `/oauth/${name}`,
    ),
  );
  return fc
    .record({
      path,
      parameters,
      isUsual: fc.integer({ min: 0, max: 5 }).map((n) => n > 0),
      method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'),
      type: fc.constantFrom(
        'application/x-www-form-urlencoded',
        'application/json',
        'text/plain',
        'multipart/form-data',
      ),
      authorization: fc.constantFrom(...authorizations),
      proof: fc.constantFrom(undefined, undefined, 'x', 'e30.e30.e30'),
    })
    .map(({ path, parameters, isUsual, method: anyMethod, type, authorization, proof }) => {
      const method = isUsual ? (/authorize|userinfo|jwks/.test(path) ? 'GET' : 'POST') : anyMethod;
      const isBody = method !== 'GET' && method !== 'OPTIONS';
      const form = 'application/x-www-form-urlencoded';
      return {
        path,
        method,
        query: isBody ? '' : parameters,
        body: isBody ? parameters : undefined,
        headers: {
          ...(isBody && { 'content-type': isUsual ? form : type }),
          ...(authorization !== undefined && { authorization }),
          ...(proof !== undefined && { dpop: proof }),
        } as Record<string, string>,
      };
    });
}

/** What an answer of the provider is; begins with `other` if it is nothing of what is documented. */
async function formOf(response: Response, appUrl: string): Promise<string> {
  const location = response.headers.get('location');
  if (location !== null) {
    await response.body?.cancel();
    const { origin, pathname } = new URL(location, appUrl);
    if (origin === appUrl && pathname === '/authorize') return 'account page';
    if (origin === appUrl && pathname === '/oauth/authorize') return 'a form as GET';
    return origin + pathname === CALLBACK ? 'callback' : `other place: ${location}`;
  }
  const type = response.headers.get('content-type')?.split(';')[0];
  const text = await response.text();
  if (/\bat \S+:\d+|node_modules/.test(text)) return `other: ${text}`;
  if (text === '') return 'empty';
  if (type === 'text/plain') return /^(?:[a-z_]+: [^\n]*\n|Not Found)$/.test(text) ? 'text' : `other text: ${text}`;
  if (!type?.includes('json')) return `other type: ${type} ${text}`;
  const answer = JSON.parse(text) as Record<string, unknown>;
  return typeof (answer['error'] ?? answer['code'] ?? '') === 'string' && !response.ok ? 'error' : 'result';
}

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
    await expectDocumented(url, method, path, { status: '201' in responses ? 201 : 200, body: result?.data });
  } else {
    expect(responses ? ['location'] : ['null', 'user', 'users', 'success']).toContain(
      Object.keys(result?.data ?? { null: 0 })[0],
    );
  }
}

/** Procedures without a REST path, for other services. */
const serviceInputs: { name: string; method: string; schema: Schema }[] = [
  {
    name: 'service.session',
    method: 'POST',
    schema: { type: 'object', properties: { token: { type: 'string' } }, required: ['token'] },
  },
  {
    name: 'service.users',
    method: 'GET',
    schema: { type: 'object', properties: { ids: { type: 'array', items: { type: 'string' } } }, required: ['ids'] },
  },
  {
    name: 'service.endSessions',
    method: 'POST',
    schema: { type: 'object', properties: { userId: { type: 'string' } }, required: ['userId'] },
  },
];

/** One procedure, or a few in a batch, each with its input or another value; sometimes malformed as a whole. */
function rpcRequest(documented: Documented, known: Record<string, unknown>) {
  const described = [...inputsOf(documented), ...serviceInputs];
  const calls = (isQuery: boolean) =>
    fc.oneof(
      ...described
        .filter(({ method }) => (method === 'GET') === isQuery)
        .map(({ name, schema }) => fc.record({ name: fc.constant(name), input: fromSchema(schema, '', known) })),
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
    return expectDocumented(url, method, path, { status: response.status, body: await response.json() });
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
