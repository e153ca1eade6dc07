import { metricsOnFreePort } from '../../rig/metrics.ts';
import { startCollector } from '../../rig/otlp.ts';
import type { Case, Result } from '../case.ts';
import { type Contender, type Extent, figures, inTurn, ratio } from '../compare.ts';
import type { Parts, Production } from '../parts.ts';
import { addPeople } from '../people.ts';
import { logIn, PEOPLE } from '../servers.ts';
import { readAs } from './reads.ts';

const extent = (quick: boolean): Extent => (quick ? { rounds: 7, amount: 3000 } : { rounds: 15, amount: 5000 });

const PATH = '/api/profile';

/** What it costs a profile read that metrics and traces are collected: the same service with and without, on the same data. */
export const telemetry: Case = {
  name: 'telemetry',
  async run({ parts, quick }) {
    const without = await parts.startProduction();
    await addPeople(without.database, 3);
    const metrics = await metricsOnFreePort();
    const collector = await startCollector();
    const measured = await another(parts, without, { METRICS_PORT: String(metrics.port) });
    const traced = await another(parts, without, {
      ...collector.env,
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.01',
    });
    const { url } = without.service;
    const people = await Promise.all(Array.from({ length: PEOPLE }, (_, n) => logIn(url, without.database, n)));
    const contender = async ({ url, pid }: Production['service']): Promise<Contender> => {
      if (pid === undefined) throw new Error('the service does not run');
      return { url, pid, ask: await readAs(people, url, PATH) };
    };
    const rounds = await inTurn(
      {
        without: await contender(without.service),
        // A scrape in each round, which is several times as often as Prometheus asks.
        metrics: { ...(await contender(measured)), settled: metrics.scrape },
        traces: await contender(traced),
      },
      extent(quick),
    );
    collector.stop();
    const line = (what: string, of: 'metrics' | 'traces', others?: Result['others']): Result => ({
      what: `GET ${PATH} with ${what}`,
      ours: figures(rounds[of]),
      ...(others && { others }),
      toLimit: ratio('cpu', rounds[of], rounds.without, { atMost: 1.03 }),
    });
    return [
      line('metrics', 'metrics', { 'the same without': figures(rounds.without) }),
      line('traces, of which one in a hundred is kept', 'traces'),
    ];
  },
};

/** A further process on the same parts. */
async function another(parts: Parts, { service: { env } }: Production, changes: Record<string, string>) {
  const { DATABASE_URL = '', REDIS_URL = '', APP_SECRET = '' } = env;
  return (await parts.startProduction({ DATABASE_URL, REDIS_URL, APP_SECRET, ...changes })).service;
}
