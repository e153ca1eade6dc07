import type { AdapterPayload } from 'oidc-provider';
import { z } from 'zod';
import { hashOf } from '../lib/random-token.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';

/** Models that live for minutes. An access token also needs its grant, which is in the database. */
export const shortLivedModels = ['AccessToken', 'ClientCredentials', 'Interaction', 'PushedAuthorizationRequest'];

/** The longest time until a client assertion expires: five minutes, and one for the difference of clocks. */
export const MAX_ASSERTION_SECONDS = 6 * 60;
/** Longer than client assertions and DPoP proofs are accepted: the library takes five minutes before and after. */
const REPLAY_SECONDS = 2 * MAX_ASSERTION_SECONDS;

const isPayload = (value: unknown) => typeof value === 'object' && value !== null;
/** As the key-value store has it. */
export const stored = z.object({ payload: z.custom<AdapterPayload>(isPayload) });

/** The least remaining life that the library sees: an instance may have a clock that is ahead of the store's. */
const MIN_LIFE_SECONDS = 60;

export const unexpired = ({ exp, ...payload }: AdapterPayload): AdapterPayload => ({
  ...payload,
  ...(exp !== undefined && { exp: Math.max(exp, Math.floor(Date.now() / 1000) + MIN_LIFE_SECONDS) }),
});

/** Payloads of one model in the key-value store, under the hash of their token and without it. */
export const createShortLived = (store: KeyValueStore, model: string) => {
  const keyOf = (token: string) => `oauth:${model}:${hashOf(token)}`;
  return {
    async insert(token: string, { jti: _, ...payload }: AdapterPayload, lifeMs: number): Promise<void> {
      await store.set(keyOf(token), { payload }, { ttlMs: lifeMs });
    },

    async find(token: string): Promise<AdapterPayload | undefined> {
      const found = await store.get(keyOf(token), stored);
      return found ? { ...unexpired(found.payload), jti: token } : undefined;
    },

    /** Resolves to whether this call removed it. */
    take: async (token: string): Promise<boolean> => (await store.take(keyOf(token), stored)) !== null,

    remove: (token: string): Promise<void> => store.delete(keyOf(token)),
  };
};

/** Resolves to true for the first use of a DPoP proof or client assertion, on all instances. */
export function createReplayCheck(store: KeyValueStore): (id: string) => Promise<boolean> {
  const count = store.counter({ name: 'oauth:dpop', points: 1, seconds: REPLAY_SECONDS });
  return async (id) => (await count(id)).allowed;
}
