import { z } from 'zod';
import { hashOf } from '../lib/random-token.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';

/** The life of an authorization request; a device code lives shorter. */
const LIFE_MS = 30 * 60_000;

/** The question for consent to one request. */
interface Shown {
  userId: string;
  scopes: readonly string[];
}

/** The questions that users were shown: only these can be allowed. */
export const createShownConsents = (store: KeyValueStore) => {
  const keyOf = (request: string, { userId, scopes }: Shown) =>
    `oauth:shown:${hashOf([request, userId, ...scopes].join(' '))}`;
  return {
    async show<Step extends Shown>(request: string, step: Step): Promise<Step> {
      await store.set(keyOf(request, step), {}, { ttlMs: LIFE_MS });
      return step;
    },
    isShown: async (request: string, step: Shown): Promise<boolean> =>
      (await store.get(keyOf(request, step), z.object({}))) !== null,
  };
};

export type ShownConsents = ReturnType<typeof createShownConsents>;
