import { initTRPC, TRPCError } from '@trpc/server';
import { getHTTPStatusCodeFromError } from '@trpc/server/http';
import { type TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import { ZodError } from 'zod';
import type { DeviceRequest } from '../server/accounts/known-devices.ts';
import type { LoginRequest, Session } from '../server/accounts/sessions.ts';
import type { Caller } from '../server/activity/caller.ts';
import { type ErrorCode, type ErrorDetails, ServiceError } from '../server/errors.ts';
import type { Context } from './context.ts';

/** How a procedure appears over REST, and what its entry in /openapi.json says. */
export type Meta = {
  /** For a procedure without a REST path; the typed client shows it. */
  summary?: string;
  openapi?: {
    method: 'GET' | 'POST' | 'PUT' | 'DELETE';
    /** With at most one `{parameter}`. */
    path: `/${string}`;
    /** The values of the parameter, where the configuration fixes them: a path with any other is not found. */
    parameterFrom?: 'identityProviders';
    summary: string;
    description?: string;
    tags: string[];
    /** Whether it needs the session cookie. */
    protect: boolean;
    /** The status of success; 200 unless said otherwise. */
    status?: number;
    /** A status of failure that has the body of success. */
    failureStatus?: number;
    /** The content types of its input, where that is not JSON. */
    contentTypes?: ['multipart/form-data'];
    /**
     * Its errors are `{error}`, or have it beside the other fields (interface.md section 7, "upload validation
     * failures"); a missing session is answered as everywhere.
     */
    errorField?: 'only' | 'beside';
    /** The name of the file as which its output is sent. Rows in it are streamed. */
    attachment?: string;
    /** Its output `{location}` is answered as a redirect (302), described here. */
    redirect?: string;
    /** Whether PUBLIC_USERS says what it answers, and to whom. */
    isPublicRead?: boolean;
    /** Whether success sets or clears the session cookie. */
    setsCookie?: boolean;
    /** The refusals it answers beyond those that every call can meet. */
    errors: ErrorCode[];
  };
};

/** tRPC's own JSON-RPC code of each HTTP status. */
const rpcCodes = new Map(
  (Object.keys(TRPC_ERROR_CODES_BY_KEY) as TRPC_ERROR_CODE_KEY[]).map((key) => [
    getHTTPStatusCodeFromError(new TRPCError({ code: key })),
    TRPC_ERROR_CODES_BY_KEY[key],
  ]),
);

const t = initTRPC
  .context<Context>()
  .meta<Meta>()
  .create({
    isDev: false,
    errorFormatter({ shape, error }) {
      const { message, code, status, details } = serviceErrorOf(error);
      return {
        code: rpcCodes.get(status) ?? shape.code,
        message,
        data: { code, httpStatus: status, path: shape.data.path, ...(details && { details }) },
      };
    },
  });

export const { router, mergeRouters, createCallerFactory } = t;
export const publicProcedure = t.procedure;

/** For logged-in callers. Runs before the input is read: a call without a session costs no more than this check. */
export const sessionProcedure = t.procedure.use(async ({ ctx, next }) => {
  const session = await currentSession(ctx);
  if (!session) throw new ServiceError('UNAUTHENTICATED');
  // Set rather than merged: tRPC would copy the context, which takes longer than all other steps of a call.
  ctx.session = session;
  return next<{ session: Session }>({});
});

/** For sensitive changes: the user must have given a credential in this session within the last ten minutes. */
export const recentProcedure = sessionProcedure.use(async ({ ctx, next }) => {
  await requireRecent(ctx);
  return next();
});

/** Rejects with REAUTHENTICATION_REQUIRED. */
export async function requireRecent(ctx: Context & { session: Session }): Promise<void> {
  if (!(await isRecent(ctx, ctx.session))) throw new ServiceError('REAUTHENTICATION_REQUIRED');
}

/** Whether the user has given a credential in the session lately. */
export const isRecent = async ({ accounts }: Context, { id }: Session): Promise<boolean> =>
  id !== undefined && (await accounts.sessions.isRecent(id));

export const adminProcedure = sessionProcedure.use(({ ctx, next }) => {
  if (ctx.session.user.role !== 'admin') throw new ServiceError('FORBIDDEN');
  return next();
});

/** For sensitive changes by administrators. */
export const recentAdminProcedure = adminProcedure.use(async ({ ctx, next }) => {
  await requireRecent(ctx);
  return next();
});

/** For other services, by their token; a session gives no access here. */
export const serviceProcedure = t.procedure.use(({ ctx, next }) => {
  if (ctx.service === undefined) throw new ServiceError('UNAUTHENTICATED', { message: 'This takes a service token' });
  ctx.setLogService(ctx.service);
  return next();
});

/**
 * The caller's session; sets its cookie again when the session was prolonged. Rejects when the session cannot be
 * checked.
 */
export async function currentSession(ctx: Context): Promise<Session | null> {
  const { sessionToken: token } = ctx;
  const session = token === undefined ? null : await ctx.accounts.sessions.validate(token);
  if (!session || token === undefined) return null;
  ctx.setLogUser(session.user.id);
  if (session.fresh) ctx.cookies.setSession({ token, expiresAt: session.expiresAt });
  return session;
}

/** Who calls, and from where; the user unless said otherwise. */
export const callerOf = (ctx: Context, acting: Pick<Caller, 'actor' | 'actorId'> = { actor: 'user' }): Caller => ({
  ...acting,
  clientAddress: ctx.clientAddress(),
  userAgent: ctx.userAgent(),
  requestId: ctx.requestId(),
  language: () => (acting.actor === 'user' ? ctx.language() : undefined),
});

/** The caller of an `adminProcedure`. */
export const administratorOf = (ctx: Context & { session: Session }): Caller =>
  callerOf(ctx, { actor: 'administrator', actorId: ctx.session.user.id });

/** A request that makes its device known. */
export const deviceRequest = (ctx: Context): DeviceRequest => ({ ...callerOf(ctx), deviceCookie: ctx.deviceCookie });

/** The request that opens a session. */
export const loginRequest = (ctx: Context): LoginRequest => ({ ...deviceRequest(ctx), formerToken: ctx.sessionToken });

const codeOfTrpc: Partial<Record<TRPCError['code'], ErrorCode>> = {
  BAD_REQUEST: 'VALIDATION_FAILED',
  PARSE_ERROR: 'VALIDATION_FAILED',
  NOT_FOUND: 'NOT_FOUND',
  METHOD_NOT_SUPPORTED: 'NOT_FOUND',
  PAYLOAD_TOO_LARGE: 'PAYLOAD_TOO_LARGE',
  UNSUPPORTED_MEDIA_TYPE: 'UNSUPPORTED_MEDIA_TYPE',
};

/** The one error that REST and tRPC both answer for any error that ended a procedure. */
export function serviceErrorOf(error: TRPCError): ServiceError {
  const { cause } = error;
  if (cause instanceof ServiceError) return cause;
  if (cause instanceof ZodError && error.code === 'BAD_REQUEST') {
    return new ServiceError('VALIDATION_FAILED', { details: detailsOf(cause) });
  }
  return new ServiceError(codeOfTrpc[error.code] ?? 'INTERNAL', { cause: cause ?? error });
}

/** The broken rules of each field, with the sentence of the first. */
function detailsOf({ issues }: ZodError): ErrorDetails {
  const details = new Map<string, { message: string; rule: string; rules: string[] }>();
  for (const issue of issues) {
    const field = issue.path.length > 0 ? issue.path.join('.') : 'body';
    const rule = issue.code === 'custom' ? String(issue.params?.['rule'] ?? issue.code) : issue.code;
    const known = details.get(field);
    if (!known) details.set(field, { message: issue.message, rule, rules: [rule] });
    else if (!known.rules.includes(rule)) known.rules.push(rule);
  }
  return Object.fromEntries(details);
}
