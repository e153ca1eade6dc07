import { randomUUID } from 'node:crypto';
import type { Insertable, Selectable } from 'kysely';
import { User } from '../../../entities/index.ts';
import { type Database, rowOf, type Tables } from '../../../server/parts/database/contract.ts';
import { type ObjectStorage, visibilityOf } from '../../../server/parts/object-storage/contract.ts';
import type { Log } from '../../../server/telemetry/log.ts';
import { emptyStorage } from './empty-storage.ts';

type Row = Selectable<Tables['uploads']>;

export const MINUTE = 60_000;

export const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} } as unknown as Log;

/** Objects in memory. `calls` lists what was asked of the storage: `delete uploads/a.webp`. */
export function memoryStorage() {
  const objects = new Map<string, Buffer>();
  const calls: string[] = [];
  const called = (...call: unknown[]) => void calls.push(call.join(' '));
  const storage: ObjectStorage = {
    ...emptyStorage,
    async put(key, bytes, contentType) {
      called('put', key, contentType);
      objects.set(key, Buffer.from(bytes));
    },
    async find(key, startBytes) {
      called('find', key, startBytes);
      const bytes = objects.get(key);
      return bytes && { size: bytes.length, start: bytes.subarray(0, startBytes), version: '1' };
    },
    async delete(key) {
      called('delete', key);
      objects.delete(key);
    },
    async deleteParts(key) {
      called('deleteParts', key);
    },
    publicUrl: (key) => (visibilityOf(key) === 'public' ? `https://x.test/${key}` : ''),
  };
  return { objects, calls, storage };
}

/** Rows of `uploads` by their names: the key of `a` is `uploads/a.webp`. */
export function uploadRows(database: Database) {
  const keyOf = (name: string) => `uploads/${name}.webp`;
  return {
    keyOf,

    /** Inserts a stored post of 1000 bytes, 100 pixels wide, whose variants were never made. */
    async insert(name: string, row: Partial<Insertable<Tables['uploads']>> = {}): Promise<string> {
      const values = {
        object_key: keyOf(name),
        user_id: 'ada',
        purpose: 'post',
        content_type: 'image/webp',
        size: 1000,
        state: 'kept',
        expires_at: 1,
        created_at: 1,
        variants_size: 0,
        ...row,
      } as const;
      await database.write((tables) => tables.insertInto('uploads').values(values).execute());
      return values.object_key;
    },

    async of(objectKey: string): Promise<Row | undefined> {
      return database.query((tables) =>
        tables.selectFrom('uploads').selectAll().where('object_key', '=', objectKey).executeTakeFirst(),
      );
    },

    /** Inserts rows of objects beside an upload; with null those of one that was deleted. */
    async insertBeside(uploadKey: string | null, keys: readonly string[]): Promise<void> {
      const values = keys.map((object_key) => ({ object_key, upload_key: uploadKey }));
      await database.write((tables) => tables.insertInto('upload_variants').values(values).execute());
    },

    async keysBeside(): Promise<string[]> {
      const found = await database.query((tables) =>
        tables.selectFrom('upload_variants').select('object_key as key').orderBy('object_key').execute(),
      );
      return found.map(({ key }) => key);
    },

    /** Inserts a user whose profile shows this avatar. */
    async insertUser(avatar: string | null, id = `user of ${avatar}`): Promise<void> {
      const user = User.register({ email: `${randomUUID()}@example.com`, name: 'Ada', passwordHash: null });
      const values = { ...rowOf('users', user), id, avatar, avatar_variants: 'former' };
      await database.write((tables) => tables.insertInto('users').values(values).execute());
    },

    /** The events of all users. */
    async events(): Promise<string[]> {
      const found = await database.query((tables) =>
        tables.selectFrom('activity').select(['user_id', 'kind', 'details']).execute(),
      );
      return found.map(({ user_id, kind, details }) => `${user_id} ${kind} ${details}`);
    },

    async clear(): Promise<void> {
      for (const table of ['upload_variants', 'uploads', 'upload_usage', 'users', 'activity'] as const)
        await database.write((tables) => tables.deleteFrom(table).execute());
    },
  };
}
