import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createActivity } from '../../../server/activity/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createUploadLeases } from '../../../server/uploads/leases.ts';
import { createRecords, type UploadRecord } from '../../../server/uploads/records.ts';
import { createUsage } from '../../../server/uploads/usage.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { MINUTE, uploadRows } from './upload-rows.ts';

let database: Database;
let rows: ReturnType<typeof uploadRows>;
let records: ReturnType<typeof createRecords>;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('records-and-leases') });
  await database.migrate();
  rows = uploadRows(database);
  const usage = createUsage(database, { quota: 1e9 });
  records = createRecords(database, usage, createActivity(database, { keptDays: 1 }));
});
afterAll(() => database.close());
beforeEach(() => rows.clear());

const namesOf = (uploads: readonly { objectKey: string }[]) =>
  uploads.map(({ objectKey }) => objectKey.replace(/^uploads\/|\.webp$/g, ''));

describe('a user’s uploads are listed', () => {
  const list = async (options: Partial<Parameters<typeof records.list>[1]> = {}) =>
    namesOf(await records.list('ada', { limit: 9, after: undefined, ...options }));

  beforeEach(async () => {
    for (const [name, created_at] of [
      ['a', 1],
      ['c', 2],
      ['b', 2],
      ['d', 3],
    ] as const)
      await rows.insert(name, { created_at });
    await rows.insert('e', { created_at: 9, user_id: 'eve' });
  });

  test('newest first, those of one time by their keys, each once over all pages', async () => {
    expect(await list()).toEqual(['d', 'c', 'b', 'a']);
    expect(await list({ limit: 2 })).toEqual(['d', 'c']);
    for (const [createdAt, name, rest] of [
      [3, 'd', ['c', 'b', 'a']],
      [2, 'c', ['b', 'a']],
      [2, 'b', ['a']],
      [1, 'a', []],
    ] as const)
      expect(await list({ after: { createdAt, objectKey: rows.keyOf(name) } })).toEqual(rest);
  });

  test('without those that are being deleted, or only those of one state', async () => {
    await rows.insert('f', { created_at: 4, state: 'doomed' });
    await rows.insert('g', { created_at: 5, state: 'infected' });
    expect(await list()).toEqual(['g', 'd', 'c', 'b', 'a']);
    expect(await list({ state: 'infected' })).toEqual(['g']);
  });
});

test.each([
  ['of this key', ['uploads/a.webp'], true],
  ['of one of these keys', ['private/a.webp', 'uploads/a.webp'], true],
  ['of no other key', ['uploads/b.webp'], false],
  ['of no key in other characters', ['uploads/a.webp', 'uploads/ä.webp'], false],
  ['of no key that begins with others', ['uploads/a.webp', 'äuploads'], false],
  ['of no key that ends with others', ['uploads/a.webp', 'uploadsä'], false],
])('the upload %s is found', async (_title, keys, isFound) => {
  await rows.insert('a');
  expect((await records.find(...keys))?.objectKey).toBe(isFound ? 'uploads/a.webp' : undefined);
});

describe('before the scanner looks at a file, its row', () => {
  test.each([
    ['says so', 'pending', 'looking', true],
    ['stays as it is if the file is stored', 'kept', 'due', false],
    ['stays as it is if the file is being deleted', 'doomed', 'due', false],
  ] as const)('%s', async (_title, state, scan, isPending) => {
    const [key, other] = [
      await rows.insert('a', { state, scan: 'due' }),
      await rows.insert('b', { state, scan: 'due' }),
    ];
    expect((await records.beginLook(key))?.objectKey).toBe(isPending ? key : undefined);
    expect([(await rows.of(key))?.scan, (await rows.of(other))?.scan]).toEqual([scan, 'due']);
  });

  test('may be gone', async () => {
    expect(await records.beginLook(rows.keyOf('a'))).toBeUndefined();
  });
});

describe('due uploads', () => {
  beforeEach(async () => {
    await rows.insert('a', { due_at: 2 });
    await rows.insert('b', { due_at: 1, state: 'pending' });
    await rows.insert('c', { due_at: Date.now() + MINUTE });
    await rows.insert('d', { due_at: null });
  });

  test.each([
    ['all', ['b', 'a']],
    ['pending', ['b']],
    ['others', ['a']],
  ] as const)('are taken once, earliest first: %s', async (taken, expected) => {
    const { take } = createUploadLeases(database, taken);
    expect(namesOf(await take(9))).toEqual(expected);
    expect(await take(9)).toEqual([]);
    expect(Math.abs(Number((await rows.of(rows.keyOf(expected[0])))?.due_at) - Date.now() - MINUTE)).toBeLessThan(5000);
  });

  test('are counted until they are taken', async () => {
    const { due, take } = createUploadLeases(database, 'all');
    expect(await due()).toBe(2);
    await take(1);
    expect(await due()).toBe(1);
  });

  test('of one user are taken one at a time, up to the user’s share', async () => {
    for (const name of ['x', 'y', 'z']) await rows.insert(name, { due_at: 3, user_id: 'eve' });
    await rows.insert('last', { due_at: 4, user_id: 'zoe' });
    const { take, hasFull } = createUploadLeases(database, 'all', 2);
    const inWork: UploadRecord[] = [];
    for (let rest = await take(9, inWork); rest.length > 0; rest = await take(9, inWork)) {
      expect(rest).toHaveLength(1);
      inWork.push(...rest);
    }
    expect(inWork.map(({ userId }) => userId)).toEqual(['ada', 'ada', 'eve', 'eve', 'zoe']);
    expect([hasFull?.(inWork), hasFull?.(inWork.slice(0, 1))]).toEqual([true, false]);
  });
});

describe('the next inspection', () => {
  const HOUR = 60 * MINUTE;
  test.each([
    ['postponed', 'postpone', 'kept', MINUTE, HOUR, HOUR],
    ['not changed if the state has changed', 'postpone', 'doomed', MINUTE, HOUR, MINUTE],
    ['brought forward', 'bringForward', 'kept', HOUR, MINUTE, MINUTE],
    ['never brought forward to a later time', 'bringForward', 'kept', MINUTE, HOUR, MINUTE],
    ['not brought forward if the state has changed', 'bringForward', 'doomed', HOUR, MINUTE, HOUR],
  ] as const)('is %s', async (_title, change, state, dueMs, ms, expected) => {
    const due_at = Date.now() + dueMs;
    const [key, other] = [await rows.insert('a', { due_at, state }), await rows.insert('b', { due_at })];
    await createUploadLeases(database, 'all')[change]({ objectKey: key, state: 'kept' }, ms);
    expect(Math.abs(Number((await rows.of(key))?.due_at) - Date.now() - expected)).toBeLessThan(5000);
    expect((await rows.of(other))?.due_at).toBe(due_at);
  });
});
