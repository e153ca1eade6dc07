import { requireBinaries } from '../rig/debian.ts';
import type { Case, Result } from './case.ts';
import { enumeration } from './enumeration.ts';
import { flood } from './flood.ts';
import { login } from './login.ts';
import { type Parts, startParts } from './parts.ts';
import { profile } from './profile.ts';
import { machine, table } from './report.ts';
import { start } from './start.ts';
import { uploads } from './uploads.ts';
import { users } from './users.ts';

/**
 * `npm run bench`, or `npm run bench -- profile login` for some of the cases: a report of ratios, each against a baseline
 * of the same run. A goal that is missed fails nothing; only what cannot be measured does.
 */
const cases: Case[] = [profile, login, enumeration, users, uploads, flood, start];

async function bench(names: string[]): Promise<void> {
  const unknown = names.filter((name) => !cases.some((known) => known.name === name));
  if (unknown.length > 0)
    throw new Error(`No such case: ${unknown.join(', ')}. There are ${cases.map(({ name }) => name).join(', ')}.`);
  requireBinaries();
  const parts = await startParts();
  try {
    console.log(machine(parts.databaseVersion));
    const results: Result[] = [];
    for (const { name, run } of cases.filter((known) => names.length === 0 || names.includes(known.name))) {
      const started = performance.now();
      results.push(...(await measured(run, parts)));
      console.log(`${name}: ${((performance.now() - started) / 1000).toFixed(0)} s`);
    }
    console.log(`\n${table(results)}`);
  } finally {
    await parts.stop();
  }
}

async function measured(run: Case['run'], parts: Parts): Promise<Result[]> {
  try {
    return await run(parts);
  } finally {
    await parts.release();
  }
}

await bench(process.argv.slice(2));
