import cluster from 'node:cluster';
import type { Config } from '../config/index.ts';
import { version } from '../version.ts';
import { prepareBackgroundCounts } from './background.ts';
import type { Log } from './log.ts';
import { recordWith } from './metrics.ts';

interface Telemetry {
  /** Sends the remaining data, for at most 0.8 s. */
  stop(): Promise<void>;
}

/**
 * Starts metrics if METRICS_PORT is set, and traces if OTEL_EXPORTER_OTLP_ENDPOINT is; loads only what is used. Call
 * before the service is created. Rejects if the port is taken.
 */
export async function startTelemetry(
  { metricsPort, metricsHost, traces }: Pick<Config, 'metricsPort' | 'metricsHost' | 'traces'>,
  log: Log,
): Promise<Telemetry> {
  const stopMetrics = metricsPort === undefined ? undefined : await startMetrics(metricsPort, metricsHost);
  const sendLast = traces && (await (await import('./opentelemetry.ts')).startTraces({ ...traces, version, log }));
  return {
    async stop() {
      stopMetrics?.();
      await sendLast?.();
    },
  };
}

/** With several processes, each sends its metrics to the first process, which serves them all. */
async function startMetrics(port: number, host: string): Promise<(() => void) | undefined> {
  const { createRecorder, giveToFirstProcess, serveMetrics } = await import('./prometheus.ts');
  const { recorder, registry } = createRecorder(version);
  recordWith(recorder);
  prepareBackgroundCounts();
  if (!cluster.isWorker) return serveMetrics(registry, { port, host });
  giveToFirstProcess(registry);
  return undefined;
}

/** In the first of several processes: serves the combined metrics of all, if METRICS_PORT is set. */
export async function serveMetricsOfAll({
  metricsPort: port,
  metricsHost: host,
}: Pick<Config, 'metricsPort' | 'metricsHost'>): Promise<void> {
  if (port === undefined) return;
  const { metricsOfAll, serveMetrics } = await import('./prometheus.ts');
  await serveMetrics(metricsOfAll(), { port, host });
}
