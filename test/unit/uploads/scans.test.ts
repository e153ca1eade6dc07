import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createActivity } from '../../../server/activity/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { ObjectStorage } from '../../../server/parts/object-storage/contract.ts';
import type { Scanner, Verdict } from '../../../server/parts/scanner/contract.ts';
import { createLog } from '../../../server/telemetry/log.ts';
import { createUploads } from '../../../server/uploads/index.ts';
import { LEASE_MS } from '../../../server/uploads/leases.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { until } from '../../rig/until.ts';
import { emptyStorage } from './empty-storage.ts';

const config = parseConfig({ DATA_DIR: temporaryDirectory('scans'), LOG_LEVEL: 'silent' });
let database: Database;
beforeAll(async () => {
  database = await openDatabase(config);
  await database.migrate();
});
afterAll(() => database.close());

const BYTES = Buffer.from('%PDF-1.7');

const rowOf = (key: string) =>
  database.query((tables) =>
    tables.selectFrom('uploads').select(['state', 'scan', 'due_at']).where('object_key', '=', key).executeTakeFirst(),
  );

/** A storage that has every file. */
const fullStorage: ObjectStorage = {
  ...emptyStorage,
  async open() {
    return { size: BYTES.length, bytes: Readable.from([BYTES]), version: '1' };
  },
  async find() {
    return { size: BYTES.length, start: BYTES, version: '1' };
  },
};

/** A service whose scanner has this verdict of every file. */
const uploadsWith = async (objects: ObjectStorage, verdict: Verdict | Scanner['scan']) =>
  createUploads(config, {
    database,
    activity: createActivity(database, { keptDays: 1 }),
    objects,
    scanning: {
      scanner: {
        scan: typeof verdict === 'function' ? verdict : async () => verdict,
        ping: async () => undefined,
        isAway: async () => false,
        takes: async () => true,
      },
      allowsWhenDown: false,
      notices: { record: async () => undefined, wake: () => undefined },
    },
    log: await createLog(config),
  });

/** A process that was frozen beyond its lease goes on when another one has worked on the file. */
test.each([
  ['has moved the file: it stays', { state: 'kept', scan: 'clean' } as const, [true, false]],
  ['deletes the file: the late copy is deleted', { state: 'doomed' } as const, [false, false]],
  ['has deleted the file: the late copy is deleted', undefined, [false, false]],
  ['has put the file in quarantine: the late copy is deleted', { state: 'infected' } as const, [false, false]],
])('another process %s', async (_name, change, expected) => {
  const stored = new Map<string, Buffer>();
  const copied = Promise.withResolvers<void>();
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
  const { presign, scans } = await uploadsWith(objects, { result: 'clean' });
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

/** It was sent to its pending key by one address, beside parts that were begun. */
test.each([
  ['clean', { result: 'clean' }, 'kept'],
  ['infected', { result: 'infected', finding: 'Eicar' }, 'infected'],
] as const)('%s: the parts at the pending key are deleted', async (_name, verdict, state) => {
  const deleted: string[] = [];
  const objects: ObjectStorage = {
    ...fullStorage,
    async deleteParts(key) {
      deleted.push(key);
    },
  };
  const { presign, scans } = await uploadsWith(objects, verdict);
  const declare = () => presign('user', { contentType: 'application/pdf', size: BYTES.length, visibility: 'public' });
  const [inParts, plain] = [await declare(), await declare()];
  await database.write((tables) => tables.updateTable('uploads').set({ due_at: 1 }).execute());
  await database.write((tables) =>
    tables.updateTable('uploads').set({ multipart_id: 'x' }).where('object_key', '=', inParts.key).execute(),
  );
  scans?.start();
  for (const { key } of [inParts, plain]) await until(async () => (await rowOf(key))?.state === state);
  await scans?.stop();
  expect(deleted).toEqual([inParts.presignedUrl]);
  await database.write((tables) => tables.deleteFrom('uploads').execute());
});

test('slow files of one user leave places to others', async () => {
  const slow = new Set<Readable>();
  const keys: string[] = [];
  const objects: ObjectStorage = {
    ...fullStorage,
    async open(key) {
      const isSlow = keys.some((each) => key.includes(each));
      const bytes = isSlow ? new Readable({ read: () => undefined }) : Readable.from([BYTES]);
      if (isSlow) slow.add(bytes);
      return { size: BYTES.length, bytes, version: '1' };
    },
    copy: async () => true,
  };
  let [now, most] = [0, 0];
  const { presign, scans } = await uploadsWith(objects, async ({ bytes }) => {
    const isSlow = slow.has(bytes as Readable);
    if (isSlow) most = Math.max(most, ++now);
    try {
      for await (const _ of bytes);
      return { result: 'clean' };
    } finally {
      if (isSlow) now--;
    }
  });
  const declare = (user: string) =>
    presign(user, { contentType: 'application/pdf', size: BYTES.length, visibility: 'public' });
  for (let i = 0; i < 8; i++) keys.push((await declare('mallory')).key.replace('uploads/', ''));
  const { key } = await declare('ada');
  await database.write((tables) => tables.updateTable('uploads').set({ due_at: 1 }).execute());
  await database.write((tables) =>
    tables.updateTable('uploads').set({ due_at: 2 }).where('object_key', '=', key).execute(),
  );
  scans?.start();
  await until(async () => (await rowOf(key))?.state === 'kept');
  expect(slow.size).toBe(2);
  [...slow][0]?.destroy();
  await until(() => slow.size === 3);
  expect(most).toBe(2);
  for (const bytes of slow) bytes.destroy();
  await scans?.stop();
  await database.write((tables) => tables.deleteFrom('uploads').execute());
});

test('a file that the scanner did not look at waits, and is due again for its user', async () => {
  const { presign, scans } = await uploadsWith(fullStorage, { result: 'unknown', answer: 'too large' });
  const { key } = await presign('user', { contentType: 'application/pdf', size: BYTES.length, visibility: 'public' });
  await database.write((tables) => tables.updateTable('uploads').set({ due_at: 1 }).execute());
  scans?.start();
  await until(async () => Number((await rowOf(key))?.due_at) > Date.now() + LEASE_MS);
  await scans?.stop();
  expect(await rowOf(key)).toMatchObject({ state: 'pending', scan: 'due' });
  await database.write((tables) => tables.deleteFrom('uploads').execute());
});
