import type { TestProject } from 'vitest/node';
import { buildClient } from './client/client.ts';
import { requireBinaries } from './servers/debian.ts';
import { startMysql } from './servers/mysql.ts';
import type { PrivateServer } from './servers/private-server.ts';
import { startRedis } from './servers/redis.ts';
import { startRedisCluster } from './servers/redis-cluster.ts';
import { makeSchema, type Schema } from './servers/schema.ts';

declare module 'vitest' {
  interface ProvidedContext {
    mysqlUrl: string;
    redisUrl: string;
    schema: Schema;
  }
}

/** With TEST_REDIS=cluster all stacks share one Redis Cluster: for files that run sequentially. */
const onCluster = process.env.TEST_REDIS === 'cluster';

/**
 * Starts one MySQL and one Redis for the run and builds the client; does nothing if only unit tests run. Each stack has
 * its own database in both.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (project.vitest.projects.every(({ name }) => name === 'unit')) return async () => undefined;
  await requireBinaries();
  const [mysql, redis, client] = await Promise.allSettled([
    startMysql(),
    onCluster ? startRedisCluster() : startRedis(),
    buildClient(),
  ]);
  const teardown = async () => {
    const servers = [mysql, redis].flatMap((start): Pick<PrivateServer, 'stop'>[] =>
      start.status === 'fulfilled' ? [start.value] : [],
    );
    await Promise.all(servers.map((server) => server.stop()));
  };
  if (mysql.status === 'fulfilled' && redis.status === 'fulfilled' && client.status === 'fulfilled') {
    project.provide('mysqlUrl', mysql.value.url);
    project.provide('redisUrl', redis.value.url);
    project.provide('schema', await makeSchema(mysql.value.url));
    return teardown;
  }
  await teardown();
  throw [mysql, redis, client].find((start) => start.status === 'rejected')?.reason;
}
