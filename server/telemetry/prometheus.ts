/*
 * Counters and histograms of a process that has ended, or does not respond in time, keep their last values in the
 * combined metrics.
 */

import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { counters, type GaugeName, gauges, histograms } from './catalogue.ts';
import type { Gauges, LabelledValue, ReadGauges, Recorder } from './metrics.ts';

type GaugeValues = Partial<Record<GaugeName, number | LabelledValue[]>>;

/** Values of gauges are cached this long, so that several scrapers cost one query. */
const FRESH_MS = 2000;
/** The maximum wait of a scrape for gauges; Prometheus times out after ten seconds. */
const DEADLINE_MS = 2000;
/** The maximum wait of the first of several processes for the metrics of the others. */
const ANSWER_MS = DEADLINE_MS + 500;

/** Instruments for the catalogue and the process, in a registry of their own. */
export function createRecorder(version: string): { recorder: Recorder; registry: Registry } {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  // With several processes the worst value: prom-client's average would hide a blocked one.
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
  mapEntries(gauges, (name, { help, across, labels = [] }: GaugeEntry) => {
    const collect = async (): Promise<void> => {
      const value = (await values())[name];
      if (typeof value === 'number') return gauge.set(value);
      if (labels.length === 0) return gauge.remove();
      gauge.reset();
      for (const one of value ?? []) gauge.set(one.labels, one.value);
    };
    const gauge: Gauge<string> = new Gauge<string>({
      name,
      help,
      labelNames: labels,
      aggregator: across,
      registers,
      collect,
    });
  });
  return {
    registry,
    recorder: {
      count: (name, labels, by) => countersByName[name].inc(labels, by),
      observe: (name, labels, seconds) => histogramsByName[name].observe(labels, seconds),
      gauges: add,
    },
  };
}

interface GaugeEntry {
  help: string;
  across: 'sum' | 'max' | 'min';
  labels?: readonly string[];
}

function mapEntries<Name extends string, From, To>(entries: Record<Name, From>, map: (name: Name, from: From) => To) {
  return Object.fromEntries(
    Object.entries<From>(entries).map(([name, from]) => [name, map(name as Name, from)]),
  ) as Record<Name, To>;
}

/**
 * Reads all gauges together and adds values of one name: a process may have several pools. A slow gauge is missing and
 * delays no other.
 */
function createGaugeReader() {
  const sources: ReadGauges[] = [];
  let latest: Promise<GaugeValues> | undefined;
  let readAt = 0;

  const readAll = async () => {
    const inTime = (read: ReadGauges) =>
      Promise.race([
        // In an async function, so that a throw becomes a rejection.
        (async () => read())().catch((): Gauges => ({})),
        delay<Gauges>(DEADLINE_MS, {}, { ref: false }),
      ]);
    const values: GaugeValues = {};
    for (const read of await Promise.all(sources.map(inTime))) {
      for (const [name, value] of Object.entries(read) as [GaugeName, number | LabelledValue[]][]) {
        const sum = values[name];
        values[name] = typeof value === 'number' && typeof sum === 'number' ? sum + value : value;
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

/** A registry, or the combined metrics of several processes. */
interface MetricsSource {
  contentType: string;
  metrics(): Promise<string>;
}

type Values = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** The request of the first process to each of the others, and its response. */
interface Asked {
  metricsFor: number;
}
interface Told extends Asked {
  metrics: Values;
}

/** Values that only grow. Prometheus would take a falling sum for a restart, and count all of it again. */
const growing = (values: Values): Values =>
  values.filter(({ type }) => ['counter', 'histogram'].includes(String(type)));

/** The combined metrics of all processes started by node:cluster here. Rejects if none responds. */
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
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker?.isConnected());
    const complete = Promise.withResolvers<void>();
    scrapes.set(id, (worker, metrics) => {
      last.set(worker.id, metrics);
      answered.add(worker.id);
      if (answered.size === workers.length) complete.resolve();
    });
    for (const worker of workers) worker?.send({ metricsFor: id } satisfies Asked);
    await Promise.race([complete.promise, delay(ANSWER_MS, undefined, { ref: false })]);
    scrapes.delete(id);
    return answered;
  };

  return {
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
    async metrics() {
      const answered = await ask();
      if (answered.size === 0) throw new Error('no process responds');
      const values = [...last].map(([id, own]) => (answered.has(id) ? own : growing(own)));
      return AggregatorRegistry.aggregate([ended, ...values]).metrics();
    },
  };
}

/** Responds to `metricsOfAll` of the process that started this one. */
export function giveToFirstProcess(registry: Registry): void {
  process.on('message', async ({ metricsFor }: Partial<Asked>) => {
    if (metricsFor === undefined) return;
    const metrics = await registry.getMetricsAsJSON();
    // The first process may have ended since.
    if (process.connected) process.send?.({ metricsFor, metrics } satisfies Told);
  });
}

/**
 * Serves GET /metrics to any caller: the port must not be public. Rejects if it is taken. Resolves to a function that
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
