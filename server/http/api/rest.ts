import { callTRPCProcedure, type TRPCProcedureType } from '@trpc/server';
import type { Context, Middleware } from 'koa';
import { koaBody } from 'koa-body';
import { appRouter, restProcedures } from '../../../routers/index.ts';
import type { Accounts } from '../../accounts/index.ts';
import { ServiceError } from '../../errors.ts';
import { hasBody, receiveBody } from '../body.ts';
import type { ContextFactory } from '../context.ts';
import { toServiceError } from '../failures.ts';
import { readForm } from './multipart.ts';

interface Route {
  /** The procedure's name, such as `auth.login`. */
  procedure: string;
  type: TRPCProcedureType;
  path: string;
  status: number;
  /** Whether its output is `{location}`. */
  isRedirect: boolean;
  parameter: string | undefined;
  /** The only values of the parameter; undefined where it takes any. */
  values: readonly string[] | undefined;
  takesForm: boolean;
  errorField: 'only' | 'beside' | undefined;
}

interface Match {
  route: Route;
  /** Undefined where the path has none. */
  parameters?: Record<string, string>;
}

/** The values of parameters that are fixed when the process starts. */
type ParameterLists = Pick<Accounts, 'identityProviders'>;

const JSON_LIMIT = '100kb';

/**
 * The OpenAPI adapter: every procedure that declares a method and a path is a route. A request is matched by look-up. Its
 * input is read only when the procedure asks for it, so that one may refuse before a byte of the body is received.
 */
export function rest(lists: ParameterLists, createContext: ContextFactory): Middleware {
  const routes = routesWith(lists);
  return async (ctx, next) => {
    const match = find(routes, ctx.method === 'HEAD' ? 'GET' : ctx.method, ctx.path);
    if (!match) return next();
    const { route, parameters } = match;
    ctx.state['route'] = route.path;
    if (route.isRedirect && ctx.method === 'HEAD') {
      // A redirect begins or ends a login: a HEAD that did so would make the GET after it fail.
      ctx.status = 204;
      return;
    }
    ctx.state['errorField'] = route.errorField;
    ctx.status = route.status;
    const output: unknown = await callTRPCProcedure({
      router: appRouter,
      path: route.procedure,
      type: route.type,
      ctx: createContext(ctx),
      getRawInput: () => (route.takesForm ? readForm(ctx) : readInput(ctx, route.type, parameters)),
      signal: undefined,
      batchIndex: 0,
    });
    if (route.isRedirect) redirect(ctx, output);
    else ctx.body = output;
  };
}

const keyOf = (method: string, path: string) => `${method} ${path}`;

const routesWith = (lists: ParameterLists): Map<string, Route> =>
  new Map(
    restProcedures.map(({ name, type, openapi }) => {
      const { method, path, parameterFrom, status = 200, redirect, contentTypes, errorField } = openapi;
      const parameter = /\{(\w+)\}/.exec(path)?.[1];
      return [
        keyOf(method, path.replace(/\{\w+\}/, '*')),
        {
          procedure: name,
          type,
          path,
          status,
          isRedirect: redirect !== undefined,
          parameter,
          values: parameterFrom && lists[parameterFrom],
          takesForm: contentTypes !== undefined,
          errorField,
        },
      ];
    }),
  );

function redirect(ctx: Context, output: unknown): void {
  const { location } = output as { location: string };
  ctx.redirect(location);
}

/**
 * The path itself, or the path with one of its segments taken for the parameter. Fixed values are compared undecoded: each
 * has one address only.
 */
function find(routes: Map<string, Route>, method: string, path: string): Match | undefined {
  const exact = routes.get(keyOf(method, path));
  if (exact) return exact.parameter ? undefined : { route: exact };
  const segments = path.split('/');
  if (segments.length > 8) return undefined;
  for (let i = segments.length - 1; i > 0; i--) {
    const route = routes.get(keyOf(method, segments.with(i, '*').join('/')));
    const segment = segments[i] ?? '';
    if (route?.parameter && (route.values?.includes(segment) ?? true)) {
      return { route, parameters: { [route.parameter]: decode(segment) } };
    }
  }
  return undefined;
}

/** RFC 3986 section 2.1; a malformed encoding matches no path. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    throw new ServiceError('NOT_FOUND', { cause: error });
  }
}

const parseJson = koaBody({ jsonLimit: JSON_LIMIT, multipart: false, urlencoded: false, text: false });

/** The query of a read, else the JSON object in the body; with the parameters of the path, which take precedence. */
async function readInput(ctx: Context, type: TRPCProcedureType, parameters?: object): Promise<object> {
  const input = type === 'query' ? ctx.query : await readJson(ctx);
  return parameters ? { ...input, ...parameters } : input;
}

async function readJson(ctx: Context): Promise<object> {
  if (!hasBody(ctx.req)) return {};
  if (!ctx.is('application/json')) throw new ServiceError('UNSUPPORTED_MEDIA_TYPE');
  const read = () => parseJson(ctx, async () => undefined);
  await receiveBody(ctx.req, read).catch((error: Error & { status?: number }) => {
    // An error without a status comes from decompression: the body is not in the encoding that its Content-Encoding
    // names.
    throw error.status === undefined ? new ServiceError('VALIDATION_FAILED', { cause: error }) : toServiceError(error);
  });
  const { body } = ctx.request;
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new ServiceError('VALIDATION_FAILED', {
      details: { body: { message: 'Must be a JSON object', rule: 'invalid_type' } },
    });
  }
  return body;
}
