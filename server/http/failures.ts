import { TRPCError } from '@trpc/server';
import type { Context, Middleware } from 'koa';
import { serviceErrorOf } from '../../routers/trpc.ts';
import { type ErrorCode, ServiceError } from '../errors.ts';
import { type Log, sentenceOf } from '../telemetry/log.ts';

/** Sends every failure of a request as the error body of interface.md section 7. */
export function answerFailures(log: Log): Middleware {
  return async (ctx, next) => {
    try {
      await next();
      if (ctx.status === 404 && ctx.body === undefined) throw new ServiceError('NOT_FOUND');
    } catch (thrown) {
      const error = toServiceError(thrown);
      reportFailure(ctx, error, log);
      ctx.set('Cache-Control', 'no-store');
      ctx.status = error.status;
      ctx.body = bodyOf(error, ctx.state['errorField']);
    }
  };
}

/** A caller without access gets the ordinary error body. */
export const withoutAccess = new Set<ErrorCode>([
  'UNAUTHENTICATED',
  'INSUFFICIENT_SCOPE',
  'FORBIDDEN',
  'ORIGIN_MISMATCH',
]);

/** With `errorField` there is a field `error`: a sentence about the first problem (`only`: in a 400 nothing else). */
function bodyOf(error: ServiceError, errorField: unknown): object {
  if (errorField === undefined || withoutAccess.has(error.code)) return error.toJSON();
  const [first] = Object.values(error.details ?? {});
  const sentence = { error: first?.message ?? error.message };
  return errorField === 'only' && error.status === 400 ? sentence : { ...error.toJSON(), ...sentence };
}

/** Sets the headers of an error. Logs its cause if it is not the caller's fault. */
export function reportFailure(ctx: Context, error: ServiceError, log: Log): void {
  if (error.retryAfter !== undefined) ctx.set('Retry-After', String(error.retryAfter));
  if (error.challenge !== undefined) ctx.set('WWW-Authenticate', error.challenge);
  if (error.limit) {
    ctx.set('RateLimit-Limit', String(error.limit.points));
    ctx.set('RateLimit-Remaining', '0');
    ctx.set('RateLimit-Reset', String(error.retryAfter));
    ctx.state['limit'] = error.limit.variable;
  }
  if (error.status >= 500) {
    const id: unknown = ctx.state['id'];
    const cause = error.cause ?? error;
    if (error.code === 'INTERNAL') log.error({ id, err: cause }, error.message);
    // One line: in an outage there are many, and their stack is always the same.
    else log.warn({ id, cause: sentenceOf(cause) }, error.message);
  }
}

export const codeOfStatus: Readonly<Record<number, ErrorCode>> = {
  400: 'VALIDATION_FAILED',
  404: 'NOT_FOUND',
  408: 'REQUEST_TIMEOUT',
  413: 'PAYLOAD_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
};

export function toServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  if (thrown instanceof TRPCError) return serviceErrorOf(thrown);
  // Koa and the body parser set a status on errors that are the caller's fault.
  const status = thrown instanceof Error ? (thrown as { status?: unknown }).status : 0;
  return new ServiceError(codeOfStatus[Number(status)] ?? 'INTERNAL', { cause: thrown });
}
