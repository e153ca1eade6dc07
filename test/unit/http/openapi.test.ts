import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../../server/config/index.ts';
import { errorCodes } from '../../../server/errors.ts';
import { openApiDocument } from '../../../server/http/api/openapi.ts';
import { release } from '../../../server/version.ts';

/** What /openapi.json says of the operations; test/contract/http compares it with the answers. */

interface Answer {
  description: string;
  headers?: Record<string, { description: string; schema: object }>;
  content?: { 'application/json': { schema: object } };
}
interface Operation {
  security?: object[];
  parameters?: object[];
  responses: Record<string, Answer>;
}

const documentOf = (identityProviders: string[], env: Record<string, string> = {}) =>
  openApiDocument({ ...parseConfig(env), appUrl: 'https://accounts.example.com' }, { identityProviders });
const document = documentOf(['google', 'github']);
const paths = document.paths as unknown as Record<string, Record<string, Operation>>;
const operation = (method: string, path: string) => paths[path]?.[method] as Operation;
const refTo = (name: string) => ({ $ref: `#/components/schemas/${name}` });

/** The description and body of each error; after a `+` that Retry-After is sent. */
const errorsOf = ({ responses }: Operation) =>
  Object.fromEntries(
    Object.entries(responses)
      .filter(([status]) => Number(status) >= 400)
      .map(([status, { description, headers, content }]) => [
        status,
        [`${description}${headers ? ` + ${Object.keys(headers)}` : ''}`, content?.['application/json'].schema],
      ]),
  );

const errors = (texts: Record<string, string>, schemas: Record<string, object> = {}) =>
  Object.fromEntries(
    Object.entries(texts).map(([status, text]) => [
      status,
      [text, schemas[status] ?? schemas['other'] ?? refTo('Error')],
    ]),
  );
const always = { 500: 'INTERNAL', 503: 'SERVICE_UNAVAILABLE + Retry-After' };
const ofBodies = { 408: 'REQUEST_TIMEOUT', 413: 'PAYLOAD_TOO_LARGE', 415: 'UNSUPPORTED_MEDIA_TYPE' };

test('names the service, its release, its address and the ways to authenticate', () => {
  expect(document).toMatchObject({
    openapi: '3.1.0',
    info: {
      title: 'Account service',
      version: release,
      license: { name: 'MIT', identifier: 'MIT' },
      description: expect.stringContaining('cookie `auth_session`'),
    },
    servers: [{ url: 'https://accounts.example.com' }],
    // An operation that needs a session says so.
    security: [],
  });
  expect(document.components?.securitySchemes).toEqual({
    session: { type: 'apiKey', in: 'cookie', name: 'auth_session' },
    bearer: { type: 'http', scheme: 'bearer', description: expect.stringContaining('access key') },
    dpop: { type: 'http', scheme: 'dpop', description: expect.stringContaining('RFC 9449') },
    service: { type: 'http', scheme: 'bearer', description: expect.stringContaining('npm run service-token') },
  });
});

test('every tag of an operation is described, and no other', () => {
  const described = (document.tags ?? []).map(({ name, description = '' }) => [name, description.length > 10]);
  const used = Object.values(paths).flatMap((methods) =>
    Object.values(methods).flatMap((one) => (one as unknown as { tags: string[] }).tags),
  );
  expect(new Set(described.map(([name]) => name))).toEqual(new Set(used));
  expect(described.filter(([, isDescribed]) => !isDescribed)).toEqual([]);
});

describe('the errors of an operation', () => {
  test.each([
    [
      'without a session, with a body',
      operation('post', '/auth/forgot-password'),
      errors({
        400: 'VALIDATION_FAILED',
        403: 'CHALLENGE_REQUIRED, ORIGIN_MISMATCH',
        ...ofBodies,
        ...always,
      }),
    ],
    [
      'with a session, which changes something without a body',
      operation('post', '/auth/logout-all'),
      errors({
        400: 'VALIDATION_FAILED',
        401: 'UNAUTHENTICATED',
        403: 'FORBIDDEN, ORIGIN_MISMATCH, INSUFFICIENT_SCOPE',
        409: 'OTHER_USER',
        ...always,
      }),
    ],
    [
      'that names its user',
      operation('get', '/api/profile'),
      errors({ 400: 'VALIDATION_FAILED', 401: 'UNAUTHENTICATED', 403: 'INSUFFICIENT_SCOPE', ...always }),
    ],
    [
      'of a service',
      operation('get', '/api/events'),
      errors({
        400: 'VALIDATION_FAILED',
        401: 'UNAUTHENTICATED',
        410: 'EVENTS_EXPIRED',
        429: 'RATE_LIMITED + Retry-After',
        ...always,
      }),
    ],
    [
      'whose errors have `error` beside the documented body',
      operation('post', '/api/upload/presign'),
      errors(
        {
          400: 'VALIDATION_FAILED',
          401: 'UNAUTHENTICATED',
          403: 'FORBIDDEN, ORIGIN_MISMATCH, INSUFFICIENT_SCOPE',
          409: 'OTHER_USER',
          ...ofBodies,
          429: 'RATE_LIMITED + Retry-After',
          ...always,
        },
        {
          // A malformed query is refused before the operation is known, and a missing session before its rules.
          400: { anyOf: [refTo('PresignError'), refTo('Error')] },
          401: refTo('Error'),
          403: refTo('Error'),
          other: refTo('PresignError'),
        },
      ),
    ],
    [
      'whose 400 has `error` only',
      operation('post', '/api/upload/confirm'),
      expect.objectContaining({
        400: [expect.stringContaining('VALIDATION_FAILED'), { anyOf: [refTo('UploadError'), refTo('Error')] }],
        413: ['PAYLOAD_TOO_LARGE', refTo('PresignError')],
      }),
    ],
  ])('%s', (_, asked, expected) => expect(errorsOf(asked)).toEqual(expected));

  test('have a body with a code', () => {
    const { Error: body, UploadError: plain, PresignError: both } = document.components?.schemas ?? {};
    expect(body).toMatchObject({
      properties: {
        message: { type: 'string', description: expect.stringMatching(/./) },
        code: { enum: errorCodes },
        details: {
          description: expect.stringMatching(/./),
          additionalProperties: {
            properties: {
              rules: { type: 'array', description: expect.stringMatching(/./) },
              algorithm: { description: expect.stringContaining('CHALLENGE_REQUIRED') },
              maxnumber: { type: 'integer' },
            },
            required: ['message', 'rule'],
          },
        },
      },
      required: ['message', 'code'],
    });
    expect(plain).toMatchObject({ properties: { error: { type: 'string' } }, required: ['error'] });
    expect(both).toMatchObject({ required: ['message', 'code', 'error'] });
    // The library's own.
    expect(Object.keys(document.components?.schemas ?? {}).filter((name) => name.startsWith('error.'))).toEqual([]);
  });

  test('health answers 503 with its own body', () => {
    const { 200: good, 503: bad } = operation('get', '/api/health').responses;
    expect(bad).toEqual({ ...good, description: 'The service is not healthy' });
  });
});

test('an operation names who may call it', () => {
  const scoped = (scope: string) => [{ session: [] }, { bearer: [scope] }, { dpop: [scope] }];
  expect(operation('get', '/api/profile').security).toEqual(scoped('profile:read'));
  expect(operation('post', '/api/upload/presign').security).toEqual(scoped('uploads:write'));
  expect(operation('get', '/api/events').security).toEqual([{ service: [] }]);
  expect(operation('post', '/auth/login').security).toBeUndefined();
});

test('an answer names its headers', () => {
  const headersOf = (answer: Answer | undefined) =>
    Object.entries(answer?.headers ?? {}).map(([name, { description, schema }]) => {
      expect(description).not.toBe('');
      return [name, schema];
    });
  const text = { type: 'string' };
  expect(headersOf(operation('post', '/auth/login').responses['200'])).toEqual([['Set-Cookie', text]]);
  expect(headersOf(operation('get', '/api/account/export').responses['200'])).toEqual([
    ['Set-Cookie', text],
    ['Content-Disposition', text],
  ]);
  expect(operation('post', '/auth/forgot-password').responses['200']).not.toHaveProperty('headers');
  // Their session may be renewed.
  for (const path of ['/api/profile', '/api/users'])
    expect(headersOf(operation('get', path).responses['200'])).toEqual([['Set-Cookie', text]]);
  const { 302: redirect } = operation('get', '/auth/{provider}/callback').responses;
  expect(headersOf(redirect)).toEqual([
    ['Location', text],
    ['Set-Cookie', text],
  ]);
  expect(redirect?.description).not.toBe('');
  const { 200: page } = operation('get', '/auth/{provider}/callback').responses;
  expect(page).toMatchObject({ content: { 'text/html': { schema: text } } });
  expect(headersOf(page)).toEqual([['Set-Cookie', text]]);
  expect(headersOf(operation('post', '/auth/login').responses['429'])).toEqual([['Retry-After', { type: 'integer' }]]);
});

test('the parameter of a provider takes the configured ones; without any the path does not exist', () => {
  const [parameter, ...others] = operation('get', '/auth/{provider}').parameters ?? [];
  const schema = { type: 'string', enum: ['google', 'github'] };
  expect(parameter).toEqual({ name: 'provider', in: 'path', required: true, schema });
  expect(others.map((one) => (one as { in: string }).in)).toEqual(others.map(() => 'query'));
  expect(documentOf([]).paths).not.toHaveProperty(['/auth/{provider}']);
});

test('a profile need not have the address: access keys without the scope `email` get none', () => {
  const { Profile } = document.components?.schemas ?? {};
  expect(Profile).toMatchObject({ properties: { email: { type: 'string' } } });
  expect((Profile as { required: string[] }).required).toEqual(expect.not.arrayContaining(['email']));
  expect((Profile as { required: string[] }).required).toEqual(expect.arrayContaining(['id', 'name', 'createdAt']));
});

test('the events are described as webhooks, and the probes as operations', () => {
  expect(Object.keys(document.webhooks ?? {}).length).toBeGreaterThan(20);
  expect(Object.keys(paths)).toEqual(expect.arrayContaining(['/livez', '/readyz']));
});
