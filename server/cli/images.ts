import { parseArgs } from 'node:util';
import { onStopSignal } from '../process/stop-signals.ts';
import { explain, UsageError } from './failure.ts';
import { makeAll } from './images/make-all.ts';
import { withRules } from './rules.ts';

/*
 * `npm run images -- variants`. Any number of processes share the work, those of the service too. Exit code 1: some images
 * failed, 2: wrong use or failure, 130: after a signal.
 */

const usage = `Usage: npm run images -- variants
  makes the smaller pictures (IMAGE_SIZES) of images that lack them, and shows how many are left, up to 100000`;

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
  const failed = await withRules(({ uploads }) => makeAll(uploads.variants, stopping.signal, process.stdout));
  process.exitCode = stopping.signal.aborted ? 130 : Number(failed > 0);
}

await run().catch((error: unknown) => {
  process.stderr.write(`${explain(error, usage)}\n`);
  process.exitCode = 2;
});
