import { Cluster } from 'ioredis';
import type { RedisNode } from '../../config/index.ts';
import { unavailable } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import { withinDeadline } from '../deadline.ts';
import {
  COMMAND_MS,
  prepareServer,
  type RedisConnection,
  reportOutage,
  retryDelay,
  serverOptions,
} from './redis-connection.ts';

const DEADLINE = { ms: COMMAND_MS, what: 'the Redis Cluster', isOutage: () => true };

/**
 * A Redis Cluster, found by any of `nodes`. Follows redirections (MOVED, ASK), which say that a command was not
 * executed. All other failures go to the caller: nothing is sent twice.
 */
export function connectToCluster({ url, nodes }: { url: string; nodes: RedisNode[] }, log: Log): RedisConnection {
  const { protocol, username, password } = new URL(url);
  const cluster = new Cluster(nodes, {
    redisOptions: {
      ...serverOptions,
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
      ...(protocol === 'rediss:' && { tls: {} }),
    },
    // TLS verifies host names, not the addresses that they resolve to.
    dnsLookup: (host, done) => done(null, host),
    clusterRetryStrategy: retryDelay,
    // With a delay of zero ioredis never resends, neither after a lost connection nor in a broken cluster.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    maxRedirections: 5,
    slotsRefreshInterval: 5000,
  });
  cluster.on('+node', prepareServer);

  /** The nodes reported as failing. */
  const failing = new Set<string>();
  let nodeError: Error | undefined;
  // Without a listener ioredis prints the error. The underlying errors of the nodes are reported below.
  cluster.on('error', () => undefined);
  cluster.on('node error', (error: Error, node: string) => {
    nodeError = error;
    if (!failing.has(node)) reportOutage(log, error, `Redis at ${node}`);
    failing.add(node);
  });
  // Some node has responded, every few seconds.
  cluster.on('refresh', () => {
    nodeError = undefined;
    const known = new Set(cluster.nodes().map(({ options }) => `${options.host}:${options.port}`));
    for (const node of failing) if (!known.has(node)) failing.delete(node);
    for (const { status, options } of cluster.nodes()) {
      const node = `${options.host}:${options.port}`;
      if (status === 'ready' && failing.delete(node)) log.info(`Redis at ${node} is back`);
    }
  });

  /** The cluster would queue commands without limit; nodes queue them only while they connect. */
  const requireReady = () => {
    if (cluster.status !== 'ready') throw unavailable(nodeError ?? new Error(`the Redis Cluster is ${cluster.status}`));
  };
  const run: RedisConnection['run'] = (command) =>
    withinDeadline(DEADLINE, async () => {
      requireReady();
      return command();
    });

  return {
    commands: cluster,
    run,

    get: (key) => run(() => cluster.get(key)),

    /** Asks all masters: one that reports `cluster_state:ok` is enough. */
    async ping() {
      const serves = async (state: Promise<unknown>) => {
        if (!String(await state).includes('cluster_state:ok')) throw new Error('the Redis Cluster is down');
      };
      await run(() => Promise.any(cluster.nodes('master').map((node) => serves(node.cluster('INFO')))));
    },

    close: () => cluster.disconnect(),
  };
}
