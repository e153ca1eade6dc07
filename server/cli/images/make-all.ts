import { setTimeout as delay } from 'node:timers/promises';
import type { Variants } from '../../uploads/index.ts';
import { explain } from '../failure.ts';
import { createProgress, type Output } from './progress.ts';

/** A wait for images that another process is making. */
const POLL_MS = 1000;

/** Resolves to how many images failed, 0 if none is left: another process may have made what failed here. */
export async function makeAll(
  variants: Pick<Variants, 'waiting' | 'waitingKeys' | 'take' | 'make' | 'renew' | 'sweep'>,
  stopping: AbortSignal,
  output: Output,
): Promise<number> {
  const { waiting, waitingKeys, take, make, renew, sweep } = variants;
  const failed = new Set<string>();
  const progress = createProgress(output, await waiting());
  while (!stopping.aborted) {
    const [image] = await take(1);
    if (!image) {
      progress.show(await waiting());
      const keys = await waitingKeys(failed.size + 1);
      if (keys.every((key) => failed.has(key))) break;
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
  const left = await waiting();
  progress.end(left);
  return Math.min(failed.size, left);
}
