import { startCollector } from '../../rig/servers/otlp.ts';
import { freePort } from '../../rig/servers/port.ts';
import type { Case, Result } from '../case.ts';
import { type Contender, type Extent, figures, inTurn } from '../compare.ts';
import type { Parts, Production } from '../parts.ts';
import { addPeople } from '../people.ts';
import { logIn, PEOPLE } from '../servers.ts';
import { readAs } from './reads.ts';

/** Many short rounds, because the machine's noise exceeds the difference. */
const extent = (quick: boolean): Extent => ({ warmUp: 10, rounds: quick ? 10 : 50, amount: 500 });

/** Processes per kind: two of one kind differ by some percent, depending on what was compiled when. */
const PROCESSES = 3;

const PATH = '/api/profile';

/** The cost of metrics and traces for a profile read: the same service with and without, on the same data. */
export const telemetry: Case = {
  name: 'telemetry',
  async run({ parts, quick }) {
    const first = await parts.startProduction();
    await addPeople(first.database, 3);
    const collector = await startCollector();
    const { url } = first.service;
    const people = await Promise.all(Array.from({ length: PEOPLE }, (_, n) => logIn(url, first.database, n)));
    const contender = async (changes: Record<string, string>): Promise<Contender> => {
      const { url, pid } = await another(parts, first, changes);
      if (pid === undefined) throw new Error('the service does not run');
      return { url, pid, ask: await readAs(people, url, PATH) };
    };
    const contenders: Record<string, Contender> = {};
    for (let n = 0; n < PROCESSES; n++) {
      contenders[`without ${n}`] = await contender({});
      contenders[`metrics ${n}`] = await contender({ METRICS_PORT: String(await freePort()) });
      contenders[`traces ${n}`] = await contender({
        ...collector.env,
        OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
        OTEL_TRACES_SAMPLER_ARG: '0.01',
      });
    }
    const rounds = Object.entries(await inTurn(contenders, extent(quick)));
    collector.stop();
    const [without, metrics, traces] = ['without', 'metrics', 'traces'].map((kind) =>
      rounds.filter(([name]) => name.startsWith(kind)).flatMap(([, ofProcess]) => ofProcess),
    ) as [Rounds, Rounds, Rounds];
    const line = (what: string, ours: Rounds, others?: Result['others']): Result => ({
      what: `GET ${PATH} with ${what}`,
      ours: figures(ours),
      ...(others && { others }),
      toLimit: { value: total(ours) / total(without), goal: { atMost: 1.03 }, isStable: true },
    });
    return [
      line('metrics', metrics, { 'the same without': figures(without) }),
      line('traces, of which one in a hundred is kept', traces),
    ];
  },
};

type Rounds = Parameters<typeof figures>[0];

const total = (rounds: Rounds): number => rounds.reduce((sum, { cpu }) => sum + cpu, 0);

/** Another process on the same parts. */
async function another(parts: Parts, { service: { env } }: Production, changes: Record<string, string>) {
  const { DATABASE_URL = '', REDIS_URL = '', APP_SECRET = '' } = env;
  return (await parts.startProduction({ DATABASE_URL, REDIS_URL, APP_SECRET, ...changes })).service;
}
