import cluster, { type Worker } from 'node:cluster';
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
/** The longest that the first of several processes waits for the others' metrics. */
const ANSWER_MS = DEADLINE_MS + 500;

/** Instruments for everything in the catalogue and for the process, of their own registry. */
export function createRecorder(version: string): { recorder: Recorder; registry: Registry } {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  // Of several processes the worst: prom-client would hide one that is blocked in their average.
  for (const metric of registry.getMetricsAsArray()) if (metric.aggregator === 'average') metric.aggregator = 'max';
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

type Values = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** What the first process asks each of the others for, and what it is answered. */
interface Asked {
  metricsFor: number;
}
interface Told extends Asked {
  metrics: Values;
}

/** What only grows. A sum that falls would be taken for a restart, and all of it for new. */
const growing = (values: Values): Values =>
  values.filter(({ type }) => ['counter', 'histogram'].includes(String(type)));

/**
 * Of all processes that node:cluster has started here: sums, or what `across` says of a gauge. Of one that does not answer in
 * time, or has ended, counters and histograms stay as it told them last. Rejects when none answers.
 */
export function metricsOfAll(): MetricsSource {
  const last = new Map<number, Values>();
  let ended: Values = [];
  const scrapes = new Map<number, (worker: Worker, metrics: Values) => void>();
  let scrape = 0;

  cluster.on('message', (worker, { metricsFor, metrics }: Partial<Told>) => {
    if (metricsFor !== undefined && metrics) scrapes.get(metricsFor)?.(worker, metrics);
  });
  cluster.on('exit', async ({ id }) => {
    const values = last.get(id);
    last.delete(id);
    if (values) ended = await AggregatorRegistry.aggregate([ended, growing(values)]).getMetricsAsJSON();
  });

  const ask = async (): Promise<Set<number>> => {
    const id = ++scrape;
    const answered = new Set<number>();
    const asked = Object.values(cluster.workers ?? {}).filter((worker) => worker?.isConnected());
    const complete = Promise.withResolvers<void>();
    scrapes.set(id, (worker, metrics) => {
      last.set(worker.id, metrics);
      answered.add(worker.id);
      if (answered.size === asked.length) complete.resolve();
    });
    for (const worker of asked) worker?.send({ metricsFor: id } satisfies Asked);
    await Promise.race([complete.promise, delay(ANSWER_MS, undefined, { ref: false })]);
    scrapes.delete(id);
    return answered;
  };

  return {
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
    async metrics() {
      const answered = await ask();
      if (answered.size === 0) throw new Error('no process answers');
      const values = [...last].map(([id, own]) => (answered.has(id) ? own : growing(own)));
      return AggregatorRegistry.aggregate([ended, ...values]).metrics();
    },
  };
}

/** Answers `metricsOfAll` of the process that has started this one. */
export function giveToFirstProcess(registry: Registry): void {
  process.on('message', async ({ metricsFor }: Partial<Asked>) => {
    if (metricsFor === undefined) return;
    const metrics = await registry.getMetricsAsJSON();
    // The first process may have ended meanwhile.
    if (process.connected) process.send?.({ metricsFor, metrics } satisfies Told);
  });
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
