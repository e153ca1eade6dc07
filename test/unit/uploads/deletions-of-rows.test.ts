import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { UploadState } from '../../../entities/index.ts';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { createActivity } from '../../../server/activity/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createDeletions } from '../../../server/uploads/deletions.ts';
import { createUploadLeases } from '../../../server/uploads/leases.ts';
import { createRecords, type UploadRecord } from '../../../server/uploads/records.ts';
import { createUsage } from '../../../server/uploads/usage.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { MINUTE, memoryStorage, uploadRows } from './upload-rows.ts';

const HOUR = 60 * MINUTE;

let database: Database;
let rows: ReturnType<typeof uploadRows>;
let usage: ReturnType<typeof createUsage>;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('deletions-of-rows') });
  await database.migrate();
  rows = uploadRows(database);
  usage = createUsage(database, { quota: 1e9 });
});
afterAll(() => database.close());
beforeEach(async () => {
  await rows.clear();
  await usage.prepare('ada');
  await database.write((tables) => tables.updateTable('upload_usage').set({ used: 5000, files: 5 }).execute());
});

const all = { used: 5000, files: 5 };
const fewer = { used: 4000, files: 4 };

function deletions() {
  const { storage, calls } = memoryStorage();
  const activity = createActivity(database, { keptDays: 1 });
  const { find } = createRecords(database, usage, activity);
  const leases = createUploadLeases(database, 'all');
  const upload = async (key: string) => (await find(key)) as UploadRecord;
  return { ...createDeletions({ database, activity, objects: storage, usage, leases }), upload, calls };
}

/** Milliseconds from now until the next inspection. */
const dueIn = async (key: string) => Number((await rows.of(key))?.due_at) - Date.now();

const direct = (expiredForMs: number) => ({ purpose: 'direct', expires_at: Date.now() - expiredForMs }) as const;

describe('the start', () => {
  test.each([
    ['kept', ['kept', 'replaced'], true, 1],
    ['replaced', ['kept', 'replaced'], true, 1],
    ['replaced', ['replaced'], true, 1],
    ['kept', ['replaced'], false, 0],
    ['expected', ['expected', 'pending', 'kept', 'replaced'], true, 0],
    ['pending', ['expected', 'pending', 'kept', 'replaced'], true, 0],
    ['kept', ['expected', 'pending', 'kept', 'replaced'], true, 1],
    ['infected', ['infected'], true, 0],
    ['infected', ['expected', 'pending', 'kept', 'replaced'], false, 0],
    ['doomed', ['expected', 'pending', 'kept', 'replaced'], false, 0],
    ['kept', [], false, 0],
  ] as const)(
    'of a deletion of an upload that is %s, from %j: %s, and events: %i',
    async (state, from, begins, events) => {
      const key = await rows.insert('a', { state, variants_size: 0 });
      const other = await rows.insert('b');
      const { start, upload } = deletions();
      const read = await upload(key);
      expect(await database.change((tables) => start(tables, read, from, backgroundJob))).toBe(begins);
      expect(await rows.of(key)).toMatchObject({ state: begins ? 'doomed' : state, size: begins ? 0 : 1000 });
      expect(await rows.of(other)).toMatchObject({ state: 'kept', size: 1000 });
      if (begins) expect(Math.abs((await dueIn(key)) - MINUTE)).toBeLessThan(5000);
      expect(await usage.of('ada')).toEqual(begins ? fewer : all);
      expect(await rows.events()).toEqual(Array(events).fill(`ada upload-removed {"key":"${key}"}`));
    },
  );

  test.each([
    ['counts until its address has expired', direct(-MINUTE), all],
    ['no longer counts when its address has expired', direct(0), fewer],
    ['no longer counts if it is an image', { expires_at: Date.now() + MINUTE }, fewer],
  ])('of a deletion: the file %s', async (_title, row, expected) => {
    const key = await rows.insert('a', row);
    const { start, upload } = deletions();
    const read = await upload(key);
    await database.change((tables) => start(tables, read, ['kept'], backgroundJob));
    expect(await usage.of('ada')).toEqual(expected);
  });
});

describe('the deletion', () => {
  const doomed = { state: 'doomed' } as const;
  const insertWithVariants = async (row = {}) => {
    const key = await rows.insert('a', { ...doomed, ...row });
    const beside = [`${key}_20`, `${key}_40`];
    await rows.insertBeside(key, beside);
    await rows.insertBeside(await rows.insert('b'), ['other_20']);
    return { key, objects: [key, ...beside].map((each) => `delete ${each}`).sort() };
  };

  test('of an image deletes its variants and its row, and clears them from profiles', async () => {
    const { key, objects } = await insertWithVariants();
    await rows.insertUser(`https://x.test/${key}`);
    const { proceed, upload, calls } = deletions();
    await proceed(await upload(key));
    expect(calls.sort()).toEqual(objects);
    expect([await rows.of(key), await rows.keysBeside(), await usage.of('ada')]).toEqual([
      undefined,
      ['other_20'],
      fewer,
    ]);
    const profile = await database.query((tables) =>
      tables.selectFrom('users').select(['avatar', 'avatar_variants']).executeTakeFirst(),
    );
    expect(profile).toEqual({ avatar: `https://x.test/${key}`, avatar_variants: null });
  });

  test('of an image keeps the rows while a process may store variants', async () => {
    const { key, objects } = await insertWithVariants({ variants_until: Date.now() + MINUTE / 2 });
    const { proceed, upload, calls } = deletions();
    await proceed(await upload(key));
    expect(calls.sort()).toEqual(objects);
    expect(Math.abs((await dueIn(key)) - MINUTE / 2)).toBeLessThan(5000);
    expect([(await rows.keysBeside()).length, await usage.of('ada')]).toEqual([3, fewer]);
  });

  test('of an image whose time to store it has not passed keeps the row until then', async () => {
    const key = await rows.insert('a', { ...doomed, expires_at: Date.now() + MINUTE });
    const { proceed, upload } = deletions();
    await proceed(await upload(key));
    expect(Math.abs((await dueIn(key)) - MINUTE)).toBeLessThan(5000);
  });

  test('of a file that was scanned deletes what is at its pending key, and the profiles stay', async () => {
    const { key, objects } = await insertWithVariants({ ...direct(HOUR), scan: 'clean' });
    await rows.insertUser(`https://x.test/${key}`);
    const { proceed, upload, calls } = deletions();
    await proceed(await upload(key));
    expect([calls.sort(), await rows.of(key), await rows.keysBeside()]).toEqual([objects, undefined, ['other_20']]);
    const profile = database.query((tables) => tables.selectFrom('users').select('avatar_variants').executeTakeFirst());
    expect(await profile).toEqual({ avatar_variants: 'former' });
  });

  test.each([
    ['before its address has expired', -MINUTE, 6 * MINUTE, all],
    ['when its address has just expired', 0, 5 * MINUTE, fewer],
    ['at the first check', 5 * MINUTE, 55 * MINUTE, fewer],
    ['at the last check', HOUR, undefined, fewer],
  ])('of a file %s', async (_title, expiredForMs, nextMs, counted) => {
    const key = await rows.insert('a', { ...doomed, ...direct(expiredForMs) });
    const { proceed, upload, calls } = deletions();
    await proceed(await upload(key));
    expect([calls, await usage.of('ada')]).toEqual([[`delete ${key}`], counted]);
    if (nextMs === undefined) expect(await rows.of(key)).toBeUndefined();
    else expect(Math.abs((await dueIn(key)) - nextMs)).toBeLessThan(5000);
  });

  test.each([
    ['its parts are deleted first, and again in an hour', 'id', HOUR],
    ['parts that arrived since are deleted, and the row', '', undefined],
  ])('of a file that is sent in parts: %s', async (_title, multipart_id, nextMs) => {
    const key = await rows.insert('a', { ...doomed, ...direct(HOUR), multipart_id });
    const { proceed, upload, calls } = deletions();
    await proceed(await upload(key));
    expect(calls).toEqual([`deleteParts ${key}`, `delete ${key}`]);
    const row = await rows.of(key);
    expect(row?.multipart_id).toBe(nextMs && '');
    if (nextMs) expect(Math.abs((await dueIn(key)) - nextMs)).toBeLessThan(5000);
  });

  test('of a file in parts that waits for the scanner deletes the parts at its pending key', async () => {
    const key = await rows.insert('a', { ...doomed, ...direct(HOUR), scan: 'due', multipart_id: 'id' });
    const { proceed, upload, calls } = deletions();
    await proceed(await upload(key));
    expect(calls[0]).toBe('deleteParts pending/a.webp');
  });

  test.each([
    ['parts were started', { multipart_id: 'id' }],
    ['it was not started', { state: 'kept' as UploadState }],
  ])('keeps the row if %s since', async (_title, change) => {
    const key = await rows.insert('a', { ...doomed, ...direct(HOUR) });
    const { proceed, upload } = deletions();
    const read = await upload(key);
    await database.write((tables) => tables.updateTable('uploads').set(change).execute());
    await proceed(read);
    expect(await rows.of(key)).toMatchObject(change);
  });
});

test('a deletion that another process has completed may be repeated', async () => {
  const key = await rows.insert('a', { state: 'doomed' });
  const { proceed, upload, calls } = deletions();
  const read = await upload(key);
  await proceed(read);
  await proceed(read);
  expect([calls, await usage.of('ada')]).toEqual([[`delete ${key}`, `delete ${key}`], fewer]);
});

test('an abandoned upload is deleted, unless its state has changed', async () => {
  const [key, changed] = [await rows.insert('a', { state: 'expected' }), await rows.insert('b', { state: 'expected' })];
  const { abandon, upload, calls } = deletions();
  const [read, former] = [await upload(key), await upload(changed)];
  await database.write((tables) =>
    tables.updateTable('uploads').set({ state: 'kept' }).where('object_key', '=', changed).execute(),
  );
  await abandon(read);
  await abandon(former);
  expect([await rows.of(key), (await rows.of(changed))?.state]).toEqual([undefined, 'kept']);
  expect([calls, await rows.events()]).toEqual([[`delete ${key}`], []]);
});

describe('the uploads of a removed user', () => {
  test.each([1, 499, 500, 501])('are all deleted from now on: %i', async (count) => {
    const values = Array.from({ length: count }, (_, n) => ({
      object_key: rows.keyOf(`a${n}`),
      user_id: 'ada',
      purpose: 'post',
      content_type: 'image/webp',
      size: 1000,
      variants_size: 10,
      state: 'kept',
      expires_at: 1,
      created_at: 1,
    })) as never[];
    await database.write((tables) => tables.insertInto('uploads').values(values).execute());
    const other = await rows.insert('other', { user_id: 'eve', variants_size: 10 });
    const { removeAllOf, calls } = deletions();
    expect(await removeAllOf('ada')).toBe(false);
    const started = await database.query((tables) =>
      tables
        .selectFrom('uploads')
        .select((row) => row.fn.countAll<number>().as('count'))
        .where('user_id', '=', 'ada')
        .where('state', '=', 'doomed')
        .where('size', '=', 0)
        .where('variants_size', '=', 0)
        .where('due_at', '<=', Date.now())
        .executeTakeFirst(),
    );
    expect(started).toEqual({ count });
    expect(await rows.of(other)).toMatchObject({ state: 'kept', size: 1000, variants_size: 10 });
    expect([calls, await usage.of('ada')]).toEqual([[], { used: 0, files: 0 }]);
  });

  test('are gone when no row is left: a deletion that has started keeps its time', async () => {
    const due_at = Date.now() + MINUTE;
    const key = await rows.insert('a', { state: 'doomed', due_at });
    const { removeAllOf } = deletions();
    expect(await removeAllOf('ada')).toBe(false);
    expect((await rows.of(key))?.due_at).toBe(due_at);
    await rows.clear();
    await rows.insert('b', { user_id: 'eve' });
    expect(await removeAllOf('ada')).toBe(true);
  });
});
