import type { MysqlPoolConnection, MysqlQueryResult } from 'kysely';
import { createPool, type PoolConnection, type PoolOptions, type QueryError } from 'mysql2';
import { gauges } from '../../telemetry/metrics.ts';
import { isLostConnection, isMisdirected } from '../sql-errors.ts';
import { beginSession, type ConnectionUse } from './mysql-session.ts';
import { startStatement } from './mysql-spans.ts';

const CONNECT_MS = 2000;

/** The connections to one server. */
export interface MysqlServer {
  /** For the log: `host:port`. */
  name: string;
  /** A connection that is ready for statements. `failed` is called if its server fails or refuses to work. */
  connect(failed: (error: Error) => void): Promise<MysqlPoolConnection>;
  close(): Promise<void>;
}

export function openServer(options: PoolOptions, use: ConnectionUse): MysqlServer {
  // The queue is bounded: beyond it a request is refused immediately instead of waiting in memory.
  const pool = createPool({ ...options, connectTimeout: CONNECT_MS, queueLimit: 1000, enableKeepAlive: true });
  // The connections of a migration are closed after it.
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
        await beginSession(connection, use);
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

/** A connection that is discarded once its server has refused to work. */
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

  // Not earlier: a rollback may follow, and its own error would hide the first one.
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

/** mysql2's internal lists; it does not publish their lengths. */
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
