import { setTimeout as delay } from 'node:timers/promises';
import { ignored } from '../telemetry/background.ts';

const POLL_MS = 50;
/** While the database does not respond. */
const BACKOFF_MS = 1000;

/** Waits for the stream to grow. One poller in this process, which runs only while a call waits. */
export function createWaiting(lastNumber: () => Promise<number>) {
  const waiting = new Set<{ after: number; wake(): void }>();
  let isPolling = false;

  const poll = async () => {
    isPolling = true;
    while (waiting.size > 0) {
      const last = await lastNumber().catch(ignored('poll_events'));
      for (const { after, wake } of waiting) if (last !== undefined && last > after) wake();
      if (waiting.size > 0) await delay(last === undefined ? BACKOFF_MS : POLL_MS, undefined, { ref: false });
    }
    isPolling = false;
  };

  /** Resolves once the stream has a number greater than `after`, or when the signal is aborted. */
  return async (after: number, signal: AbortSignal): Promise<void> => {
    if (signal.aborted) return;
    const woken = Promise.withResolvers<void>();
    const waiter = { after, wake: () => woken.resolve() };
    waiting.add(waiter);
    signal.addEventListener('abort', waiter.wake, { once: true });
    if (!isPolling) void poll();
    await woken.promise;
    waiting.delete(waiter);
    signal.removeEventListener('abort', waiter.wake);
  };
}
