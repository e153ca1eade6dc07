/*
 * `npm run bench`, or `npm run bench -- profile login` for some cases, `--quick` for under three minutes: a report of
 * ratios between servers in the same run. A missed goal is not a failure; a wrong answer is, and so is a ratio worse than
 * the committed one.
 */

import { tmpdir } from 'node:os';
import { requireBinaries } from '../rig/servers/debian.ts';
import type { Case, Result } from './case.ts';
import { connections, processes, storm } from './cases/capacity.ts';
import { endurance } from './cases/endurance.ts';
import { enumeration } from './cases/enumeration.ts';
import { events } from './cases/events.ts';
import { growth } from './cases/growth.ts';
import { images, variants } from './cases/images.ts';
import { isolation } from './cases/isolation.ts';
import { memory } from './cases/memory.ts';
import { oauth } from './cases/oauth.ts';
import { fields, telemetry } from './cases/options.ts';
import { login, register } from './cases/passwords.ts';
import { list, profile, serial } from './cases/reads.ts';
import { start } from './cases/start.ts';
import { presign, update } from './cases/writes.ts';
import { startMachine } from './parts.ts';
import { describeMachine, table } from './report.ts';
import { type Regression, regressions, writeResults } from './results.ts';
import { type Servers, startServers } from './servers.ts';

// Data on the disk, as in production.
process.env.TMPDIR ??= tmpdir();

const cases: Case[] = [
  profile,
  serial,
  list,
  update,
  presign,
  login,
  register,
  isolation,
  storm,
  connections,
  processes,
  images,
  variants,
  start,
  memory,
  growth,
  enumeration,
  events,
  oauth,
  telemetry,
  fields,
  endurance,
];

/** Repetitions of a case with worse ratios. */
const AGAIN = 2;

async function bench(names: string[], quick: boolean): Promise<void> {
  const unknown = names.filter((name) => !cases.some((known) => known.name === name));
  if (unknown.length > 0)
    throw new Error(`No such case: ${unknown.join(', ')}. There are ${cases.map(({ name }) => name).join(', ')}.`);
  const chosen =
    names.length > 0
      ? cases.filter(({ name }) => names.includes(name))
      : cases.filter(({ isLong, isApart }) => !isApart && !(quick && isLong));
  await requireBinaries();
  const machine = await startMachine();
  const shared = machine.open();
  try {
    console.log(describeMachine(machine.databaseVersion));
    let servers: Promise<Servers> | undefined;
    const measure = async ({ name, run }: Case): Promise<Result[]> => {
      const started = performance.now();
      const parts = machine.open();
      try {
        const measured = await run({ parts, servers: () => (servers ??= startServers(shared)), quick });
        console.log(`\n${name}, ${((performance.now() - started) / 1000).toFixed(0)} s\n${table(measured)}`);
        return measured;
      } finally {
        await parts.release();
      }
    };
    const results: Result[] = [];
    const worse: Regression[] = [];
    for (const each of chosen) {
      const measured = await measure(each);
      results.push(...measured);
      let found = regressions(measured);
      // Noise of a busy machine varies; a regression does not.
      for (let again = AGAIN; again > 0 && found.length > 0; again--) {
        const next = regressions(await measure(each));
        found = found.filter(({ name }) => next.some((other) => other.name === name));
      }
      worse.push(...found);
    }
    if (chosen.length > 1) console.log(`\n${table(results)}`);
    if (worse.length > 0) {
      const lines = worse.map(
        ({ name, value, former }) => `${name}: ${value.toFixed(2)}, and it was ${former.toFixed(2)}`,
      );
      throw new Error(`Worse than in results.json:\n${lines.join('\n')}`);
    }
    if (names.length === 0 && !quick) writeResults(results, describeMachine(machine.databaseVersion));
  } finally {
    await shared.release();
    await machine.stop();
  }
}

const options = process.argv.slice(2);
await bench(
  options.filter((option) => option !== '--quick'),
  options.includes('--quick'),
);
