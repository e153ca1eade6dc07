import type { Socket } from 'node:net';
import type { MySqlConnection } from '@mikro-orm/mysql';
import { gauges } from '../../telemetry/metrics.ts';
import { traceStatements } from './mysql-spans.ts';

/** Longer than any statement takes. A connection that is silent for this long may be broken. */
const SILENCE_MS = 10_000;
const LOCK_WAIT_SECONDS = 2;
/** The longest a statement waits for a row: MySQL looks once a second for waits that have lasted too long. */
export const LONGEST_WAIT_MS = (LOCK_WAIT_SECONDS + 1) * 1000;

/**
 * A statement whose caller has passed its deadline soon ends in the database too: a read at its time limit, a write at
 * its limit for lock waits (on MariaDB also at its time limit). Each executable comment applies to one flavour.
 */
export async function limitStatements(connection: MySqlConnection): Promise<void> {
  const limits = `set session innodb_lock_wait_timeout = ${LOCK_WAIT_SECONDS}
    /*!50720 , max_execution_time = 3500, transaction_isolation = 'READ-COMMITTED' */
    /*M!100100 , max_statement_time = 3.5, tx_isolation = 'READ-COMMITTED' */`;
  const pool = await connection.getNativeClient();
  watchPool(pool);
  traceStatements();
  pool.on('connection', (fresh) => {
    // Sent before anything else on a new connection.
    fresh.query(limits, (error) => error && fresh.destroy());
    // A failover or a firewall may drop a connection silently: left in the pool, its statements would wait for TCP's
    // own timeout.
    const { stream } = fresh as typeof fresh & { stream: Socket };
    stream.setTimeout(SILENCE_MS, () => stream.destroy(new SilentConnection()));
  });
}

/** mysql2 has these lists, of its own kinds, and publishes neither them nor their lengths. */
interface PoolLists {
  _allConnections: { length: number };
  _freeConnections: { length: number };
  _connectionQueue: { length: number };
}

function watchPool(pool: object): void {
  const { _allConnections: all, _freeConnections: free, _connectionQueue: waiting } = pool as PoolLists;
  gauges(() => ({
    account_database_connections_used: all.length - free.length,
    account_database_connections_free: free.length,
    account_database_waiting: waiting.length,
  }));
}

class SilentConnection extends Error {
  readonly code = 'ETIMEDOUT';

  constructor() {
    super(`the database sent nothing for ${SILENCE_MS} ms`);
  }
}
