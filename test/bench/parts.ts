import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { type DatabaseView, viewMysql } from '../rig/observe/database-view.ts';
import { spawnGroup, whenGone, whenReady } from '../rig/process/process-group.ts';
import { root, type Service, startService } from '../rig/process/service.ts';
import { createDatabase, dropDatabase, startMysql } from '../rig/servers/mysql.ts';
import { accepts, freePort } from '../rig/servers/port.ts';
import { startSlowProxy } from '../rig/servers/proxy.ts';
import { nextDatabase, startRedis } from '../rig/servers/redis.ts';
import { type S3, startS3 } from '../rig/servers/s3.ts';
import { type SmtpSink, startSmtpSink } from '../rig/servers/smtp.ts';

/** A production service and its database. */
export interface Production {
  service: Service;
  database: DatabaseView;
}

/** The database servers shared by all cases. */
export interface Machine {
  /** Such as `10.11.6-MariaDB`. */
  readonly databaseVersion: string;
  /** For one case, or several that share it. */
  open(): Parts;
  /** Ends the database servers. */
  stop(): Promise<void>;
}

/** Everything started here is stopped by `release`, and its data deleted. */
export interface Parts {
  /** The service on fresh, embedded parts. */
  startEmbedded(): Promise<Service>;
  /**
   * The service with NODE_ENV=production, on a fresh database in MySQL and Redis; `databaseDelayMs` delays each answer
   * of the database.
   */
  startProduction(env?: Record<string, string>, options?: { databaseDelayMs?: number }): Promise<Production>;
  /** A single-file server that listens on PORT, by default a free one. */
  startServer(file: string, env: Record<string, string>): Promise<{ url: string; pid: number }>;
  /** DATABASE_URL and REDIS_URL of a fresh database in each. */
  emptyStores(): Promise<{ DATABASE_URL: string; REDIS_URL: string }>;
  /** A mail server and an object storage. */
  startSinks(): Promise<{ smtp: SmtpSink; s3: S3 }>;
  release(): Promise<void>;
}

/**
 * Settings for large data, as on a server of that size. MariaDB and MySQL name the log differently: `loose` lets each
 * ignore the name that it does not know.
 */
const DATABASE_ARGUMENTS = [
  '--innodb-buffer-pool-size=6G',
  '--loose-innodb-log-file-size=1G',
  '--loose-innodb-redo-log-capacity=1G',
];

/** The variables with which the systemd unit and the image start the service. */
const unit = readFileSync(join(root, 'docs/deploy/accounts@.service'), 'utf8');
const deployed = Object.fromEntries(
  Array.from(unit.matchAll(/\b(MALLOC_\w+)=(\d+)/g), ([, name, value]) => [name, value]),
);

/** Required in production; no case uses these servers. */
const unused = {
  SMTP_URL: 'smtp://127.0.0.1:9',
  MAIL_FROM: 'Accounts <no-reply@accounts.test>',
  S3_ENDPOINT: 'http://127.0.0.1:9',
  S3_REGION: 'us-east-1',
  S3_BUCKET: 'bench',
  S3_ACCESS_KEY: 'bench',
  S3_SECRET_KEY: 'bench-secret',
  S3_PUBLIC_URL: 'http://127.0.0.1:9/bench',
};

export async function startMachine(): Promise<Machine> {
  const mysql = await startMysql({ args: DATABASE_ARGUMENTS });
  const redis = await startRedis().catch(async (error: unknown) => {
    await mysql.stop();
    throw error;
  });
  return {
    databaseVersion: await versionOf(mysql.url),
    open: () => openParts(mysql.url, redis.url),
    async stop() {
      await Promise.all([mysql.stop(), redis.stop()]);
    },
  };
}

function openParts(mysqlUrl: string, redisUrl: string): Parts {
  const closers: (() => Promise<unknown>)[] = [];

  const started = async (env: Record<string, string>) => {
    // Written to a file as in production: reading a pipe would take the load generator's time.
    const service = await startService({ env, npm: true, stdout: '/dev/null' });
    closers.push(() => rm(service.dataDir, { recursive: true, force: true }));
    closers.push(() => service.stop());
    return service;
  };

  const emptyStores = async () => {
    const databaseUrl = await createDatabase(mysqlUrl);
    closers.push(() => dropDatabase(databaseUrl));
    const emptyUrl = await nextDatabase(redisUrl);
    closers.push(() => emptyRedis(emptyUrl));
    return { DATABASE_URL: databaseUrl, REDIS_URL: emptyUrl };
  };

  return {
    emptyStores,

    async startSinks() {
      const [smtp, s3] = await Promise.all([startSmtpSink(), startS3({ cors: true })]);
      closers.push(() => Promise.all([smtp.stop(), s3.stop()]));
      return { smtp, s3 };
    },

    startEmbedded: () => started({}),

    async startProduction(env = {}, { databaseDelayMs = 0 } = {}) {
      const { DATABASE_URL, REDIS_URL } = await emptyStores();
      const seenByService = new URL(DATABASE_URL);
      if (databaseDelayMs > 0) {
        const proxy = await startSlowProxy(Number(seenByService.port), databaseDelayMs);
        closers.push(() => proxy.stop());
        seenByService.port = String(proxy.port);
      }
      const service = await started({
        ...unused,
        ...deployed,
        NODE_ENV: 'production',
        LOG_LEVEL: 'info',
        APP_SECRET: randomBytes(32).toString('hex'),
        DATABASE_URL: seenByService.href,
        REDIS_URL,
        ...env,
      });
      const database = viewMysql(DATABASE_URL);
      closers.push(() => database.close());
      return { service, database };
    },

    async startServer(file, env) {
      const port = Number(env.PORT ?? (await freePort()));
      const group = spawnGroup({
        file: process.execPath,
        args: [file],
        env: { NODE_ENV: 'production', ...env, PORT: String(port) },
      });
      closers.push(() => {
        group.signal('SIGTERM');
        return whenGone(group, { what: `the end of ${file}`, within: 5_000 });
      });
      await whenReady(group, () => accepts(port), { what: file, within: 10_000 });
      return { url: `http://127.0.0.1:${port}`, pid: group.pid };
    },

    async release() {
      // In reverse order: databases are dropped once nobody uses them.
      for (const close of closers.splice(0).reverse()) await close();
    },
  };
}

async function versionOf(mysqlUrl: string): Promise<string> {
  const view = viewMysql(mysqlUrl);
  try {
    const [row] = await view.query<{ version: string }>('select version() as version');
    return row?.version ?? 'unknown';
  } finally {
    await view.close();
  }
}

async function emptyRedis(url: string): Promise<void> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  await client.connect();
  await client.flushdb();
  client.disconnect();
}
