/**
 * Device codes (RFC 8628) in the key-value store, under their hash. The keys of the user code and of the unused device
 * code are taken, so that one answer of a user and one request of the device count, also on two instances.
 */
import type { AdapterPayload } from 'oidc-provider';
import { z } from 'zod';
import { hashOf } from '../lib/random-token.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import { stored, unexpired } from './short-lived.ts';

const reference = z.object({ id: z.string() });

export const createDeviceCodes = (store: KeyValueStore) => {
  const keyOf = (id: string) => `oauth:DeviceCode:${id}`;
  /** Twice as long as the code: an expired one is told from an unknown one. */
  const issuedKeyOf = (id: string) => `oauth:DeviceCode:issued:${id}`;
  const unusedKeyOf = (id: string) => `oauth:DeviceCode:unused:${id}`;
  const userKeyOf = (userCode: string) => `oauth:DeviceCode:user:${userCode}`;
  const read = async (id: string) => {
    const found = await store.get(keyOf(id), stored);
    return found ? unexpired(found.payload) : undefined;
  };

  return {
    /** Rejects if another device has the user code. */
    async insert(code: string, { jti: _, userCode = '', ...payload }: AdapterPayload, lifeMs: number): Promise<void> {
      const [id, options] = [hashOf(code), { ttlMs: lifeMs }];
      if (await store.get(userKeyOf(userCode), reference)) throw new Error('this user code is taken');
      const { kind, clientId } = payload;
      await store.set(issuedKeyOf(id), { payload: { kind, clientId, exp: 1 } }, { ttlMs: 2 * lifeMs });
      await store.set(keyOf(id), { payload }, options);
      await store.set(userKeyOf(userCode), { id }, options);
    },

    /** An expired one has the `exp` 1. */
    async find(code: string): Promise<AdapterPayload | undefined> {
      const id = hashOf(code);
      const payload = (await read(id)) ?? (await store.get(issuedKeyOf(id), stored))?.payload;
      return payload && { ...payload, jti: code };
    },

    /** Undefined if it has expired or is answered. */
    async findAsked(userCode: string): Promise<AdapterPayload | undefined> {
      const found = await store.get(userKeyOf(userCode), reference);
      return found ? read(found.id) : undefined;
    },

    /**
     * Adds the answer of the user, which is decided once no other user can answer. If that fails, the code can be answered
     * again. Resolves to false if it has expired or is answered.
     */
    async answer(userCode: string, decide: () => Promise<AdapterPayload>): Promise<boolean> {
      const taken = await store.take(userKeyOf(userCode), reference);
      const payload = taken && (await read(taken.id));
      if (!payload) return false;
      const ttlMs = (payload.exp ?? 0) * 1000 - Date.now();
      const given = await decide().catch(async (error: unknown) => {
        await store.set(userKeyOf(userCode), taken, { ttlMs });
        throw error;
      });
      await store.set(unusedKeyOf(taken.id), {}, { ttlMs });
      return store.set(keyOf(taken.id), { payload: { ...payload, ...given } }, { ttlMs, ifExists: true });
    },

    /** Resolves to true for the first use of an answered one. */
    use: async (code: string): Promise<boolean> => (await store.take(unusedKeyOf(hashOf(code)), z.object({}))) !== null,
  };
};
