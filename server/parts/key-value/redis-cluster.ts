import { Cluster } from 'ioredis';
import type { RedisNode } from '../../config/index.ts';
import { ServiceError, unavailable } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { withinDeadline } from '../deadline.ts';
import {
  COMMAND_MS,
  corking,
  type RedisConnection,
  reportOutage,
  retryDelay,
  serverOptions,
} from './redis-connection.ts';
import { traceCommands } from './redis-spans.ts';

const DEADLINE = { ms: COMMAND_MS, what: 'the Redis Cluster' };

/**
 * A Redis Cluster, found by any of `nodes`. Commands go to the master of their key; redirections (MOVED, ASK), which say that
 * a command was not executed, are followed. All other failures are the caller's: nothing is sent twice.
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
    // TLS checks names, not the addresses that they stand for.
    dnsLookup: (host, done) => done(null, host),
    clusterRetryStrategy: retryDelay,
    // By zero delay ioredis sends nothing again after a lost connection, whatever became of it, or in a broken cluster.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    maxRedirections: 5,
    slotsRefreshInterval: 5000,
  });
  cluster.on('+node', traceCommands);

  /** The nodes that were reported. */
  const failing = new Set<string>();
  let nodeError: Error | undefined;
  // Without a listener ioredis prints it. The errors of the nodes, of which it consists, are reported below.
  cluster.on('error', () => undefined);
  cluster.on('node error', (error: Error, node: string) => {
    nodeError = error;
    if (!failing.has(node)) reportOutage(log, error, `Redis at ${node}`);
    failing.add(node);
  });
  // Some node has answered, every few seconds.
  cluster.on('refresh', () => {
    nodeError = undefined;
    const known = new Set(cluster.nodes().map(({ options }) => `${options.host}:${options.port}`));
    for (const node of failing) if (!known.has(node)) failing.delete(node);
    for (const { status, options } of cluster.nodes()) {
      const node = `${options.host}:${options.port}`;
      if (status === 'ready' && failing.delete(node)) log.info(`Redis at ${node} is back`);
    }
  });

  /** Unlike the nodes, which queue commands while they connect, the cluster would queue them without an end. */
  const requireReady = () => {
    if (cluster.status !== 'ready') throw unavailable(nodeError ?? new Error(`the Redis Cluster is ${cluster.status}`));
  };
  const run: RedisConnection['run'] = (command) =>
    withinDeadline(DEADLINE, async () => {
      requireReady();
      return command();
    }).catch((error: unknown) => {
      throw error instanceof ServiceError ? error : unavailable(error);
    });

  const cork = corking(() => cluster.nodes('master'));

  return {
    commands: cluster,
    run,

    get(key) {
      cork();
      return run(() => cluster.get(key));
    },

    /** Asks all masters: one that says that the cluster serves is enough. */
    async ping() {
      const serves = async (state: Promise<unknown>) => {
        if (!String(await state).includes('cluster_state:ok')) throw new Error('the Redis Cluster does not serve');
      };
      await run(() => Promise.any(cluster.nodes('master').map((node) => serves(node.cluster('INFO')))));
    },

    close: () => cluster.disconnect(),
  };
}
