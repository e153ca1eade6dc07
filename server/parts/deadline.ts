import { setTimeout as delay } from 'node:timers/promises';
import { unavailable } from '../errors.ts';
import { isConflict, isMisdirected, isOutage as isSqlOutage } from './sql-errors.ts';

const BACKOFF_MS = { first: 10, longest: 300 };
/** How many servers may refuse a transaction before it fails. */
const MAX_MOVES = 3;

/**
 * A deadline is this many short timers. A time in which the event loop was blocked counts as one of them, so replies
 * that arrived meanwhile are read.
 */
const TICKS = 5;

interface Deadline {
  ms: number;
  /** The part, for the log. */
  what: string;
  /** By default the outages of a database. */
  isOutage?(error: unknown): boolean;
}

/** Rejects with SERVICE_UNAVAILABLE on an outage and at the deadline; the signal then aborts the remaining work. */
export async function withinDeadline<T>(
  { ms, what, isOutage = isSqlOutage }: Deadline,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const deadline = Promise.withResolvers<never>();
  let ticks = 0;
  const timer = setTimeout(() => {
    if (++ticks < TICKS) return timer.refresh();
    const error = unavailable(new Error(`${what} did not answer within ${ms} ms`));
    abort.abort(error);
    deadline.reject(error);
  }, ms / TICKS);
  try {
    return await Promise.race([work(abort.signal), deadline.promise]);
  } catch (error) {
    throw isOutage(error) ? unavailable(error) : error;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Retries work that has not taken effect (a conflict, or a server that refused it), with doubling pauses, until the
 * signal aborts. A lost connection is not retried: its transaction may be committed.
 */
export async function retryingConflicts<T>(
  signal: AbortSignal,
  attempt: () => Promise<T>,
  { first, longest, failed }: { first: number; longest: number; failed?: (error: Error) => void } = BACKOFF_MS,
): Promise<T> {
  let moves = 0;
  for (let pause = first; ; pause = Math.min(pause * 2, longest)) {
    try {
      return await attempt();
    } catch (error) {
      const mayRetry = isConflict(error) || (isMisdirected(error) && moves++ < MAX_MOVES);
      if (!mayRetry || signal.aborted) throw error;
      failed?.(error as Error);
    }
    await delay(Math.random() * 2 * pause);
    signal.throwIfAborted();
  }
}
