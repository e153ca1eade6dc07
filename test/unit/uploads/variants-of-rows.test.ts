import { setImmediate as turn } from 'node:timers/promises';
import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { storedVariants, variantKey, variantsIn } from '../../../entities/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createUsage } from '../../../server/uploads/usage.ts';
import { createVariants } from '../../../server/uploads/variants.ts';
import { flat } from '../../contract/uploads/corpus.ts';
import { conversionProcesses, endConversionProcesses } from '../../rig/process/conversion-processes.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { until } from '../../rig/until.ts';
import { MINUTE, memoryStorage, silent, uploadRows } from './upload-rows.ts';

let database: Database;
let rows: ReturnType<typeof uploadRows>;
let usage: ReturnType<typeof createUsage>;
/** A stored WebP image, 100 pixels wide and 60 high. */
let picture: Buffer;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('variants-of-rows') });
  await database.migrate();
  rows = uploadRows(database);
  usage = createUsage(database, { quota: 1e9 });
  picture = await flat(100, 60).webp().toBuffer();
});
afterAll(() => database.close());
afterAll(endConversionProcesses);
beforeEach(() => rows.clear());
afterEach(() => void vi.useRealTimers());

const WIDTHS = [20, 40, 80];
const CURRENT = '20,40,80';

const variantsFor = (post = WIDTHS, isIdle = () => true) => {
  const { storage, objects, calls } = memoryStorage();
  const warned: string[] = [];
  const log = { ...silent, warn: (_fields: object, message: string) => void warned.push(message) } as typeof silent;
  const variants = createVariants({ avatar: [64], post }, { database, objects: storage, usage, isIdle, log });
  const makeOne = async () => {
    const [image] = await variants.take(1);
    if (!image) throw new Error('no image is due');
    return variants.make(image);
  };
  return { ...variants, makeOne, storage, objects, calls, warned };
};

const variant = (width: number) => ({ width, height: width / 2, bytes: width * 10 });

const keysOf = (images: readonly { objectKey: string }[]) => images.map(({ objectKey }) => objectKey).sort();

test.each([
  ['kept without variants', {}, true],
  ['replaced without variants', { state: 'replaced' }, true],
  ['made for smaller widths', { variants_for: '10' }, true],
  ['made for larger widths', { variants_for: '20,50' }, true],
  ['made for no widths', { variants_for: '' }, true],
  ['up to date', { variants_for: CURRENT }, false],
  ['an avatar of the widths of posts', { purpose: 'avatar', variants_for: CURRENT }, true],
  ['an avatar that is up to date', { purpose: 'avatar', variants_for: '64' }, false],
  ['not an image of the service', { purpose: 'direct' }, false],
  ['still being stored', { state: 'expected' }, false],
  ['being deleted', { state: 'doomed' }, false],
  ['in quarantine', { state: 'infected' }, false],
] as const)('an upload that is %s has variants due, or not', async (_title, row, isDue) => {
  const key = await rows.insert('a', row);
  const { waiting, waitingKeys, take } = variantsFor();
  expect([await waiting(), await waitingKeys(9), keysOf(await take(9))]).toEqual([
    isDue ? 1 : 0,
    isDue ? [key] : [],
    isDue ? [key] : [],
  ]);
});

test('an image is leased for a minute: it still waits, and no other process takes it', async () => {
  const key = await rows.insert('a');
  await rows.insert('b', { variants_until: Date.now() + MINUTE });
  const { take, waiting, waitingKeys } = variantsFor();
  const before = Date.now();
  expect(await take(2)).toEqual([
    {
      objectKey: key,
      userId: 'ada',
      purpose: 'post',
      size: 1000,
      width: null,
      height: null,
      placeholder: null,
      variants: null,
    },
  ]);
  const { variants_until: end } = (await rows.of(key)) ?? {};
  expect(end).toBeGreaterThanOrEqual(before + MINUTE - 1);
  expect(end).toBeLessThanOrEqual(Date.now() + MINUTE);
  expect(await take(2)).toEqual([]);
  expect([await waiting(), (await waitingKeys(9)).length, (await waitingKeys(1)).length]).toEqual([2, 2, 1]);
});

test('a lease that has ended does not count, and no more images are taken than asked for', async () => {
  for (const name of ['a', 'b', 'c']) await rows.insert(name, { variants_until: 1 });
  const { take } = variantsFor();
  expect([(await take(2)).length, (await take(2)).length, (await take(2)).length]).toEqual([2, 1, 0]);
});

test('a lease is renewed, unless the image was finished', async () => {
  const [leased, finished] = [await rows.insert('a'), await rows.insert('b')];
  const { take, renew } = variantsFor();
  const images = await take(2);
  const set = (key: string, variants_until: number | null) =>
    database.write((tables) =>
      tables.updateTable('uploads').set({ variants_until }).where('object_key', '=', key).execute(),
    );
  await set(leased, 5);
  await set(finished, null);
  await renew(images);
  expect((await rows.of(leased))?.variants_until).toBeGreaterThan(Date.now());
  expect((await rows.of(finished))?.variants_until).toBeNull();
});

const complete = {
  width: 100,
  height: 50,
  placeholder: 'hash',
  variants: storedVariants([variant(40), variant(60), variant(20)]),
  variants_for: '20,40,60',
  variants_size: 1200,
} as const;

test('fewer widths: the variants of others are deleted and not counted, and nothing is read', async () => {
  const key = await rows.insert('a', complete);
  const beside = [20, 40, 60].map((width) => variantKey(key, { width }));
  await rows.insertBeside(key, beside);
  const other = await rows.insert('b', { variants_for: '20,40' });
  await rows.insertBeside(other, [variantKey(other, { width: 60 })]);
  await database.write((tables) =>
    tables.insertInto('upload_usage').values({ user_id: 'ada', used: 3000, files: 2 }).execute(),
  );
  const { makeOne, calls, warned, waiting } = variantsFor([20, 40]);
  await makeOne();
  expect(await rows.of(key)).toMatchObject({
    ...complete,
    variants: storedVariants([variant(20), variant(40)]),
    variants_size: 600,
    variants_for: '20,40',
    variants_until: null,
  });
  expect(calls).toEqual([`delete ${beside[2]}`]);
  expect(await rows.keysBeside()).toEqual([beside[0], beside[1], variantKey(other, { width: 60 })]);
  expect([await usage.of('ada'), warned, await waiting()]).toEqual([{ used: 2400, files: 2 }, [], 0]);
});

test('the profiles that show the image get its new variants', async () => {
  const key = await rows.insert('a', complete);
  const [shown, other] = [`https://x.test/${key}`, `https://x.test/${rows.keyOf('other')}`];
  await rows.insertUser(shown);
  await rows.insertUser(other);
  await variantsFor([20]).makeOne();
  const profiles = await database.query((tables) =>
    tables.selectFrom('users').select(['avatar', 'avatar_variants']).orderBy('avatar').execute(),
  );
  expect(profiles.map(({ avatar, avatar_variants }) => [avatar, avatar_variants])).toEqual([
    [shown, `${key} ${storedVariants([variant(20)])}`],
    [other, 'former'],
  ]);
});

test('an image as narrow as the widths needs no variants: nothing is read', async () => {
  const key = await rows.insert('a', { width: 20, height: 10, placeholder: 'hash' });
  const { makeOne, calls } = variantsFor();
  await makeOne();
  expect(calls).toEqual([]);
  expect(await rows.of(key)).toMatchObject({ width: 20, variants: '[]', variants_size: 0, variants_for: CURRENT });
});

test('an image that is missing in the storage keeps its variants and is not tried again', async () => {
  const key = await rows.insert('a', { ...complete, placeholder: null });
  const { makeOne, calls, warned, waiting } = variantsFor();
  await makeOne();
  expect(await rows.of(key)).toMatchObject({
    width: 100,
    height: 50,
    placeholder: null,
    variants: storedVariants([variant(20), variant(40)]),
    variants_size: 600,
    variants_for: CURRENT,
  });
  expect([calls, warned.length, await waiting()]).toEqual([[`find ${key} 1000`], 1, 0]);
});

test('an image that is being deleted when it is taken stays as it is', async () => {
  const key = await rows.insert('a', complete);
  const { take, make, calls } = variantsFor([20]);
  const [image] = await take(1);
  await database.write((tables) => tables.updateTable('uploads').set({ state: 'doomed' }).execute());
  await make(image as NonNullable<typeof image>);
  expect(await rows.of(key)).toMatchObject({ variants: complete.variants, variants_size: 1200, state: 'doomed' });
  expect(calls).toEqual([]);
});

const stored = async (row = {}) => rows.insert('a', { size: picture.length, ...row });

test('the variants of an image without any are stored, listed and counted', async () => {
  const key = await stored();
  await usage.prepare('ada');
  const { makeOne, objects, calls } = variantsFor();
  objects.set(key, picture);
  await makeOne();
  const row = await rows.of(key);
  expect(row).toMatchObject({ width: 100, height: 60, placeholder: expect.stringMatching(/.{20}/) });
  const beside = WIDTHS.map((width) => variantKey(key, { width }));
  const sizes = beside.map((each) => objects.get(each)?.length ?? 0);
  expect(variantsIn(row?.variants)).toEqual([
    { width: 20, height: 12, bytes: sizes[0] },
    { width: 40, height: 24, bytes: sizes[1] },
    { width: 80, height: 48, bytes: sizes[2] },
  ]);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  expect([row?.variants_size, (await usage.of('ada')).used]).toEqual([total, total]);
  expect(await sharp(objects.get(beside[1] ?? '')).metadata()).toMatchObject({ format: 'webp', width: 40, height: 24 });
  expect((await rows.keysBeside()).sort()).toEqual(beside.toSorted());
  expect(calls.filter((call) => !call.startsWith('find')).sort()).toEqual(
    beside.map((each) => `put ${each} image/webp`).sort(),
  );
});

test('only the missing variants are made: the size and the placeholder of an image stay', async () => {
  const key = await stored({ ...complete, size: picture.length, width: 90, variants: storedVariants([variant(80)]) });
  const { makeOne, objects } = variantsFor();
  objects.set(key, picture);
  // Another process stored two before a crash, of which one has another size.
  const [same, other] = [20, 40].map((width) => variantKey(key, { width })) as [string, string];
  objects.set(other, Buffer.from('other'));
  await makeOne();
  expect(variantsIn((await rows.of(key))?.variants).map(({ width }) => width)).toEqual(WIDTHS);
  expect(await rows.of(key)).toMatchObject({ width: 90, height: 50, placeholder: 'hash' });
  expect(objects.get(other)?.toString('latin1', 8, 12)).toBe('WEBP');

  // Now they are there in their sizes.
  await database.write((tables) =>
    tables
      .updateTable('uploads')
      .set({ variants_for: null, variants: storedVariants([variant(80)]) })
      .execute(),
  );
  const again = variantsFor();
  for (const [name, bytes] of objects) again.objects.set(name, bytes);
  await again.makeOne();
  expect(again.calls.filter((call) => /^(put|delete)/.test(call))).toEqual([]);
  expect([...again.objects.keys()]).toContain(same);
});

test('an image without a placeholder gets one, also if it needs no variants', async () => {
  const key = await stored();
  const { makeOne, objects } = variantsFor([]);
  objects.set(key, picture);
  await makeOne();
  expect(await rows.of(key)).toMatchObject({ width: 100, variants: '[]', placeholder: expect.stringMatching(/.{20}/) });
});

test('an image that cannot be read is not tried again', async () => {
  const key = await stored();
  const { makeOne, objects, warned, waiting } = variantsFor();
  objects.set(key, Buffer.from('no picture'));
  await makeOne();
  expect([await waiting(), warned.length, (await rows.of(key))?.placeholder]).toEqual([0, 1, null]);
});

test('an image is leased for another minute when its variants are made', async () => {
  const key = await stored();
  const { makeOne, objects, storage } = variantsFor();
  objects.set(key, picture);
  const { find, put } = storage;
  const leases: unknown[] = [];
  storage.put = async (...object) => {
    leases.push((await rows.of(key))?.variants_until);
    return put(...object);
  };
  storage.find = async (name, bytes) => {
    if (name === key)
      await database.write((tables) => tables.updateTable('uploads').set({ variants_until: 1 }).execute());
    return find(name, bytes);
  };
  const before = Date.now();
  await makeOne();
  for (const lease of leases) expect(lease).toBeGreaterThanOrEqual(before + MINUTE - 1);
  expect(leases).toHaveLength(3);
});

test('a variant of other widths that a profile shows stays', async () => {
  const key = await rows.insert('a', complete);
  const [shown, other] = [60, 40].map((width) => variantKey(key, { width })) as [string, string];
  await rows.insertBeside(key, [shown, other]);
  await rows.insertUser(`https://x.test/${shown}?v=1`);
  const { makeOne, calls } = variantsFor([20]);
  await makeOne();
  expect([calls, await rows.keysBeside()]).toEqual([[`delete ${other}`], [shown]]);
});

test('an image that is deleted before its variants are stored gets none', async () => {
  const key = await stored();
  const { makeOne, objects, storage, calls } = variantsFor();
  objects.set(key, picture);
  const { find } = storage;
  storage.find = async (...object) => {
    await database.write((tables) => tables.updateTable('uploads').set({ state: 'doomed' }).execute());
    return find(...object);
  };
  await makeOne();
  expect([calls.filter((call) => call.startsWith('put')), await rows.keysBeside()]).toEqual([[], []]);
});

test('an image that is deleted while its variants are stored leaves none', async () => {
  const key = await stored();
  const { makeOne, objects, storage } = variantsFor();
  objects.set(key, picture);
  const put = storage.put;
  storage.put = async (...object) => {
    await database.write((tables) => tables.updateTable('uploads').set({ state: 'doomed' }).execute());
    return put(...object);
  };
  await makeOne();
  expect([...objects.keys()]).toEqual([key]);
  // The deletion of the image needs their rows.
  expect(await rows.keysBeside()).toHaveLength(3);
});

test('if the storage refuses a variant, the others are stored first, and the image stays due', async () => {
  const key = await stored();
  const { makeOne, objects, storage, waiting } = variantsFor();
  objects.set(key, picture);
  const put = storage.put;
  storage.put = async (name, ...object) => {
    if (name.includes('_20')) throw new Error('full');
    await turn();
    return put(name, ...object);
  };
  await expect(makeOne()).rejects.toThrow('full');
  expect([...objects.keys()].sort()).toEqual([key, variantKey(key, { width: 40 }), variantKey(key, { width: 80 })]);
  expect([await waiting(), (await rows.of(key))?.variants]).toEqual([1, null]);
});

test('if the conversion process ends, the image stays due', async () => {
  const key = await stored();
  await endConversionProcesses();
  const { makeOne, objects, waiting } = variantsFor();
  objects.set(key, picture);
  const making = makeOne();
  await until(() => conversionProcesses()[0] !== undefined, { every: 1 });
  for (const pid of conversionProcesses()) process.kill(pid, 'SIGKILL');
  await expect(making).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect([await waiting(), (await rows.of(key))?.variants_for]).toEqual([1, null]);
});

test.each([0, 1, 50, 51, 101])('%i objects of deleted images are deleted, others stay', async (count) => {
  const { sweep, objects } = variantsFor();
  const key = await rows.insert('a');
  const left = Array.from({ length: count }, (_, n) => rows.keyOf(`old${n}_20`));
  if (count > 0) await rows.insertBeside(null, left);
  await rows.insertBeside(key, [variantKey(key, { width: 20 })]);
  for (const each of [...left, key, variantKey(key, { width: 20 })]) objects.set(each, picture);
  await sweep();
  expect([...objects.keys()].sort()).toEqual([key, variantKey(key, { width: 20 })]);
  expect(await rows.keysBeside()).toEqual([variantKey(key, { width: 20 })]);
});

/** Lets the job go on that waits for the database. */
const settle = async () => {
  for (let i = 0; i < 50; i++) await turn();
};

/** Starts the job, by a clock that the test moves. */
async function started(isIdle = () => true) {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'setInterval', 'clearInterval'] });
  const made = variantsFor(WIDTHS, isIdle);
  made.start();
  await settle();
  return {
    ...made,
    async pass(ms: number) {
      vi.setSystemTime(Date.now() + ms);
      await vi.advanceTimersByTimeAsync(1000);
      await settle();
    },
  };
}

const isMade = async (key: string) => (await rows.of(key))?.variants_for === CURRENT;
const ready = { width: 1, height: 1, placeholder: 'hash' } as const;

test('the job makes one image after the other, and then looks every ten minutes', async () => {
  const [one, other] = [await rows.insert('a', ready), await rows.insert('b', ready)];
  await rows.insertBeside(null, ['uploads/old_20.webp']);
  const job = await started();
  expect([await isMade(one), await isMade(other), await rows.keysBeside()]).toEqual([true, true, []]);
  const next = await rows.insert('c', ready);
  await job.pass(9 * MINUTE);
  expect(await isMade(next)).toBe(false);
  await job.pass(MINUTE);
  expect(await isMade(next)).toBe(true);
  await job.stop();
});

test('the job looks again after a minute while another process makes an image', async () => {
  const key = await rows.insert('a', { ...ready, variants_until: Date.now() + 100 * MINUTE });
  const job = await started();
  await database.write((tables) => tables.updateTable('uploads').set({ variants_until: null }).execute());
  await job.pass(MINUTE / 2);
  expect(await isMade(key)).toBe(false);
  await job.pass(MINUTE / 2);
  expect(await isMade(key)).toBe(true);
  await job.stop();
});

test('the job waits while uploads are converted', async () => {
  const key = await rows.insert('a', ready);
  let isIdle = false;
  const job = await started(() => isIdle);
  await job.pass(0);
  expect(await isMade(key)).toBe(false);
  isIdle = true;
  await job.pass(0);
  expect(await isMade(key)).toBe(true);
  await job.stop();
});
