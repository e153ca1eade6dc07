import { setTimeout as pause } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import * as client from 'openid-client';
import { expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { refused, relyingParty } from '../contract/rig/relying-party.ts';
import { loggedIn, onStack } from '../contract/rig/scenario.ts';
import { unlimited } from './load.ts';
import { startRefreshes } from './refresh-load.ts';

/** Refreshes of tokens at two instances that are killed again and again. */

const KILLS = 12;
const USERS = 12;
/** The access of these users ends amid the kills. */
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
    });

    // checks: F22
    test.each(['a used token', 'a token that is revoked'])(
      '%s whose grant could not be ended ends it when it comes again',
      async (kind) => {
        const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
        const party = await relyingParty(scenario);
        const { session } = await loggedIn(scenario);
        const { refresh_token: first = '' } = await party.logIn(session);
        const refresh = (token: string) => client.refreshTokenGrant(party.config, token);
        const { refresh_token: second = '' } = await refresh(first);
        await stack().database('update oauth_artifacts set consumed_at = consumed_at - 11000');
        const end = () =>
          kind === 'a used token' ? refresh(first) : client.tokenRevocation(party.config, second).then(() => undefined);

        const holder = await createConnection({ uri: String(stack().services[0]?.env['DATABASE_URL']) });
        try {
          await holder.query('begin');
          await holder.query('select id from grants for update');
          const failure = await refused(end());
          expect(failure).toBeDefined();
          expect(failure).not.toBe('invalid_grant');
        } finally {
          await holder.end();
        }

        expect(await refused(end())).toBe(kind === 'a used token' ? 'invalid_grant' : undefined);
        expect(await refused(refresh(second))).toBe('invalid_grant');
      },
    );
  },
  { instances: 2, inProcess: false, env: unlimited },
);
