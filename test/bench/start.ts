import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Service } from '../rig/service.ts';
import { until } from '../rig/until.ts';
import type { Case } from './case.ts';
import { call } from './client.ts';
import { compare, duration } from './measure.ts';
import type { Parts } from './parts.ts';

const run = promisify(execFile);
const ROUNDS = 5;

/** From `npm start` to the first answer, on parts that are empty: the schema is made on the way. */
export const start: Case = {
  name: 'start',
  async run(parts) {
    const directory = await mkdtemp(join(tmpdir(), 'account-start-'));
    try {
      // What npm and Node take by themselves.
      await writeFile(join(directory, 'package.json'), JSON.stringify({ scripts: { start: 'exec node -e 0' } }));
      const bare = () => duration(() => run('npm', ['start'], { cwd: directory }));
      return [
        await compareStarts('embedded', () => parts.startEmbedded(), bare, parts),
        await compareStarts('production', async () => (await parts.startProduction()).service, bare, parts),
      ];
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  },
};

async function compareStarts(what: string, start: () => Promise<Service>, bare: () => Promise<number>, parts: Parts) {
  const toFirstAnswer = async () => {
    const time = await duration(async () => {
      const { url } = await start();
      await until(() => call(`${url}/api/health`), { every: 5 });
    });
    await parts.release();
    return time;
  };
  const { ours, baseline } = await compare(ROUNDS, { ours: toFirstAnswer, baseline: bare });
  return {
    what: `npm start to the first answer, ${what}, to npm start of an empty script`,
    ours: `${(ours / 1000).toFixed(2)} s`,
    baseline: `${(baseline / 1000).toFixed(2)} s`,
    value: ours / 1000,
    unit: 's' as const,
    goal: { atMost: 1.5 },
  };
}
