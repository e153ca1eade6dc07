import type { Attributes, Span } from '@opentelemetry/api';

/** Contains a `traceparent` (W3C Trace Context), such as headers. */
type Carrier = Record<string, string | string[] | undefined>;

export type SpanOptions = { attributes?: Attributes } & (
  | /** Part of the enclosing recorded span. `client` is a call to another part. */
  { kind?: 'internal' | 'client' }
  /** Continues the caller's trace or begins one, and decides whether it is recorded. */
  | { kind: 'server'; continues: Carrier }
  /** Continues the trace of a message, if that is recorded. */
  | { kind: 'consumer'; continues: Carrier }
);

export interface Tracer {
  inSpan<T>(name: string, options: SpanOptions, work: (span: Span | undefined) => Promise<T>): Promise<T>;
  startCall(describe: () => Call): EndCall | undefined;
  /** The ids of the active recorded span. */
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

/** Sets the tracer. Call before the parts are opened. */
export const traceWith = (by: Tracer): void => {
  tracer = by;
};

export const isTracing = (): boolean => tracer !== undefined;

/** Runs `work` in a span that ends with it. Without recording it only runs, and `span` is undefined. */
export const inSpan = <T>(
  name: string,
  options: SpanOptions,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> => (tracer ? tracer.inSpan(name, options, work) : work(undefined));

/**
 * Begins a `client` span, for calls with a callback. Without recording it returns undefined and does not call
 * `describe`.
 */
export const startCall = (describe: () => Call): EndCall | undefined => tracer?.startCall(describe);

/** The active span as W3C Trace Context, to continue it elsewhere. Undefined without recording. */
export const traceparent = (): string | undefined => tracer?.traceparent();

/** The fields of a log line within a recorded span. */
export function traceFields(): { trace_id?: string; span_id?: string } {
  const active = tracer?.active();
  return active ? { trace_id: active.traceId, span_id: active.spanId } : {};
}
