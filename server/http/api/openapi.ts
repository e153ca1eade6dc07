import { generateOpenApiDocument, type OpenAPIObject } from 'trpc-to-openapi';
import { z } from 'zod';
import { appRouter, restProcedures } from '../../../routers/index.ts';
import type { Meta } from '../../../routers/trpc.ts';
import type { Accounts } from '../../accounts/index.ts';
import type { Config } from '../../config/index.ts';
import { type ErrorCode, errorCodes, statusOf } from '../../errors.ts';
import { version } from '../context.ts';
import { probeOperations } from './probe-operations.ts';
import { asPublicUsers, operationAsPublicUsers } from './public-users.ts';

const SESSION = 'session';

/** What the tags of the procedures stand for. */
const tags = [
  { name: 'Authentication', description: 'Registration, login and logout, mailed links, identity provider' },
  { name: 'Account', description: 'The account of the logged-in user: what happens to it, changes, leaving' },
  { name: 'Sessions', description: 'The devices where the user is logged in' },
  { name: 'Identities', description: 'The identities at providers by which the user logs in' },
  { name: 'Passkeys', description: 'The passkeys by which the user logs in' },
  { name: 'Second factors', description: 'The authenticator app and the recovery codes of the logged-in user' },
  { name: 'Users', description: 'The public view of users' },
  { name: 'Profile', description: 'The profile of the logged-in user' },
  { name: 'Uploads', description: 'Files and images of the logged-in user' },
  { name: 'Health', description: 'For load balancers and monitoring' },
];

const errorBody = z
  .object({
    message: z.string().meta({ description: 'A sentence for users' }),
    code: z.enum(errorCodes as [ErrorCode, ...ErrorCode[]]),
    details: z
      .record(
        z.string(),
        z.object({
          message: z.string(),
          rule: z.string(),
          rules: z.array(z.string()).optional().meta({ description: 'All rules that the field breaks, the first too' }),
        }),
      )
      .optional()
      .meta({ description: 'What was wrong with a field, by its name' }),
  })
  .meta({ id: 'Error' });

const plainErrorBody = z.object({ error: z.string() }).meta({ id: 'UploadError' });
const bothErrorBody = z.object({ ...errorBody.shape, ...plainErrorBody.shape }).meta({ id: 'PresignError' });

/**
 * The errors that calls share, by kind: all calls (400 for a malformed Host or query), calls with a body, calls that
 * change something, calls with a session.
 */
const common: ErrorCode[] = ['VALIDATION_FAILED', 'INTERNAL', 'SERVICE_UNAVAILABLE'];
const withBody: ErrorCode[] = ['PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'];
const changing: ErrorCode[] = ['ORIGIN_MISMATCH'];
const withSession: ErrorCode[] = ['UNAUTHENTICATED'];

type Responses = Record<string, Record<string, unknown>>;
type Parameter = { name: string; in: string; required?: boolean; schema?: object };
type Operation = {
  requestBody?: unknown;
  responses: Responses;
  parameters?: Parameter[] | undefined;
  security?: unknown;
};

/** The document at /openapi.json: made from the procedures by trpc-to-openapi, then given our statuses and error bodies. */
export function openApiDocument(
  { appUrl: baseUrl, publicUsers }: Pick<Config, 'appUrl' | 'publicUsers'>,
  lists: Pick<Accounts, 'identityProviders'>,
): OpenAPIObject {
  const document = generateOpenApiDocument(appRouter, {
    title: 'Account service',
    version,
    license: { name: 'MIT', identifier: 'MIT' },
    baseUrl,
    description: 'Accounts, profiles and uploads. The session is the cookie `auth_session`, set at login.',
    securitySchemes: { [SESSION]: { type: 'apiKey', in: 'cookie', name: 'auth_session' } },
    defs: { Error: errorBody, UploadError: plainErrorBody, PresignError: bothErrorBody },
  });
  document.tags = tags;
  // The default: an operation that needs a session has an entry of its own.
  document.security = [];
  const paths = document.paths as Record<string, Record<string, Operation>>;
  for (const { openapi: contract } of restProcedures) {
    const openapi = asPublicUsers(contract, publicUsers);
    const operation = paths[openapi.path]?.[openapi.method.toLowerCase()];
    if (!operation) continue;
    operation.responses = responsesOf(openapi, operation);
    if (openapi.isPublicRead) {
      const named = document.components?.schemas ?? {};
      Object.assign(
        operation,
        operationAsPublicUsers(operation, publicUsers, { named, security: [{ [SESSION]: [] }] }),
      );
    }
    const values = openapi.parameterFrom && lists[openapi.parameterFrom];
    if (!values) continue;
    // A parameter without any value is a path that does not exist.
    if (values.length === 0) delete paths[openapi.path];
    operation.parameters = operation.parameters?.map((parameter) => withValues(parameter, values));
  }
  Object.assign(paths, probeOperations(Object.fromEntries(errorResponses(['VALIDATION_FAILED', 'INTERNAL']))));
  // Drops the library's own error bodies, which no procedure returns.
  for (const name of Object.keys(document.components?.schemas ?? {})) {
    if (name.startsWith('error.')) delete document.components?.schemas?.[name];
  }
  return document;
}

/** A parameter that a typed client may leave out is required in a path. */
const withValues = (parameter: Parameter, values: readonly string[]): Parameter =>
  parameter.in === 'path'
    ? { name: parameter.name, in: 'path', required: true, schema: { type: 'string', enum: values } }
    : parameter;

function responsesOf(openapi: NonNullable<Meta['openapi']>, operation: Operation): Responses {
  const headers = {
    ...(openapi.setsCookie && { 'Set-Cookie': cookie }),
    ...(openapi.attachment && { 'Content-Disposition': disposition }),
  };
  const success = { ...operation.responses['200'], ...(Object.keys(headers).length > 0 && { headers }) };
  const codes = new Set([
    ...openapi.errors,
    ...(operation.requestBody ? withBody : []),
    ...(openapi.method === 'GET' ? [] : changing),
    ...(openapi.protect ? withSession : []),
    ...common,
  ]);
  return {
    ...(openapi.redirect ? { 302: redirectResponse(openapi) } : { [openapi.status ?? 200]: success }),
    ...Object.fromEntries(errorResponses(codes, openapi.errorField)),
    ...(openapi.failureStatus && { [openapi.failureStatus]: { ...success, description: 'The service does not work' } }),
  };
}

/** By status. */
const errorResponses = (codes: Iterable<ErrorCode>, errorField?: 'only' | 'beside') =>
  [...Map.groupBy(codes, statusOf)].map(([status, group]) => [status, errorResponse(group, errorField)] as const);

const cookie = {
  description: 'The session cookie `auth_session`; with Max-Age=0 it is cleared',
  schema: { type: 'string' },
};
const disposition = { description: '`attachment`, with the name of a file', schema: { type: 'string' } };
const retryAfter = { description: 'Seconds after which to try again', schema: { type: 'integer' } };

const redirectResponse = ({ redirect, setsCookie }: NonNullable<Meta['openapi']>) => ({
  description: redirect,
  headers: {
    Location: { description: 'Where the browser goes', schema: { type: 'string' } },
    ...(setsCookie && { 'Set-Cookie': cookie }),
  },
});

/** A caller without access gets the ordinary error body, as everywhere. */
const neverPlain = new Set<ErrorCode>(['UNAUTHENTICATED', 'ORIGIN_MISMATCH']);

const errorResponse = (codes: ErrorCode[], errorField?: 'only' | 'beside') => {
  const isPlain = errorField && !codes.some((code) => neverPlain.has(code));
  const bodies: string[] = [isPlain ? { only: 'UploadError', beside: 'PresignError' }[errorField] : 'Error'];
  // A malformed Host or query is refused before the operation is known.
  if (isPlain && codes.includes('VALIDATION_FAILED')) bodies.push('Error');
  const schemas = bodies.map((name) => ({ $ref: `#/components/schemas/${name}` }));
  return {
    description: codes.join(', '),
    ...(codes.some((code) => code === 'RATE_LIMITED' || code === 'SERVICE_UNAVAILABLE') && {
      headers: { 'Retry-After': retryAfter },
    }),
    content: { 'application/json': { schema: schemas.length > 1 ? { anyOf: schemas } : schemas[0] } },
  };
};
