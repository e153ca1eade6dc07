import { pbkdf2 } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { repeat } from './client.ts';

/** Prints how many passwords a process that does nothing else hashes in a second, as many at once as there are cores. */
const derive = promisify(pbkdf2);
const started = performance.now();
const done = await repeat(
  availableParallelism(),
  () => performance.now() - started < Number(process.argv[2]),
  () => derive('Analytical-Engine-1843', 'a salt of 16 by.', 100_000, 32, 'sha256'),
);
console.log(done / ((performance.now() - started) / 1000));
