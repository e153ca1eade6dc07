import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { spawnGroup, whenGone } from '../../rig/process/process-group.ts';
import type { Service } from '../../rig/process/service.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { freePort } from '../../rig/servers/port.ts';
import { until } from '../../rig/until.ts';
import type { Case, Result } from '../case.ts';
import { call } from '../client.ts';
import { median, memory, memoryOfTree } from '../measure.ts';

const root = join(import.meta.dirname, '../../..');
const byHand = join(import.meta.dirname, '../baselines');
/** By then it has released the memory that only its start needed. */
const IDLE_MS = 5_000;

type Env = Record<string, string>;

/**
 * From `npm start` to the first answer with an existing schema, and the memory of a process that has only started. Each
 * compared with a hand-written server that loads Koa and both drivers, with its own cache of compiled code.
 */
export const start: Case = {
  name: 'start',
  async run({ parts, quick }) {
    const settings = {
      production: settingsOf((await parts.startProduction()).service),
      embedded: settingsOf(await parts.startEmbedded()),
    };
    await parts.release();
    const production = { ...settings.production, ...(await parts.emptyStores()) };
    const embedded = { ...settings.embedded, DATA_DIR: temporaryDirectory('start') };
    const stores = { ...production, ...(await parts.emptyStores()) };
    const first = { production: await startOnce(root, production), embedded: await startOnce(root, embedded) };
    await startOnce(byHand, stores);
    const rounds: Record<'production' | 'embedded' | 'byHand', Started[]> = {
      production: [],
      embedded: [],
      byHand: [],
    };
    for (let round = 0; round < (quick ? 2 : 7); round++) {
      rounds.production.push(await startOnce(root, production));
      rounds.embedded.push(await startOnce(root, embedded));
      rounds.byHand.push(await startOnce(byHand, stores));
    }
    const hand = median(rounds.byHand.map(({ ms }) => ms));
    const line = (what: 'production' | 'embedded'): Result => ({
      what: `npm start to the first answer, ${what}`,
      ours: { other: seconds(median(rounds[what].map(({ ms }) => ms))) },
      others: { 'Koa by hand': { other: seconds(hand) }, 'the first start of all': { other: seconds(first[what].ms) } },
      toLimit: {
        value: median(rounds[what].map(({ ms }, n) => ms / (rounds.byHand[n]?.ms ?? Number.NaN))),
        goal: { atMost: 2 },
      },
    });
    const idle = await startOnce(root, production, IDLE_MS);
    const idleByHand = await startOnce(byHand, stores, IDLE_MS);
    return [
      line('production'),
      line('embedded'),
      {
        what: 'memory of an idle service, production',
        ours: { other: megabytes(idle.memory) },
        others: { 'Koa by hand': { other: megabytes(idleByHand.memory) } },
        toLimit: { value: idle.memory, unit: 'MB', goal: { atMost: 130 } },
      },
    ];
  },
};

interface Started {
  ms: number;
  /** Resident memory in MB of all its processes except npm's. */
  memory: number;
}

/** The rig's environment without its cache of compiled code; each start has a port of its own. */
function settingsOf({ env }: Service): Env {
  const { NODE_COMPILE_CACHE: _cache, PORT: _port, APP_URL: _url, ...settings } = env;
  return settings;
}

/** Starts, requests until the first answer, idles, stops. */
async function startOnce(cwd: string, env: Env, idleMs = 0): Promise<Started> {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const started = performance.now();
  const all = { ...env, PORT: String(port), APP_URL: url };
  const npm = spawnGroup({ file: 'npm', args: ['start'], cwd, env: all, stdout: '/dev/null' });
  try {
    await until(() => call(`http://127.0.0.1:${port}/api/health`), {
      every: 5,
      within: 30_000,
      what: `npm start in ${cwd}`,
    });
    const ms = performance.now() - started;
    await pause(idleMs);
    return { ms, memory: memoryOfTree(npm.pid) - memory(npm.pid) };
  } finally {
    npm.signal('SIGINT');
    await whenGone(npm, { what: `the end of npm start in ${cwd}`, within: 15_000 });
  }
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
const megabytes = (size: number) => `${size.toFixed(0)} MB`;
