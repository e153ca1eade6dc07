import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { type DatabaseView, viewMysql } from '../rig/database-view.ts';
import { createDatabase, dropDatabase, startMysql } from '../rig/mysql.ts';
import { accepts, freePort } from '../rig/port.ts';
import { spawnGroup, whenGone, whenReady } from '../rig/process-group.ts';
import { startSlowProxy } from '../rig/proxy.ts';
import { nextDatabase, startRedis } from '../rig/redis.ts';
import { type Service, startService } from '../rig/service.ts';

/** A service as in production, with its database to look into. */
export interface Production {
  service: Service;
  database: DatabaseView;
}

/** What the cases run on. Whatever a case starts here is stopped by `release`, its data deleted. */
export interface Parts {
  /** Such as `10.11.6-MariaDB`. */
  readonly databaseVersion: string;
  /** The service on fresh, embedded parts. */
  startEmbedded(): Promise<Service>;
  /**
   * The service with NODE_ENV=production, on a fresh database of its own in MySQL and Redis; with `databaseDelayMs` each
   * answer of the database reaches it so much later.
   */
  startProduction(env?: Record<string, string>, options?: { databaseDelayMs?: number }): Promise<Production>;
  /** A server in this directory, which listens at PORT. */
  startBaseline(file: string, env: Record<string, string>): Promise<{ url: string; pid: number }>;
  release(): Promise<void>;
  /** Ends the database servers. */
  stop(): Promise<void>;
}

/** No case needs these to answer, but production needs their names. */
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

export async function startParts(): Promise<Parts> {
  const mysql = await startMysql();
  const redis = await startRedis().catch(async (error: unknown) => {
    await mysql.stop();
    throw error;
  });
  const closers: (() => Promise<unknown>)[] = [];

  const started = async (env: Record<string, string>) => {
    const service = await startService({ env, npm: true });
    closers.push(() => rm(service.dataDir, { recursive: true, force: true }));
    closers.push(() => service.stop());
    return service;
  };

  return {
    databaseVersion: await versionOf(mysql.url),

    startEmbedded: () => started({}),

    async startProduction(env = {}, { databaseDelayMs = 0 } = {}) {
      const databaseUrl = await createDatabase(mysql.url);
      closers.push(() => dropDatabase(databaseUrl));
      const seenByService = new URL(databaseUrl);
      if (databaseDelayMs > 0) {
        const proxy = await startSlowProxy(Number(seenByService.port), databaseDelayMs);
        closers.push(() => proxy.stop());
        seenByService.port = String(proxy.port);
      }
      const redisUrl = await nextDatabase(redis.url);
      closers.push(() => emptyRedis(redisUrl));
      const service = await started({
        ...unused,
        NODE_ENV: 'production',
        LOG_LEVEL: 'info',
        APP_SECRET: randomBytes(32).toString('hex'),
        DATABASE_URL: seenByService.href,
        REDIS_URL: redisUrl,
        ...env,
      });
      const database = viewMysql(databaseUrl);
      closers.push(() => database.close());
      return { service, database };
    },

    async startBaseline(file, env) {
      const port = await freePort();
      const group = spawnGroup({
        file: process.execPath,
        args: [join(import.meta.dirname, file)],
        env: { NODE_ENV: 'production', PORT: String(port), ...env },
      });
      closers.push(() => {
        group.signal('SIGTERM');
        return whenGone(group, { what: `the end of ${file}`, within: 5_000 });
      });
      await whenReady(group, () => accepts(port), { what: file, within: 10_000 });
      return { url: `http://127.0.0.1:${port}`, pid: group.pid };
    },

    async release() {
      // The last one first: databases are dropped once nobody uses them.
      for (const close of closers.splice(0).reverse()) await close();
    },

    async stop() {
      await Promise.all([mysql.stop(), redis.stop()]);
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
