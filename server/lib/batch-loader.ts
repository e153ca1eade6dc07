/*
 * Callers of one key in one turn share its value. A later lookup reads again, so each sees what was written before it
 * began. With `gatherMs` a batch waits at most this long for the one before it, while it gathers more keys.
 */

import { setTimeout as delay } from 'node:timers/promises';
import DataLoader from 'dataloader';

/**
 * Batches the lookups of one turn of the event loop into one call of `read`, which returns values in the order of its
 * keys. Caches nothing. A value that is an Error rejects the lookups of its key.
 */
export function inBatches<Key, Value>(
  read: (keys: readonly Key[]) => Promise<(Value | Error)[]>,
  { most, gatherMs = 0 }: { most: number; gatherMs?: number },
): (key: Key) => Promise<Value> {
  let current: Promise<unknown> = Promise.resolve();
  const loader = new DataLoader<Key, Value, string>(
    (keys) => {
      loader.clearAll();
      const values = read(keys);
      if (gatherMs > 0) {
        // The loader reports a failure to the callers.
        current = Promise.race([values.catch(() => undefined), delay(gatherMs, undefined, { ref: false })]);
      }
      return values;
    },
    {
      maxBatchSize: most,
      cacheKeyFn: (key) => JSON.stringify(key),
      // Requests that arrive together are read from their sockets one by one: the batch is complete after the last.
      batchScheduleFn: gatherMs > 0 ? (begin) => current.then(() => setImmediate(begin)) : setImmediate,
    },
  );
  return (key) => loader.load(key);
}
