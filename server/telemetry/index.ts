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
  { metricsPort, host, traces }: Pick<Config, 'metricsPort' | 'host' | 'traces'>,
  log: Log,
): Promise<Telemetry> {
  const stopMetrics = metricsPort === undefined ? undefined : await startMetrics(metricsPort, host);
  const sendLast = traces && (await (await import('./opentelemetry.ts')).startTraces({ ...traces, version, log }));
  return {
    async stop() {
      stopMetrics?.();
      await sendLast?.();
    },
  };
}

async function startMetrics(port: number, host: string): Promise<() => void> {
  const { createRecorder, serveMetrics } = await import('./prometheus.ts');
  const { recorder, registry } = createRecorder(version);
  recordWith(recorder);
  return serveMetrics(registry, { port, host });
}
