import { tracingChannel } from 'node:diagnostics_channel';
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
import { BatchSpanProcessor, NodeTracerProvider, type SpanExporter } from '@opentelemetry/sdk-trace-node';
import type { Log } from '../log.ts';
import { createOutage } from '../outage.ts';
import { type Describe, type SpanOptions, type Tracer, traceWith } from './traces.ts';

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
  version: string;
  log: Pick<Log, 'warn' | 'info'>;
}

/**
 * Traces through OpenTelemetry's SDK, which reads the endpoint, the sampler and its other settings from the environment
 * itself. Spans are sent in the background and given up where nothing takes them. Resolves to a function that sends the last.
 */
export async function startTraces({ protocol, version, log }: Settings): Promise<() => Promise<void>> {
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ 'service.name': NAME, 'service.version': version }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    spanProcessors: [new BatchSpanProcessor(reporting(new OTLPTraceExporter(), log))],
  });
  provider.register();
  traceWith(tracerOf(version));
  return async () => {
    await Promise.race([provider.shutdown().catch(() => undefined), delay(FLUSH_MS)]);
  };
}

function tracerOf(version: string): Tracer {
  const tracer = trace.getTracer(NAME, version);
  const subscribed = new Set<string>();

  return {
    inSpan(name, { kind = 'internal', attributes = {}, continues }, work) {
      if (!continues && !isWanted(kind)) return work(undefined);
      const around = continues ? contextOf(continues) : context.active();
      return tracer.startActiveSpan(name, { kind: kinds[kind], attributes }, around, async (span) => {
        try {
          return await work(span);
        } catch (error) {
          markFailed(span, error);
          throw error;
        } finally {
          span.end();
        }
      });
    },

    spansOf<Message extends object>(channel: string, describe: Describe<Message>) {
      if (subscribed.has(channel)) return;
      subscribed.add(channel);
      const spans = new WeakMap<object, Span>();
      tracingChannel<unknown, Message>(channel).subscribe({
        start(message) {
          if (!isWanted('client')) return;
          const { name, attributes } = describe(message);
          spans.set(message, tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }));
        },
        end: () => undefined,
        asyncStart: () => undefined,
        asyncEnd: (message) => spans.get(message)?.end(),
        error(message) {
          const span = spans.get(message);
          if (span) markFailed(span, message.error);
        },
      });
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

/** Nothing below a span that is not recorded, and no call of another part outside of any: workers poll. */
const isWanted = (kind: keyof typeof kinds): boolean => trace.getActiveSpan()?.isRecording() ?? kind !== 'client';

/** Extracting costs as much as a span: most requests have nothing to continue. */
const contextOf = (continues: NonNullable<SpanOptions['continues']>): Context =>
  continues['traceparent'] === undefined
    ? ROOT_CONTEXT
    : propagation.extract(ROOT_CONTEXT, { traceparent: continues['traceparent'] });

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
