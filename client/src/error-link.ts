import { TRPCClientError, type TRPCLink } from '@trpc/client';
import { observable } from '@trpc/server/observable';
import type { ErrorCode, ErrorDetails } from './api.ts';
import { isServiceError, NetworkError, type Origin, ServiceError, TimeoutError } from './errors.ts';
import type { AppRouter } from './trpc.ts';
import type { Watcher } from './unauthenticated.ts';

interface Refusal {
  message: string;
  code: ErrorCode;
  details?: ErrorDetails | undefined;
}

/**
 * Converts every error of a call to the service at `url` to its class. A call aborted by its caller rejects with tRPC's
 * own error.
 */
export const errorLink =
  (url: string, watchers: ReadonlySet<Watcher>): TRPCLink<AppRouter> =>
  () =>
  ({ next, op }) =>
    observable((observer) => {
      const whenRefused = [...watchers].map((begin) => begin(op.path));
      return next(op).subscribe({
        next: (value) => observer.next(value),
        error(answer) {
          const error = classify(answer, url);
          if (isServiceError(error) && isOfSession(error.code)) for (const tell of whenRefused) tell();
          observer.error(TRPCClientError.from(error));
        },
        complete: () => observer.complete(),
      });
    });

const isOfSession = (code: ErrorCode): boolean => code === 'UNAUTHENTICATED' || code === 'OTHER_USER';

function classify(error: TRPCClientError<AppRouter>, url: string): Error {
  const { cause, meta, shape, data, message } = error;
  const origin: Origin = { ...(cause && { cause }), ...(meta && { meta }), ...(shape && { result: { error: shape } }) };
  const answered = cause && 'response' in cause ? cause.response : meta?.['response'];
  const response = answered instanceof Response ? answered : undefined;

  const refusal = data ? { message, ...data } : refusalIn(meta?.['responseJSON']);
  if (refusal) {
    const status = data?.httpStatus ?? response?.status ?? 0;
    // A batch with different answers (207) has one header for all; `data` has the call's own.
    const inHeader = response?.status === 207 ? {} : retryAfterIn(response);
    return new ServiceError({ ...inHeader, ...refusal, status }, origin);
  }
  if (cause?.name === 'TimeoutError') return new TimeoutError('The service did not answer in time', origin);
  if (cause?.name === 'AbortError' || message === 'Aborted') return error;
  const what = response ? `HTTP ${response.status}, not from the service` : message + hintAbout(url);
  return new NetworkError(`The service could not be reached (${what})`, origin, retryAfterIn(response).retryAfter);
}

/** Browsers do not tell a page that its origin was refused: it looks like any other network error. */
function hintAbout(url: string): string {
  const page = globalThis.location?.origin;
  // Such as of a local file: it is no base of an address.
  const isElsewhere = page !== undefined && page !== 'null' && new URL(url, page).origin !== page;
  return isElsewhere ? `; if it runs, its ALLOWED_ORIGINS may not name ${page}` : '';
}

/** A request that is refused before it becomes a call has the error body of REST. */
function refusalIn(json: unknown): Refusal | undefined {
  if (typeof json !== 'object' || json === null || !('code' in json) || !('message' in json)) return undefined;
  return typeof json.code === 'string' && typeof json.message === 'string' ? (json as Refusal) : undefined;
}

function retryAfterIn(response: Response | undefined): { retryAfter?: number } {
  const header = response?.headers.get('Retry-After');
  const seconds = Number(header);
  // A proxy may send a date instead.
  return header && seconds >= 0 && Number.isFinite(seconds) ? { retryAfter: seconds } : {};
}
