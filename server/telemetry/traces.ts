import type { Attributes, Span } from '@opentelemetry/api';

export interface SpanOptions {
  /** `client`: a call to another part, of which there is a span only within another. */
  kind?: 'internal' | 'server' | 'client' | 'consumer';
  attributes?: Attributes;
  /** What holds a `traceparent` (W3C Trace Context) to continue, such as headers, in place of the span around. */
  continues?: Record<string, string | string[] | undefined>;
}

export interface Tracer {
  inSpan<T>(name: string, options: SpanOptions, work: (span: Span | undefined) => Promise<T>): Promise<T>;
  /** Makes client spans from what a driver publishes on a tracing channel of `node:diagnostics_channel`. May be repeated. */
  spansOf<Message extends object>(channel: string, describe: Describe<Message>): void;
  /** Of a span that is kept. */
  active(): { traceId: string; spanId: string } | undefined;
  traceparent(): string | undefined;
}

/** The span of one call of a driver. Must take no values from the message: they may be personal or secret. */
export type Describe<Message> = (message: Message) => { name: string; attributes: Attributes };

let tracer: Tracer | undefined;

/** From now on there are spans. To be called before the parts are opened. */
export const traceWith = (by: Tracer): void => {
  tracer = by;
};

export const isTracing = (): boolean => tracer !== undefined;

/** Runs `work` in a span, which ends with it. Where there are no traces, and so no `span`, it just runs. */
export const inSpan = <T>(
  name: string,
  options: SpanOptions,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> => (tracer ? tracer.inSpan(name, options, work) : work(undefined));

export function spansOf<Message extends object>(channel: string, describe: Describe<Message>): void {
  tracer?.spansOf(channel, describe);
}

/** The active span in the form of W3C Trace Context, to be continued elsewhere. */
export const traceparent = (): string | undefined => tracer?.traceparent();

/** The fields of a log line that belongs to a span which is kept. */
export function traceFields(): { trace_id?: string; span_id?: string } {
  const active = tracer?.active();
  return active ? { trace_id: active.traceId, span_id: active.spanId } : {};
}
