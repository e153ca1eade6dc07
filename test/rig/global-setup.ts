import type { TestProject } from 'vitest/node';
import { buildClient } from './client.ts';
import { requireBinaries } from './debian.ts';
import { startMysql } from './mysql.ts';
import type { PrivateServer } from './private-server.ts';
import { startRedis } from './redis.ts';
import { startRedisCluster } from './redis-cluster.ts';

declare module 'vitest' {
  interface ProvidedContext {
    mysqlUrl: string;
    redisUrl: string;
  }
}

/** With TEST_REDIS=cluster all stacks share one Redis Cluster: for files that are run one after the other. */
const onCluster = process.env.TEST_REDIS === 'cluster';

/** The client as it is built, and one MySQL and one Redis for the whole run: each stack takes a database of its own in both. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  requireBinaries();
  await buildClient();
  const started = await Promise.allSettled([startMysql(), onCluster ? startRedisCluster() : startRedis()]);
  const teardown = async () => {
    const servers = started.filter((start) => start.status === 'fulfilled').map(({ value }) => value);
    await Promise.all(servers.map((server: Pick<PrivateServer, 'stop'>) => server.stop()));
  };
  const [mysql, redis] = started;
  if (mysql.status === 'fulfilled' && redis.status === 'fulfilled') {
    project.provide('mysqlUrl', mysql.value.url);
    project.provide('redisUrl', redis.value.url);
    return teardown;
  }
  await teardown();
  throw started.find((start) => start.status === 'rejected')?.reason;
}
