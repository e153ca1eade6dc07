import { pbkdf2 } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { repeat } from './client.ts';

/**
 * Prints how many passwords a process that does nothing else hashes in a second, as many at once as there are cores, and the
 * CPU time of one in ms.
 */
const derive = promisify(pbkdf2);
const started = performance.now();
const cpuBefore = process.cpuUsage();
const done = await repeat(
  availableParallelism(),
  () => performance.now() - started < Number(process.argv[2]),
  () => derive('Analytical-Engine-1843', 'a salt of 16 by.', 100_000, 32, 'sha256'),
);
const { user, system } = process.cpuUsage(cpuBefore);
console.log(done / ((performance.now() - started) / 1000), (user + system) / 1000 / done);
