import sharp from 'sharp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { avatarVariantsIn, imageKeyOf, storedAvatarVariants, variantKey } from '../../../entities/index.ts';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { createActivity } from '../../../server/activity/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { ObjectStorage } from '../../../server/parts/object-storage/contract.ts';
import { createLog, type Log } from '../../../server/telemetry/log.ts';
import { fromStored, toWebp } from '../../../server/uploads/images/conversion.ts';
import { loadSharpForStored } from '../../../server/uploads/images/sharp.ts';
import { createUploads, nameOf } from '../../../server/uploads/index.ts';
import { flat, photograph, png } from '../../contract/uploads/corpus.ts';
import { endConversionProcesses } from '../../rig/process/conversion-processes.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { emptyStorage } from './empty-storage.ts';

const SIZES = 'post:20,40,80';

const configOf = (sizes: string) =>
  parseConfig({ DATA_DIR: temporaryDirectory('variants'), LOG_LEVEL: 'silent', IMAGE_SIZES: sizes });

test.each([
  [100, 50, [20, 40, 80], [20, 40, 80]],
  [81, 50, [80, 40, 20], [20, 40, 80]],
  [80, 50, [20, 40, 80], [20, 40]],
  [20, 50, [20, 40, 80], []],
  [1, 1, [20], []],
])('of an image %i wide and %i high, widths %j: only %j, which are narrower', async (width, height, widths, made) => {
  const image = await toWebp(await png(width, height), 'post', widths);
  expect([image.width, image.height]).toEqual([width, height]);
  expect(image.variants.map((each) => each.width)).toEqual(made);
  for (const variant of image.variants) {
    expect(await sharp(variant.bytes).metadata()).toMatchObject({ width: variant.width, height: variant.height });
    expect(Math.abs(variant.height - (variant.width * height) / width)).toBeLessThanOrEqual(1);
  }
});

test('the variants of a stored picture are those of its upload, but for its compression', async () => {
  const image = await toWebp(await photograph(300, 200), 'post', [20, 80]);
  const again = await fromStored(image.bytes, [20, 80]);
  const sizes = ({ width, height }: { width: number; height: number }) => [width, height];
  expect(sizes(again)).toEqual(sizes(image));
  expect(again.variants.map(sizes)).toEqual(image.variants.map(sizes));
});

test('the picture itself is the same whatever its variants are', async () => {
  const bytes = await photograph(1800, 900);
  const [none, some] = [await toWebp(bytes, 'post', []), await toWebp(bytes, 'post', [320, 640])];
  expect(some.bytes.equals(none.bytes)).toBe(true);
});

test('a variant keeps the colours of its image', async () => {
  const { variants } = await toWebp(await flat(200, 200, '#d02080').png().toBuffer(), 'post', [40]);
  const { data } = await sharp(variants[0]?.bytes).raw().toBuffer({ resolveWithObject: true });
  for (const [channel, value] of [0xd0, 0x20, 0x80].entries())
    expect(Math.abs((data[channel] ?? 0) - value)).toBeLessThan(8);
});

const KEY = 'uploads/0b6f1f5e-7a54-4c3c-9d0a-3f4f5f6a7b8c.webp';

test('the key of a variant and of its image lead to each other', () => {
  expect(variantKey(KEY, { width: 320 })).toBe('uploads/0b6f1f5e-7a54-4c3c-9d0a-3f4f5f6a7b8c_320.webp');
  expect(imageKeyOf(variantKey(KEY, { width: 320 }))).toBe(KEY);
  expect(imageKeyOf(KEY)).toBe(KEY);
});

test('the variants of an avatar are only those of the image that the profile shows', () => {
  const stored = storedAvatarVariants(KEY, '[[64,64,99]]');
  const base = 'https://cdn.test/bucket/';
  const shown = [{ width: 64, height: 64, bytes: 99, url: base + variantKey(KEY, { width: 64 }) }];
  for (const avatar of [base + KEY, `${base}${KEY}?v=1`, `${base}${variantKey(KEY, { width: 64 })}#x`])
    expect([avatar, avatarVariantsIn(avatar, stored)]).toEqual([avatar, shown]);
  for (const avatar of [null, '', 'x', `${base}uploads/other.webp`, `${base}x${KEY}`, 'https://cdn.test/', KEY])
    expect([avatar, avatarVariantsIn(avatar, stored)]).toEqual([avatar, undefined]);
  expect(avatarVariantsIn(base + KEY, null)).toBeUndefined();
  expect(storedAvatarVariants(KEY, '[]')).toBeNull();
});

/** Objects in memory. `fail` is called before and after each step of storage and database, and may throw. */
const objects = new Map<string, Buffer>();
let fail: () => void = () => undefined;

async function step<T>(work: () => Promise<T>): Promise<T> {
  fail();
  const result = await work();
  fail();
  return result;
}

const storage: ObjectStorage = {
  ...emptyStorage,
  put: (key, bytes) => step(async () => void objects.set(key, Buffer.from(bytes))),
  find: (key) =>
    step(async () => {
      const start = objects.get(key);
      return start && { size: start.length, start };
    }),
  delete: (key) => step(async () => void objects.delete(key)),
  publicUrl: (key) => `https://x.test/${key}`,
};

let database: Database;
let log: Log;
beforeAll(async () => {
  log = await createLog({ logLevel: 'silent', production: false });
  // So that the test reads WebP too.
  await loadSharpForStored();
  database = await openDatabase(configOf(SIZES));
  await database.migrate();
});
afterAll(() => database.close());
afterAll(endConversionProcesses);

/** A process: it fails at the step that `fail` says, and then at all others. */
async function instance(sizes: string) {
  const dying: Database = {
    ...database,
    query: (read) => step(() => database.query(read)),
    write: (statement, row) => step(() => database.write(statement, row)),
    change: (work, row) => step(() => database.change(work, row)),
    transaction: (work, row) => step(() => database.transaction(work, row)),
  };
  const config = configOf(sizes);
  return createUploads(config, {
    database: dying,
    activity: createActivity(database, { keptDays: 1 }),
    objects: storage,
    log,
  });
}

const dieAt = (n: number) => {
  let steps = 0;
  fail = () => {
    if (++steps >= n) throw new Error('killed');
  };
  return () => steps;
};

const keys = (table: 'uploads' | 'upload_variants') =>
  database.query(async (tables) =>
    (await tables.selectFrom(table).select('object_key').execute()).map((row) => row.object_key),
  );

const expectRowOfEachObject = async () => {
  const known = new Set([...(await keys('uploads')), ...(await keys('upload_variants'))]);
  expect([...objects.keys()].filter((key) => !known.has(key))).toEqual([]);
};

/** As when the leases and the times to store have passed. */
const passTime = () =>
  database.write((tables) =>
    tables.updateTable('uploads').set({ variants_until: 1, expires_at: 1, due_at: 1 }).execute(),
  );

async function makeAll({ variants: { take, make } }: Awaited<ReturnType<typeof instance>>) {
  for (let [image] = await take(1); image; [image] = await take(1)) await make(image);
}

const sendImage = async (uploads: Awaited<ReturnType<typeof instance>>, userId: string) => {
  const file = new File([new Uint8Array(await photograph(100, 60))], 'a', { type: 'image/jpeg' });
  return uploads.storeImage(userId, { file, purpose: 'post', visibility: 'public' }, backgroundJob);
};

const clear = async () => {
  fail = () => undefined;
  objects.clear();
  for (const table of ['upload_variants', 'uploads', 'upload_usage', 'users'] as const)
    await database.write((tables) => tables.deleteFrom(table).execute());
};

test('the version before deletes an image and its row: its variants are deleted later', async () => {
  await clear();
  const uploads = await instance(SIZES);
  const [key = '', kept = ''] = (await Promise.all([sendImage(uploads, 'ada'), sendImage(uploads, 'ada')])).map(
    ({ url }) => url.slice('https://x.test/'.length),
  );
  await uploads.variants.sweep();
  expect(objects.size).toBe(8);
  await storage.delete(key);
  await database.write((tables) => tables.deleteFrom('uploads').where('object_key', '=', key).execute());
  await expectRowOfEachObject();
  await uploads.variants.sweep();
  expect([...objects.keys()].filter((each) => !each.startsWith(kept.replace('.webp', '')))).toEqual([]);
  expect([objects.size, (await keys('upload_variants')).length]).toEqual([4, 3]);
});

test('an image that is deleted meanwhile gets no other pictures', async () => {
  await clear();
  const { url } = await sendImage(await instance('post:20,60'), 'ada');
  const { variants } = await instance(SIZES);
  const [image] = await variants.take(1);
  if (!image) throw new Error('no image is due');
  await database.write((tables) => tables.updateTable('uploads').set({ state: 'doomed' }).execute());
  const before = [...objects.keys()];
  await variants.make(image);
  expect([...objects.keys()].sort()).toEqual(before.sort());
  expect(before).toContain(url.slice('https://x.test/'.length));
});

test('with other widths a variant that a profile names as its avatar stays, until its image is deleted', async () => {
  await clear();
  const before = await instance('post:20,60');
  const { url, variants } = await sendImage(before, 'ada');
  const avatar = `${variants[1]?.url}?v=1`;
  expect(avatar).toContain('_60.webp');
  const user = {
    id: 'eve',
    name: 'Eve',
    email: 'eve@example.com',
    provider: 'email',
    role: 'user',
    email_verified: 1,
    password_proven: 1,
    session_epoch: 0,
    created_at: 1,
    avatar,
  } as const;
  await database.write((tables) => tables.insertInto('users').values(user).execute());
  const after = await instance(SIZES);
  await makeAll(after);
  const widths = () => [...objects.keys()].map((key) => Number(/_(\d+)/.exec(key)?.[1] ?? 0)).sort((a, b) => a - b);
  expect(widths()).toEqual([0, 20, 40, 60, 80]);
  await expectRowOfEachObject();
  await after.remove('ada', url.slice('https://x.test/uploads/'.length), backgroundJob);
  expect([...objects.keys()]).toEqual([]);
});

test('a stored image that cannot be read is not tried again', async () => {
  await clear();
  const { url } = await sendImage(await instance('post:20,60'), 'ada');
  objects.set(url.slice('https://x.test/'.length), Buffer.from('no picture'));
  const after = await instance(SIZES);
  await makeAll(after);
  expect(await after.variants.waiting()).toBe(0);
  const { uploads } = await after.list('ada', { limit: 1, after: undefined });
  expect(uploads[0]?.variants?.map(({ width }) => width)).toEqual([20]);
});

/** Runs `work` in processes that die one step later each time, until one completes. */
async function dieAtEachStep(prepare: () => Promise<void>, work: () => Promise<unknown>, check: () => Promise<void>) {
  for (let n = 1, completed = false; !completed; n++) {
    await clear();
    await prepare();
    const steps = dieAt(n);
    completed = await work().then(
      () => steps() < n,
      () => false,
    );
    fail = () => undefined;
    await expectRowOfEachObject();
    await check();
    expect(n).toBeLessThan(100);
  }
}

// checks: F1, 89
test('after a crash between any two steps of other widths, another process completes them', async () => {
  const before = await instance('post:20,60');
  const after = await instance(SIZES);
  await dieAtEachStep(
    async () => {
      await sendImage(before, 'ada');
    },
    () => makeAll(after),
    async () => {
      await passTime();
      await makeAll(after);
      const { uploads } = await after.list('ada', { limit: 1, after: undefined });
      expect(uploads[0]?.variants?.map(({ width }) => width)).toEqual([20, 40, 80]);
      const listed = [
        uploads[0]?.objectKey,
        ...(uploads[0]?.variants ?? []).map(({ url }) => url.slice('https://x.test/'.length)),
      ];
      expect([...objects.keys()].sort()).toEqual(listed.sort());
      expect((await keys('upload_variants')).length).toBe(3);
      const used = [...objects.values()].reduce((sum, { length }) => sum + length, 0);
      expect(await after.usage('ada')).toMatchObject({ used, files: 1 });
      expect(await after.variants.waiting()).toBe(0);
    },
  );
});

// checks: F1
test('after a crash between any two steps of a deletion beside them, nothing stays', async () => {
  const before = await instance('post:20,60');
  const after = await instance(SIZES);
  let key = '';
  await dieAtEachStep(
    async () => {
      key = (await sendImage(before, 'ada')).url.slice('https://x.test/'.length);
      // A process has stored another one and was killed before it was listed.
      const other = variantKey(key, { width: 40 });
      await database.write((tables) =>
        tables.insertInto('upload_variants').values({ object_key: other, upload_key: key }).execute(),
      );
      objects.set(other, Buffer.from('x'));
    },
    () => after.remove('ada', nameOf(key), backgroundJob),
    async () => {
      // Before the first transaction nothing has happened.
      await after.remove('ada', nameOf(key), backgroundJob).catch(() => undefined);
      await passTime();
      const { inspection } = await instance(SIZES);
      inspection.start();
      for (let i = 0; i < 200 && (await keys('uploads')).length > 0; i++)
        await new Promise((done) => setTimeout(done, 10));
      await inspection.stop();
      expect([[...objects.keys()], await keys('uploads'), await keys('upload_variants')]).toEqual([[], [], []]);
      expect(await after.usage('ada')).toEqual({ used: 0, files: 0, quota: expect.any(Number) });
    },
  );
});
