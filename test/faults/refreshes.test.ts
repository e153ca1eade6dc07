import { setTimeout as pause } from 'node:timers/promises';
import * as client from 'openid-client';
import { expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { relyingParty } from '../contract/rig/relying-party.ts';
import { loggedIn, onStack } from '../contract/rig/scenario.ts';
import { unlimited } from './load.ts';

/** Refreshes of tokens at two instances, each of which is killed again and again. */

const KILLS = 12;
const USERS = 12;
/** Of these users the access ends amid the kills. */
const ENDED = 4;

/** What an application knows of a user's access. */
interface Access {
  session: string;
  /** All refresh tokens so far, the latest last. */
  tokens: string[];
  /** True once the end of the access was answered. */
  hasEnded: boolean;
}

onStack(
  'real',
  (stack) => {
    // checks: F22
    test(`${KILLS} kill -9 amid refreshes lose no grant, and no grant survives its end`, async () => {
      const call = callerOf('rest', stack().url);
      const party = await relyingParty({ stack: stack(), call });
      const configs = [party.config, await party.configured(stack().services[1]?.url)];
      const counts = { refreshed: 0, repeated: 0 };

      /** Undefined if nobody answered; null if the grant has ended. */
      const refresh = async (token: string, n: number): Promise<string | null | undefined> => {
        try {
          const tokens = await client.refreshTokenGrant(configs[n % 2] as client.Configuration, token);
          return tokens.refresh_token;
        } catch (error) {
          if (error instanceof client.ResponseBodyError && error.error === 'invalid_grant') return null;
          return undefined;
        }
      };

      const begin = async (): Promise<Access> => {
        const { session } = await loggedIn({ stack: stack(), call });
        const parameters = { scope: 'openid offline_access', prompt: 'consent' };
        const { refresh_token: token = '' } = await party.logIn(session, parameters);
        return { session, tokens: [token], hasEnded: false };
      };
      const all: Access[] = [];
      for (let user = 0; user < USERS; user++) all.push(await begin());

      let isOver = false;
      /** An application that repeats what was not answered, at the other instance. */
      const work = async (access: Access, user: number) => {
        let repeats = 0;
        for (let n = user; !isOver; n++) {
          const wasEnded = access.hasEnded;
          const next = await refresh(access.tokens.at(-1) ?? '', n);
          if (next === null) return expect([user, user < ENDED]).toEqual([user, true]);
          if (next === undefined) {
            repeats = 1;
            continue;
          }
          expect([user, wasEnded]).toEqual([user, false]);
          access.tokens.push(next);
          counts.refreshed++;
          counts.repeated += repeats;
          repeats = 0;
        }
      };
      const working = Promise.all(all.map(work));
      // A failure is reported at the end.
      working.catch(() => undefined);

      for (let kill = 0; kill < KILLS; kill++) {
        await pause(Math.random() * 300);
        const service = stack().services[kill % 2];
        await service?.kill();
        const access = all[kill];
        if (access && kill < ENDED) {
          const other = callerOf('rest', stack().services[(kill + 1) % 2]?.url ?? '');
          const end = kill % 2 === 0 ? 'auth.logoutAll' : 'grants.revoke';
          const { session } = access;
          expect((await other(end, kill % 2 === 0 ? undefined : { id: party.id }, { session })).status).toBe(200);
          access.hasEnded = true;
        }
        await service?.restart();
      }
      isOver = true;
      await working;

      for (const [user, { tokens }] of all.entries()) {
        const last = tokens.at(-1) ?? '';
        for (const n of [0, 1])
          expect([user, await refresh(last, n)]).toEqual([user, user < ENDED ? null : expect.any(String)]);
      }
      console.log(
        `${KILLS} kills amid ${counts.refreshed} refreshes, ${counts.repeated} of them repeated: grants lost 0, survived 0`,
      );
      expect(counts.repeated).toBeGreaterThan(0);
    }, 300_000);
  },
  { instances: 2, inProcess: false, env: unlimited },
);
