/**
 * The keys that sign tokens (ES256), shared by all instances and encrypted under APP_SECRET. A key is published a day
 * before it signs, so that every relying party has it by then, and a day after its successor has begun, which is longer
 * than any token lives.
 */
import { generateKeyPairSync } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { z } from 'zod';
import { SharedLock } from '../../entities/index.ts';
import { type AllTables, type Database, nowOf } from '../parts/database/contract.ts';
import type { Secrets } from '../secrets.ts';

const DAY_MS = 24 * 60 * 60_000;
const LIFE_MS = 90 * DAY_MS;
const PUBLISHED_BEFORE_MS = DAY_MS;
const PUBLISHED_AFTER_MS = DAY_MS;
/** The row of `shared_locks` that is locked while a key is made. */
const LOCK = 'signing-keys';

const privateJwk = z.object({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string(),
  y: z.string(),
  d: z.string(),
});

/** A private key with what its public part is published with. */
type SigningJwk = z.output<typeof privateJwk> & { kid: string; alg: 'ES256'; use: 'sig' };

interface StoredKey {
  id: string;
  sealed: string;
  activeAt: number;
}

interface RotatedKey {
  id: string;
  activeAt: number;
}

interface Parts {
  database: Database;
  secrets: Secrets;
}

export const createSigningKeys = ({ database, secrets }: Parts) => {
  /** Latest to sign first. */
  const stored = (tables: Pick<AllTables, 'selectFrom'>): Promise<StoredKey[]> =>
    tables
      .selectFrom('signing_keys')
      .select(['id', 'sealed', 'active_at as activeAt'])
      .orderBy('active_at', 'desc')
      .orderBy('id', 'desc')
      .execute();

  const insert = async (tables: AllTables, activeAt: number): Promise<RotatedKey> => {
    const id = uuidv7();
    const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
    const sealed = secrets.seal('signing-key', id, JSON.stringify(jwk));
    await tables
      .insertInto('signing_keys')
      .values({ id, sealed, active_at: activeAt, created_at: database.now } as never)
      .execute();
    return { id, activeAt };
  };

  /** One process at a time. `decide` gets the time and the latest key. */
  const change = <Result>(decide: (tables: AllTables, now: number, latest: StoredKey | undefined) => Promise<Result>) =>
    database.transaction(async (em, tables) => {
      await em.upsert(SharedLock, { name: LOCK, holder: uuidv7() });
      const [latest] = await stored(tables);
      return decide(tables, await nowOf(database, tables), latest);
    }, LOCK);

  const open = (key: StoredKey) => secrets.open('signing-key', key.id, key.sealed);
  /** The key that signs at a time. Undefined without one that can be decrypted. */
  const signing = (keys: StoredKey[], now: number) => keys.find((key) => key.activeAt <= now && open(key));

  return {
    /**
     * The keys to publish, the one that signs now first. Makes the first key, and another if the present one cannot be
     * decrypted, because its APP_SECRET was removed.
     */
    async published(): Promise<SigningJwk[]> {
      const read = () =>
        database.query(async (tables) => ({ keys: await stored(tables), now: await nowOf(database, tables) }));
      let { keys, now } = await read();
      if (!signing(keys, now)) {
        await change(async (tables, time) => {
          if (!signing(await stored(tables), time)) await insert(tables, time);
        });
        ({ keys, now } = await read());
      }
      const first = signing(keys, now);
      return [...keys]
        .sort((one, other) => Number(other === first) - Number(one === first))
        .flatMap((key): SigningJwk[] => {
          const opened = open(key);
          if (!opened) return [];
          return [{ ...privateJwk.parse(JSON.parse(opened.text)), kid: key.id, alg: 'ES256', use: 'sig' }];
        });
    },

    /** Makes a key that signs a day from now. Resolves to the latest one if it does not sign yet. */
    rotate: (): Promise<RotatedKey> =>
      change(async (tables, now, latest) =>
        latest && latest.activeAt > now ? latest : insert(tables, latest ? now + PUBLISHED_BEFORE_MS : now),
      ),

    /**
     * Makes the next key a day before the latest one is 90 days old, encrypts all under the current APP_SECRET, and
     * deletes those that no token needs.
     */
    maintain: async (): Promise<void> => {
      await change(async (tables, now, latest) => {
        if (!latest) return;
        if (latest.activeAt + LIFE_MS - PUBLISHED_BEFORE_MS <= now) await insert(tables, now + PUBLISHED_BEFORE_MS);
        const keys = await stored(tables);
        for (const key of keys) {
          const opened = open(key);
          if (!opened || opened.isCurrent) continue;
          const sealed = secrets.seal('signing-key', key.id, opened.text);
          await tables.updateTable('signing_keys').set({ sealed }).where('id', '=', key.id).execute();
        }
        const successors = keys.filter(({ activeAt }) => activeAt + PUBLISHED_AFTER_MS <= now);
        const unneeded = successors.slice(1).map(({ id }) => id);
        if (unneeded.length > 0) await tables.deleteFrom('signing_keys').where('id', 'in', unneeded).execute();
      });
    },
  };
};

export type SigningKeys = ReturnType<typeof createSigningKeys>;
