import { parentPort } from 'node:worker_threads';
import { estimate, type Guessing } from './estimate.ts';

/** A thread of strength.ts, which tells when it is ready. */
parentPort?.on('message', (guessing: Guessing) => parentPort?.postMessage(estimate(guessing)));
parentPort?.postMessage('ready');
