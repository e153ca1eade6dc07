import type { Span } from '@opentelemetry/api';
import type { Middleware } from 'koa';
import { isRecording, observe } from '../telemetry/metrics.ts';
import { inSpan, isTracing } from '../telemetry/traces.ts';
import { probePaths } from './probes.ts';

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']);

/**
 * Times each request. Puts it into a span (except probes) that continues the caller's `traceparent`. Undefined without
 * metrics and traces. Paths and queries are never recorded: they may contain ids and tokens.
 */
export function telemetry(): Middleware | undefined {
  if (!isRecording() && !isTracing()) return undefined;
  return (ctx, next) => {
    const method = methods.has(ctx.method) ? ctx.method : '_OTHER';
    const attributes = { 'http.request.method': method };
    const answer = async (span?: Span) => {
      if (!span && !isRecording()) return next();
      const started = performance.now();
      await next();
      const { status } = ctx;
      const route = labelOf(ctx.state['route']);
      const labels = { method, route: route ?? '(none)', status: String(status) };
      observe('http_server_request_duration_seconds', labels, (performance.now() - started) / 1000);
      if (!span) return;
      span.setAttribute('http.response.status_code', status);
      if (route !== undefined) span.updateName(`${method} ${route}`).setAttribute('http.route', route);
      // SpanStatusCode.ERROR, which HTTP's conventions reserve for 5xx on a server.
      if (status >= 500) span.setStatus({ code: 2 }).setAttribute('error.type', String(status));
    };
    // Not `ctx.path`: a malformed target throws there, and is refused further in.
    return probePaths.includes(ctx.url.split('?', 1)[0] ?? '')
      ? answer()
      : inSpan(method, { kind: 'server', attributes, continues: ctx.headers }, answer);
  };
}

/** All batches are one route: clients combine procedures freely. */
const labelOf = (route: string | undefined): string | undefined => (route?.includes(',') ? '/trpc' : route);
