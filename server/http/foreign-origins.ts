import { createBound } from '../lib/rate-cap.ts';
import type { Log } from '../telemetry/log.ts';

const HOUR_MS = 60 * 60_000;
/** Limits memory and log lines when a client sends many invented origins. */
const MAX_ORIGINS = 100;

/** The header as text that may be shown. Undefined for `null` and for values that no browser sends. */
export const nameOfOrigin = (origin: string): string | undefined =>
  /^[a-z][a-z\d+.-]{0,30}:\/\/[\w.:[\]-]{1,255}$/i.test(origin) ? origin : undefined;

/** Tells the operator which origin to allow: each at most once an hour, at most 100 origins an hour. */
export function foreignOriginWarning(log: Pick<Log, 'warn'>, now = () => performance.now()) {
  const mayWarn = createBound({ most: 1, withinMs: HOUR_MS, mostKeys: MAX_ORIGINS, now });
  return (origin: string): void => {
    if (!mayWarn(origin)) return;
    log.warn({ origin }, 'refused a request from an origin that is not in ALLOWED_ORIGINS');
  };
}
