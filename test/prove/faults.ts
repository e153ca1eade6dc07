import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { createSecrets } from '../../server/secrets.ts';
import { databaseFaults, type Fault, redisFaults, serviceFaults } from '../cluster/faults.ts';
import type { ClusterStack } from '../cluster/stack.ts';
import type { Load } from '../faults/load.ts';
import { slowClock } from '../rig/process/clock.ts';
import { runCommand } from '../rig/process/command.ts';
import { root } from '../rig/process/service.ts';
import { execute } from '../rig/servers/database-cluster.ts';
import type { CutProxy } from '../rig/servers/proxy.ts';
import { until } from '../rig/until.ts';

/** The clusters with what these faults need besides. */
export interface ProvenStack extends ClusterStack {
  /** Between the instances and each database node, in the order of the nodes. */
  relays: CutProxy[];
}

type Cause = (stack: ProvenStack, load: Load) => Promise<Fault>;

const CLOCK_JUMP_MS = 600_000;
/** So that a clock can jump at run time; it starts right. */
export const clockEnv = { ...slowClock(0), CLOCK_JUMP_MS: String(CLOCK_JUMP_MS) };

/** Each instance in turn, as docs/deploy says. */
async function eachRestarted({ services, balanced }: ClusterStack, changes: Parameters<typeof restartOf>[1] = {}) {
  for (const service of services) {
    await restartOf(service, changes);
    await balanced();
  }
}
const restartOf = (
  service: ClusterStack['services'][number],
  changes: { env?: Record<string, string>; tree?: string },
) => service.restart(changes);

/** From the release before to the current code: the first fault, and never again. */
export const upgrade: Record<string, Cause> = {
  'upgrade from the release before': async (stack) => ({ inject: () => eachRestarted(stack, { tree: root }) }),
};

const partitions: Record<string, Cause> = {
  'partition: a database node from the others': async ({ cluster, databases }) => {
    const node = await cluster.inUse();
    const isolated = (yes: 0 | 1) => execute(node, `set global wsrep_provider_options = 'gmcast.isolate=${yes}'`);
    return {
      inject: () => isolated(1),
      async repair() {
        await isolated(0);
        await cluster.settled();
        await databases[0]?.query('select 1');
      },
    };
  },

  'partition: the instances from a database node': async ({ cluster, relays }) => {
    const node = await cluster.inUse();
    const relay = relays[cluster.nodes.indexOf(node)];
    return { inject: async () => relay?.cut(), repair: async () => relay?.heal() };
  },
};

const clocks: Record<string, Cause> = {
  'clock jump: an instance 10 minutes ahead, and back': async ({ services, balanced }) => ({
    inject: async () => services[1]?.signal('SIGUSR2'),
    async repair() {
      await services[1]?.restart();
      await balanced();
    },
  }),
};

const rotations: Record<string, Cause> = {
  'rotation of APP_SECRET': async (stack) => ({
    async inject() {
      const old = stack.services[0]?.env['APP_SECRET'] ?? '';
      const next = randomBytes(32).toString('hex');
      await eachRestarted(stack, { env: { APP_SECRET: `${next},${old}` } });
      const { query } = stack.databases[0] ?? {};
      // By the clock of the database: ids of an instance whose clock was ahead are later.
      const latest = 'select max(created_at) as last from outbox';
      const [{ last = 0 } = {}] = (await query?.<{ last: number }>(latest)) ?? [];
      const pending = "select id from outbox where created_at <= ? and state = 'pending' limit 1";
      await until(async () => (await query?.(pending, [last]))?.length === 0, {
        // Instances without its secret may have leased it several times.
        within: 180_000,
        what: 'the last mail of the old secret',
      });
      // As housekeeping does within a quarter of an hour.
      const secrets = createSecrets([next, old]);
      const keys = await query?.<{ id: string; sealed: string }>('select id, sealed from signing_keys');
      for (const { id, sealed } of keys ?? []) {
        const { text = '' } = secrets.open('signing-key', id, sealed) ?? {};
        await query?.('update signing_keys set sealed = ? where id = ?', [secrets.seal('signing-key', id, text), id]);
      }
      await eachRestarted(stack, { env: { APP_SECRET: next } });
    },
  }),

  // The new key waits until both instances publish it, instead of a day.
  'rotation of the signing keys': async ({ services, databases }) => ({
    async inject() {
      const { stdout } = await runCommand('keys', { ...services[0]?.env }, ['rotate']);
      const [id = ''] = stdout.split(' ');
      for (const { url } of services) {
        const isPublished = async () => (await (await fetch(`${url}/oauth/jwks`)).text()).includes(id);
        await until(isPublished, { within: 90_000, every: 1000, what: 'the new key at both instances' });
      }
      await databases[0]?.query('update signing_keys set active_at = created_at where active_at > created_at');
    },
  }),
};

const { 'a service process killed': instanceKilled, 'a rolling restart': rollingRestart } = serviceFaults;

/** Until callers have sent again, elsewhere, what the frozen instance will find when it goes on. */
const FROZEN_MS = 12_000;
const instanceFrozen: Cause = async (stack) => {
  const fault = await serviceFaults['a service process frozen'](stack);
  return {
    ...fault,
    async inject() {
      await fault.inject();
      await pause(FROZEN_MS);
    },
  };
};

/** In the order of a round. */
export const faults: Record<string, Cause> = {
  'kill -9 of an instance': instanceKilled,
  'freeze (SIGSTOP) of an instance': instanceFrozen,
  ...databaseFaults,
  ...partitions,
  ...redisFaults,
  ...clocks,
  'rolling restart': rollingRestart,
  ...rotations,
};

/** What another kind of Redis makes different. */
export const faultsOfParts: Record<string, Cause> = {
  'kill -9 of an instance': instanceKilled,
  'a database node killed': databaseFaults['a database node killed'] as Cause,
  ...redisFaults,
};
