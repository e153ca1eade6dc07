import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { unavailable } from '../../../../errors.ts';
import { createFairQueue } from '../../../../lib/fair-queue.ts';
import type { Guessed, Guessing } from './estimate.ts';

/** An estimate takes 5 to 200 ms, loading the dictionaries 1 s. A client with none waiting may use twice this queue. */
const MAX_WAITING = 64;
const MAX_MS = 5000;
const MAX_LOAD_MS = 30_000;

/**
 * Estimates how hard passwords are to guess (zxcvbn), one after the other on a thread, which starts with the first one.
 * Clients take turns. Rejects with SERVICE_UNAVAILABLE if too many wait or the thread fails.
 */
export function createStrength(): (guessing: Guessing, client: string) => Promise<Guessed> {
  const queue = createFairQueue(1);
  let thread: Worker | undefined;

  const start = async (): Promise<Worker> => {
    const worker = new Worker(new URL('./strength-thread.ts', import.meta.url));
    worker.unref();
    // `once` below reports the error.
    worker.on('error', () => undefined);
    worker.on('exit', () => {
      if (thread === worker) thread = undefined;
    });
    thread = worker;
    // Its first message: it is ready.
    await once(worker, 'message', { signal: AbortSignal.timeout(MAX_LOAD_MS) });
    return worker;
  };

  return async (guessing, client) => {
    if (queue.waiting() >= MAX_WAITING * (queue.waiting(client) === 0 ? 2 : 1))
      throw unavailable(new Error('the queue of password estimates is full'));
    return queue.run(client, async () => {
      try {
        const ready = thread ?? (await start());
        const answer = once(ready, 'message', { signal: AbortSignal.timeout(MAX_MS) });
        ready.postMessage(guessing);
        return (await answer)[0] as Guessed;
      } catch (error) {
        await thread?.terminate();
        thread = undefined;
        throw unavailable(error);
      }
    });
  };
}
