import { readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** Far below the event loop, which never waits for a core used by hashing; above image conversion (19, the lowest). */
export const HASH_PRIORITY = 15;

let areLowered = false;

/**
 * Lowers the priority of libuv's threads. All of them exist after the first task. They hash, access files and resolve
 * host names. Linux only: Node cannot set thread priorities elsewhere.
 */
export function lowerPoolThreads(): void {
  if (areLowered) return;
  areLowered = true;
  for (const id of threadIds()) {
    try {
      if (readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim() === 'libuv-worker')
        setPriority(Number(id), HASH_PRIORITY);
    } catch {
      // The thread has ended, or may not be changed; hashing works without the change.
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
