import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { createActivity } from '../../../server/activity/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import type { Database, ReadTables } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { ObjectStorage } from '../../../server/parts/object-storage/contract.ts';
import { createLog, type Log } from '../../../server/telemetry/log.ts';
import { createUploads, nameOf } from '../../../server/uploads/index.ts';
import { divide } from '../../../server/uploads/parts.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { until } from '../../rig/until.ts';
import { emptyStorage } from './empty-storage.ts';

const MEGABYTE = 1024 ** 2;

test.each([
  [100 * MEGABYTE, undefined],
  [100 * MEGABYTE + 1, { size: 5 * MEGABYTE, count: 21 }],
  [1024 * MEGABYTE, { size: 5 * MEGABYTE, count: 205 }],
  [5000 * MEGABYTE, { size: 5 * MEGABYTE, count: 1000 }],
  [5000 * MEGABYTE + 1, { size: 6 * MEGABYTE, count: 834 }],
  [5120 * MEGABYTE, { size: 6 * MEGABYTE, count: 854 }],
])('%i bytes are divided into %j', (bytes, division) => {
  expect(divide(bytes)).toEqual(division);
});

const SIZE = 101 * MEGABYTE;
const config = parseConfig({
  DATA_DIR: temporaryDirectory('parts'),
  LOG_LEVEL: 'silent',
  UPLOAD_MAX_BYTES: String(SIZE),
});

/** As S3: each start has an id of its own; what was started stays until it is joined or deleted. */
const started = new Map<string, string>();
const objects = new Set<string>();
let ids = 0;
let fail: () => void = () => undefined;
let copying: Promise<void> | undefined;

async function step<T>(work: () => Promise<T>): Promise<T> {
  fail();
  const result = await work();
  fail();
  return result;
}

const allParts = Array.from({ length: 21 }, (_, i) => ({
  part: i + 1,
  size: Math.min(5 * MEGABYTE, SIZE - i * 5 * MEGABYTE),
  version: '',
}));

const storage: ObjectStorage = {
  ...emptyStorage,
  presignPart: async ({ id, part }) => `${id}/${part}`,
  startParts: (key) =>
    step(async () => {
      ids++;
      started.set(`id${ids}`, key);
      return `id${ids}`;
    }),
  storedParts: ({ id }) => step(async () => (started.has(id) ? allParts : undefined)),
  joinParts: ({ key, id }) =>
    step(async () => {
      const isJoined = started.delete(id);
      if (isJoined) objects.add(key);
      return isJoined;
    }),
  deleteParts: (key) =>
    step(async () => {
      for (const [id, of] of started) if (of === key) started.delete(id);
    }),
  find: (key) =>
    step(async () =>
      objects.has(key) ? { size: SIZE, start: Buffer.from('%PDF-1.7'), version: 'version' } : undefined,
    ),
  copy: async (_from, to) => {
    await copying;
    objects.add(to);
    return true;
  },
  delete: (key) => step(async () => void objects.delete(key)),
};

let database: Database;
let log: Log;
let healthy: ReturnType<typeof createUploads>;
let dying: ReturnType<typeof createUploads>;
beforeAll(async () => {
  log = await createLog(config);
  database = await openDatabase(config);
  await database.migrate();
  const parts = { database, activity: createActivity(database, { keptDays: 1 }), objects: storage, log };
  healthy = createUploads(config, parts);
  dying = createUploads(config, {
    ...parts,
    database: {
      ...database,
      query: (read) => step(() => database.query(read)),
      write: (statement, row) => step(() => database.write(statement, row)),
      change: (work, row) => step(() => database.change(work, row)),
      transaction: (work, row) => step(() => database.transaction(work, row)),
    },
  });
  healthy.inspection.start();
});
afterAll(async () => {
  await healthy.inspection.stop();
  await database.close();
});

const uncounted = async () => undefined;

const rowOf = (key: string) =>
  database.query((tables) =>
    tables.selectFrom('uploads').select(['state', 'multipart_id']).where('object_key', '=', key).executeTakeFirst(),
  );

/** As when all times have passed: the inspection runs until every row is gone, or its upload is stored. */
const sweep = () =>
  until(async () => {
    await database.write((tables) =>
      tables.updateTable('uploads').set({ expires_at: 1, due_at: 1 }).where('state', '<>', 'kept').execute(),
    );
    const open = (tables: ReadTables) => tables.selectFrom('uploads').select('object_key').where('state', '<>', 'kept');
    return (await database.query((tables) => open(tables).executeTakeFirst())) === undefined;
  });

interface Declared {
  key: string;
  userId: string;
}

/** Sends the parts and joins them in processes that die one step later each time, until one completes. */
async function dieAtEachStep(then: (upload: Declared) => Promise<unknown>): Promise<Declared[]> {
  const uploads: Declared[] = [];
  for (let isDone = false; !isDone; ) {
    const n = uploads.length + 1;
    const userId = `user${n}-${ids}`;
    const declared = { contentType: 'application/pdf', size: SIZE, visibility: 'public' } as const;
    const { key } = await healthy.presign(userId, declared);
    let steps = 0;
    fail = () => {
      steps++;
      if (steps >= n) throw new Error('killed');
    };
    isDone = await dying
      .presignParts(userId, key, [1], uncounted)
      .then(() => dying.complete(userId, key))
      .then(
        () => steps < n,
        () => false,
      );
    fail = () => undefined;
    uploads.push({ key, userId });
    await then({ key, userId });
    expect(n).toBeLessThan(100);
  }
  await sweep();
  expect([...started]).toEqual([]);
  return uploads;
}

describe('after a crash between any two steps', () => {
  // checks: F1
  test('the upload can be completed', async () => {
    const uploads = await dieAtEachStep(async ({ key, userId }) => {
      // Refused if it is complete already.
      await healthy.presignParts(userId, key, [1], uncounted).catch(() => undefined);
      await healthy.complete(userId, key);
      expect(await rowOf(key)).toEqual({ state: 'expected', multipart_id: null });
    });
    for (const { key } of uploads) expect([(await rowOf(key))?.state, objects.has(key)]).toEqual(['kept', true]);
  });

  // checks: F1
  test('nothing is left of an upload that its user deletes', async () => {
    const uploads = await dieAtEachStep(async ({ key, userId }) => {
      await healthy.remove(userId, nameOf(key), backgroundJob);
      expect([objects.has(key), [...started.values()].includes(key)]).toEqual([false, false]);
    });
    for (const { key, userId } of uploads)
      expect([await rowOf(key), await healthy.usage(userId)]).toMatchObject([undefined, { used: 0, files: 0 }]);
  });

  // checks: F1
  test('an upload that nobody completes is deleted with its parts, or stored', async () => {
    const uploads = await dieAtEachStep(async () => undefined);
    for (const { key, userId } of uploads) {
      const isStored = (await rowOf(key))?.state === 'kept';
      expect([isStored, (await healthy.usage(userId)).files]).toEqual([objects.has(key), isStored ? 1 : 0]);
    }
  });
});

test('of two calls that start an upload at once, both get addresses of the same one', async () => {
  const declared = { contentType: 'application/pdf', size: SIZE, visibility: 'public' } as const;
  const { key } = await healthy.presign('ada', declared);
  const both = await Promise.all([1, 2].map((part) => healthy.presignParts('ada', key, [part], uncounted)));
  const [one, other] = both.map(({ addresses }) => addresses[0]?.presignedUrl.split('/')[0]);
  expect(one).toBe(other);
  await healthy.complete('ada', key);
  expect([...started.values()]).not.toContain(key);
});

// checks: 72
test('a call for addresses is counted before it asks the storage, and not once the upload has started', async () => {
  const declared = { contentType: 'application/pdf', size: SIZE, visibility: 'public' } as const;
  const { key } = await healthy.presign('ada', declared);
  const refused = async () => Promise.reject(new Error('too many'));
  fail = () => {
    throw new Error('the storage was asked');
  };
  await expect(healthy.presignParts('ada', key, [1], refused)).rejects.toThrow('too many');
  fail = () => undefined;
  await healthy.presignParts('ada', key, [1], uncounted);
  await healthy.presignParts('ada', key, [2], refused);
});

// checks: 90
test('no part is accepted for the public copy that the service is making', async () => {
  const { key } = await healthy.presign('eve', { contentType: 'application/pdf', size: SIZE, visibility: 'private' });
  objects.add(key);
  const { promise, resolve: finish } = Promise.withResolvers<void>();
  copying = promise;
  const publishing = healthy.publish('eve', nameOf(key), backgroundJob);
  const copy = await until(async () => {
    const { uploads } = await healthy.list('eve', { limit: 2, after: undefined });
    return uploads.find(({ visibility }) => visibility === 'public');
  });
  for (const call of [
    healthy.presignParts('eve', copy.objectKey, [1], uncounted),
    healthy.storedParts('eve', copy.objectKey),
  ])
    await expect(call).rejects.toMatchObject({ code: 'NOT_FOUND' });
  finish();
  expect(await publishing).toMatchObject({ objectKey: copy.objectKey, state: 'kept', multipartId: null });
  await expect(healthy.presignParts('eve', copy.objectKey, [1], uncounted)).rejects.toMatchObject({
    code: 'VALIDATION_FAILED',
  });
});
