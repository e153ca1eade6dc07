import { hash } from 'node:crypto';
import type { Load } from '../faults/load.ts';
import { endedSessions } from '../rig/observe/history.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { withClient } from '../rig/servers/redis.ts';
import { until } from '../rig/until.ts';
import type { ClusterStack } from './stack.ts';

/** A fault of one part, chosen at run time. */
export interface Fault {
  inject(): Promise<unknown>;
  repair?(): Promise<unknown>;
  /** Writes since this performance.now() will be lost. */
  writesLostSince?: number;
  /** The number of ended sessions that are in the store again. */
  restoredSessions?(): Promise<number>;
}

type Cause = (stack: ClusterStack, load: Load) => Promise<Fault>;

const killed = (server: PrivateServer, settled: () => Promise<void>): Fault => ({
  inject: () => server.down({ kill: true }),
  async repair() {
    await server.up();
    await settled();
  },
});

export const serviceFaults = {
  'a service process killed': async ({ services, balanced }) => {
    const [service] = services;
    return {
      inject: async () => service?.kill(),
      async repair() {
        await service?.restart();
        await balanced();
      },
    };
  },

  'a service process frozen': async ({ services, balanced }) => {
    const [service] = services;
    return {
      inject: async () => service?.signal('SIGSTOP'),
      async repair() {
        service?.signal('SIGCONT');
        await balanced();
      },
    };
  },

  'a rolling restart': async ({ services, balanced }) => ({
    async inject() {
      for (const service of services) {
        await service.restart();
        await balanced();
      }
    },
  }),
} satisfies Record<string, Cause>;

export const databaseFaults: Record<string, Cause> = {
  'a database node killed': async ({ cluster }) => killed(await cluster.inUse(), cluster.settled),

  'a database node frozen': async ({ cluster }) => {
    const node = await cluster.inUse();
    return {
      inject: async () => node.pause(),
      async repair() {
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
    const writesLostSince = performance.now();
    for (const { replicas } of groups) for (const replica of replicas) await disconnect(replica);
    // Sessions that the replicas have, because they were opened before the disconnect, and that ended after it.
    const restoredBy = async (replicas: PrivateServer[]) => {
      const ended = endedSessions(load.history).filter(({ at }) => at > writesLostSince);
      const sessions = ended.map(({ session }) => session);
      return Math.min(...(await Promise.all(replicas.map((replica) => knownTo(replica, sessions)))));
    };
    // All masters: each has a third of the few sessions, maybe none.
    const isBehind = async () => {
      const counts = await Promise.all(groups.map(({ replicas }) => restoredBy(replicas)));
      return groups[counts.findIndex((count) => count > 0)];
    };
    const behind = await until(isBehind, {
      within: 30_000,
      every: 200,
      what: 'a session that ended but is still on the replicas',
    });
    // Sentinel has the server that it promotes write its settings to its file: there the wrong password would stay.
    const reconnect = async (some: typeof groups) => {
      for (const { replicas } of some)
        for (const { url } of replicas)
          await withClient(url, async (client) => {
            await client.config('SET', 'masterauth', '');
            await client.config('REWRITE');
          });
    };
    await reconnect(groups.filter((group) => group !== behind));
    const { inject, repair } = killed(behind.master, redis.settled);
    return {
      inject,
      async repair() {
        await reconnect([behind]);
        await repair?.();
      },
      restoredSessions: () => restoredBy(behind.replicas),
      writesLostSince,
    };
  },
};

async function replicasOf(master: PrivateServer, nodes: PrivateServer[]): Promise<PrivateServer[]> {
  const replication = await withClient(master.url, (client) => client.info('replication'));
  const ports = [...replication.matchAll(/^slave\d+:.*port=(\d+)/gm)].map(([, port]) => Number(port));
  return nodes.filter(({ port }) => ports.includes(port));
}

/** Cuts the replica off from its master by a wrong password. */
async function disconnect(replica: PrivateServer): Promise<void> {
  await withClient(replica.url, async (client) => {
    await client.config('SET', 'masterauth', 'wrong');
    await client.call('CLIENT', 'KILL', 'TYPE', 'master');
    await until(async () => (await client.info('replication')).includes('master_link_status:down'), {
      what: 'a replica without its master',
    });
  });
}

/** The number of these sessions on a server. */
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
    // A MOVED key belongs to another master.
    return answers.filter((answer) => answer.status === 'fulfilled' && answer.value === 1).length;
  });
