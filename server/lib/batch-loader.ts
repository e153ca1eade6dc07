import { setTimeout as delay } from 'node:timers/promises';
import DataLoader from 'dataloader';

/**
 * A look-up by key that gathers the keys of one turn of the event loop into one call of `read`, which answers
 * their values in the same order. Nothing is kept: a later look-up reads again, so each sees what was written before it
 * began. Callers of one key in one turn share its value. A value that is an Error rejects the look-ups of its key.
 * With `gatherMs` a call waits for the one before it, at most so long, and gathers what comes meanwhile.
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
