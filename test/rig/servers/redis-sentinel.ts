import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../until.ts';
import { dataDirectory } from './custodian.ts';
import type { PrivateServer } from './private-server.ts';
import { startRedisServer, withClient } from './redis.ts';
import { reachable, stopAll } from './redis-cluster.ts';

const NAME = 'mymaster';
/** Time until a master counts as failed; a replica becomes master one to two seconds later. */
export const DOWN_AFTER_MS = 1500;

export interface RedisSentinels {
  /** As in REDIS_URL and REDIS_SENTINEL. */
  readonly url: string;
  readonly sentinel: string;
  /** The initial master, and two replicas. */
  readonly nodes: PrivateServer[];
  readonly sentinels: PrivateServer[];
  /** The server that the Sentinels name as master. */
  master(): Promise<PrivateServer>;
  /** Resolves once the master has all other running servers as replicas in sync. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

/** Three private servers, one of them the master, and three Sentinels that watch it. `password`: of the servers. */
export async function startRedisSentinels({ password }: { password?: string } = {}): Promise<RedisSentinels> {
  const settings = { appendonly: 'yes', ...(password && { requirepass: password, masterauth: password }) };
  const first = await startRedisServer(settings);
  const replica = () => startRedisServer({ ...settings, replicaof: `127.0.0.1 ${first.port}` });
  const nodes = [first, ...(await Promise.all([replica(), replica()]))];
  // A Sentinel never forgets a replica, not even one that has told no port.
  await until(() => replicasInSync(first, 2), { within: 30_000, what: 'the replicas' });
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(first.port, password)));

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
        return replicasInSync(await master(), others);
      },
      // A server that returns is reconfigured at its second INFO at the earliest, and a Sentinel asks every ten seconds.
      { within: 60_000, what: 'the master and its replicas' },
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
  const url = first.url.replace(/:\d+$/, '');
  return { url, sentinel, nodes, sentinels, master, settled, stop };
}

/** Only a replica that has told its port is known to the Sentinels. */
const replicasInSync = async ({ url }: PrivateServer, count: number) => {
  const replication = await withClient(url, (client) => client.info('replication'));
  return replication.includes('role:master') && replication.match(/port=[1-9]\d*,state=online/g)?.length === count;
};

/** Sentinels write their findings into their configuration. */
async function startSentinel(masterPort: number, password?: string): Promise<PrivateServer> {
  const directory = dataDirectory('sentinel');
  const file = join(directory, 'sentinel.conf');
  const lines = [
    `sentinel monitor ${NAME} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${NAME} 5000`,
    ...(password ? [`sentinel auth-pass ${NAME} ${password}`] : []),
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
