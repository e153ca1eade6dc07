import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createActivity } from '../../../server/activity/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { ObjectStorage, StoredPart } from '../../../server/parts/object-storage/contract.ts';
import { createUploadLeases } from '../../../server/uploads/leases.ts';
import { createParts } from '../../../server/uploads/parts.ts';
import { createRecords, type UploadRecord } from '../../../server/uploads/records.ts';
import { createUsage } from '../../../server/uploads/usage.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { MINUTE, memoryStorage, uploadRows } from './upload-rows.ts';

const HOUR = 60 * MINUTE;
const MEGABYTE = 1024 ** 2;
/** 20 parts of 5 MB and one of 1 MB. */
const SIZE = 101 * MEGABYTE;

let database: Database;
let rows: ReturnType<typeof uploadRows>;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('parts-of-rows') });
  await database.migrate();
  rows = uploadRows(database);
});
afterAll(() => database.close());
beforeEach(() => rows.clear());

const large = () =>
  ({
    purpose: 'direct',
    content_type: 'application/pdf',
    size: SIZE,
    state: 'expected',
    expires_at: Date.now() + 5 * MINUTE,
  }) as const;

/** The parts of a file, on a storage that may behave otherwise. */
function partsOn(behaviour: Partial<ObjectStorage> = {}) {
  const { storage, calls } = memoryStorage();
  const objects: ObjectStorage = {
    ...storage,
    async startParts(key, contentType) {
      calls.push(`startParts ${key} ${contentType}`);
      return 'new';
    },
    presignPart: async (address) => JSON.stringify(address),
    ...behaviour,
  };
  const records = createRecords(
    database,
    createUsage(database, { quota: 1e12 }),
    createActivity(database, { keptDays: 1 }),
  );
  const leases = createUploadLeases(database, 'all');
  const upload = async (key: string) => (await records.find(key)) as UploadRecord;
  return { ...createParts({ objects, records, leases }), upload, calls };
}

const uncounted = async () => undefined;
const set = (row: object) => database.write((tables) => tables.updateTable('uploads').set(row).execute());

const complete = {
  code: 'VALIDATION_FAILED',
  details: { key: { rule: 'complete', message: 'This file is complete' } },
};
const notInParts = {
  code: 'VALIDATION_FAILED',
  details: { key: { rule: 'not_in_parts', message: 'This file is sent in one piece' } },
};
const notFound = { code: 'NOT_FOUND' };

describe('addresses and the stored parts are refused', () => {
  test.each([
    ['of a small file', { size: 100 * MEGABYTE }, notInParts],
    ['of a stored file', { state: 'kept' }, complete],
    ['of a replaced file', { state: 'replaced' }, complete],
    ['of a file in quarantine', { state: 'infected' }, complete],
    ['of a file that is being deleted', { state: 'doomed' }, complete],
    ['while the scanner looks at it', { state: 'pending', scan: 'looking' }, complete],
    ['of a confirmed file', { confirmed_version: '1' }, complete],
    ['of a copy that the service makes', { variants_until: 1 }, notFound],
    ['a day after its address has expired', { expires_at: Date.now() - 24 * HOUR }, notFound],
  ])('%s', async (_title, row, refusal) => {
    const key = await rows.insert('a', { ...large(), multipart_id: 'id', ...(row as object) });
    const { presign, stored, upload, calls } = partsOn();
    const read = await upload(key);
    await expect(presign(read, [1], uncounted)).rejects.toMatchObject(refusal);
    await expect(stored(read)).rejects.toMatchObject(refusal);
    expect(calls).toEqual([]);
  });

  test.each([
    ['shortly before a day has passed', { expires_at: Date.now() - 24 * HOUR + MINUTE }],
    ['of a file that waits for the scanner', { state: 'pending', scan: 'due' }],
    ['of a pending file whose move did not complete', { state: 'pending', scan: 'due', variants_until: 1 }],
  ])('not %s', async (_title, row) => {
    const key = await rows.insert('a', { ...large(), multipart_id: 'id', ...(row as object) });
    const { presign, stored, upload } = partsOn();
    expect((await presign(await upload(key), [1], uncounted)).addresses).toHaveLength(1);
    expect((await stored(await upload(key))).stored).toEqual([]);
  });
});

test('each address is for one part of exactly its size', async () => {
  const key = await rows.insert('a', { ...large(), multipart_id: 'id' });
  const { presign, upload, calls } = partsOn();
  const { addresses, expiresIn } = await presign(await upload(key), [1, 2, 21], uncounted);
  const address = (part: number, start: number, size: number) => ({
    part,
    size,
    presignedUrl: JSON.stringify({ key, id: 'id', part, start, size, expiresInSeconds: 300 }),
  });
  expect(addresses).toEqual([
    address(1, 0, 5 * MEGABYTE),
    address(2, 5 * MEGABYTE, 5 * MEGABYTE),
    address(21, 100 * MEGABYTE, MEGABYTE),
  ]);
  expect([expiresIn, calls]).toEqual([300, []]);
});

test('a part beyond the last one is refused, and not counted', async () => {
  const key = await rows.insert('a', large());
  const { presign, upload, calls } = partsOn();
  const refused = presign(await upload(key), [1, 22], () => Promise.reject(new Error('counted')));
  await expect(refused).rejects.toMatchObject({
    code: 'VALIDATION_FAILED',
    details: { parts: { rule: 'too_large', message: 'Must be at most 21' } },
  });
  expect([calls, (await rows.of(key))?.multipart_id]).toEqual([[], null]);
});

test.each([
  ['that was not begun', null, 1],
  ['whose beginning got no answer', '', 1],
  ['that was begun', 'id', 0],
])('addresses of a file in parts %s: counted %3$i times', async (_title, multipart_id, expected) => {
  const key = await rows.insert('a', { ...large(), multipart_id });
  const { presign, upload } = partsOn();
  let counted = 0;
  await presign(await upload(key), [1], async () => counted++);
  expect(counted).toBe(expected);
});

test.each([
  ['public', {}, ''],
  ['waiting for the scanner', { state: 'pending', scan: 'due' } as const, 'pending/a.webp'],
])(
  'the first address of a file (%s) begins it: it is checked when no part can arrive any more',
  async (_title, row, sentTo) => {
    const { expires_at } = large();
    const key = await rows.insert('a', { ...large(), ...row, expires_at, due_at: 1 });
    const { presign, upload, calls } = partsOn();
    const at = sentTo || key;
    const { addresses } = await presign(await upload(key), [2], uncounted);
    expect(JSON.parse(addresses[0]?.presignedUrl ?? '')).toMatchObject({ key: at, id: 'new', part: 2 });
    expect(calls).toEqual([`find ${at} 1`, `startParts ${at} application/pdf`]);
    expect(await rows.of(key)).toMatchObject({ multipart_id: 'new', due_at: expires_at + 25 * HOUR });
  },
);

test.each([
  [SIZE, true],
  [SIZE - 1, false],
  [SIZE + 1, false],
])('a file of which %i bytes were sent in one piece: complete: %s', async (size, isComplete) => {
  const key = await rows.insert('a', large());
  const { presign, upload } = partsOn({ find: async () => ({ size, start: Buffer.alloc(0) }) });
  const addresses = presign(await upload(key), [1], uncounted);
  if (isComplete) await expect(addresses).rejects.toMatchObject(complete);
  else expect((await addresses).addresses).toHaveLength(1);
  expect((await rows.of(key))?.multipart_id).toBe(isComplete ? null : 'new');
});

describe('while the storage begins a file in parts', () => {
  test.each([
    ['another call has begun it: its id is used', { multipart_id: 'other' }, 'other', 0],
    ['its deletion starts: the parts are deleted', { state: 'doomed' }, notFound, 1],
    ['its deletion starts after another call', { state: 'doomed', multipart_id: 'other' }, notFound, 1],
    ['the scanner begins to look at it', { scan: 'looking', multipart_id: 'other' }, complete, 0],
  ])('%s', async (_title, change, expected, deletions) => {
    const key = await rows.insert('a', large());
    const { presign, upload, calls } = partsOn({
      async startParts() {
        await set(change);
        return 'new';
      },
    });
    const outcome = presign(await upload(key), [1], uncounted);
    if (typeof expected === 'string')
      expect((await outcome).addresses[0]?.presignedUrl).toContain(`"id":"${expected}"`);
    else await expect(outcome).rejects.toMatchObject(expected);
    expect(calls.filter((call) => call === `deleteParts ${key}`)).toHaveLength(deletions);
  });

  test('its deletion is completed: the parts are deleted', async () => {
    const key = await rows.insert('a', large());
    const { presign, upload, calls } = partsOn({
      async startParts() {
        await rows.clear();
        return 'new';
      },
    });
    await expect(presign(await upload(key), [1], uncounted)).rejects.toMatchObject(notFound);
    expect(calls).toContain(`deleteParts ${key}`);
  });

  test('before it, another call has begun the file: the storage is not asked for another', async () => {
    const key = await rows.insert('a', large());
    const { presign, upload, calls } = partsOn();
    const read = await upload(key);
    await set({ multipart_id: 'other' });
    expect((await presign(read, [1], uncounted)).addresses[0]?.presignedUrl).toContain('"id":"other"');
    expect(calls).toEqual([`find ${key} 1`]);
  });
});

const part = (number: number, size = 5 * MEGABYTE): StoredPart => ({ part: number, size, version: `v${number}` });
const allParts = Array.from({ length: 21 }, (_, i) => part(i + 1, i < 20 ? 5 * MEGABYTE : MEGABYTE));

test.each([
  ['in their order', 'id', [part(10), part(2), part(1)], [1, 2, 10]],
  ['none before it has begun', null, [part(1)], []],
  ['none after they were joined', 'id', undefined, []],
])('the stored parts are listed: %s', async (_title, multipart_id, found, stored) => {
  const key = await rows.insert('a', { ...large(), multipart_id });
  const asked: object[] = [];
  const parts = partsOn({
    async storedParts(file) {
      asked.push(file);
      return found;
    },
  });
  expect(await parts.stored(await parts.upload(key))).toEqual({ size: 5 * MEGABYTE, count: 21, stored });
  expect(asked).toEqual(multipart_id ? [{ key, id: multipart_id }] : []);
});

describe('parts are joined', () => {
  const without = (number: number) => allParts.filter((each) => each.part !== number);
  test.each([
    ['all', {}, allParts, true, 1],
    ['all, of a file that waits for the scanner', { state: 'pending', scan: 'due' }, allParts, true, 1],
    ['not again: they were joined', {}, undefined, true, 0],
    ['never of a file without parts', { multipart_id: null }, allParts, false, 0],
    ['never of a stored file', { state: 'kept' }, allParts, false, 0],
    ['never of a file that is being deleted', { state: 'doomed' }, allParts, false, 0],
    ['not if one is missing', {}, without(3), '3', 0],
    ['not if the last one is missing', {}, without(21), '21', 0],
    ['not if one is too small', {}, [...without(1), part(1, 4 * MEGABYTE)], '1', 0],
    ['not if the last one is too large', {}, [...without(21), part(21)], '21', 0],
    ['not if several are missing', {}, allParts.slice(0, -2), '20, 21', 0],
  ])('%s', async (_title, row, found, expected, joins) => {
    const key = await rows.insert('a', { ...large(), multipart_id: 'id', ...(row as object) });
    const joined: unknown[] = [];
    const at = 'scan' in row ? 'pending/a.webp' : key;
    const parts = partsOn({
      storedParts: async (file) => (file.key === at && file.id === 'id' ? found : []),
      async joinParts(...file) {
        joined.push(file);
        return true;
      },
    });
    const outcome = parts.join(await parts.upload(key));
    if (typeof expected === 'boolean') expect(await outcome).toBe(expected);
    else
      await expect(outcome).rejects.toMatchObject({
        code: 'VALIDATION_FAILED',
        details: { parts: { rule: 'missing', message: `Not yet uploaded: ${expected}` } },
      });
    expect(joined).toEqual(joins ? [[{ key: at, id: 'id' }, allParts]] : []);
  });

  test('not before the file was begun: all are missing', async () => {
    const key = await rows.insert('a', { ...large(), multipart_id: '' });
    const { join, upload } = partsOn({ storedParts: async () => allParts });
    await expect(join(await upload(key))).rejects.toMatchObject({
      details: { parts: { message: expect.stringMatching(/: 1, 2, .*, 21$/) } },
    });
  });

  test('not if one has changed meanwhile', async () => {
    const key = await rows.insert('a', { ...large(), multipart_id: 'id' });
    const { join, upload } = partsOn({ storedParts: async () => allParts, joinParts: async () => false });
    expect(await join(await upload(key))).toBe(false);
  });
});

test.each([
  ['before its address expires', { expires_at: Date.now() + MINUTE }, 6 * MINUTE],
  ['after the first check', { expires_at: Date.now() - 10 * MINUTE }, 50 * MINUTE],
  ['long after', { expires_at: Date.now() - 3 * HOUR }, 0],
  ['of a stored file too', { state: 'kept', expires_at: Date.now() }, 5 * MINUTE],
  // Never later than scheduled.
  ['that waits for the scanner', { state: 'pending', scan: 'due', due_at: 7 }, undefined],
  ['that the scanner looks at', { state: 'pending', scan: 'looking', created_at: Date.now() }, MINUTE],
])('a joined file is checked like one that was sent whole: %s', async (_title, row, nextMs) => {
  const due_at = Date.now() + 20 * HOUR;
  const key = await rows.insert('a', { ...large(), multipart_id: 'id', due_at, ...(row as object) });
  const { finish, upload, calls } = partsOn();
  const read = await upload(key);
  await finish(read);
  const { multipart_id, due_at: next } = (await rows.of(key)) ?? {};
  expect([calls, multipart_id]).toEqual([[`deleteParts ${read.scan ? 'pending/a.webp' : key}`], null]);
  if (nextMs === undefined) expect(next).toBe(7);
  else expect(Math.abs(Number(next) - Date.now() - nextMs)).toBeLessThan(5000);
});
