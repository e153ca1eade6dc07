import type { Middleware } from 'koa';
import { createBound } from '../lib/rate-cap.ts';
import type { Log } from '../telemetry/log.ts';

const HOUR_MS = 60 * 60_000;

/** Tells the operator which limit refuses users, once an hour for each variable. `reportFailure` names it. */
export function limitWarning(log: Pick<Log, 'warn'>, now = () => performance.now()): Middleware {
  const mayWarn = createBound({ most: 1, withinMs: HOUR_MS, now });
  return async (ctx, next) => {
    await next();
    const { limit, id } = ctx.state as { limit?: string; id?: string };
    if (limit === undefined || !mayWarn(limit)) return;
    log.warn({ limit, id }, `answered 429: ${limit} is used up. Further ones are not reported for an hour`);
  };
}
