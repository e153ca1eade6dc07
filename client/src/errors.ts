import { TRPCClientError } from '@trpc/client';
import type { ErrorCode, ErrorDetails } from './api.ts';

/** The fields of an error beside its message, as tRPC's tools expect them. */
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
  /** Of this call: the header of a batch may be that of another. */
  retryAfter?: number;
}

/** tRPC passes on errors of this class unchanged; callers see ordinary errors. */
const CallError: new (message: string, origin?: Origin) => Error = TRPCClientError;

/** The service refused the call. `code` is the reason, `details` the problem of each field. */
export class ServiceError<Code extends ErrorCode = ErrorCode> extends CallError {
  readonly code: Code;
  /** HTTP status. */
  readonly status: number;
  readonly details: ErrorDetails | undefined;
  /** Seconds to wait before a retry, if the service names them. */
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

/** No response of the service arrived: offline, unreachable, cut off, or a proxy answered instead. */
export class NetworkError extends CallError {
  /** Seconds to wait before a retry, if a proxy names them. */
  readonly retryAfter: number | undefined;

  constructor(message: string, origin?: Origin, retryAfter?: number) {
    super(message, origin);
    become(this, NetworkError.prototype, 'NetworkError');
    this.retryAfter = retryAfter;
  }
}

/** No response within the client's timeout. The service may have executed the call. */
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

/** Whether no response of the service arrived. False for a call that its own signal aborted. */
export const isNetworkError = (error: unknown): error is NetworkError => error instanceof NetworkError;

/** Whether the call timed out. */
export const isTimeoutError = (error: unknown): error is TimeoutError => error instanceof TimeoutError;

/** TRPCClientError's constructor gives every instance the prototype of TRPCClientError. */
function become(error: Error, prototype: Error, name: string): void {
  Object.setPrototypeOf(error, prototype);
  error.name = name;
}
