import DataLoader from 'dataloader';

/**
 * A look-up by key that gathers the keys of one turn of the event loop into one call of `read`, which answers
 * their values in the same order. Nothing is kept: a later look-up reads again, so each sees what was written before it
 * began. Callers of one key in one turn share its value. A value that is an Error rejects the look-ups of its key.
 */
export function inBatches<Key, Value>(
  read: (keys: readonly Key[]) => Promise<(Value | Error)[]>,
  { most }: { most: number },
): (key: Key) => Promise<Value> {
  const loader = new DataLoader<Key, Value, string>(
    (keys) => {
      loader.clearAll();
      return read(keys);
    },
    {
      maxBatchSize: most,
      cacheKeyFn: (key) => JSON.stringify(key),
      // Requests that arrive together are read from their sockets one by one: the batch is complete after the last.
      batchScheduleFn: setImmediate,
    },
  );
  return (key) => loader.load(key);
}
