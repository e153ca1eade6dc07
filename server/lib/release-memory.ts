/*
 * V8's young generation grows to tens of megabytes during the start and during conversions. V8 keeps that memory for
 * long, and forever in a process that gets few requests.
 */

import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const CHECK_EVERY_MS = 3000;
/** The event loop utilization below which a process counts as idle. */
const IDLE_UTILIZATION = 0.03;

let isWaiting = false;

/**
 * Returns unused memory to the system after the start and after image conversions. Waits until the process is idle,
 * because the collection stops it for one or two tenths of a second.
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
  // The only access to the collector in a process started without --expose-gc.
  setFlagsFromString('--expose-gc');
  const gc: NodeJS.GCFunction = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  // Only this flavor also shrinks the heap.
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
