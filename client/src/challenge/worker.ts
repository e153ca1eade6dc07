import { createSearch, type Puzzle, READY } from './search.ts';

/** A Web Worker: tells when it is ready, gets a puzzle, answers with its solution. */
addEventListener('message', ({ data }: MessageEvent<Puzzle>) => {
  postMessage(createSearch(data)(Number.POSITIVE_INFINITY));
});
postMessage(READY);
