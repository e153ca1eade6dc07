import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { requireBinary } from './debian.ts';
import { freePort } from './port.ts';
import type { PrivateServer } from './private-server.ts';
import { startRedisServer, withClient } from './redis.ts';
import { until } from './until.ts';

const MASTERS = 3;
/** From when a node is taken for failed; its replica is master some hundred milliseconds later. */
export const NODE_TIMEOUT_MS = 1500;

export interface RedisCluster {
  /** All nodes, as REDIS_URL takes them. */
  readonly url: string;
  readonly nodes: PrivateServer[];
  /** The nodes that are masters of slots, as a node that runs sees it. */
  masters(): Promise<PrivateServer[]>;
  /** Resolves once all slots are served, by as many masters as at the start, and the nodes beside them have what those have. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

/** Six private nodes, three of them masters with a replica each. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const cli = requireBinary({ names: ['redis-cli'], debianPackage: 'redis-tools' });
  const nodes = await Promise.all(Array.from({ length: 2 * MASTERS }, startNode));
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
    await promisify(execFile)(cli, create, { timeout: 60_000 });
    await settled();
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: `redis://${hosts.join(',')}`, nodes, masters, settled, stop };
}

const startNode = async () =>
  startRedisServer({
    appendonly: 'yes',
    'cluster-enabled': 'yes',
    'cluster-port': await freePort(),
    'cluster-node-timeout': NODE_TIMEOUT_MS,
  });

/** At once: a server that has just become a replica refuses to end before it has written its append-only file. */
export async function stopAll(servers: PrivateServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.down({ kill: true }).then(server.stop)));
}

/** Those that answer. */
export async function reachable(nodes: PrivateServer[]): Promise<PrivateServer[]> {
  const answers = await Promise.allSettled(nodes.map(({ url }) => withClient(url, (client) => client.ping())));
  return nodes.filter((_, i) => answers[i]?.status === 'fulfilled');
}
