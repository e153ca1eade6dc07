import { randomBytes } from 'node:crypto';
import type { DatabaseCluster } from '../rig/database-cluster.ts';
import { type DatabaseView, viewMysql } from '../rig/database-view.ts';
import { requireBinaries } from '../rig/debian.ts';
import { startGalera } from '../rig/galera.ts';
import { startGroupReplication } from '../rig/group-replication.ts';
import { type LoadBalancer, startHaproxy } from '../rig/haproxy.ts';
import { createDatabase, findFlavour } from '../rig/mysql.ts';
import { freePort } from '../rig/port.ts';
import type { PrivateServer } from '../rig/private-server.ts';
import { startRedisCluster } from '../rig/redis-cluster.ts';
import { startRedisSentinels } from '../rig/redis-sentinel.ts';
import { noS3 } from '../rig/s3.ts';
import { type Service, startService } from '../rig/service.ts';
import { type SmtpSink, startSmtpSink } from '../rig/smtp.ts';
import { until } from '../rig/until.ts';

/** Several Redis servers, one of which takes over when a master fails. */
export interface RedisGroup {
  env: Record<string, string>;
  nodes: PrivateServer[];
  /** The servers that take writes. */
  masters(): Promise<PrivateServer[]>;
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export const redisGroups = {
  async 'Redis Cluster'(): Promise<RedisGroup> {
    const { url, ...cluster } = await startRedisCluster();
    return { ...cluster, env: { REDIS_URL: url } };
  },
  async 'Redis Sentinel'(): Promise<RedisGroup> {
    const { url, sentinel, master, ...group } = await startRedisSentinels();
    return { ...group, env: { REDIS_URL: url, REDIS_SENTINEL: sentinel }, masters: async () => [await master()] };
  },
};

export interface ClusterStack {
  cluster: DatabaseCluster;
  redis: RedisGroup;
  services: Service[];
  proxy: LoadBalancer;
  smtp: SmtpSink;
  /** The database as each of the nodes has it. */
  databases: DatabaseView[];
  /** Resolves once the proxy sends requests to each of the services. */
  balanced(): Promise<unknown>;
  stop(): Promise<void>;
}

/** Whichever server comes first on the PATH. */
export async function startDatabaseCluster(): Promise<DatabaseCluster> {
  requireBinaries();
  const flavour = await findFlavour();
  return flavour.isMysql ? startGroupReplication(flavour) : startGalera(flavour);
}

const INSTANCES = 2;

/** Services behind HAProxy, on three Galera nodes and a group of Redis servers. */
export async function startClusterStack(
  redisGroup: keyof typeof redisGroups,
  env: Record<string, string>,
): Promise<ClusterStack> {
  const running: { stop(): Promise<unknown> }[] = [];
  const started = async <T extends { stop(): Promise<unknown> }>(part: Promise<T>): Promise<T> => {
    running.unshift(await part);
    return part;
  };
  const stop = async () => {
    for (const part of running) await part.stop();
  };

  try {
    const [cluster, redis, smtp] = await Promise.all([
      started(startDatabaseCluster()),
      started(redisGroups[redisGroup]()),
      started(startSmtpSink()),
    ]);
    const [port, statsPort, ...instancePorts] = await Promise.all(Array.from({ length: 2 + INSTANCES }, freePort));
    const database = new URL(await createDatabase(cluster.nodes[0]?.url ?? '')).pathname;
    const shared = {
      ...redis.env,
      ...noS3,
      DATABASE_URL: cluster.url + database,
      SMTP_URL: smtp.url,
      MAIL_FROM: 'Accounts <no-reply@accounts.test>',
      APP_SECRET: randomBytes(32).toString('hex'),
      APP_URL: `http://localhost:${port}`,
      // The proxy, and the client that is before it for the tests.
      TRUST_PROXY: '2',
      ...env,
    };
    const services = await Promise.all(
      instancePorts.map((own) => started(startService({ env: { ...shared, PORT: String(own) } }))),
    );
    const proxy = await started(startHaproxy({ port: port ?? 0, statsPort: statsPort ?? 0, instancePorts }));
    const databases = cluster.nodes.map(({ url }) => viewMysql(url + database));
    for (const { close } of databases) running.unshift({ stop: close });
    const balanced = () =>
      until(async () => (await proxy.instances()) === INSTANCES, { within: 30_000, what: 'both instances' });
    await balanced();
    return { cluster, redis, services, proxy, smtp, databases, balanced, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
