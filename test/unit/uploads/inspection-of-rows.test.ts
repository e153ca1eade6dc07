import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createActivity } from '../../../server/activity/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { FoundObject, ObjectStorage } from '../../../server/parts/object-storage/contract.ts';
import { createAvatars } from '../../../server/uploads/avatars.ts';
import { createDeletions } from '../../../server/uploads/deletions.ts';
import { check, createInspection } from '../../../server/uploads/inspection.ts';
import { createUploadLeases } from '../../../server/uploads/leases.ts';
import { createRecords, type UploadRecord } from '../../../server/uploads/records.ts';
import { createUsage } from '../../../server/uploads/usage.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { MINUTE, memoryStorage, silent, uploadRows } from './upload-rows.ts';

const HOUR = 60 * MINUTE;
const PDF = Buffer.from('%PDF-1.7');

let database: Database;
let rows: ReturnType<typeof uploadRows>;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('inspection-of-rows') });
  await database.migrate();
  rows = uploadRows(database);
});
afterAll(() => database.close());
beforeEach(() => rows.clear());

function inspectionOn(behaviour: Partial<ObjectStorage> = {}) {
  const { storage, objects: stored, calls } = memoryStorage();
  const objects = { ...storage, ...behaviour };
  const usage = createUsage(database, { quota: 1e9 });
  const activity = createActivity(database, { keptDays: 1 });
  const records = createRecords(database, usage, activity);
  const leases = createUploadLeases(database, 'all');
  const deletions = createDeletions({ database, activity, objects, usage, leases });
  const avatars = createAvatars({ database, activity, objects, deletions, ownOnly: false });
  const arrivals: string[] = [];
  const arrived = async ({ objectKey }: UploadRecord) => void arrivals.push(objectKey);
  const inspection = createInspection({ objects, records, leases, avatars, deletions, arrived, log: silent });
  return {
    stored,
    calls,
    arrivals,
    upload: async (key: string) => (await records.find(key)) as UploadRecord,
    confirm: inspection.confirm,
    /** Inspects the rows that are due. */
    async inspect() {
      inspection.start();
      await inspection.stop();
      return calls.filter((call) => !call.startsWith('find'));
    },
  };
}

const declared = { purpose: 'direct', content_type: 'application/pdf', size: PDF.length, state: 'expected' } as const;
const expiredFor = (ms: number) => ({ expires_at: Date.now() - ms });

const found = (size = PDF.length, start = PDF, version: string | undefined = '1'): FoundObject => ({
  size,
  start,
  version,
});

describe('a stored object', () => {
  test.each([
    ['that was not sent', {}, undefined, 'absent'],
    ['of the declared type and size', {}, found(), 'as declared'],
    ['that is too short', {}, found(7), 'not as declared'],
    ['that is too long', {}, found(9), 'not as declared'],
    ['without the signature of its type', {}, found(8, Buffer.from('<script>')), 'not as declared'],
    [
      'of a type without a known signature',
      { content_type: 'text/x' },
      found(8, Buffer.from('<script>')),
      'as declared',
    ],
    ['of the confirmed version', { confirmed_version: '1' }, found(), 'as declared'],
    ['of another version than the confirmed one', { confirmed_version: '0' }, found(), 'not as declared'],
    ['on a storage that never replaces one', { confirmed_version: '0' }, { size: 8, start: PDF }, 'as declared'],
  ])('%s', async (_title, row, object, result) => {
    const key = await rows.insert('a', { ...declared, ...row });
    const asked: unknown[] = [];
    const { upload } = inspectionOn();
    const { storage } = memoryStorage();
    storage.find = async (...of) => {
      asked.push(of[0]);
      return object;
    };
    expect(await check(storage, await upload(key))).toEqual({
      result,
      ...(object && { version: object.version }),
    });
    expect(asked).toEqual([key]);
  });

  test('is at its pending key only while it waits for the scanner', async () => {
    const { upload } = inspectionOn();
    for (const [state, at] of [
      ['pending', 'pending/a.webp'],
      ['kept', rows.keyOf('a')],
    ] as const) {
      await rows.clear();
      const key = await rows.insert('a', { ...declared, state, scan: 'clean' });
      const { storage, objects } = memoryStorage();
      objects.set(at, PDF);
      expect(await check(storage, await upload(key))).toMatchObject({ result: 'as declared' });
    }
  });
});

describe('the inspection of a declared file', () => {
  test.each([
    ['that has arrived, until its last check', PDF, expiredFor(0), { state: 'expected' }, 5 * MINUTE, []],
    ['that has arrived, after the first check', PDF, expiredFor(5 * MINUTE), { state: 'expected' }, 55 * MINUTE, []],
    ['that has arrived, at the last check', PDF, expiredFor(HOUR), { state: 'kept' }, undefined, []],
    ['that is another one', Buffer.from('x'), expiredFor(0), { state: 'expected' }, 5 * MINUTE, ['delete']],
    [
      'that is another one, at the last check',
      Buffer.from('x'),
      expiredFor(HOUR),
      undefined,
      undefined,
      ['delete', 'delete'],
    ],
    ['that has not arrived', undefined, expiredFor(0), { state: 'expected' }, 5 * MINUTE, []],
    ['that has not arrived, at the last check', undefined, expiredFor(HOUR), undefined, undefined, ['delete']],
    [
      'in parts, after a day',
      undefined,
      { ...expiredFor(25 * HOUR - MINUTE), multipart_id: 'id' },
      { multipart_id: 'id' },
      MINUTE,
      [],
    ],
    [
      'in parts that were joined, at its check',
      PDF,
      { ...expiredFor(25 * HOUR), multipart_id: 'id' },
      { state: 'kept', multipart_id: 'id' },
      HOUR,
      ['deleteParts'],
    ],
  ])('%s', async (_title, bytes, row, expected, dueMs, expectedCalls) => {
    const key = await rows.insert('a', { ...declared, due_at: 1, ...row });
    const { stored, inspect } = inspectionOn();
    if (bytes) stored.set(key, bytes);
    expect(await inspect()).toEqual(expectedCalls.map((call) => `${call} ${key}`));
    const after = await rows.of(key);
    if (expected) expect(after).toMatchObject(expected);
    else expect(after).toBeUndefined();
    if (dueMs) expect(Math.abs(Number(after?.due_at) - Date.now() - dueMs)).toBeLessThan(5000);
    else expect(after?.due_at ?? null).toBeNull();
    const events = after?.state === 'kept' ? [`ada upload-stored {"key":"${key}"}`] : [];
    expect(await rows.events()).toEqual(events);
  });
});

describe('the inspection deletes', () => {
  test.each([
    ['an image that was never stored completely', { state: 'expected', purpose: 'post' }],
    ['a replaced avatar that no profile shows', { state: 'replaced', purpose: 'avatar' }],
    ['an upload whose deletion has started', { state: 'doomed', purpose: 'post' }],
    ['a file whose quarantine has ended', { ...declared, state: 'infected', scan: 'infected' }],
  ] as const)('%s', async (_title, row) => {
    const key = await rows.insert('a', { due_at: 1, ...row });
    const { stored, inspect } = inspectionOn();
    stored.set(key, PDF);
    expect(await inspect()).toEqual([`delete ${key}`]);
    expect([await rows.of(key), stored.size]).toEqual([undefined, 0]);
  });

  test('no replaced avatar that a profile shows: it is not inspected again', async () => {
    const key = await rows.insert('a', { due_at: 1, state: 'replaced', purpose: 'avatar' });
    await rows.insertUser(`https://x.test/${key}?v=1`);
    const { inspect } = inspectionOn();
    expect(await inspect()).toEqual([]);
    expect(await rows.of(key)).toMatchObject({ state: 'replaced', due_at: null });
  });

  test.each([
    ['nothing of a stored file that was sent whole', { scan: null }, []],
    [
      'the parts that were sent since a file was stored',
      { scan: null, multipart_id: '' },
      ['deleteParts uploads/a.webp'],
    ],
    ['what was sent since a scanned file was moved', { scan: 'clean' }, ['delete pending/a.webp']],
    [
      'the parts of a scanned file too',
      { scan: 'clean', multipart_id: 'id' },
      ['deleteParts pending/a.webp', 'delete pending/a.webp'],
    ],
  ] as const)('%s', async (_title, row, calls) => {
    const key = await rows.insert('a', { ...declared, due_at: 1, ...row, state: 'kept' });
    await rows.insertBeside(key, ['pending/a.webp', 'uploads/other.webp']);
    const { inspect } = inspectionOn();
    expect(await inspect()).toEqual(calls);
    expect(await rows.of(key)).toMatchObject({ state: 'kept', due_at: null, multipart_id: null });
    expect(await rows.keysBeside()).toEqual(['uploads/other.webp']);
  });

  test('no file that waits for a scanner: it is looked at in ten minutes', async () => {
    const key = await rows.insert('a', { ...declared, due_at: 1, state: 'pending', scan: 'due' });
    const { inspect } = inspectionOn();
    expect(await inspect()).toEqual([]);
    const row = await rows.of(key);
    expect(row?.state).toBe('pending');
    expect(Math.abs(Number(row?.due_at) - Date.now() - 10 * MINUTE)).toBeLessThan(5000);
  });

  test('nothing before it is due', async () => {
    const key = await rows.insert('a', { due_at: Date.now() + MINUTE, state: 'doomed' });
    const { inspect } = inspectionOn();
    expect([await inspect(), (await rows.of(key))?.state]).toEqual([[], 'doomed']);
  });
});

describe('a confirmation', () => {
  const mismatch = { code: 'VALIDATION_FAILED', message: 'The upload did not match its declaration and was deleted' };
  const absent = { code: 'VALIDATION_FAILED', message: 'Nothing has been uploaded here' };

  test.each([
    ['stores the version', { state: 'expected' }, null, '1'],
    ['keeps the first version', { state: 'expected', confirmed_version: '1' }, null, '1'],
    ['of a file that waits for the scanner reports its arrival', { state: 'pending', scan: 'due' }, 'arrived', '1'],
    ['of a stored file changes nothing', { state: 'kept' }, null, null],
  ] as const)('%s', async (_title, row, arrival, version) => {
    const key = await rows.insert('a', { ...declared, ...row });
    const { confirm, upload, stored, arrivals, calls } = inspectionOn();
    stored.set(row.state === 'pending' ? 'pending/a.webp' : key, PDF);
    await confirm(await upload(key));
    expect((await rows.of(key))?.confirmed_version).toBe(version);
    expect(arrivals).toEqual(arrival ? [key] : []);
    expect(calls).toHaveLength(1);
  });

  test('on a storage that never replaces an object stores no version', async () => {
    const key = await rows.insert('a', declared);
    const { confirm, upload } = inspectionOn({ find: async () => ({ size: 8, start: PDF }) });
    await confirm(await upload(key));
    expect((await rows.of(key))?.confirmed_version).toBeNull();
  });

  test.each([
    ['is refused in quarantine', { state: 'infected' }, undefined, { code: 'UPLOAD_QUARANTINED' }, []],
    ['is refused before anything was sent', { state: 'expected' }, undefined, absent, []],
    ['is refused before anything was sent to the scanner', { state: 'pending' }, undefined, absent, []],
    ['deletes another file', { state: 'expected' }, 'x', mismatch, ['delete uploads/a.webp']],
    ['deletes another file that waits for the scanner', { state: 'pending' }, 'x', mismatch, ['delete pending/a.webp']],
    ['does not delete a stored file', { state: 'kept' }, 'x', mismatch, []],
    ['does not delete a file that is being deleted', { state: 'doomed' }, 'x', mismatch, []],
  ] as const)('%s', async (_title, row, bytes, refusal, deletions) => {
    const key = await rows.insert('a', { ...declared, scan: row.state === 'pending' ? 'due' : null, ...row });
    const { confirm, upload, stored, arrivals, calls } = inspectionOn();
    if (bytes) for (const at of [key, 'pending/a.webp']) stored.set(at, Buffer.from(bytes));
    await expect(confirm(await upload(key))).rejects.toMatchObject(refusal);
    expect(calls.filter((call) => call.startsWith('delete'))).toEqual(deletions);
    expect([arrivals, (await rows.of(key))?.confirmed_version]).toEqual([[], null]);
  });

  test.each([
    ['moved to its key: it is confirmed', { state: 'kept', scan: 'clean' }, undefined],
    ['put in quarantine', { state: 'infected', scan: 'infected' }, { code: 'UPLOAD_QUARANTINED' }],
  ] as const)('of a file that a scan has meanwhile %s', async (_title, change, refusal) => {
    const key = await rows.insert('a', { ...declared, state: 'pending', scan: 'due' });
    const { confirm, upload, stored } = inspectionOn();
    const read = await upload(key);
    stored.set(key, PDF);
    await database.write((tables) => tables.updateTable('uploads').set(change).execute());
    const confirmed = confirm(read);
    if (refusal) await expect(confirmed).rejects.toMatchObject(refusal);
    else await confirmed;
  });

  test('of a file that was deleted while it waited for the scanner is refused', async () => {
    const key = await rows.insert('a', { ...declared, state: 'pending', scan: 'due' });
    const { confirm, upload } = inspectionOn();
    const read = await upload(key);
    await rows.clear();
    await expect(confirm(read)).rejects.toMatchObject(absent);
  });
});
