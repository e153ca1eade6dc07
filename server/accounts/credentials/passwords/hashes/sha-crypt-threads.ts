import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { ShaCryptTask } from './sha-crypt-thread.ts';

/** An idle thread ends after this time. Starting one takes 30 ms and 10 MB. */
const IDLE_MS = 10_000;

const idle = new Map<Worker, NodeJS.Timeout>();

/**
 * Computes a hash on a worker thread: no library does it natively, and it would block the event loop for 10 ms or more.
 * The caller limits concurrent computations.
 */
export async function computeShaCrypt(task: ShaCryptTask): Promise<string> {
  const worker = takeIdle() ?? new Worker(new URL('./sha-crypt-thread.ts', import.meta.url));
  worker.ref();
  worker.postMessage(task);
  // Rejects if the thread fails; the thread has ended then.
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
