import type { Redis } from 'ioredis';
import type { RedisNode, RedisSentinel } from '../../config/index.ts';
import { examineServers } from './examination.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import { addressOf, factsOf, nameOf, serverFindings, withServer } from './redis-server.ts';

/** With fewer, no majority remains after the loss of one. */
const FEWEST = 3;

/** `masterUrl` has the user, password and database of the master that the Sentinels name. */
export async function* sentinelFindings(masterUrl: string, sentinel: RedisSentinel): AsyncGenerator<Finding> {
  const masters = new Map<string, RedisNode>();
  const replicas = new Map<string, RedisNode>();
  const own = Object.assign(new URL(masterUrl), {
    username: sentinel.username,
    password: sentinel.password,
    pathname: '',
  });
  yield* examineServers(
    sentinel.nodes.map((node) => [
      `Sentinel ${nameOf(node)}`,
      withServer({ url: addressOf(own.href, node), variable: 'REDIS_SENTINEL' }, async function* (redis) {
        const master = await masterOf(redis, sentinel.master);
        if (!master) {
          yield problem(
            `it does not monitor a master named ${sentinel.master}`,
            'REDIS_SENTINEL must end with the name in its `sentinel monitor`',
          );
          return;
        }
        masters.set(nameOf(master), master);
        for (const replica of await replicasOf(redis, sentinel.master)) replicas.set(nameOf(replica), replica);
        yield await quorumFinding(redis, sentinel.master, nameOf(master));
        yield* viewFindings(redis, sentinel.master);
      }),
    ]),
  );
  if (sentinel.nodes.length < FEWEST) {
    yield warning(
      `REDIS_SENTINEL names ${sentinel.nodes.length} of the Sentinels: if these fail, no master is found`,
      'name all of them, three at least',
    );
  }
  if (masters.size > 1) {
    yield problem(
      `the Sentinels name different masters: ${[...masters.keys()].join(', ')}`,
      'wait for the failover to end; if it does not, see the logs of the Sentinels',
    );
  }
  if (masters.size > 0 && replicas.size === 0) {
    yield warning('the Sentinels know no replica: if the master fails, nothing takes over', 'add one: `replicaof`');
  }
  const examined = (role: 'master' | 'replica', servers: Map<string, RedisNode>) =>
    [...servers].map(([name, node]) => {
      const options = { inGroup: true, mayBeReplica: role === 'replica' };
      const url = addressOf(masterUrl, node);
      return [
        `${role} ${name}`,
        withServer({ url, variable: 'REDIS_URL' }, (redis) => serverFindings(redis, options)),
      ] as const;
    });
  for (const name of masters.keys()) replicas.delete(name);
  yield* examineServers([...examined('master', masters), ...examined('replica', replicas)]);
}

async function masterOf(redis: Redis, name: string): Promise<RedisNode | undefined> {
  const address = (await redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)) as [string, string] | null;
  return address ? { host: address[0], port: Number(address[1]) } : undefined;
}

/** Without those of port 0: a Sentinel never forgets a replica that it saw before the replica had told its port. */
async function replicasOf(redis: Redis, name: string): Promise<RedisNode[]> {
  const replicas = (await redis.call('SENTINEL', 'REPLICAS', name)) as string[][];
  const nodes = replicas.map(factsOf).map(({ ip = '', port }) => ({ host: ip, port: Number(port) }));
  return nodes.filter(({ port }) => port > 0);
}

/** A Sentinel's view of the master: without a login there it reports the master as down and starts failovers. */
async function* viewFindings(redis: Redis, name: string): AsyncGenerator<Finding> {
  const { flags = '' } = factsOf((await redis.call('SENTINEL', 'MASTER', name)) as string[]);
  yield flags === 'master'
    ? ok('it considers the master healthy')
    : problem(
        `it considers the master unhealthy (flags ${flags})`,
        `if the master runs, give this Sentinel its password: SENTINEL SET ${name} auth-pass PASSWORD`,
      );
}

/** Checks that a Sentinel reaches enough others for a failover. */
async function quorumFinding(redis: Redis, name: string, master: string): Promise<Finding> {
  try {
    await redis.call('SENTINEL', 'CKQUORUM', name);
    return ok(`it names ${master} as master, and reaches enough others for a failover`);
  } catch (error) {
    const { message } = error as Error;
    if (!message.startsWith('NOQUORUM')) throw error;
    return problem(
      message,
      'restart the other Sentinels; all must reach one another and run `sentinel monitor` for this master',
    );
  }
}
