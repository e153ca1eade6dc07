import { createSearch, type Puzzle, READY } from './search.ts';

/** What the service sends as `details.challenge`: ALTCHA's fields. */
export interface Challenge extends Puzzle {
  algorithm: string;
  signature: string;
}

/** Without a worker: the longest time that the thread is held, and the numbers between two looks at the clock. */
const SLICE_MS = 12;
const NUMBERS = 200;

/** In which a worker must be loaded. */
const MAX_LOAD_MS = 3000;

/** Solves a challenge in a worker, else in slices. Resolves to the header Challenge-Solution. */
export async function solve(challenge: Challenge, signal?: AbortSignal | null): Promise<string> {
  if (signal?.aborted) throw signal.reason;
  const { algorithm, challenge: hash, salt, signature, maxnumber } = challenge;
  const puzzle = { challenge: hash, salt, maxnumber };
  const number = await inWorker(puzzle, signal).catch(() => inSlices(puzzle, signal));
  if (number === null) throw new Error('The challenge has no solution');
  return btoa(JSON.stringify({ algorithm, challenge: hash, number, salt, signature }));
}

type Solution = number | null;

/** Rejects if there is no worker, its file cannot be loaded, or it does not tell that it is ready. */
function inWorker(puzzle: Puzzle, signal: AbortSignal | null | undefined): Promise<Solution> {
  return new Promise((resolve, reject) => {
    // The form that bundlers know; a browser without one throws.
    const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
    /** Ends the listening too: the signal may live longer than many challenges. */
    const listening = new AbortController();
    const end = (settle: () => void) => () => {
      clearTimeout(deadline);
      listening.abort();
      worker.terminate();
      settle();
    };
    const deadline = setTimeout(
      end(() => reject(new Error('The worker did not start'))),
      MAX_LOAD_MS,
    );
    signal?.addEventListener(
      'abort',
      end(() => reject(signal.reason)),
      listening,
    );
    worker.addEventListener(
      'error',
      end(() => reject(new Error('The worker did not start'))),
    );
    worker.addEventListener('message', ({ data }: MessageEvent<Solution | typeof READY>) => {
      if (data === READY) clearTimeout(deadline);
      else end(() => resolve(data))();
    });
    worker.postMessage(puzzle);
  });
}

async function inSlices(puzzle: Puzzle, signal: AbortSignal | null | undefined): Promise<Solution> {
  const search = createSearch(puzzle);
  for (;;) {
    if (signal?.aborted) throw signal.reason;
    const until = performance.now() + SLICE_MS;
    while (performance.now() < until) {
      const found = search(NUMBERS);
      if (found !== undefined) return found;
    }
    await new Promise((resolve) => setTimeout(resolve));
  }
}
