import type { Socket } from 'node:net';
import type { MysqlPoolConnection, MysqlQueryResult } from 'kysely';
import { createPool, type PoolConnection, type PoolOptions, type QueryError, type RowDataPacket } from 'mysql2';
import { gauges } from '../../telemetry/metrics.ts';
import { isLostConnection, isMisdirected } from '../sql-errors.ts';
import { startStatement } from './mysql-spans.ts';

/** Longer than any statement takes. A connection that is silent for this long may be broken, or its server frozen. */
const SILENCE_MS = 5000;
const CONNECT_MS = 2000;

/**
 * A statement whose caller has passed its deadline soon ends in the database too: a read at its time limit, a write at
 * its limit for lock waits (on MariaDB also at its time limit). Each executable comment applies to one flavour.
 */
const limitsOf = ({ lockWaitSeconds }: Limits) => `set session innodb_lock_wait_timeout = ${lockWaitSeconds}
  /*!50720 , max_execution_time = 3500, transaction_isolation = 'READ-COMMITTED' */
  /*M!100100 , max_statement_time = 3.5, tx_isolation = 'READ-COMMITTED' */`;

export interface Limits {
  lockWaitSeconds: number;
}

/** What connections are for. */
export interface ConnectionUse {
  /** Undefined for migrations, which take as long as they need. */
  limits?: Limits | undefined;
  /** Reads decide something: in a cluster each shows what any node had committed before it began. */
  decides: boolean;
  /** A server that only reads is refused. */
  writes: boolean;
}

/** The connections to one server. */
export interface MysqlServer {
  /** For the log: `host:port`. */
  name: string;
  /** A connection that is ready for statements. `failed` is called when its server fails or refuses to work. */
  connect(failed: (error: Error) => void): Promise<MysqlPoolConnection>;
  close(): Promise<void>;
}

export function openServer(options: PoolOptions, use: ConnectionUse): MysqlServer {
  // The queue is bounded: past it a request is refused at once, instead of waiting in memory.
  const pool = createPool({ ...options, connectTimeout: CONNECT_MS, queueLimit: 1000, enableKeepAlive: true });
  // Those of a migration are closed after it.
  if (use.limits) watchPool(pool);
  const sessions = new WeakMap<PoolConnection, Session>();

  return {
    name: `${options.host}:${options.port}`,

    async connect(failed) {
      const connection = await new Promise<PoolConnection>((resolve, reject) => {
        pool.getConnection((error, pooled) => (error ? reject(error) : resolve(pooled)));
      });
      const known = sessions.get(connection);
      if (known) return known;
      try {
        await prepare(connection, use);
      } catch (error) {
        connection.destroy();
        throw error;
      }
      const session = new Session(connection, failed);
      sessions.set(connection, session);
      return session;
    },

    close: () => new Promise((resolve, reject) => pool.end((error) => (error ? reject(error) : resolve()))),
  };
}

/** A connection that is not used again once its server has refused to work. */
class Session implements MysqlPoolConnection {
  readonly #connection: PoolConnection;
  readonly #failed: (error: Error) => void;
  #isUsable = true;

  constructor(connection: PoolConnection, failed: (error: Error) => void) {
    this.#connection = connection;
    this.#failed = failed;
  }

  query(sql: string, parameters: unknown[], callback?: (error: unknown, result: MysqlQueryResult) => void) {
    const end = startStatement(sql, this.#connection.config);
    return this.#connection.query(sql, parameters, (error: QueryError | null, result: unknown) => {
      end?.(error);
      if (error && (isMisdirected(error) || isLostConnection(error))) {
        this.#isUsable = false;
        this.#failed(error);
      }
      callback?.(error, result as MysqlQueryResult);
    });
  }

  // Not before: a rollback may still follow, whose own error would hide the first.
  release() {
    if (this.#isUsable) this.#connection.release();
    else this.#connection.destroy();
  }

  destroy() {
    this.#connection.destroy();
  }

  get threadId() {
    return this.#connection.threadId;
  }

  get config() {
    return this.#connection.config;
  }

  connect(callback?: (error: unknown) => void) {
    this.#connection.connect(callback);
  }
}

async function prepare(connection: PoolConnection, { limits, decides, writes }: ConnectionUse): Promise<void> {
  if (limits) {
    // A failover or a firewall may drop a connection silently: left in the pool, its statements would wait for TCP's
    // own timeout.
    const { stream } = connection as typeof connection & { stream: Socket };
    stream.setTimeout(SILENCE_MS, () => stream.destroy(new SilentConnection()));
  }
  const [variables] = await Promise.all([describe(connection), limits && run(connection, limitsOf(limits))]);
  if (writes && isReadOnly(variables)) throw new ReadOnlyServer();
  const consistency = decides && consistencyOf(variables);
  if (consistency) await run(connection, `set session ${consistency}`);
}

/** Of MySQL and MariaDB, and of a reader of Aurora. */
const readOnly = ['read_only', 'super_read_only', 'innodb_read_only'];
const asked = [...readOnly, 'wsrep_on', 'group_replication_group_name'];

/** By the variables of a server. */
export const isReadOnly = (variables: ReadonlyMap<string, string>): boolean =>
  readOnly.some((name) => variables.get(name) === 'ON');

/** What kind of server this is: none has all of the variables. */
async function describe(connection: PoolConnection): Promise<Map<string, string>> {
  const names = asked.map((name) => `'${name}'`).join(', ');
  const rows = await run(connection, `show variables where variable_name in (${names})`);
  return new Map(rows.map(({ Variable_name, Value }) => [Variable_name, Value]));
}

/**
 * The setting under which a statement outside a transaction, and the begin of one, wait until this node has applied what
 * the cluster had committed before. Undefined for a server that is no cluster's.
 */
function consistencyOf(variables: Map<string, string>): string | undefined {
  // 1: reads and begins. 2: updates and deletions, which might find no row where another node has just inserted it.
  if (variables.get('wsrep_on') === 'ON') return 'wsrep_sync_wait = 3';
  return variables.get('group_replication_group_name') ? "group_replication_consistency = 'BEFORE'" : undefined;
}

const run = (connection: PoolConnection, statement: string): Promise<RowDataPacket[]> =>
  new Promise((resolve, reject) => {
    connection.query<RowDataPacket[]>(statement, (error: QueryError | null, rows) =>
      error ? reject(error) : resolve(rows),
    );
  });

class ReadOnlyServer extends Error {
  readonly errno = 1836;
  readonly code = 'ER_READ_ONLY_MODE';

  constructor() {
    super('the server is read-only');
  }
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
