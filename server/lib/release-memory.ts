import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const CHECK_EVERY_MS = 3000;
/** The part of the time for which the event loop of a process that is idle may be busy. */
const IDLE_UTILIZATION = 0.03;

let isWaiting = false;

/**
 * Gives memory back that is not needed any more, after the start and after conversions of images: V8's young generation has
 * grown to tens of megabytes by then, which it keeps until much later, and for good in a process that gets few requests.
 * Waits until the process is idle, for it stops it for one or two tenths of a second.
 */
export function releaseMemory(): void {
  if (isWaiting) return;
  isWaiting = true;
  const before = performance.eventLoopUtilization();
  setTimeout(() => {
    isWaiting = false;
    const { utilization } = performance.eventLoopUtilization(before);
    if (utilization > IDLE_UTILIZATION) releaseMemory();
    else collect();
  }, CHECK_EVERY_MS).unref();
}

function collect(): void {
  // The one way to the collector of a process that was started without --expose-gc.
  setFlagsFromString('--expose-gc');
  const gc: NodeJS.GCFunction = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  // Only this flavor shrinks the heap too.
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
