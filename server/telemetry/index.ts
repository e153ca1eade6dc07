import cluster from 'node:cluster';
import packageJson from '../../package.json' with { type: 'json' };
import type { Config } from '../config/index.ts';
import type { Log } from '../log.ts';
import { recordWith } from './metrics.ts';

const { version } = packageJson;

interface Telemetry {
  /** Sends what is not sent yet, for at most 0.8 s. */
  stop(): Promise<void>;
}

/**
 * Starts metrics where METRICS_PORT is set and traces where OTEL_EXPORTER_OTLP_ENDPOINT is; of what is not, nothing is loaded.
 * To be called before the service is created. Rejects when the port is taken.
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

/** One of several processes gives its metrics to the first process, which answers for all. */
async function startMetrics(port: number, host: string): Promise<(() => void) | undefined> {
  const { createRecorder, giveToFirstProcess, serveMetrics } = await import('./prometheus.ts');
  const { recorder, registry } = createRecorder(version);
  recordWith(recorder);
  if (!cluster.isWorker) return serveMetrics(registry, { port, host });
  giveToFirstProcess(registry);
  return undefined;
}

/** In the first of several processes: serves the sums of what the others have, where METRICS_PORT is set. */
export async function serveMetricsOfAll({
  metricsPort: port,
  metricsHost: host,
}: Pick<Config, 'metricsPort' | 'metricsHost'>): Promise<void> {
  if (port === undefined) return;
  const { metricsOfAll, serveMetrics } = await import('./prometheus.ts');
  await serveMetrics(metricsOfAll(), { port, host });
}
