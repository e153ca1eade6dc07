import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { counters, type GaugeName, gauges, histograms } from './catalogue.ts';
import type { Gauges, ReadGauges, Recorder } from './metrics.ts';

/** For so long the values of gauges are taken for the present ones: scrapers, however many, cost one query. */
const FRESH_MS = 2000;
/** The longest that a scrape waits for gauges; Prometheus gives up after ten seconds. */
const DEADLINE_MS = 2000;

/** Instruments for everything in the catalogue and for the process, of their own registry. */
export function createRecorder(version: string): { recorder: Recorder; registry: Registry } {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'account_build_info',
    help: 'The version',
    labelNames: ['version'],
    aggregator: 'first',
    registers,
  })
    .labels(version)
    .set(1);
  const countersByName = mapEntries(
    counters,
    (name, { help, labels }) => new Counter<string>({ name, help, labelNames: labels, registers }),
  );
  const histogramsByName = mapEntries(
    histograms,
    (name, { help, labels, buckets }) =>
      new Histogram<string>({ name, help, labelNames: labels, buckets: [...buckets], registers }),
  );
  const { add, values } = createGaugeReader();
  mapEntries(
    gauges,
    (name, { help, across }) =>
      new Gauge({
        name,
        help,
        aggregator: across,
        registers,
        async collect() {
          const value = (await values())[name];
          if (value === undefined) this.remove();
          else this.set(value);
        },
      }),
  );
  return {
    registry,
    recorder: {
      count: (name, labels, by) => countersByName[name].inc(labels, by),
      observe: (name, labels, seconds) => histogramsByName[name].observe(labels, seconds),
      gauges: add,
    },
  };
}

function mapEntries<Name extends string, From, To>(entries: Record<Name, From>, map: (name: Name, from: From) => To) {
  return Object.fromEntries(
    Object.entries<From>(entries).map(([name, from]) => [name, map(name as Name, from)]),
  ) as Record<Name, To>;
}

/** Reads all gauges together, and adds the values of one name: a process may have several pools. One that cannot be read in time is missing, and holds up no other. */
function createGaugeReader() {
  const sources: ReadGauges[] = [];
  let latest: Promise<Gauges> | undefined;
  let readAt = 0;

  const readAll = async () => {
    const inTime = (read: ReadGauges) =>
      Promise.race([
        // Within a function that is async: one that throws rejects.
        (async () => read())().catch((): Gauges => ({})),
        delay<Gauges>(DEADLINE_MS, {}, { ref: false }),
      ]);
    const values: Gauges = {};
    for (const read of await Promise.all(sources.map(inTime))) {
      for (const [name, value] of Object.entries(read) as [GaugeName, number][]) {
        values[name] = (values[name] ?? 0) + value;
      }
    }
    return values;
  };

  return {
    add: (read: ReadGauges) => void sources.push(read),
    values() {
      if (!latest || performance.now() - readAt > FRESH_MS) {
        readAt = performance.now();
        latest = readAll();
      }
      return latest;
    },
  };
}

/** A registry, or what answers for those of several processes. */
export interface MetricsSource {
  contentType: string;
  metrics(): Promise<string>;
}

/** Of all processes that node:cluster has started here: sums, or what `across` says of a gauge. */
export function metricsOfAll(): MetricsSource {
  const all = new AggregatorRegistry();
  return { contentType: all.contentType, metrics: () => all.clusterMetrics() };
}

/** Answers `metricsOfAll` of the process that has started this one. */
export function giveToFirstProcess(registry: Registry): void {
  AggregatorRegistry.setRegistries(registry);
  // Made for its listener.
  new AggregatorRegistry();
}

/**
 * Answers GET /metrics, to any caller: the port is not for the public. Rejects when it is taken. Resolves to a function that
 * stops it.
 */
export async function serveMetrics(
  source: MetricsSource,
  { port, host }: { port: number; host: string },
): Promise<() => void> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url?.split('?')[0] !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    source.metrics().then(
      (text) => response.writeHead(200, { 'Content-Type': source.contentType }).end(text),
      () => response.writeHead(503).end(),
    );
  });
  server.listen(port, host);
  await once(server, 'listening');
  return () => {
    server.close();
    server.closeAllConnections();
  };
}
