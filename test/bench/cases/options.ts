import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FieldType, FieldValue } from '../../../server/shared/profile-fields.ts';
import type { DatabaseView } from '../../rig/observe/database-view.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { startCollector } from '../../rig/servers/otlp.ts';
import { freePort } from '../../rig/servers/port.ts';
import type { Case, Result, Setting } from '../case.ts';
import { type Contender, type Extent, figures, inTurn } from '../compare.ts';
import type { Parts, Production } from '../parts.ts';
import { addPeople } from '../people.ts';
import { logIn, PEOPLE, type Server } from '../servers.ts';
import { readAs } from './reads.ts';

/** Many short rounds, because the machine's noise exceeds the difference. */
const WARM_UP = 10;
const QUICK_ROUNDS = 5;

const PATH = '/api/profile';

interface Option {
  what: string;
  env: Record<string, string> | (() => Promise<Record<string, string>>);
}

/** Starts a service of each environment, on the data of the first one. */
type Start = (parts: Parts, first: Production, environments: Record<string, string>[]) => Promise<Server[]>;

/** The cost of options for a profile read: the same service with and without each of them, on the same data. */
async function costs(
  { parts, quick }: Setting,
  options: Option[],
  /** How often they are started: two processes of one kind differ by some percent, depending on what was compiled when. */
  { start, times, rounds, amount }: { start: Start; times: number } & Pick<Extent, 'rounds' | 'amount'>,
  prepare: (database: DatabaseView) => Promise<unknown> = async () => undefined,
): Promise<Result[]> {
  const first = await parts.startProduction();
  await addPeople(first.database, 3);
  await prepare(first.database);
  const { url } = first.service;
  const people = await Promise.all(Array.from({ length: PEOPLE }, (_, n) => logIn(url, first.database, n)));
  // The control has no option: how far it is from 1 is the noise.
  const measuredKinds: Option[] = [...options, { what: 'no option (control)', env: {} }];
  const kinds: Option[] = [{ what: 'without', env: {} }, ...measuredKinds];
  const contenders: Record<string, Contender> = {};
  for (let n = 0; n < times; n++) {
    const environments = await Promise.all(kinds.map(async ({ env }) => (typeof env === 'function' ? env() : env)));
    const servers = await start(parts, first, environments);
    for (const [k, { what }] of kinds.entries()) {
      const server = servers[k];
      if (!server) throw new Error(`no service with ${what} runs`);
      contenders[`${n} ${what}`] = { ...server, ask: await readAs(people, server.url, PATH) };
    }
  }
  const extent = { warmUp: WARM_UP, rounds: quick ? QUICK_ROUNDS : rounds, amount };
  const results = Object.entries(await inTurn(contenders, extent));
  const [without = [], ...measured] = kinds.map(({ what }) =>
    results.filter(([name]) => name.slice(2) === what).flatMap(([, ofProcess]) => ofProcess),
  );
  return measuredKinds.map(({ what }, n) => ({
    what: `GET ${PATH} with ${what}`,
    ours: figures(measured[n] ?? []),
    ...(n === 0 && { others: { 'the same without': figures(without) } }),
    toLimit: {
      value: total(measured[n] ?? []) / total(without),
      ...(n < options.length && { goal: { atMost: 1.03 }, isStable: true as const }),
    },
  }));
}

/** Each in a process of its own. */
const apart: Start = (parts, first, environments) =>
  Promise.all(
    environments.map(async (env) => {
      const { url, pid } = (await parts.startProduction({ ...sharedData(first), ...env })).service;
      if (pid === undefined) throw new Error('the service does not run');
      return { url, pid };
    }),
  );

/** All in one process, which tells one percent. Not for options of a whole process, such as telemetry. */
const together: Start = async (parts, first, environments) => {
  const services = await Promise.all(
    environments.map(async (env) => {
      const PORT = String(await freePort());
      return { ...first.service.env, PORT, APP_URL: `http://127.0.0.1:${PORT}`, ...env };
    }),
  );
  const { pid } = await parts.startServer(join(import.meta.dirname, '../services-in-one.ts'), {
    SERVICES: JSON.stringify(services),
    // They start one after the other.
    PORT: services.at(-1)?.PORT ?? '',
  });
  return services.map(({ PORT }) => ({ url: `http://127.0.0.1:${PORT}`, pid }));
};

const sharedData = ({ service: { env } }: Production) => {
  const { DATABASE_URL = '', REDIS_URL = '', APP_SECRET = '' } = env;
  return { DATABASE_URL, REDIS_URL, APP_SECRET };
};

export const telemetry: Case = {
  name: 'telemetry',
  async run(setting) {
    const collector = await startCollector();
    const results = await costs(
      setting,
      [
        { what: 'metrics', env: async () => ({ METRICS_PORT: String(await freePort()) }) },
        {
          what: 'traces, one in a hundred kept',
          env: { ...collector.env, OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' },
        },
      ],
      { start: apart, times: 8, rounds: 20, amount: 500 },
    );
    collector.stop();
    return results;
  },
};

/** Ten own fields, of all types, each with its value. */
const ownFields: [name: string, type: FieldType, value: FieldValue, bounds?: object][] = [
  ['company', 'text', 'Analytical Engines Ltd'],
  ['city', 'text', 'London'],
  ['job', 'text', 'Mathematician'],
  ['phone', 'text', '+44 20 1234567'],
  ['about', 'longText', 'Notes on a general-purpose machine, and the first program that was published for one.'],
  ['page', 'url', 'https://example.test/ada'],
  ['born', 'date', '1815-12-10'],
  ['plan', 'choice', 'pro', { choices: ['free', 'pro'] }],
  ['news', 'boolean', true],
  ['seats', 'number', 12, { min: 0, max: 100 }],
];

export const fields: Case = {
  name: 'fields',
  async run(setting) {
    const directory = temporaryDirectory('fields');
    const file = join(directory, 'fields.json');
    const definitions = ownFields.map(([name, type, , bounds]) => ({
      name,
      type,
      ...bounds,
      labels: { en: name },
      read: 'owner',
      write: 'owner',
    }));
    writeFileSync(file, JSON.stringify(definitions));
    const stored = JSON.stringify(Object.fromEntries(ownFields.map(([name, , value]) => [name, value])));
    const results = await costs(
      setting,
      [{ what: 'ten own fields', env: { PROFILE_FIELDS: file } }],
      { start: together, times: 4, rounds: 60, amount: 1000 },
      ({ query }) => query('update users set fields = ?', [stored]),
    );
    rmSync(directory, { recursive: true });
    return results;
  },
};

type Rounds = Parameters<typeof figures>[0];

const total = (rounds: Rounds): number => rounds.reduce((sum, { cpu }) => sum + cpu, 0);
