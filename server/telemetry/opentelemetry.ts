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
import type { Log } from '../log.ts';
import { createOutage } from '../outage.ts';
import { type SpanOptions, type Tracer, traceWith } from './traces.ts';

const NAME = 'account-service';
/** The longest that the end of the process waits for the last spans to be sent. */
const FLUSH_MS = 800;

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
};

interface Settings {
  protocol: 'http/protobuf' | 'http/json';
  /** Of the traces that begin here, how many are recorded, from 0 to 1. Undefined: the SDK's sampler decides. */
  share: number | undefined;
  version: string;
  log: Pick<Log, 'warn' | 'info'>;
}

/**
 * Traces through OpenTelemetry's SDK, which reads the endpoint, the sampler and its other settings from the environment
 * itself. Spans are sent in the background and given up where nothing takes them. Resolves to a function that sends the last.
 */
export async function startTraces({ protocol, share, version, log }: Settings): Promise<() => Promise<void>> {
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ 'service.name': NAME, 'service.version': version }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    spanProcessors: [new BatchSpanProcessor(reporting(new OTLPTraceExporter(), log))],
    ...(share !== undefined && { sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }) }),
  });
  provider.register();
  traceWith(tracerOf(version, share));
  return async () => {
    await Promise.race([provider.shutdown().catch(() => undefined), delay(FLUSH_MS)]);
  };
}

/**
 * A new trace is decided on before it has a span, and what is not recorded has neither span nor context: the SDK would make
 * both for every request, which costs a profile read several percent of its CPU.
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

/** The context that a span belongs into. Undefined where there is to be none. */
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

/** What is not recorded may begin in the span of something else, as a mail does that a worker takes when it is woken. */
const outsideSpans = <T>(work: (span: undefined) => T): T =>
  trace.getActiveSpan() ? context.with(ROOT_CONTEXT, work, undefined, undefined) : work(undefined);

/** Without the message of the error, which may quote what a user has sent. */
function markFailed(span: Span, error: unknown): void {
  const { code, name } = error as { code?: unknown; name?: unknown };
  span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', String(code ?? name ?? typeof error));
}

/** Says once that spans do not arrive, and once that they do again. */
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
