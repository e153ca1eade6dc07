import { afterAll, beforeAll, expect, test } from 'vitest';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { createActivity } from '../../../server/activity/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { ObjectStorage } from '../../../server/parts/object-storage/contract.ts';
import type { Log } from '../../../server/telemetry/log.ts';
import { createUploads, nameOf } from '../../../server/uploads/index.ts';
import { photograph } from '../../contract/uploads/corpus.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { until } from '../../rig/until.ts';

const silent = Object.fromEntries(
  ['debug', 'info', 'warn', 'error', 'fatal'].map((level) => [level, () => undefined]),
) as unknown as Log;

/** A storage that stores an image when `take` resolves. */
const stored = new Set<string>();
let take = Promise.withResolvers<void>();
const objects = {
  async put(key: string) {
    await take.promise;
    stored.add(key);
  },
  async delete(key: string) {
    stored.delete(key);
  },
  publicUrl: (key: string) => `http://x/${key}`,
} as unknown as ObjectStorage;

let database: Database;
let uploads: ReturnType<typeof createUploads>;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('data') });
  await database.migrate();
  const config = {
    cores: 1,
    ownAvatars: false,
    uploads: { areOnDisk: false, types: [], maxBytes: 1, quota: 1e9, imageSizes: { avatar: [], post: [20, 40] } },
  };
  uploads = createUploads(config, {
    database,
    activity: createActivity(database, { keptDays: 1 }),
    objects,
    log: silent,
  });
  uploads.inspection.start();
});
afterAll(async () => {
  await uploads.inspection.stop();
  await database.close();
});

const beginStoring = async (userId: string) => {
  take = Promise.withResolvers<void>();
  const bytes = new Uint8Array(await photograph(80, 60));
  const end = uploads
    .storeImage(
      userId,
      { file: new File([bytes], 'a', { type: 'image/jpeg' }), purpose: 'post', visibility: 'public' },
      backgroundJob,
    )
    .catch(() => undefined);
  const key = await until(
    async () => (await uploads.list(userId, { limit: 1, after: undefined })).uploads[0]?.objectKey,
  );
  return { key, end };
};

const dueAt = async (key: string) => {
  const row = await database.query((tables) =>
    tables.selectFrom('uploads').select('due_at').where('object_key', '=', key).executeTakeFirst(),
  );
  return row?.due_at;
};

/** Moves the storing deadline, and with it the next inspection, into the past. */
const expire = (key: string) =>
  database.write((tables) =>
    tables.updateTable('uploads').set({ expires_at: 1, due_at: 1 }).where('object_key', '=', key).execute(),
  );

test.each([
  ['the user', (userId: string, key: string) => uploads.remove(userId, nameOf(key), backgroundJob)],
  ['the end of the account', (id: string) => uploads.removeAllOf(id)],
])('an image that %s deletes during its storing leaves no object', async (name, remove) => {
  const { key, end } = await beginStoring(name);
  await remove(name, key);
  expect(await uploads.usage(name)).toMatchObject({ used: 0, files: 0 });
  // The job has inspected it, or has nothing to inspect now.
  await until(async () => ((await dueAt(key)) ?? Number.POSITIVE_INFINITY) > Date.now());
  take.resolve();
  await end;
  await expire(key);
  await until(() => !stored.has(key));
  expect(stored.has(key)).toBe(false);
});
