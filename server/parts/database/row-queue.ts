import pLimit, { type LimitFunction } from 'p-limit';

/** The maximum number of connections from a process to one server. */
export const CONNECTIONS = 10;

/**
 * The maximum number of transactions of this process that wait for one row in the database: one more than can hold it.
 */
const MAX_PER_ROW = 2;
/** The maximum number of transactions without a row: half of the connections. */
const MAX_UNNAMED = CONNECTIONS / 2;

/**
 * A queue in memory for each row that transactions lock, and one for all that name none. Without it all connections
 * could wait for one locked row, and all other requests for a connection.
 */
export function createRowQueue() {
  const queues = new Map<string, LimitFunction>();
  const unnamed = pLimit(MAX_UNNAMED);

  return async function inTurn<T>(row: string | undefined, work: () => Promise<T>): Promise<T> {
    if (row === undefined) return unnamed(work);
    const queue = queues.get(row) ?? pLimit(MAX_PER_ROW);
    queues.set(row, queue);
    return queue(work).finally(() => {
      if (queue.activeCount + queue.pendingCount === 0) queues.delete(row);
    });
  };
}
