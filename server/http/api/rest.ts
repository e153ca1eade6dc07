import { Readable } from 'node:stream';
import { TRPCError, type TRPCProcedureType } from '@trpc/server';
import type { Context, Middleware } from 'koa';
import { restProcedures } from '../../../routers/index.ts';
import { serviceErrorOf } from '../../../routers/trpc.ts';
import type { Accounts } from '../../accounts/index.ts';
import type { ContextFactory } from '../context.ts';
import { callProcedure } from './call.ts';
import { decode } from './decode.ts';
import { readJson } from './json-body.ts';
import { jsonOf } from './json-pages.ts';
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
  /** The name of the file as which its output is sent. */
  attachment: string | undefined;
}

interface Match {
  route: Route;
  /** Undefined where the path has none. */
  parameters?: Record<string, string>;
}

/** The values of parameters that are fixed when the process starts. */
type ParameterLists = Pick<Accounts, 'identityProviders'>;

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
    const answer = callProcedure({
      path: route.procedure,
      type: route.type,
      ctx: createContext(ctx),
      getRawInput: async () => (route.takesForm ? readForm(ctx) : readInput(ctx, route.type, parameters)),
      batchIndex: 0,
    });
    if (route.isRedirect) ctx.redirect(locationIn(await answer.catch(redirectFor)));
    else if (route.attachment) send(ctx, (await answer) as object, route.attachment);
    else ctx.body = await answer;
  };
}

const keyOf = (method: string, path: string) => `${method} ${path}`;

const routesWith = (lists: ParameterLists): Map<string, Route> =>
  new Map(
    restProcedures.map(({ name, type, openapi }) => {
      const { method, path, parameterFrom, status = 200, redirect, contentTypes, errorField, attachment } = openapi;
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
          attachment,
        },
      ];
    }),
  );

const locationIn = (output: unknown): string => (output as { location: string }).location;

/** A refusal that has a page of ours to show it. */
function redirectFor(error: unknown): { location: string } {
  const { location } = error instanceof TRPCError ? serviceErrorOf(error) : {};
  if (location === undefined) throw error;
  return { location };
}

/** A failure after the beginning breaks the answer off, so that the client sees that it is not whole. */
function send(ctx: Context, output: object, name: string): void {
  ctx.attachment(name);
  ctx.type = 'json';
  ctx.body = Readable.from(jsonOf(output), { objectMode: false });
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

/** The query of a read, else the JSON object in the body; with the parameters of the path, which take precedence. */
async function readInput(ctx: Context, type: TRPCProcedureType, parameters?: object): Promise<object> {
  const input = type === 'query' ? ctx.query : await readJson(ctx);
  return parameters ? { ...input, ...parameters } : input;
}
