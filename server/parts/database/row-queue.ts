import pLimit, { type LimitFunction } from 'p-limit';

/** How many transactions of this process wait for the same row in the database; one more than can hold it. */
const MOST_PER_ROW = 2;

/**
 * A queue in memory for each row that transactions lock. Without it, a row that stays locked would soon have every
 * connection waiting for it, and all other requests waiting for a connection.
 */
export function createRowQueue() {
  const queues = new Map<string, LimitFunction>();

  return async function inTurn<T>(row: string | undefined, work: () => Promise<T>): Promise<T> {
    if (row === undefined) return work();
    const queue = queues.get(row) ?? pLimit(MOST_PER_ROW);
    queues.set(row, queue);
    return queue(work).finally(() => {
      if (queue.activeCount + queue.pendingCount === 0) queues.delete(row);
    });
  };
}
