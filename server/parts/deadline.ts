import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError, unavailable } from '../errors.ts';
import { isConflict, isMisdirected, isOutage } from './sql-errors.ts';

const LONGEST_BACKOFF_MS = 300;
/** How many servers may refuse a transaction before it fails. */
const MOST_MOVES = 3;

interface Deadline {
  ms: number;
  /** The part that did not answer, for the log. */
  what: string;
}

/** Rejects as SERVICE_UNAVAILABLE on an outage and when time runs out; the signal then aborts the remaining work. */
export async function withinDeadline<T>({ ms, what }: Deadline, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const abort = new AbortController();
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const error = unavailable(new Error(`${what} did not answer within ${ms} ms`));
    abort.abort(error);
    deadline.reject(error);
  }, ms);
  try {
    return await Promise.race([work(abort.signal), deadline.promise]);
  } catch (error) {
    throw !(error instanceof ServiceError) && isOutage(error) ? unavailable(error) : error;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Retries what has not happened, after a pause that doubles, until the signal aborts: a transaction that conflicted with
 * another, or that this server refused. A connection that is lost is no such case: its transaction may be committed.
 */
export async function retryingConflicts<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  let moves = 0;
  for (let pause = 10; ; pause = Math.min(pause * 2, LONGEST_BACKOFF_MS)) {
    try {
      return await attempt();
    } catch (error) {
      const mayRetry = isConflict(error) || (isMisdirected(error) && moves++ < MOST_MOVES);
      if (!mayRetry || signal.aborted) throw error;
    }
    await delay(Math.random() * 2 * pause);
    signal.throwIfAborted();
  }
}
