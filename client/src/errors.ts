import { TRPCClientError } from '@trpc/client';
import type { ErrorCode, ErrorDetails } from './api.ts';

/** The contents of a call's error beside its message, as tRPC's own tools expect them. */
export interface Origin {
  cause?: Error;
  meta?: Record<string, unknown>;
  result?: { error: { message: string; code: number; data: ErrorData } };
}

export interface ErrorData {
  code: ErrorCode;
  httpStatus: number;
  path?: string | undefined;
  details?: ErrorDetails | undefined;
}

/** tRPC passes on errors of this class unchanged; for callers that catch them they are simply errors. */
const CallError: new (message: string, origin?: Origin) => Error = TRPCClientError;

/** The service answered, and refused: `code` says why, `details` what was wrong with each field. */
export class ServiceError<Code extends ErrorCode = ErrorCode> extends CallError {
  readonly code: Code;
  /** Of the HTTP answer. */
  readonly status: number;
  readonly details: ErrorDetails | undefined;
  /** Seconds after which trying again makes sense, where the service says so. */
  readonly retryAfter: number | undefined;

  constructor(
    refusal: { message: string; code: Code; status: number; details?: ErrorDetails | undefined; retryAfter?: number },
    origin?: Origin,
  ) {
    super(refusal.message, origin);
    become(this, ServiceError.prototype, 'ServiceError');
    this.code = refusal.code;
    this.status = refusal.status;
    this.details = refusal.details;
    this.retryAfter = refusal.retryAfter;
  }
}

/** No answer of the service arrived: offline, not reachable, cut off, or something in between answered in its place. */
export class NetworkError extends CallError {
  constructor(message: string, origin?: Origin) {
    super(message, origin);
    become(this, NetworkError.prototype, 'NetworkError');
  }
}

/** No answer within the time that the client was given. Whether the service did what it was asked is not known. */
export class TimeoutError extends CallError {
  constructor(message: string, origin?: Origin) {
    super(message, origin);
    become(this, TimeoutError.prototype, 'TimeoutError');
  }
}

/** Whether the service refused the call; with `code`, whether for this reason. */
export function isServiceError<Code extends ErrorCode = ErrorCode>(
  error: unknown,
  code?: Code,
): error is ServiceError<Code> {
  return error instanceof ServiceError && (code === undefined || error.code === code);
}

/** Whether no answer of the service arrived. A call that was aborted by its own signal is none of these three. */
export const isNetworkError = (error: unknown): error is NetworkError => error instanceof NetworkError;

/** Whether the time ran out. */
export const isTimeoutError = (error: unknown): error is TimeoutError => error instanceof TimeoutError;

/** TRPCClientError's constructor makes whatever it constructs a plain TRPCClientError. */
function become(error: Error, prototype: Error, name: string): void {
  Object.setPrototypeOf(error, prototype);
  error.name = name;
}
