import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** A span as a collector receives it (OTLP/HTTP, JSON). */
export interface Span {
  traceId: string;
  spanId: string;
  /** Undefined for the first one of its trace. */
  parentSpanId: string | undefined;
  name: string;
  attributes: Record<string, unknown>;
  /** Of the process: `service.name` and others. */
  resource: Record<string, unknown>;
  failed: boolean;
}

export interface Collector {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  /** For a service whose spans arrive here quickly, as JSON. */
  readonly env: Record<string, string>;
  /** All spans received so far. */
  spans(): Span[];
  /** The raw bodies, of any protocol, and their content types. */
  bodies(): { type: string; body: string }[];
  stop(): void;
}

interface Attribute {
  key: string;
  value: Record<string, unknown>;
}

interface Export {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: {
      spans: (Pick<Span, 'traceId' | 'spanId' | 'name' | 'parentSpanId'> & {
        attributes: Attribute[];
        status: { code: number };
      })[];
    }[];
  }[];
}

const valuesOf = (attributes: Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

/** A trace started by a caller, and its header. */
export function callersTrace({ sampled = true } = {}) {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${sampled ? '01' : '00'}` } };
}

/** Accepts traces like an OpenTelemetry collector. */
export async function startCollector(): Promise<Collector> {
  const bodies: { type: string; body: string }[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const type = request.headers['content-type'] ?? '';
    if (request.method === 'POST' && request.url === '/v1/traces') bodies.push({ type, body });
    response.writeHead(200, { 'Content-Type': type }).end(type === 'application/json' ? '{}' : '');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '50',
    },
    bodies: () => bodies,
    spans: () =>
      bodies
        .filter(({ type }) => type === 'application/json')
        .flatMap(({ body }) => (JSON.parse(body) as Export).resourceSpans)
        .flatMap(({ resource, scopeSpans }) =>
          scopeSpans.flatMap(({ spans }) =>
            spans.map(({ traceId, spanId, parentSpanId, name, attributes, status }) => ({
              traceId,
              spanId,
              parentSpanId: parentSpanId || undefined,
              name,
              attributes: valuesOf(attributes),
              resource: valuesOf(resource.attributes),
              failed: status.code === 2,
            })),
          ),
        ),
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

export type Tree = { [name: string]: Tree };

/** The names of a trace's spans below one of them, nested. */
export const treeBelow = (spans: Span[], spanId: string | undefined): Tree =>
  Object.fromEntries(
    spans.filter((span) => span.parentSpanId === spanId).map((span) => [span.name, treeBelow(spans, span.spanId)]),
  );
