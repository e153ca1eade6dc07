import { initTRPC, TRPCError } from '@trpc/server';
import { getHTTPStatusCodeFromError } from '@trpc/server/http';
import { type TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import { ZodError } from 'zod';
import { KEY_PREFIX } from '../server/access/index.ts';
import type { DeviceRequest, LoginRequest, OwnSession, Session } from '../server/accounts/sessions/index.ts';
import type { Acting, Caller } from '../server/activity/caller.ts';
import { type ErrorCode, type ErrorDetails, ServiceError } from '../server/errors.ts';
import { type Credential, challengeOf } from '../server/lib/credential.ts';
import type { Scope } from '../server/shared/scopes.ts';
import type { Context } from './context.ts';

/** A procedure's REST contract and its entry in /openapi.json. */
export type Meta = {
  /** What an access key or token needs for it. Without a scope it takes sessions only. */
  scope?: Scope;
  /** For a procedure without a REST path; the typed client shows it. */
  summary?: string;
  openapi?: {
    method: 'GET' | 'POST' | 'PUT' | 'DELETE';
    /** With at most two `{parameter}`s. */
    path: `/${string}`;
    /** The values of the parameter that the configuration allows; others get NOT_FOUND. */
    parameterFrom?: 'identityProviders';
    summary: string;
    description?: string;
    tags: string[];
    /** True if it needs the session cookie. */
    protect: boolean;
    /** True if it needs a service token. */
    serviceToken?: boolean;
    /** The status of success, 200 by default. */
    status?: number;
    /** A status of failure with the body of success. */
    failureStatus?: number;
    /** The content types of its input, if not JSON. */
    contentTypes?: ['multipart/form-data'];
    /**
     * Errors are `{error}`, or add it to the other fields (interface.md section 7, "upload validation failures"),
     * except a missing session.
     */
    errorField?: 'only' | 'beside';
    /** The file name of its output. Rows in it are streamed. */
    attachment?: string;
    /** Its output `{location}` is sent as a redirect (302), described here. */
    redirect?: string;
    /** True if its output names the user: it needs no header Expected-User. */
    namesUser?: boolean;
    /** True if PUBLIC_USERS restricts its fields and callers. */
    isPublicRead?: boolean;
    /** True if success sets or clears the session cookie. Known of operations that `protect`. */
    setsCookie?: boolean;
    /** Its own errors, beyond those of every call. */
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
      const { message, code, status, details, retryAfter } = serviceErrorOf(error);
      return {
        code: rpcCodes.get(status) ?? shape.code,
        message,
        data: {
          code,
          httpStatus: status,
          path: shape.data.path,
          ...(details && { details }),
          ...(retryAfter !== undefined && { retryAfter }),
        },
      };
    },
  });

export const { router, mergeRouters, createCallerFactory } = t;
export const publicProcedure = t.procedure;

async function requireSession(ctx: Context, meta: Meta | undefined): Promise<Session> {
  const session = await checkedSession(ctx, meta);
  if (!session) throw new ServiceError('UNAUTHENTICATED');
  return session;
}

/**
 * For logged-in callers, and for keys and tokens with the scope of the procedure. Runs before the input is read: a call
 * without a session costs no more than this check.
 */
const checkedProcedure = t.procedure.use(async ({ ctx, meta, type, next }) => {
  const session = await requireSession(ctx, meta);
  // A process that was frozen may find requests that their callers have abandoned, and perhaps repeated elsewhere.
  if (type === 'mutation' && ctx.isGone()) throw new ServiceError('REQUEST_TIMEOUT');
  // Set, not merged: tRPC would copy the context, which takes longer than all other steps of a call.
  ctx.session = session;
  return next<{ session: Session }>({});
});

/** Its token (five minutes) or proof (one minute) may expire while a file arrives, so it is not checked again. */
const isOfApplication = ({ credential }: Context): boolean =>
  credential !== undefined && !credential.token.startsWith(KEY_PREFIX);

/**
 * Checks the session again after a late body: a sender could hold back the end of the body until the session, or the
 * access key, has ended.
 */
export const sessionProcedure = checkedProcedure.use(({ ctx, meta, next, getRawInput }) => {
  keepCookie(ctx, ctx.session);
  if (ctx.hasArrived() || isOfApplication(ctx)) return next();
  const getCheckedInput = async () => {
    // Another tab may log in before the body has arrived.
    if (ctx.session.fresh) ctx.cookies.forgetSession();
    const input = await getRawInput();
    const session = await requireSession(ctx, meta);
    ctx.session = { ...session, fresh: session.fresh || ctx.session.fresh };
    keepCookie(ctx, ctx.session);
    return input;
  };
  return next({ getRawInput: getCheckedInput });
});

const actingMessage = 'This is not possible while an administrator acts for the user';

/** For what only the user may do. FORBIDDEN while an administrator acts for the user. */
export function requireUser({ actor }: Pick<Session, 'actor'>): void {
  if (!actor) return;
  const details = { session: { message: actingMessage, rule: 'impersonation' } };
  throw new ServiceError('FORBIDDEN', { message: actingMessage, details });
}

export const userProcedure = sessionProcedure.use(({ ctx, next }) => {
  requireUser(ctx.session);
  return next();
});

/** For sensitive changes: requires a credential given in this session within the last ten minutes. */
export const recentProcedure = sessionProcedure.use(async ({ ctx, next }) => {
  await requireRecent(ctx);
  return next();
});

/** Rejects with REAUTHENTICATION_REQUIRED. */
async function requireRecent(ctx: Context & { session: Session }): Promise<void> {
  if (!(await isRecent(ctx, ctx.session))) throw new ServiceError('REAUTHENTICATION_REQUIRED');
}

/**
 * True if the user has given a credential in the session within the last ten minutes. False while an administrator acts
 * for the user.
 */
export const isRecent = async ({ accounts }: Context, { id, actor }: Session): Promise<boolean> =>
  id !== undefined && !actor && (await accounts.sessions.isRecent(id));

const malformed: ErrorCode[] = ['VALIDATION_FAILED', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'];

/** For logins. A malformed attempt counts too; past the limit it is RATE_LIMITED. */
export const attemptProcedure = publicProcedure.use(async ({ ctx, next }) => {
  const outcome = await next();
  if (!outcome.ok && malformed.includes(serviceErrorOf(outcome.error).code)) {
    await ctx.limits.enforce('login', ctx.clientAddress());
  }
  return outcome;
});

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
  if (ctx.service === undefined) throw new ServiceError('UNAUTHENTICATED', { message: 'A service token is required' });
  ctx.setLogService(ctx.service);
  return next();
});

/**
 * The caller's session. Rejects if it cannot be checked, with OTHER_USER if it is not that of the header Expected-User,
 * and for a credential that is invalid or without the scope.
 */
async function checkedSession(ctx: Context, meta?: Meta): Promise<Session | null> {
  const { sessionToken: token, credential } = ctx;
  const session =
    token === undefined
      ? credential && (await sessionBy(ctx, credential, meta?.scope))
      : await ctx.accounts.sessions.validate(token);
  if (!session) return null;
  const { id } = session.user;
  ctx.setLogUser(id);
  if (meta?.openapi?.namesUser) return session;
  const expected = ctx.expectedUser();
  // A page may show one user while another tab has logged in another.
  if (expected !== '' && expected !== id) throw new ServiceError('OTHER_USER');
  return session;
}

/** Sets the cookie again if the session was extended. */
function keepCookie({ cookies, sessionToken: token }: Context, { fresh, expiresAt }: Session): void {
  if (fresh && token !== undefined) cookies.setSession({ token, expiresAt });
}

/** The caller's session, for procedures that need none. */
export async function currentSession(ctx: Context): Promise<Session | null> {
  const session = await checkedSession(ctx);
  if (session) keepCookie(ctx, session);
  return session;
}

/** The session of a cookie, with its token. A procedure without a scope takes no other credential. */
export function ownSession({ session, sessionToken: token }: Context & { session: Session }): OwnSession {
  if (token === undefined) throw new ServiceError('UNAUTHENTICATED');
  return { session, token };
}

async function sessionBy(ctx: Context, credential: Credential, scope: Scope | undefined): Promise<Session> {
  const session = await ctx.access.resolve(credential);
  if (!session) {
    const message = 'The access key or token is not valid';
    throw new ServiceError('UNAUTHENTICATED', { message, challenge: challengeOf(credential, 'error="invalid_token"') });
  }
  ctx.setLogUser(session.user.id);
  if (scope === undefined || !session.scopes.includes(scope)) {
    const needed = scope === undefined ? '' : `, scope="${scope}"`;
    throw new ServiceError('INSUFFICIENT_SCOPE', {
      challenge: challengeOf(credential, `error="insufficient_scope"${needed}`),
    });
  }
  ctx.scopes = session.scopes;
  return session;
}

/** Who acts in the caller's session: its user, or the administrator who acts for the user. */
const actorIn = ({ session }: Context): Acting =>
  session?.actor ? { actor: 'administrator', actorId: session.actor.id } : { actor: 'user' };

/** The caller and its origin; by default the actor of the session. */
export const callerOf = (ctx: Context, acting: Acting = actorIn(ctx)): Caller => ({
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

/** The error that REST and tRPC both send for any error of a procedure. */
export function serviceErrorOf(error: TRPCError): ServiceError {
  const { cause } = error;
  if (cause instanceof ServiceError) return cause;
  if (cause instanceof ZodError && error.code === 'BAD_REQUEST') {
    return new ServiceError('VALIDATION_FAILED', { details: detailsOf(cause) });
  }
  return new ServiceError(codeOfTrpc[error.code] ?? 'INTERNAL', { cause: cause ?? error });
}

/** An array has one issue for each wrong element. */
const MAX_ISSUES = 100;

/** The broken rules of each field, with the message of the first. */
function detailsOf({ issues }: ZodError): ErrorDetails {
  const details = new Map<string, { message: string; rule: string; rules: string[] }>();
  for (const issue of issues.slice(0, MAX_ISSUES)) {
    const field = issue.path.length > 0 ? issue.path.join('.') : 'body';
    const rule = issue.code === 'custom' ? String(issue.params?.['rule'] ?? issue.code) : issue.code;
    const known = details.get(field);
    if (!known) details.set(field, { message: issue.message, rule, rules: [rule] });
    else if (!known.rules.includes(rule)) known.rules.push(rule);
  }
  return Object.fromEntries(details);
}
