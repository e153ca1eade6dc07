import { initTRPC, TRPCError } from '@trpc/server';
import { getHTTPStatusCodeFromError } from '@trpc/server/http';
import { type TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import { ZodError } from 'zod';
import type { LoginRequest, Session } from '../server/accounts/sessions.ts';
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
    /** Its output `{location}` is answered as a redirect (302), described here. */
    redirect?: string;
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

export const { router, createCallerFactory } = t;
export const publicProcedure = t.procedure;

/** For logged-in callers. Runs before the input is read: a call without a session costs no more than this check. */
export const sessionProcedure = t.procedure.use(async ({ ctx, next }) => {
  const session = await currentSession(ctx);
  if (!session) throw new ServiceError('UNAUTHENTICATED');
  // Set rather than merged: tRPC would copy the context, which takes longer than all other steps of a call.
  ctx.session = session;
  return next<{ session: Session }>({});
});

export const adminProcedure = sessionProcedure.use(({ ctx, next }) => {
  if (ctx.session.user.role !== 'admin') throw new ServiceError('FORBIDDEN');
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

/** What a session takes from the request that opens it. */
export const loginRequest = (ctx: Context): LoginRequest => ({
  clientAddress: ctx.clientAddress(),
  userAgent: ctx.userAgent(),
  formerToken: ctx.sessionToken,
});

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

/** The first broken rule of each field. */
function detailsOf({ issues }: ZodError): ErrorDetails {
  const details: ErrorDetails = {};
  for (const issue of issues) {
    const field = issue.path.length > 0 ? issue.path.join('.') : 'body';
    const rule = issue.code === 'custom' ? String(issue.params?.['rule'] ?? issue.code) : issue.code;
    if (!Object.hasOwn(details, field)) details[field] = { message: issue.message, rule };
  }
  return details;
}
