import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { until } from '../until.ts';
import { requireBinary } from './debian.ts';
import { freePort } from './port.ts';
import type { PrivateServer } from './private-server.ts';
import { startRedisServer, withClient } from './redis.ts';

const MASTERS = 3;
/** Time until a node counts as failed; its replica becomes master some hundred milliseconds later. */
export const NODE_TIMEOUT_MS = 1500;

export interface RedisCluster {
  /** All nodes, as in REDIS_URL. */
  readonly url: string;
  readonly nodes: PrivateServer[];
  /** The nodes that are masters of slots, as reported by a running node. */
  masters(): Promise<PrivateServer[]>;
  /** Resolves once all slots are served by as many masters as at the start, and replicas are in sync. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

/** Six private nodes: three masters with a replica each. `password`: of all of them. */
export async function startRedisCluster({ password }: { password?: string } = {}): Promise<RedisCluster> {
  const cli = await requireBinary({ names: ['redis-cli'], debianPackage: 'redis-tools' });
  const secrets = password && { requirepass: password, masterauth: password };
  const nodes = await Promise.all(Array.from({ length: 2 * MASTERS }, () => startClusterNode({ ...secrets })));
  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`);

  const masters = async () => {
    const running = await reachable(nodes);
    const ports = await withClient(running[0]?.url ?? '', async (client) => {
      const ranges = await client.cluster('SLOTS');
      return new Set(ranges.map(([, , master]) => master?.[1]));
    });
    return nodes.filter(({ port }) => ports.has(port));
  };
  const settled = async () => {
    const serves = async ({ url }: PrivateServer) => {
      const [state, replication] = await withClient(url, (node) =>
        Promise.all([node.cluster('INFO'), node.info('replication')]),
      );
      return state.includes('cluster_state:ok') && /role:master|master_link_status:up/.test(replication);
    };
    await until(
      async () => {
        const running = await reachable(nodes);
        return (await masters()).length === MASTERS && (await Promise.all(running.map(serves))).every(Boolean);
      },
      { within: 30_000, what: 'the Redis Cluster' },
    );
  };
  const stop = () => stopAll(nodes);

  try {
    const create = ['--cluster', 'create', ...hosts, '--cluster-replicas', '1', '--cluster-yes'];
    const env = { ...process.env, ...(password && { REDISCLI_AUTH: password }) };
    await promisify(execFile)(cli, create, { timeout: 60_000, env });
    await settled();
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: `redis://${password ? `:${password}@` : ''}${hosts.join(',')}`, nodes, masters, settled, stop };
}

/** A node that belongs to no Cluster yet. */
export const startClusterNode = async (settings: Record<string, string> = {}) =>
  startRedisServer({
    ...settings,
    appendonly: 'yes',
    'cluster-enabled': 'yes',
    'cluster-port': await freePort(),
    'cluster-node-timeout': NODE_TIMEOUT_MS,
  });

/** Killed: a server that has just become a replica does not exit before it has written its append-only file. */
export async function stopAll(servers: PrivateServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.down({ kill: true }).then(server.stop)));
}

/** The nodes that answer. */
export async function reachable(nodes: PrivateServer[]): Promise<PrivateServer[]> {
  const answers = await Promise.allSettled(nodes.map(({ url }) => withClient(url, (client) => client.ping())));
  return nodes.filter((_, i) => answers[i]?.status === 'fulfilled');
}
