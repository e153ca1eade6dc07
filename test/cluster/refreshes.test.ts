import { afterAll, beforeAll, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { unlimited } from '../faults/load.ts';
import { type RefreshLoad, startRefreshes } from '../faults/refresh-load.ts';
import { until } from '../rig/until.ts';
import { asScenario, type ClusterStack, startClusterStack } from './stack.ts';

/** Refreshes of tokens while database nodes and Redis masters fail. */

const FAILOVERS = 4;
const USERS = 12;
/** The refreshes that succeed before and after each fault. */
const REFRESHES_BETWEEN = 40;

let stack: ClusterStack;
let load: RefreshLoad;
beforeAll(async () => {
  stack = await startClusterStack('Redis Sentinel', unlimited);
  load = await startRefreshes(asScenario(stack), { users: USERS, bases: [stack.proxy.url] });
});
afterAll(() => stack?.stop());

/** Resolves once refreshes have succeeded again. */
async function underLoad() {
  const { counts } = load;
  const from = counts.refreshed;
  await until(() => counts.refreshed >= from + REFRESHES_BETWEEN, { within: 90_000, every: 100, what: 'refreshes' });
}

test(`${FAILOVERS} failovers of the database and ${FAILOVERS} of Redis lose no grant, and none survives its end`, async () => {
  await underLoad();
  for (let i = 0; i < FAILOVERS; i++) {
    const [master] = await stack.redis.masters();
    for (const [n, server] of [await stack.cluster.inUse(), master].entries()) {
      const user = 2 * i + n;
      await server?.down({ kill: true });
      const session = load.ending(user);
      await until(
        async () => {
          const call = callerOf('rest', stack.proxy.url);
          const { status } = await call('grants.revoke', { id: load.party.id }, { session });
          // 404: a try before was not answered.
          return status === 200 || status === 404;
        },
        { within: 90_000, every: 200, what: 'the end of an access' },
      );
      load.ended(user);
      await underLoad();
      await server?.up();
      await (n === 0 ? stack.cluster : stack.redis).settled();
      await underLoad();
    }
  }
  await load.finish();
  const { refreshed, repeated } = load.counts;
  console.log(`${refreshed} refreshes, ${repeated} of them repeated, ${2 * FAILOVERS} failovers: lost 0, survived 0`);
  expect(repeated).toBeGreaterThan(0);
}, 900_000);
