const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The pauses between tries. */
const PAUSES = [5 * SECOND, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 24 * HOUR, 48 * HOUR];
const MAX_PAUSE = 48 * HOUR;
/** Deliveries that failed together are not retried together. */
const JITTER = 0.1;

/** A webhook without a success for this long is disabled. */
export const MAX_FAILING_MS = 72 * HOUR;
export const KEPT_MS = 30 * 24 * HOUR;
/** Both secrets of a rotation are valid for this long. */
export const ROTATION_MS = 24 * HOUR;

/** The pause after the `failed`th try, at least as long as Retry-After says. Undefined: that was the last try. */
export function pauseAfter(failed: number, retryAfter?: string, now = Date.now()): number | undefined {
  const pause = PAUSES[failed - 1];
  if (pause === undefined) return undefined;
  return Math.round(Math.max(pause * (1 + JITTER * Math.random()), waitIn(retryAfter, now)));
}

/** RFC 9110 section 10.2.3: seconds or a date. 0 without a valid value; at most the longest pause. */
function waitIn(retryAfter: string | undefined, now: number): number {
  if (retryAfter === undefined) return 0;
  const wait = /^\d+$/.test(retryAfter) ? Number(retryAfter) * SECOND : Date.parse(retryAfter) - now;
  return Number.isNaN(wait) ? 0 : Math.min(Math.max(wait, 0), MAX_PAUSE);
}
