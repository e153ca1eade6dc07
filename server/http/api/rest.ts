import { Readable } from 'node:stream';
import { TRPCError, type TRPCProcedureType } from '@trpc/server';
import type { Context, Middleware } from 'koa';
import { restProcedures } from '../../../routers/procedures.ts';
import { serviceErrorOf } from '../../../routers/trpc.ts';
import { lazy } from '../../lib/lazy.ts';
import type { OurOrigins } from '../../shared/origins.ts';
import type { ContextFactory } from '../context.ts';
import { leadTo } from '../lead-on.ts';
import { callProcedure } from './call.ts';
import { decode } from './decode.ts';
import { readJson } from './json-body.ts';
import { jsonOf } from './json-pages.ts';
import { readForm } from './multipart.ts';

const MAX_SEGMENTS = 8;

interface Route {
  /** The procedure's name, such as `auth.login`. */
  procedure: string;
  type: TRPCProcedureType;
  path: string;
  status: number;
  /** True if its output is `{location}`. */
  isRedirect: boolean;
  /** The names of the parameters, at most two. */
  parameters: readonly string[];
  /** The only allowed values of the parameter; undefined if any value is allowed. */
  values: readonly string[] | undefined;
  takesForm: boolean;
  errorField: 'only' | 'beside' | undefined;
  /** The file name under which the output is sent. */
  attachment: string | undefined;
}

interface Match {
  route: Route;
  /** Undefined if the path has no parameters. */
  parameters?: Record<string, string>;
}

/** The values of parameters that are fixed when the process starts. */
export interface ParameterLists {
  identityProviders: readonly string[];
}

/**
 * The OpenAPI adapter: each procedure with a method and a path is a route, matched by lookup. Input is read when the
 * procedure asks for it, so a procedure can refuse before any byte of the body is read.
 */
export function rest(lists: ParameterLists, createContext: ContextFactory, ours: OurOrigins): Middleware {
  const routes = routesWith(lists);
  return async (ctx, next) => {
    const match = find(routes, ctx.method === 'HEAD' ? 'GET' : ctx.method, ctx.path);
    if (!match) return next();
    const { route, parameters } = match;
    ctx.state['route'] = route.path;
    if (route.isRedirect && ctx.method === 'HEAD') {
      // A redirect begins or ends a login. A HEAD that did so would make the next GET fail.
      ctx.status = 204;
      return;
    }
    ctx.state['errorField'] = route.errorField;
    ctx.status = route.status;
    const answer = callProcedure({
      path: route.procedure,
      type: route.type,
      ctx: createContext(ctx),
      // A procedure may parse its input in parts, but a body can be read only once.
      getRawInput: lazy(async () => (route.takesForm ? readForm(ctx) : readInput(ctx, route.type, parameters))),
      batchIndex: 0,
    });
    if (route.isRedirect) leadTo(ctx, locationIn(await answer.catch(redirectFor)), ours);
    else if (route.attachment) send(ctx, (await answer) as object, route.attachment);
    else ctx.body = await answer;
  };
}

const keyOf = (method: string, path: string) => `${method} ${path}`;

const routesWith = (lists: ParameterLists): Map<string, Route> =>
  new Map(
    restProcedures.map(({ name, type, openapi }) => {
      const { method, path, parameterFrom, status = 200, redirect, contentTypes, errorField, attachment } = openapi;
      const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter = '']) => parameter);
      return [
        keyOf(method, path.replaceAll(/\{\w+\}/g, '*')),
        {
          procedure: name,
          type,
          path,
          status,
          isRedirect: redirect !== undefined,
          parameters,
          values: parameterFrom && lists[parameterFrom],
          takesForm: contentTypes !== undefined,
          errorField,
          attachment,
        },
      ];
    }),
  );

const locationIn = (output: unknown): string => (output as { location: string }).location;

/** The redirect of a refusal that a page shows; rethrows others. */
function redirectFor(error: unknown): { location: string } {
  const { location } = error instanceof TRPCError ? serviceErrorOf(error) : {};
  if (location === undefined) throw error;
  return { location };
}

/** A failure after the first byte aborts the response, so that the client sees that it is incomplete. */
function send(ctx: Context, output: object, name: string): void {
  ctx.attachment(name);
  ctx.type = 'json';
  ctx.body = Readable.from(jsonOf(output), { objectMode: false });
}

/**
 * Finds the exact path, or a path with one or two parameters. Fixed values are compared before decoding, so each has
 * one URL.
 */
function find(routes: Map<string, Route>, method: string, path: string): Match | undefined {
  const exact = routes.get(keyOf(method, path));
  if (exact) return exact.parameters.length > 0 ? undefined : { route: exact };
  const segments = path.split('/');
  if (segments.length > MAX_SEGMENTS) return undefined;
  const last = segments.length - 1;
  for (let i = last; i > 0; i--) {
    const found = matching(routes, method, { segments, taken: [i] });
    if (found) return found;
  }
  for (let i = last; i > 1; i--) {
    for (let k = i - 1; k > 0; k--) {
      const found = matching(routes, method, { segments, taken: [k, i] });
      if (found) return found;
    }
  }
  return undefined;
}

function matching(
  routes: Map<string, Route>,
  method: string,
  { segments, taken }: { segments: readonly string[]; taken: readonly number[] },
): Match | undefined {
  const pattern = segments.map((segment, i) => (taken.includes(i) ? '*' : segment)).join('/');
  const route = routes.get(keyOf(method, pattern));
  if (route?.parameters.length !== taken.length) return undefined;
  const values = taken.map((i) => segments[i] ?? '');
  if (!values.every((value) => route.values?.includes(value) ?? true)) return undefined;
  return { route, parameters: Object.fromEntries(route.parameters.map((name, i) => [name, decode(values[i] ?? '')])) };
}

/** The query of a read, else the JSON body. Path parameters take precedence. */
async function readInput(ctx: Context, type: TRPCProcedureType, parameters?: object): Promise<object> {
  const input = type === 'query' ? ctx.query : await readJson(ctx);
  return parameters ? { ...input, ...parameters } : input;
}
