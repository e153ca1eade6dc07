import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createActivity } from '../../../server/activity/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { ObjectStorage } from '../../../server/parts/object-storage/contract.ts';
import { createLog } from '../../../server/telemetry/log.ts';
import { createUploads } from '../../../server/uploads/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { emptyStorage } from './empty-storage.ts';

const config = parseConfig({ DATA_DIR: temporaryDirectory('scans'), LOG_LEVEL: 'silent' });
let database: Database;
beforeAll(async () => {
  database = await openDatabase(config);
  await database.migrate();
});
afterAll(() => database.close());

const BYTES = Buffer.from('%PDF-1.7');

/** A process that was frozen beyond its lease goes on when another one has worked on the file. */
test.each([
  ['has moved the file: it stays', { state: 'kept', scan: 'clean' } as const, [true, false]],
  ['deletes the file: the late copy is deleted', { state: 'doomed' } as const, [false, false]],
  ['has deleted the file: the late copy is deleted', undefined, [false, false]],
  ['has put the file in quarantine: the late copy is deleted', { state: 'infected' } as const, [false, false]],
])('another process %s', async (_name, change, expected) => {
  const stored = new Map<string, Buffer>();
  const copied = Promise.withResolvers<void>();
  const rowOf = (key: string) =>
    database.query((tables) =>
      tables.selectFrom('uploads').select(['state', 'due_at']).where('object_key', '=', key).executeTakeFirst(),
    );
  const objects: ObjectStorage = {
    ...emptyStorage,
    async copy(from, to) {
      stored.set(to, stored.get(from) ?? BYTES);
      // Meanwhile, in another process.
      await database.change(async (tables) => {
        if (!change) await tables.deleteFrom('uploads').where('object_key', '=', to).execute();
        else
          await tables
            .updateTable('uploads')
            .set({ ...change, due_at: null })
            .where('object_key', '=', to)
            .execute();
      });
      if (change?.state === 'kept') stored.delete(from);
      copied.resolve();
      return true;
    },
    async open(key) {
      const bytes = stored.get(key);
      return bytes && { size: bytes.length, bytes: Readable.from([bytes]), version: '1' };
    },
    async find(key) {
      const bytes = stored.get(key);
      return bytes && { size: bytes.length, start: bytes, version: '1' };
    },
    async delete(key) {
      stored.delete(key);
    },
  };
  const { presign, scans } = createUploads(config, {
    database,
    activity: createActivity(database, { keptDays: 1 }),
    objects,
    scanning: {
      scanner: { scan: async () => ({ result: 'clean' }), ping: async () => undefined, takes: async () => true },
      allowsWhenDown: false,
      notices: { record: async () => undefined, wake: () => undefined },
    },
    log: await createLog(config),
  });
  const { key, presignedUrl } = await presign('user', {
    contentType: 'application/pdf',
    size: BYTES.length,
    visibility: 'public',
  });
  stored.set(presignedUrl, BYTES);
  await database.write((tables) => tables.updateTable('uploads').set({ due_at: 1 }).execute());
  scans?.start();
  await copied.promise;
  await scans?.stop();
  expect([stored.has(key), stored.has(presignedUrl) && change?.state === 'kept']).toEqual(expected);
  expect((await rowOf(key))?.state).toBe(change?.state);
  await database.write((tables) => tables.deleteFrom('uploads').execute());
});
