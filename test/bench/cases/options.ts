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
import { logIn, PEOPLE } from '../servers.ts';
import { readAs } from './reads.ts';

/** Many short rounds, because the machine's noise exceeds the difference. */
const extent = (quick: boolean): Extent => ({ warmUp: 10, rounds: quick ? 5 : 20, amount: 500 });

/** Processes per kind: two of one kind differ by some percent, depending on what was compiled when. */
const PROCESSES = 8;

const PATH = '/api/profile';

/** The cost of options for a profile read: the same service with and without each of them, on the same data. */
async function costs(
  { parts, quick }: Setting,
  options: { what: string; env: Record<string, string> | (() => Promise<Record<string, string>>) }[],
  prepare: (database: DatabaseView) => Promise<unknown> = async () => undefined,
): Promise<Result[]> {
  const first = await parts.startProduction();
  await addPeople(first.database, 3);
  await prepare(first.database);
  const { url } = first.service;
  const people = await Promise.all(Array.from({ length: PEOPLE }, (_, n) => logIn(url, first.database, n)));
  // The control has no option: how far it is from 1 is the noise.
  const measuredKinds = [...options, { what: 'no option (control)', env: {} }];
  const kinds = [{ what: 'without', env: {} }, ...measuredKinds];
  const contenders: Record<string, Contender> = {};
  for (let n = 0; n < PROCESSES; n++)
    for (const { what, env } of kinds) {
      const { url, pid } = await another(parts, first, typeof env === 'function' ? await env() : env);
      if (pid === undefined) throw new Error('the service does not run');
      contenders[`${n} ${what}`] = { url, pid, ask: await readAs(people, url, PATH) };
    }
  const rounds = Object.entries(await inTurn(contenders, extent(quick)));
  const [without = [], ...measured] = kinds.map(({ what }) =>
    rounds.filter(([name]) => name.slice(2) === what).flatMap(([, ofProcess]) => ofProcess),
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

export const telemetry: Case = {
  name: 'telemetry',
  async run(setting) {
    const collector = await startCollector();
    const results = await costs(setting, [
      { what: 'metrics', env: async () => ({ METRICS_PORT: String(await freePort()) }) },
      {
        what: 'traces, of which one in a hundred is kept',
        env: { ...collector.env, OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' },
      },
    ]);
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
    const results = await costs(setting, [{ what: 'ten own fields', env: { PROFILE_FIELDS: file } }], ({ query }) =>
      query('update users set fields = ?', [stored]),
    );
    rmSync(directory, { recursive: true });
    return results;
  },
};

type Rounds = Parameters<typeof figures>[0];

const total = (rounds: Rounds): number => rounds.reduce((sum, { cpu }) => sum + cpu, 0);

/** Another process on the same parts. */
async function another(parts: Parts, { service: { env } }: Production, changes: Record<string, string>) {
  const { DATABASE_URL = '', REDIS_URL = '', APP_SECRET = '' } = env;
  return (await parts.startProduction({ DATABASE_URL, REDIS_URL, APP_SECRET, ...changes })).service;
}
