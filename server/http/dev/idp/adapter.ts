import type { Adapter, AdapterPayload } from 'oidc-provider';
import type { KeyValueStore } from '../../../parts/key-value/contract.ts';

/** The life of an entry that has no expiry of its own. */
const DAY_SECONDS = 24 * 60 * 60;

/** The storage of oidc-provider, in the key-value store: a flow outlives a restart, and may end at another instance. */
export function storeAdapter(store: KeyValueStore, model: string): Adapter {
  const key = (id: string, kind = model) => `dev-idp:${kind}:${id}`;
  const keep = (name: string, value: unknown, seconds = DAY_SECONDS) =>
    store.set(name, JSON.stringify(value), { ttlMs: seconds * 1000 });
  const read = async (name: string) => {
    const stored = await store.get(name);
    return stored === null ? undefined : (JSON.parse(stored) as AdapterPayload);
  };

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
    // Without the grant, its tokens and codes are worth nothing.
    revokeByGrantId: (grantId) => store.delete(key(grantId, 'Grant')),
  };
}
