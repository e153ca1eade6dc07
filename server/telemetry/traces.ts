import type { Attributes, Span } from '@opentelemetry/api';

/** What holds a `traceparent` (W3C Trace Context), such as headers. */
type Carrier = Record<string, string | string[] | undefined>;

export type SpanOptions = { attributes?: Attributes } & (
  | /** Part of the span around, where that is recorded. `client` is a call to another part. */
  { kind?: 'internal' | 'client' }
  /** Continues the caller's trace, or begins one. Whether it is recorded is decided here, for all that belongs to it. */
  | { kind: 'server'; continues: Carrier }
  /** Continues the trace of a message, where that is recorded. */
  | { kind: 'consumer'; continues: Carrier }
);

export interface Tracer {
  inSpan<T>(name: string, options: SpanOptions, work: (span: Span | undefined) => Promise<T>): Promise<T>;
  startCall(describe: () => Call): EndCall | undefined;
  /** Of a span that is recorded. */
  active(): { traceId: string; spanId: string } | undefined;
  traceparent(): string | undefined;
}

/** A call to another part, without its values: they may be personal or secret. */
export interface Call {
  name: string;
  attributes: Attributes;
}

export type EndCall = (error?: unknown) => void;

let tracer: Tracer | undefined;

/** From now on there are spans. To be called before the parts are opened. */
export const traceWith = (by: Tracer): void => {
  tracer = by;
};

export const isTracing = (): boolean => tracer !== undefined;

/** Runs `work` in a span, which ends with it. Where nothing is recorded it just runs, and there is no `span`. */
export const inSpan = <T>(
  name: string,
  options: SpanOptions,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> => (tracer ? tracer.inSpan(name, options, work) : work(undefined));

/** Begins a `client` span, for calls with a callback. Undefined where nothing is recorded; then `describe` is not called. */
export const startCall = (describe: () => Call): EndCall | undefined => tracer?.startCall(describe);

/** The active span in the form of W3C Trace Context, to be continued elsewhere. Undefined where nothing is recorded. */
export const traceparent = (): string | undefined => tracer?.traceparent();

/** The fields of a log line that belongs to a span which is recorded. */
export function traceFields(): { trace_id?: string; span_id?: string } {
  const active = tracer?.active();
  return active ? { trace_id: active.traceId, span_id: active.spanId } : {};
}
