import { startCollector } from '../../rig/otlp.ts';
import { freePort } from '../../rig/port.ts';
import type { Case, Result } from '../case.ts';
import { type Contender, type Extent, figures, inTurn } from '../compare.ts';
import type { Parts, Production } from '../parts.ts';
import { addPeople } from '../people.ts';
import { logIn, PEOPLE } from '../servers.ts';
import { readAs } from './reads.ts';

/** Short rounds, and many: what else the machine does, which is more than the difference, meets all alike. */
const extent = (quick: boolean): Extent => ({ warmUp: 10, rounds: quick ? 30 : 150, amount: 500 });

const PATH = '/api/profile';

/** What it costs a profile read that metrics and traces are collected: the same service with and without, on the same data. */
export const telemetry: Case = {
  name: 'telemetry',
  async run({ parts, quick }) {
    const without = await parts.startProduction();
    await addPeople(without.database, 3);
    const collector = await startCollector();
    const measured = await another(parts, without, { METRICS_PORT: String(await freePort()) });
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
        metrics: await contender(measured),
        traces: await contender(traced),
      },
      extent(quick),
    );
    collector.stop();
    const line = (what: string, of: 'metrics' | 'traces', others?: Result['others']): Result => ({
      what: `GET ${PATH} with ${what}`,
      ours: figures(rounds[of]),
      ...(others && { others }),
      toLimit: { value: total(rounds[of]) / total(rounds.without), goal: { atMost: 1.03 }, isStable: true },
    });
    return [
      line('metrics', 'metrics', { 'the same without': figures(rounds.without) }),
      line('traces, of which one in a hundred is kept', 'traces'),
    ];
  },
};

const total = (rounds: { cpu: number }[]): number => rounds.reduce((sum, { cpu }) => sum + cpu, 0);

/** A further process on the same parts. */
async function another(parts: Parts, { service: { env } }: Production, changes: Record<string, string>) {
  const { DATABASE_URL = '', REDIS_URL = '', APP_SECRET = '' } = env;
  return (await parts.startProduction({ DATABASE_URL, REDIS_URL, APP_SECRET, ...changes })).service;
}
