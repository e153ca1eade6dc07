import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { callerOf } from '../contract/rig/callers.ts';
import type { Scenario } from '../contract/rig/scenario.ts';
import { type DatabaseView, viewMysql } from '../rig/observe/database-view.ts';
import { type Service, startService } from '../rig/process/service.ts';
import { createAuthority } from '../rig/servers/certificates.ts';
import type { DatabaseCluster } from '../rig/servers/database-cluster.ts';
import { requireBinaries } from '../rig/servers/debian.ts';
import { type DeployedProxy, startDeployedProxy } from '../rig/servers/deployed-proxy.ts';
import { startGalera } from '../rig/servers/galera.ts';
import { startGroupReplication } from '../rig/servers/group-replication.ts';
import { createDatabase, findFlavour } from '../rig/servers/mysql.ts';
import { freePort } from '../rig/servers/port.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { startRedisCluster } from '../rig/servers/redis-cluster.ts';
import { startRedisSentinels } from '../rig/servers/redis-sentinel.ts';
import { type S3, startS3 } from '../rig/servers/s3.ts';
import { type SmtpSink, startSmtpSink } from '../rig/servers/smtp.ts';
import { until } from '../rig/until.ts';

/** Several Redis servers with failover. */
export interface RedisGroup {
  env: Record<string, string>;
  nodes: PrivateServer[];
  /** The writable servers. */
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
  proxy: DeployedProxy;
  smtp: SmtpSink;
  s3: S3;
  /** For `localhost`, trusted by the services: paths of PEM files. */
  certificate: { cert: string; key: string };
  /** The database as seen by each node. */
  databases: DatabaseView[];
  /** Resolves once the proxy uses all instances. */
  balanced(): Promise<unknown>;
  stop(): Promise<void>;
}

/** The first server on the PATH. */
export async function startDatabaseCluster(): Promise<DatabaseCluster> {
  await requireBinaries();
  const flavour = await findFlavour();
  return flavour.isMysql ? startGroupReplication(flavour) : startGalera(flavour);
}

export interface ClusterOptions {
  /** The directory of the release to run, instead of the current code. */
  tree?: string | undefined;
  startDatabase?(): Promise<DatabaseCluster>;
}

/** Production instances behind HAProxy of docs/deploy, over TLS, on three Galera nodes and a Redis group. */
export async function startClusterStack(
  redisGroup: keyof typeof redisGroups,
  env: Record<string, string>,
  { tree, startDatabase = startDatabaseCluster }: ClusterOptions = {},
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
    const [cluster, redis, smtp, s3] = await Promise.all([
      started(startDatabase()),
      started(redisGroups[redisGroup]()),
      started(startSmtpSink()),
      started(startS3({ cors: true })),
    ]);
    const authority = await createAuthority();
    const certificate = await authority.issue('localhost');
    // For `fetch` in the tests.
    setDefaultCACertificates([...getCACertificates('default'), readFileSync(authority.ca, 'utf8')]);
    const [port, ...instancePorts] = await Promise.all([freePort(), freePort(), freePort()]);
    await cluster.settled();
    const database = new URL(await createDatabase(cluster.nodes[0]?.url ?? '')).pathname;
    const shared = {
      ...redis.env,
      ...s3.env,
      NODE_ENV: 'production',
      DATABASE_URL: cluster.url + database,
      SMTP_URL: smtp.url,
      MAIL_FROM: 'Accounts <no-reply@accounts.test>',
      APP_SECRET: randomBytes(32).toString('hex'),
      APP_URL: `https://localhost:${port}`,
      // The proxy, and the test client in front of it.
      TRUST_PROXY: '2',
      CA_FILE: authority.ca,
      ...env,
    };
    const services = await Promise.all(
      instancePorts.map((own) => started(startService({ env: { ...shared, PORT: String(own) }, tree }))),
    );
    const proxy = await started(startDeployedProxy('HAProxy', { port, instancePorts, certificate }));
    const databases = cluster.nodes.map(({ url }) => viewMysql(url + database));
    for (const { close } of databases) running.unshift({ stop: close });
    const balanced = () =>
      until(async () => (await proxy.instances())?.size === instancePorts.length, {
        within: 30_000,
        what: 'both instances',
      });
    await balanced();
    return { cluster, redis, services, proxy, smtp, s3, certificate, databases, balanced, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What contract scenarios need, through the proxy. */
export function asScenario({ proxy, services, smtp, databases, stop }: ClusterStack): Scenario {
  const [view] = databases;
  if (!view) throw new Error('no database');
  return {
    call: callerOf('rest', proxy.url),
    stack: {
      name: 'real',
      services,
      url: proxy.url,
      appUrl: proxy.url,
      waitForMail: ({ count: _, ...query }) => smtp.waitFor({ within: 30_000, ...query }),
      mailsTo: async (address) => [...smtp.mails(address)],
      database: view.query,
      redis: undefined,
      smtp,
      stop,
    },
  };
}
