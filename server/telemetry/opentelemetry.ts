import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  NodeTracerProvider,
  ParentBasedSampler,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-node';
import { createOutage } from '../lib/outage.ts';
import type { Log } from './log.ts';
import { type SpanOptions, type Tracer, traceWith } from './traces.ts';

const NAME = 'account-service';
/** The maximum wait at the end of the process for the last spans to be sent. */
const FLUSH_MS = 800;

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
};

interface Settings {
  protocol: 'http/protobuf' | 'http/json';
  /** The share of new traces to record, from 0 to 1. Undefined: the SDK's sampler decides. */
  share: number | undefined;
  version: string;
  log: Pick<Log, 'warn' | 'info'>;
}

/**
 * Traces by OpenTelemetry's SDK, which reads its settings from the environment. Spans are sent in the background, and
 * dropped if that fails. Resolves to a function that sends the rest.
 */
export async function startTraces({ protocol, share, version, log }: Settings): Promise<() => Promise<void>> {
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({
      'service.name': NAME,
      'service.version': version,
      'service.instance.id': randomUUID(),
    }).merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(reporting(new OTLPTraceExporter(), log))],
    ...(share !== undefined && { sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }) }),
  });
  provider.register();
  traceWith(tracerOf(version, share));
  return async () => {
    // The exporter logs its failures.
    await Promise.race([provider.shutdown().catch(() => undefined), delay(FLUSH_MS)]);
  };
}

/**
 * Samples a new trace before it has a span. An unrecorded one has neither span nor context: the SDK would make both for
 * each request, several percent of the CPU of a profile read.
 */
function tracerOf(version: string, share = 1): Tracer {
  const tracer = trace.getTracer(NAME, version);

  return {
    inSpan(name, options, work) {
      const { kind = 'internal', attributes = {} } = options;
      const around = contextAround(options, share);
      const span = around && tracer.startSpan(name, { kind: kinds[kind], attributes }, around);
      if (span?.isRecording()) return within(span, work);
      return 'continues' in options ? outsideSpans(work) : work(undefined);
    },

    startCall(describe) {
      if (!isRecorded()) return undefined;
      const { name, attributes } = describe();
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes });
      return (error) => {
        if (error) markFailed(span, error);
        span.end();
      };
    },

    active() {
      const span = trace.getActiveSpan();
      return span?.isRecording() ? span.spanContext() : undefined;
    },

    traceparent() {
      const carrier: { traceparent?: string } = {};
      propagation.inject(context.active(), carrier);
      return carrier.traceparent;
    },
  };
}

const isRecorded = (): boolean => trace.getActiveSpan()?.isRecording() ?? false;

/** The context of a new span. Undefined if it is not recorded. */
function contextAround(options: SpanOptions, share: number): Context | undefined {
  if (!('continues' in options)) return isRecorded() ? context.active() : undefined;
  const { traceparent } = options.continues;
  // Extracting costs as much as a span: most requests have nothing to continue.
  const around = traceparent === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, { traceparent });
  const beginsTrace = around === ROOT_CONTEXT;
  return !beginsTrace || (options.kind === 'server' && Math.random() < share) ? around : undefined;
}

function within<T>(span: Span, work: (span: Span) => Promise<T>): Promise<T> {
  return context.with(trace.setSpan(ROOT_CONTEXT, span), async () => {
    try {
      return await work(span);
    } catch (error) {
      markFailed(span, error);
      throw error;
    } finally {
      span.end();
    }
  });
}

/**
 * Work without a recorded span may start inside an unrelated one, such as a mail taken by a worker that a request woke.
 */
const outsideSpans = <T>(work: (span: undefined) => T): T =>
  trace.getActiveSpan() ? context.with(ROOT_CONTEXT, work, undefined, undefined) : work(undefined);

/** Without the error's message, which may quote user input. */
function markFailed(span: Span, error: unknown): void {
  const { code, name } = error as { code?: unknown; name?: unknown };
  span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', String(code ?? name ?? typeof error));
}

/** Logs once that spans cannot be sent, and once that they can again. */
function reporting(exporter: SpanExporter, log: Settings['log']): SpanExporter {
  const outage = createOutage({
    began: (error) => log.warn({ err: error }, 'traces cannot be sent: check OTEL_EXPORTER_OTLP_ENDPOINT'),
    ended: () => log.info('traces are sent again'),
  });
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.error) outage.failed(result.error);
        else outage.succeeded();
        done(result);
      }),
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  };
}
