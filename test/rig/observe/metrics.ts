import { freePort } from '../servers/port.ts';

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** The metrics of one service, as Prometheus reads them. */
export interface Metrics {
  readonly port: number;
  /** All current samples. Rejects after 10 s, Prometheus' default. */
  scrape(): Promise<Sample[]>;
  /** The value of the only series with these labels; undefined if there is none. */
  value(name: string, labels?: Record<string, string>): Promise<number | undefined>;
}

/** For a service with METRICS_PORT set to `port`. */
export async function metricsOnFreePort(): Promise<Metrics> {
  const port = await freePort();
  const scrape = async () => {
    const response = await fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(10_000) });
    if (response.status !== 200) throw new Error(`GET /metrics answered ${response.status}`);
    return samplesIn(await response.text());
  };
  return {
    port,
    scrape,
    async value(name, labels = {}) {
      const found = (await scrape()).filter(
        (sample) =>
          sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
      );
      if (found.length > 1) throw new Error(`${found.length} series of ${name} have these labels`);
      return found[0]?.value;
    },
  };
}

/** Prometheus' text format: https://prometheus.io/docs/instrumenting/exposition_formats/ */
const samplesIn = (text: string): Sample[] =>
  text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      if (name === '') throw new Error(`no sample: ${line}`);
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label, text]);
      return { name, labels: Object.fromEntries(pairs), value: Number(value) };
    });
