import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from './custodian.ts';
import type { PrivateServer } from './private-server.ts';
import { startRedisServer, withClient } from './redis.ts';
import { reachable, stopAll } from './redis-cluster.ts';
import { until } from './until.ts';

const NAME = 'mymaster';
/** From when a master is taken for failed; a replica is master one to two seconds later. */
export const DOWN_AFTER_MS = 1500;

export interface RedisSentinels {
  /** As REDIS_URL and REDIS_SENTINEL take them. */
  readonly url: string;
  readonly sentinel: string;
  /** A master at the start, and two replicas. */
  readonly nodes: PrivateServer[];
  readonly sentinels: PrivateServer[];
  /** The server that the Sentinels name as master. */
  master(): Promise<PrivateServer>;
  /** Resolves once the master has as many replicas in step as run beside it. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

/** Three private servers, one of them the master, and three Sentinels that watch it. */
export async function startRedisSentinels(): Promise<RedisSentinels> {
  const first = await startRedisServer({ appendonly: 'yes' });
  const replica = () => startRedisServer({ appendonly: 'yes', replicaof: `127.0.0.1 ${first.port}` });
  const nodes = [first, ...(await Promise.all([replica(), replica()]))];
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(first.port)));

  const master = async () => {
    const [running] = await reachable(sentinels);
    const [, port] = await withClient(
      running?.url ?? '',
      async (client) => (await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)) as [string, string],
    );
    const found = nodes.find((node) => node.port === Number(port));
    if (!found) throw new Error(`the Sentinels name a master on port ${port}`);
    return found;
  };
  const settled = async () => {
    await until(
      async () => {
        const others = (await reachable(nodes)).length - 1;
        const replication = await withClient((await master()).url, (client) => client.info('replication'));
        return replication.includes('role:master') && replication.match(/state=online/g)?.length === others;
      },
      { within: 30_000, what: 'the master and its replicas' },
    );
  };
  const stop = () => stopAll([...sentinels, ...nodes]);

  try {
    await settled();
    await until(async () => (await sentinelsKnown(sentinels)).every((known) => known === sentinels.length - 1), {
      what: 'the Sentinels to know each other',
    });
  } catch (error) {
    await stop();
    throw error;
  }
  const sentinel = `${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${NAME}`;
  return { url: 'redis://127.0.0.1', sentinel, nodes, sentinels, master, settled, stop };
}

/** Sentinels write what they find out into their configuration. */
async function startSentinel(masterPort: number): Promise<PrivateServer> {
  const directory = temporaryDirectory('sentinel');
  const file = join(directory, 'sentinel.conf');
  const lines = [
    `sentinel monitor ${NAME} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${NAME} 5000`,
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  return startRedisServer({}, { directory, file: [file, '--sentinel'] });
}

const sentinelsKnown = (sentinels: PrivateServer[]) =>
  Promise.all(
    sentinels.map(({ url }) =>
      withClient(url, async (client) => ((await client.call('SENTINEL', 'SENTINELS', NAME)) as unknown[]).length),
    ),
  );
