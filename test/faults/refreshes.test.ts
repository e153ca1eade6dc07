import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { onStack } from '../contract/rig/scenario.ts';
import { unlimited } from './load.ts';
import { startRefreshes } from './refresh-load.ts';

/** Refreshes of tokens at two instances, each of which is killed again and again. */

const KILLS = 12;
const USERS = 12;
/** Of these users the access ends amid the kills. */
const ENDED = 4;

onStack(
  'real',
  (stack) => {
    // checks: F22
    test(`${KILLS} kill -9 amid refreshes lose no grant, and no grant survives its end`, async () => {
      const { services } = stack();
      const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
      const bases = services.map(({ url }) => url);
      const { party, counts, ending, ended, finish } = await startRefreshes(scenario, { users: USERS, bases });

      for (let kill = 0; kill < KILLS; kill++) {
        await pause(Math.random() * 300);
        const service = services[kill % 2];
        await service?.kill();
        if (kill < ENDED) {
          const call = callerOf('rest', bases[(kill + 1) % 2] ?? '');
          const session = ending(kill);
          const reply =
            kill % 2 === 0
              ? await call('auth.logoutAll', undefined, { session })
              : await call('grants.revoke', { id: party.id }, { session });
          expect(reply.status).toBe(200);
          ended(kill);
        }
        await service?.restart();
      }
      await finish();
      console.log(
        `${KILLS} kills amid ${counts.refreshed} refreshes, ${counts.repeated} of them repeated: grants lost 0, survived 0`,
      );
      expect(counts.repeated).toBeGreaterThan(0);
    }, 300_000);
  },
  { instances: 2, inProcess: false, env: unlimited },
);
