import { MysqlDialect, type MysqlPoolConnection } from 'kysely';
import type { PoolOptions, SslOptions } from 'mysql2';
import { addressPerHost, type SslMode, sslModeOf } from '../../config/values.ts';
import { createReportLimit } from '../../lib/outage.ts';
import type { Log } from '../../telemetry/log.ts';
import { isRefusal } from '../sql-errors.ts';
import { type MysqlServer, openServer } from './mysql-connections.ts';
import type { ConnectionUse } from './mysql-session.ts';
import { CONNECTIONS } from './row-queue.ts';

interface DialectOptions extends Omit<ConnectionUse, 'writes'> {
  log?: Log | undefined;
  /** Selects no database: it may not exist yet. */
  serverOnly?: boolean;
}

/** Kysely on the first usable host of `url`. It stays with that host until it fails, then moves to the next. */
export function mysqlDialect(url: string, { log, serverOnly = false, ...use }: DialectOptions): MysqlDialect {
  const addresses = addressPerHost(url);
  // A single server that is read-only still serves reads.
  const writes = addresses.length > 1;
  const servers = addresses.map((address) => {
    const database = serverOnly ? {} : { database: databaseName(address) };
    return openServer({ ...optionsOf(address), ...database }, { ...use, writes });
  });
  const connect = connectToOneOf(servers, log);
  return new MysqlDialect({
    pool: {
      getConnection: (callback) => {
        connect().then(
          (connection) => callback(undefined, connection),
          (error) => callback(error, undefined as never),
        );
      },
      end: (callback) => {
        Promise.all(servers.map((server) => server.close())).then(() => callback(undefined), callback);
      },
    },
  });
}

function connectToOneOf(servers: MysqlServer[], log?: Log): () => Promise<MysqlPoolConnection> {
  let current = 0;
  const mayReport = createReportLimit();

  const leave = (left: number, error: Error) => {
    if (servers.length === 1 || current !== left) return;
    current = (left + 1) % servers.length;
    const host = servers[left]?.name;
    // While all hosts are down, each request moves on to the next host.
    if (mayReport(`${host} ${(error as { code?: unknown }).code}`)) {
      log?.warn({ err: error, host, next: servers[current]?.name }, 'a database host failed');
    }
  };

  return async () => {
    for (let tries = 1; ; tries++) {
      const at = current;
      try {
        return await (servers[at] as MysqlServer).connect((error) => leave(at, error));
      } catch (error) {
        // An error without a code is the pool's own: it is full or closed. A refusal would be the same on every host.
        if (!(error instanceof Error && 'code' in error) || isRefusal(error)) throw error;
        leave(at, error);
        if (tries >= servers.length) throw error;
      }
    }
  };
}

const sslOptions: Record<SslMode, SslOptions | undefined> = {
  DISABLED: undefined,
  REQUIRED: { rejectUnauthorized: false },
  VERIFY_CA: {},
  VERIFY_IDENTITY: { verifyIdentity: true },
};

/** For a URL with one host. */
function optionsOf(address: string): PoolOptions {
  const url = new URL(address);
  const ssl = sslOptions[sslModeOf(address)];
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || 3306),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    connectionLimit: CONNECTIONS,
    timezone: 'Z',
    dateStrings: true,
    supportBigNumbers: true,
    ...(ssl && { ssl: { ...ssl } }),
  };
}

/** The database name in a URL, whatever its hosts. */
export const databaseName = (url: string): string =>
  decodeURIComponent(new URL(addressPerHost(url)[0] as string).pathname.slice(1));
