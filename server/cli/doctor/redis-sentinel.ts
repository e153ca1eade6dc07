import type { Redis } from 'ioredis';
import type { RedisNode, RedisSentinel } from '../../config/index.ts';
import { examineServers } from './examination.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import { addressOf, nameOf, serverFindings, withServer } from './redis-server.ts';

/** Fewer cannot lose one and still agree. */
const FEWEST = 3;

/** `url`: with the user, password and database of the master that the Sentinels name. */
export async function* sentinelFindings(url: string, sentinel: RedisSentinel): AsyncGenerator<Finding> {
  const masters = new Map<string, RedisNode>();
  const own = Object.assign(new URL(url), { username: sentinel.username, password: sentinel.password, pathname: '' });
  yield* examineServers(
    sentinel.nodes.map((node) => [
      `Sentinel ${nameOf(node)}`,
      withServer({ url: addressOf(own.href, node), variable: 'REDIS_SENTINEL' }, async function* (redis) {
        const master = await masterOf(redis, sentinel.master);
        if (master) masters.set(nameOf(master), master);
        yield master
          ? await quorumFinding(redis, sentinel.master, nameOf(master))
          : problem(
              `it watches no master ${sentinel.master}`,
              'REDIS_SENTINEL must end with the name in its `sentinel monitor`',
            );
      }),
    ]),
  );
  if (sentinel.nodes.length < FEWEST) {
    yield warning(
      `REDIS_SENTINEL names ${sentinel.nodes.length} of the Sentinels: without them no master is found`,
      'name all of them, three at least',
    );
  }
  if (masters.size > 1) {
    yield problem(
      `the Sentinels name different masters: ${[...masters.keys()].join(', ')}`,
      'wait for the failover to end; if it does not, see the logs of the Sentinels',
    );
  }
  yield* examineServers(
    [...masters].map(([name, node]) => [
      `master ${name}`,
      withServer({ url: addressOf(url, node), variable: 'REDIS_URL' }, (redis) => serverFindings(redis)),
    ]),
  );
}

async function masterOf(redis: Redis, name: string): Promise<RedisNode | undefined> {
  const address = (await redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)) as [string, string] | null;
  return address ? { host: address[0], port: Number(address[1]) } : undefined;
}

/** Whether those that it reaches are enough for a failover. */
async function quorumFinding(redis: Redis, name: string, master: string): Promise<Finding> {
  try {
    await redis.call('SENTINEL', 'CKQUORUM', name);
    return ok(`it names ${master} as master, and reaches enough others for a failover`);
  } catch (error) {
    const { message } = error as Error;
    if (!message.startsWith('NOQUORUM')) throw error;
    return problem(
      message,
      'bring the other Sentinels back; each must be reached by the others and run `sentinel monitor` for this master',
    );
  }
}
