import { randomUUID } from 'node:crypto';
import type { Middleware } from 'koa';
import type { Log } from '../telemetry/log.ts';

/**
 * Gives each request an id (X-Request-Id) and logs it, at level `info` unless `ctx.state.logLevel` is set. Paths are
 * logged as their pattern.
 */
export function requestLog(log: Log): Middleware {
  return async (ctx, next) => {
    const started = performance.now();
    const id = randomUUID();
    ctx.state['id'] = id;
    ctx.set('X-Request-Id', id);
    await next();
    const level: 'info' | 'debug' = ctx.state['logLevel'] ?? 'info';
    log[level]({
      id,
      method: ctx.method,
      route: ctx.state['route'] ?? '(none)',
      status: ctx.status,
      ms: Math.round((performance.now() - started) * 10) / 10,
      ...(ctx.state['userId'] !== undefined && { user: ctx.state['userId'] }),
      ...(ctx.state['service'] !== undefined && { service: ctx.state['service'] }),
    });
  };
}
