import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { onStopSignal } from '../process/stop-signals.ts';
import type { Variants } from '../uploads/index.ts';
import { explain, UsageError } from './failure.ts';
import { createProgress } from './images/progress.ts';
import { withRules } from './rules.ts';

/*
 * `npm run images -- variants`. Any number of processes share the work, those of the service too. Exit code 1: some images
 * failed, 2: wrong use or failure, 130: after a signal.
 */

const usage = `Usage: npm run images -- variants
  makes the smaller pictures (IMAGE_SIZES) of images that lack them, and shows how many are left, up to 100000`;

/** A wait for images that another process is making. */
const POLL_MS = 1000;

async function makeAll({ waiting, take, make, renew, sweep }: Variants, stopping: AbortSignal): Promise<number> {
  const failed = new Set<string>();
  const progress = createProgress(process.stdout, await waiting());
  while (!stopping.aborted) {
    const [image] = await take(1);
    if (!image) {
      const left = await waiting();
      progress.show(left);
      if (left <= failed.size) break;
      await delay(POLL_MS, undefined, { signal: stopping }).catch(() => undefined);
      continue;
    }
    const renewal = setInterval(() => renew([image]).catch(() => undefined), POLL_MS * 5);
    try {
      await make(image);
      failed.delete(image.objectKey);
    } catch (error) {
      failed.add(image.objectKey);
      progress.note(`${image.objectKey}: ${explain(error)}`);
    } finally {
      clearInterval(renewal);
    }
    if (progress.isDue()) progress.show(await waiting());
  }
  await sweep();
  progress.end(await waiting());
  return failed.size;
}

const stopping = new AbortController();
onStopSignal({
  async stop() {
    stopping.abort();
  },
  stopAtOnce: () => process.exit(130),
});

async function run(): Promise<void> {
  const { positionals } = parseArgs({ options: {}, allowPositionals: true });
  if (positionals.length !== 1 || positionals[0] !== 'variants') throw new UsageError(usage);
  const failed = await withRules(({ uploads }) => makeAll(uploads.variants, stopping.signal));
  process.exitCode = stopping.signal.aborted ? 130 : Number(failed > 0);
}

await run().catch((error: unknown) => {
  process.stderr.write(`${explain(error, usage)}\n`);
  process.exitCode = 2;
});
