import { readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** Far below the event loop, which so never waits for a core behind hashes; above conversions of images (19, the lowest). */
export const HASH_PRIORITY = 15;

let areLowered = false;

/**
 * Lowers the priority of libuv's threads, which hash, access files and look up host names. All exist once the first
 * work was given to them. Worker threads of our own would do the same for 15 MB each. Linux only: elsewhere threads have
 * no priorities that Node could set.
 */
export function lowerPoolThreads(): void {
  if (areLowered) return;
  areLowered = true;
  for (const id of threadIds()) {
    try {
      if (readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim() === 'libuv-worker')
        setPriority(Number(id), HASH_PRIORITY);
    } catch {
      // It has ended, or its priority is not ours to set: hashes work all the same.
    }
  }
}

function threadIds(): string[] {
  try {
    return readdirSync('/proc/self/task');
  } catch {
    return [];
  }
}
