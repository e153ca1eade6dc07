import type { Adapter, AdapterPayload } from 'oidc-provider';
import { z } from 'zod';
import type { KeyValueStore } from '../../../parts/key-value/contract.ts';

/** The lifetime of an entry without its own expiry. */
const DAY_SECONDS = 24 * 60 * 60;

/** The fields of a payload are the library's. */
const isPayload = (value: unknown) => typeof value === 'object' && value !== null;
const storedPayload = z.object({ payload: z.custom<AdapterPayload>(isPayload) });

/** The storage of oidc-provider in the key-value store: a flow survives a restart and may end at another instance. */
export function storeAdapter(store: KeyValueStore, model: string): Adapter {
  const key = (id: string, kind = model) => `dev-idp:${kind}:${id}`;
  const keep = (name: string, payload: AdapterPayload, seconds = DAY_SECONDS) =>
    store.set(name, { payload }, { ttlMs: seconds * 1000 });
  const read = async (name: string) => (await store.get(name, storedPayload))?.payload;

  return {
    async upsert(id, payload, expiresIn) {
      await keep(key(id), payload, expiresIn);
      if (payload.uid && payload.uid !== id) await keep(key(payload.uid, `${model}-uid`), { jti: id }, expiresIn);
    },
    find: (id) => read(key(id)),
    async findByUid(uid) {
      const id = (await read(key(uid, `${model}-uid`)))?.jti;
      return id === undefined ? undefined : read(key(id));
    },
    // Only the device flow needs it, which is off.
    findByUserCode: async () => undefined,
    async consume(id) {
      const payload = await read(key(id));
      const now = Math.floor(Date.now() / 1000);
      if (payload) await keep(key(id), { ...payload, consumed: now }, Math.max(1, (payload.exp ?? now) - now));
    },
    destroy: (id) => store.delete(key(id)),
    // Without the grant its tokens and codes are invalid.
    revokeByGrantId: (grantId) => store.delete(key(grantId, 'Grant')),
  };
}
