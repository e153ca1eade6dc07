import { availableParallelism, constants, setPriority } from 'node:os';
import { performance } from 'node:perf_hooks';
import pLimit from 'p-limit';
import { MAX_PIXELS } from '../../../server/shared/image-limits.ts';
import { EFFORT } from '../../../server/uploads/images/conversion.ts';
import { loadSharp } from '../../../server/uploads/images/sharp.ts';

/** An image and the number of conversions. */
export interface Batch {
  bytes: Buffer;
  amount: number;
}

// As in the service, and before sharp starts its threads.
setPriority(constants.priority.PRIORITY_LOW);

/** sharp alone: same settings, concurrency and process priority as the service. Returns milliseconds. */
process.on('message', async ({ bytes, amount }: Batch) => {
  const sharp = await loadSharp();
  const limit = pLimit(availableParallelism());
  const convert = () =>
    sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error', pages: 1 })
      .autoOrient()
      .resize({ width: 1600, height: 1600, fit: 'inside', withoutEnlargement: true })
      .toColourspace('srgb')
      .webp({ effort: EFFORT })
      .toBuffer();
  const started = performance.now();
  await Promise.all(Array.from({ length: amount }, () => limit(convert)));
  process.send?.(performance.now() - started);
});
