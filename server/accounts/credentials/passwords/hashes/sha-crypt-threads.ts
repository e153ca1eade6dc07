import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { ShaCryptTask } from './sha-crypt-thread.ts';

/** A thread takes 30 ms to start, and 10 MB. */
const IDLE_MS = 10_000;

const idle = new Map<Worker, NodeJS.Timeout>();

/**
 * Computes a hash on a thread of its own, as no library does it natively: on the event loop it would take 10 ms and more. The
 * caller bounds how many are computed at once.
 */
export async function computeShaCrypt(task: ShaCryptTask): Promise<string> {
  const worker = takeIdle() ?? new Worker(new URL('./sha-crypt-thread.ts', import.meta.url));
  worker.ref();
  worker.postMessage(task);
  // Rejects where the thread fails, which then has ended.
  const [hash] = await once(worker, 'message');
  keepIdle(worker);
  return String(hash);
}

function takeIdle(): Worker | undefined {
  const [[worker, timer] = []] = idle;
  if (worker) idle.delete(worker);
  clearTimeout(timer);
  return worker;
}

function keepIdle(worker: Worker): void {
  worker.unref();
  const end = () => {
    idle.delete(worker);
    void worker.terminate();
  };
  idle.set(worker, setTimeout(end, IDLE_MS).unref());
}
