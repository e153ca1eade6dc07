import { hash } from 'node:crypto';
import type { Load } from '../faults/load.ts';
import { endedSessions } from '../rig/history.ts';
import type { PrivateServer } from '../rig/private-server.ts';
import { withClient } from '../rig/redis.ts';
import { until } from '../rig/until.ts';
import type { ClusterStack } from './stack.ts';

/** What happens to one part, once it was found out which; `mend` makes it whole again. */
export interface Fault {
  strike(): Promise<unknown>;
  mend?(): Promise<unknown>;
  /** What was written since that instant of performance.now(), the strike will lose. */
  forgottenSince?: number;
  /** How many of the sessions that have ended are back in the store. */
  resurrected?(): Promise<number>;
}

type Cause = (stack: ClusterStack, load: Load) => Promise<Fault>;

const killed = (server: PrivateServer, settled: () => Promise<void>): Fault => ({
  strike: () => server.down({ kill: true }),
  async mend() {
    await server.up();
    await settled();
  },
});

export const serviceFaults: Record<string, Cause> = {
  'a service process killed': async ({ services, balanced }) => {
    const [service] = services;
    return {
      strike: async () => service?.kill(),
      async mend() {
        await service?.restart();
        await balanced();
      },
    };
  },

  'a rolling restart': async ({ services, balanced }) => ({
    async strike() {
      for (const service of services) {
        await service.restart();
        await balanced();
      }
    },
  }),
};

export const databaseFaults: Record<string, Cause> = {
  'a database node killed': async ({ cluster }) => killed(await cluster.inUse(), cluster.settled),

  'a database node frozen': async ({ cluster }) => {
    const node = await cluster.inUse();
    return {
      strike: async () => node.pause(),
      async mend() {
        node.resume();
        await cluster.settled();
      },
    };
  },
};

export const redisFaults: Record<string, Cause> = {
  'a Redis master killed': async ({ redis }) => {
    const [master] = await redis.masters();
    if (!master) throw new Error('no Redis server takes writes');
    return killed(master, redis.settled);
  },

  'a Redis master killed, replicas behind': async ({ redis }, load) => {
    const groupOf = async (master: PrivateServer) => ({ master, replicas: await replicasOf(master, redis.nodes) });
    const groups = await Promise.all((await redis.masters()).map(groupOf));
    const forgottenSince = performance.now();
    for (const { replicas } of groups) for (const replica of replicas) await disconnect(replica);
    // Opened before, so that the replicas have them, and ended since.
    const resurrectedBy = async (replicas: PrivateServer[]) => {
      const ended = endedSessions(load.history).filter(({ at }) => at > forgottenSince);
      const sessions = ended.map(({ session }) => session);
      return Math.min(...(await Promise.all(replicas.map((replica) => knownTo(replica, sessions)))));
    };
    // Any of them: each master of a Cluster has a third of the few sessions, which may be none.
    const isBehind = async () => {
      const counts = await Promise.all(groups.map(({ replicas }) => resurrectedBy(replicas)));
      return groups[counts.findIndex((count) => count > 0)];
    };
    const behind = await until(isBehind, {
      within: 30_000,
      every: 200,
      what: 'a session of which the replicas do not know that it ended',
    });
    const reconnect = async (some: typeof groups) => {
      for (const { replicas } of some)
        for (const { url } of replicas) await withClient(url, (client) => client.config('SET', 'masterauth', ''));
    };
    await reconnect(groups.filter((group) => group !== behind));
    const { strike, mend } = killed(behind.master, redis.settled);
    return {
      strike,
      async mend() {
        await reconnect([behind]);
        await mend?.();
      },
      resurrected: () => resurrectedBy(behind.replicas),
      forgottenSince,
    };
  },
};

async function replicasOf(master: PrivateServer, nodes: PrivateServer[]): Promise<PrivateServer[]> {
  const replication = await withClient(master.url, (client) => client.info('replication'));
  const ports = [...replication.matchAll(/^slave\d+:.*port=(\d+)/gm)].map(([, port]) => Number(port));
  return nodes.filter(({ port }) => ports.includes(port));
}

/** Its master goes on without it: it is refused there, for a password that nobody has set. */
async function disconnect(replica: PrivateServer): Promise<void> {
  await withClient(replica.url, async (client) => {
    await client.config('SET', 'masterauth', 'wrong');
    await client.call('CLIENT', 'KILL', 'TYPE', 'master');
    await until(async () => (await client.info('replication')).includes('master_link_status:down'), {
      what: 'a replica without its master',
    });
  });
}

/** How many of these sessions a server has. */
const knownTo = (server: PrivateServer, sessions: string[]): Promise<number> =>
  withClient(server.url, async (client) => {
    // Refused outside a Cluster, which needs it.
    await client.readonly().catch(() => undefined);
    const answers = await Promise.allSettled(
      sessions.map((session) => client.exists(`session:${hash('sha256', session, 'base64url')}`)),
    );
    const failed = answers.filter((answer) => answer.status === 'rejected').map(({ reason }) => reason);
    const unexpected = failed.find((error) => !String(error).includes('MOVED'));
    if (unexpected) throw unexpected;
    // What was MOVED belongs to other masters.
    return answers.filter((answer) => answer.status === 'fulfilled' && answer.value === 1).length;
  });
