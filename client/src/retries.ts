import { isNetworkError, isServiceError, isTimeoutError } from './errors.ts';

const BACKOFF_MS = { first: 500, longest: 30_000 };
/** A longer `Retry-After` counts as this: after it, a call shows whether to wait longer. */
const MAX_RETRY_AFTER_MS = 60 * 60_000;

/** Whether a later call may succeed. */
export const isPassing = (error: unknown): boolean =>
  isNetworkError(error) ||
  isTimeoutError(error) ||
  (isServiceError(error) && (error.status === 429 || error.status >= 500));

/** Waits before a call is repeated that has failed so many times before this error; less if `signal` is aborted. */
export const pauseAfter = (error: unknown, failures: number, signal: AbortSignal | undefined): Promise<void> =>
  pause(Math.max(backoff(failures), retryAfterMs(error)), signal);

/** Random, so that not all clients come back at once. */
const backoff = (failures: number): number =>
  Math.min(BACKOFF_MS.first * 2 ** failures, BACKOFF_MS.longest) * (0.5 + Math.random() / 2);

const retryAfterMs = (error: unknown): number =>
  isServiceError(error) || isNetworkError(error) ? Math.min((error.retryAfter ?? 0) * 1000, MAX_RETRY_AFTER_MS) : 0;

const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });
