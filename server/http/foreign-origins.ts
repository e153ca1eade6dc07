import { createBound } from '../bound.ts';
import type { Log } from '../log.ts';

const HOUR_MS = 60 * 60_000;
/** So that pages and programs that make origins up fill neither the memory nor the log. */
const MOST_ORIGINS = 100;

/** The header as text that may be shown: undefined for `null`, and for what no browser sends. */
export const nameOfOrigin = (origin: string): string | undefined =>
  /^[a-z][a-z\d+.-]{0,30}:\/\/[\w.:[\]-]{1,255}$/i.test(origin) ? origin : undefined;

/** Tells the operator which origin would have to be allowed: of each once an hour, of at most 100 in an hour. */
export function foreignOriginWarning(log: Pick<Log, 'warn'>, now = () => performance.now()) {
  const mayWarn = createBound({ most: 1, withinMs: HOUR_MS, mostKeys: MOST_ORIGINS, now });
  return (origin: string): void => {
    if (!mayWarn(origin)) return;
    log.warn({ origin }, 'a page of another origin called, and may not: front ends must be named in ALLOWED_ORIGINS');
  };
}
