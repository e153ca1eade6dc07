import * as client from 'openid-client';
import { expect } from 'vitest';
import { type RelyingParty, relyingParty } from '../contract/rig/relying-party.ts';
import { loggedIn, type Scenario } from '../contract/rig/scenario.ts';

/** An application that refreshes the tokens of its users again and again, and repeats what was not answered. */
export interface RefreshLoad {
  party: RelyingParty;
  readonly counts: { refreshed: number; repeated: number };
  /** The session of a user. From then on the user's access must end. */
  ending(user: number): string;
  /** The end of the user's access was acknowledged: no refresh may succeed that begins now. */
  ended(user: number): void;
  /** Fails if a grant was lost, or one survived its end. */
  finish(): Promise<void>;
}

interface Access {
  session: string;
  /** The latest refresh token. */
  token: string;
  isEnding: boolean;
  hasEnded: boolean;
}

/** Refreshes go to the bases in turn. */
export async function startRefreshes(
  scenario: Scenario,
  { users, bases }: { users: number; bases: readonly (string | undefined)[] },
): Promise<RefreshLoad> {
  const party = await relyingParty(scenario);
  const configs = await Promise.all(bases.map((base) => party.configured(base)));
  const counts = { refreshed: 0, repeated: 0 };

  /** Undefined if nobody answered; null if the grant has ended. */
  const refresh = async (token: string, n: number): Promise<string | null | undefined> => {
    try {
      const config = configs[n % configs.length] as client.Configuration;
      return (await client.refreshTokenGrant(config, token)).refresh_token;
    } catch (error) {
      return error instanceof client.ResponseBodyError && error.error === 'invalid_grant' ? null : undefined;
    }
  };

  const begin = async (): Promise<Access> => {
    const { session } = await loggedIn(scenario);
    const { refresh_token: token = '' } = await party.logIn(session, {
      scope: 'openid offline_access',
      prompt: 'consent',
    });
    return { session, token, isEnding: false, hasEnded: false };
  };
  const all: Access[] = [];
  for (let user = 0; user < users; user++) all.push(await begin());
  const of = (user: number) => all[user] ?? expect.unreachable('no such user');

  let isOver = false;
  const work = async (access: Access, user: number) => {
    let repeats = 0;
    for (let n = user; !isOver; n++) {
      const wasEnded = access.hasEnded;
      const next = await refresh(access.token, n);
      if (next === null) return expect([user, access.isEnding]).toEqual([user, true]);
      if (next === undefined) {
        repeats = 1;
        continue;
      }
      expect([user, wasEnded]).toEqual([user, false]);
      access.token = next;
      counts.refreshed++;
      counts.repeated += repeats;
      repeats = 0;
    }
  };
  const working = Promise.all(all.map(work));
  // A failure is reported at the end.
  working.catch(() => undefined);

  return {
    party,
    counts,
    ending(user) {
      of(user).isEnding = true;
      return of(user).session;
    },
    ended(user) {
      of(user).hasEnded = true;
    },
    async finish() {
      isOver = true;
      await working;
      for (const [user, { token, hasEnded }] of all.entries())
        for (const n of configs.keys())
          expect([user, await refresh(token, n)]).toEqual([user, hasEnded ? null : expect.any(String)]);
    },
  };
}
