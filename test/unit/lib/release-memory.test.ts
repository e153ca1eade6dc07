import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../..');

/** Prints by how many megabytes the process became smaller, once that is half of what it had dropped, or after 10 s. */
const program = `
  import { releaseMemory } from './server/lib/release-memory.ts';
  const rss = () => process.memoryUsage.rss() / 2 ** 20;
  let held = Array.from({ length: 2e6 }, (_, i) => ({ i }));
  // A collection under way ends.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const full = rss();
  held = undefined;
  releaseMemory();
  const began = performance.now();
  const look = setInterval(() => {
    if (full - rss() < 50 && performance.now() - began < 10_000) return;
    clearInterval(look);
    console.log(Math.round(full - rss()));
  }, 100);
`;

test('an idle process returns the memory that it does not need', async () => {
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program], { cwd: root });
  expect(Number(stdout)).toBeGreaterThanOrEqual(50);
});
