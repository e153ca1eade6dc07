import type { Middleware } from 'koa';
import { isRecording, observe } from '../telemetry/metrics.ts';
import { inSpan, isTracing } from '../telemetry/traces.ts';

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']);

/**
 * Times each request and puts it into a span, which continues the caller's (`traceparent`). Undefined where there are neither
 * metrics nor traces. Paths and queries appear nowhere: they may hold ids and tokens.
 */
export function telemetry(): Middleware | undefined {
  if (!isRecording() && !isTracing()) return undefined;
  return (ctx, next) => {
    const method = methods.has(ctx.method) ? ctx.method : '_OTHER';
    const attributes = { 'http.request.method': method };
    return inSpan(method, { kind: 'server', attributes, continues: ctx.headers }, async (span) => {
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
      // SpanStatusCode.ERROR, as HTTP's conventions want it of a server: a refusal is no error.
      if (status >= 500) span.setStatus({ code: 2 }).setAttribute('error.type', String(status));
    });
  };
}

/** Batches are one route: a client combines procedures as it likes. */
const labelOf = (route: string | undefined): string | undefined => (route?.includes(',') ? '/trpc' : route);
