import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { releaseAt } from '../rig/process/release.ts';
import { root } from '../rig/process/service.ts';
import { requireBinaries, requireBinary, requireFile } from '../rig/servers/debian.ts';
import { check, countOf } from './evidence.ts';
import { faults, faultsOfParts, upgrade } from './faults.ts';
import { plants } from './plants.ts';
import { reportOf } from './report.ts';
import { type Faults, type PassPlan, runPass } from './run.ts';

/** `npm run prove`: see README.md. */

// Data on the disk, as in production.
process.env.TMPDIR ??= tmpdir();

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    only: { type: 'string', default: '' },
    from: { type: 'string' },
    report: { type: 'string', default: join(root, 'docs/proof.md') },
  },
});

const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
const versionOf = (file: string, ...args: string[]) =>
  /\d+\.\d+(?:\.\d+)?/.exec(execFileSync(file, args, { encoding: 'utf8' }))?.[0];

/** Programs that a run needs; the paths of some. */
async function requirePrograms() {
  await requireBinaries();
  await requireFile({ path: '/usr/lib/galera/libgalera_smm.so', debianPackage: 'galera-4' });
  await requireBinary({ names: ['rsync'], debianPackage: 'rsync' });
  return {
    MariaDB: await requireBinary({ names: ['mariadbd'], debianPackage: 'mariadb-server' }),
    Redis: await requireBinary({ names: ['redis-server'], debianPackage: 'redis-server' }),
    HAProxy: await requireBinary({ names: ['haproxy'], debianPackage: 'haproxy' }),
  };
}

/** The state before the newest migration: v0.1.0 knows neither Sentinels nor webhooks nor applications. */
const before = () => git('log', '-1', '--format=%h', '--diff-filter=A', '--', 'entities/migrations');

const chosen = (all: Faults): Faults =>
  Object.fromEntries(Object.entries(all).filter(([name]) => name.includes(values.only)));

async function prove(): Promise<boolean> {
  const programs = await requirePrograms();
  const versions = Object.entries(programs).map(
    ([name, file]) => `${name} ${versionOf(file, name === 'HAProxy' ? '-v' : '--version')}`,
  );
  const from = values.from ?? git('rev-parse', '--short', `${before()}^`);
  const minutes = Number(values.minutes);
  const first = chosen(upgrade);
  const isUpgraded = Object.keys(first).length > 0;
  const release = isUpgraded ? await releaseAt(from) : undefined;
  const end = performance.now() + minutes * 60_000;
  // The first pass has about twice as many faults.
  const plans: Omit<PassPlan, 'until'>[] = [
    { redis: 'Redis Sentinel', tree: release?.tree, first, faults: chosen(faults) },
    { redis: 'Redis Cluster', first: {}, faults: values.only ? {} : faultsOfParts },
  ];
  const passes = [];
  for (const [i, plan] of plans.entries()) {
    if (i > 0 && Object.keys(plan.faults).length === 0) continue;
    const now = performance.now();
    const pass = await runPass({ ...plan, until: i === 0 ? now + (end - now) * 0.65 : end });
    passes.push({ ...pass, found: check(pass.evidence) });
  }
  const [{ evidence, found } = { evidence: undefined, found: undefined }] = passes;
  if (!evidence) throw new Error('nothing ran');
  const planted = plants.map(({ name, kind, falsify }) => {
    const false_ = falsify(evidence);
    return { name, found: false_ !== undefined && check(false_)[kind].length > found[kind].length };
  });
  const [cpu] = cpus();
  const text = reportOf({
    commit: git('describe', '--always', '--dirty'),
    date: new Date().toISOString().slice(0, 10),
    machine: `${cpus().length} cores (${cpu?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GB`,
    versions: [`Node ${process.version.slice(1)}`, ...versions].join(', '),
    from: isUpgraded ? `${from}, before the newest migration` : '–',
    minutes,
    passes,
    planted,
  });
  writeFileSync(values.report, text);
  console.log(text);
  const contradicted = passes.filter((pass) => countOf(pass.found) > 0);
  if (contradicted.length > 0) {
    const file = join(mkdtempSync(join(tmpdir(), 'prove-')), 'evidence.json');
    writeFileSync(file, JSON.stringify(contradicted.map(({ rows, evidence, found }) => ({ rows, found, evidence }))));
    console.log(`Every call of the contradicted passes: ${file}`);
  }
  return contradicted.length === 0 && planted.every((plant) => plant.found);
}

const code = await prove().then(
  (isProven) => (isProven ? 0 : 1),
  (error: unknown) => {
    console.error(error instanceof Error && error.message.startsWith('The tests need') ? error.message : error);
    return 2;
  },
);
// What a failure has left running ends with this process.
process.exit(code);
