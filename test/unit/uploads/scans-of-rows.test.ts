import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createActivity } from '../../../server/activity/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { ObjectStorage } from '../../../server/parts/object-storage/contract.ts';
import type { SentFile } from '../../../server/parts/scanner/contract.ts';
import { createDeletions } from '../../../server/uploads/deletions.ts';
import type { Examination } from '../../../server/uploads/examination.ts';
import { createUploadLeases } from '../../../server/uploads/leases.ts';
import { createRecords, type UploadRecord } from '../../../server/uploads/records.ts';
import { createScans } from '../../../server/uploads/scans.ts';
import { createUsage } from '../../../server/uploads/usage.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { MINUTE, memoryStorage, silent, uploadRows } from './upload-rows.ts';

const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const PDF = Buffer.from('%PDF-1.7');
const PENDING = 'pending/a.webp';

let database: Database;
let rows: ReturnType<typeof uploadRows>;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('scans-of-rows') });
  await database.migrate();
  rows = uploadRows(database);
});
afterAll(() => database.close());
beforeEach(() => rows.clear());

type Verdict = Awaited<ReturnType<Examination['file']>>;

/** A file that was sent to its pending key and is due now. Its address is valid for a minute more. */
const insert = async (row: object = {}) => {
  const key = await rows.insert('a', {
    purpose: 'direct',
    content_type: 'application/pdf',
    size: PDF.length,
    state: 'pending',
    scan: 'due',
    due_at: 1,
    created_at: Date.now() - MINUTE,
    expires_at: Date.now() + MINUTE,
    ...row,
  });
  await rows.insertBeside(key, [PENDING]);
  return key;
};

/** Scans on a storage that has this object at the pending key of `a`, and a scanner with this verdict. */
function scansOf(
  bytes: Buffer | undefined,
  verdict: Verdict | (() => Promise<Verdict>),
  behaviour: Partial<ObjectStorage> = {},
) {
  const { storage, objects: stored, calls } = memoryStorage();
  if (bytes) stored.set(PENDING, bytes);
  const opened: Readable[] = [];
  const objects: ObjectStorage = {
    ...storage,
    async open(key) {
      const found = stored.get(key);
      if (found) opened.push(Readable.from([found]));
      return found && { size: found.length, bytes: opened.at(-1) as Readable, version: '1' };
    },
    async copy(from, to, contentType, transfer) {
      calls.push(`copy ${from} ${to} ${contentType} ${transfer?.version}`);
      stored.set(to, stored.get(from) as Buffer);
      return true;
    },
    ...behaviour,
  };
  const usage = createUsage(database, { quota: 1e9 });
  const activity = createActivity(database, { keptDays: 1 });
  const records = createRecords(database, usage, activity);
  const leases = createUploadLeases(database, 'pending', 2);
  const scanned: SentFile[] = [];
  const recorded: object[] = [];
  let mails = 0;
  const scans = createScans({
    database,
    objects,
    records,
    deletions: createDeletions({ database, activity, objects, usage, leases }),
    leases,
    examination: {
      async file(file) {
        scanned.push(file);
        return typeof verdict === 'function' ? verdict() : verdict;
      },
      requireCleanImage: async () => 'clean',
    },
    notices: {
      record: async (_tables, user, event) => void recorded.push({ user: user.id, ...event }),
      wake: () => mails++,
    },
    log: silent,
  });
  return {
    stored,
    opened,
    scanned,
    recorded,
    mails: () => mails,
    upload: async (key: string) => (await records.find(key)) as UploadRecord,
    hasten: scans.hasten,
    /** Looks at the files that are due. */
    async look() {
      scans.start();
      await scans.stop();
      return calls.filter((call) => !call.startsWith('find'));
    },
  };
}

const dueIn = async (key: string) => Number((await rows.of(key))?.due_at) - Date.now();
const expectDueIn = async (key: string, ms: number) => expect(Math.abs((await dueIn(key)) - ms)).toBeLessThan(5000);
const infected = { result: 'infected', finding: 'Eicar' } as const;

describe('a file that may be given out', () => {
  test.each(['clean', 'allowed'] as const)('(%s) is moved to its key and stored', async (result) => {
    const key = await insert({ confirmed_version: '1' });
    const { expires_at } = (await rows.of(key)) ?? {};
    const { look, stored, scanned, recorded, mails } = scansOf(PDF, { result });
    expect(await look()).toEqual([`copy ${PENDING} ${key} application/pdf 1`, `delete ${PENDING}`]);
    expect([...stored.keys()]).toEqual([key]);
    expect(scanned).toMatchObject([{ size: PDF.length }]);
    expect(await rows.of(key)).toMatchObject({
      state: 'kept',
      scan: result,
      // The copy may have another one.
      confirmed_version: null,
      variants_until: null,
      due_at: Number(expires_at) + HOUR,
    });
    expect(await rows.events()).toEqual([`ada upload-stored {"key":"${key}"}`]);
    expect([recorded, mails()]).toEqual([[], 0]);
  });

  test.each([
    ['parts that were begun are deleted', 'id', [`deleteParts ${PENDING}`]],
    ['parts that were being begun are deleted', '', [`deleteParts ${PENDING}`]],
    ['without parts none are deleted', null, []],
  ])('%s before it is moved', async (_title, multipart_id, first) => {
    const key = await insert({ multipart_id });
    const { look } = scansOf(PDF, { result: 'clean' });
    expect(await look()).toEqual([...first, `copy ${PENDING} ${key} application/pdf 1`, `delete ${PENDING}`]);
  });

  test('waits if its object is replaced while the scanner looks: it is due at once', async () => {
    const key = await insert();
    const { look } = scansOf(PDF, { result: 'clean' }, { copy: async () => false });
    expect(await look()).toEqual([]);
    expect(await rows.of(key)).toMatchObject({ state: 'pending', scan: 'due' });
    await expectDueIn(key, 0);
  });

  test('keeps its row for some minutes when its deletion starts while it is moved', async () => {
    const key = await insert();
    const { look, stored } = scansOf(
      PDF,
      { result: 'clean' },
      {
        async copy(_from, to) {
          const { variants_until } = (await rows.of(to)) ?? {};
          expect(Number(variants_until) - Date.now()).toBeGreaterThan(15 * MINUTE);
          await database.write((tables) => tables.updateTable('uploads').set({ state: 'doomed' }).execute());
          stored.set(to, PDF);
          return true;
        },
      },
    );
    await look();
    expect([stored.has(key), (await rows.of(key))?.state]).toEqual([false, 'doomed']);
  });

  test.each([
    ['kept', true],
    ['replaced', true],
    ['infected', false],
    ['doomed', false],
  ] as const)('of another process that has made it %s: what was copied stays: %s', async (state, stays) => {
    const key = await insert();
    const { look, stored } = scansOf(
      PDF,
      { result: 'clean' },
      {
        async copy(_from, to) {
          await database.write((tables) => tables.updateTable('uploads').set({ state, due_at: null }).execute());
          stored.set(to, PDF);
          return true;
        },
      },
    );
    await look();
    expect([stored.has(key), stored.has(PENDING), await rows.events()]).toEqual([stays, true, []]);
  });

  test('leaves no copy if its deletion is completed while it is moved', async () => {
    await insert();
    const { look, stored } = scansOf(
      PDF,
      { result: 'clean' },
      {
        async copy(_from, to) {
          await rows.clear();
          stored.set(to, PDF);
          return true;
        },
      },
    );
    await look();
    expect([...stored.keys()]).toEqual([PENDING]);
  });

  test('is not moved if its deletion has started while the scanner looked', async () => {
    const key = await insert();
    const { look } = scansOf(PDF, async () => {
      await database.write((tables) => tables.updateTable('uploads').set({ state: 'doomed' }).execute());
      return { result: 'clean' };
    });
    expect(await look()).toEqual([]);
    expect((await rows.of(key))?.state).toBe('doomed');
  });
});

describe('an infected file', () => {
  test('is in quarantine for thirty days, and its user gets a mail', async () => {
    const key = await insert();
    await rows.insertUser(null, 'ada');
    await rows.insertUser(null, 'eve');
    const { look, stored, recorded, mails } = scansOf(PDF, infected);
    const before = Date.now();
    expect(await look()).toEqual([`delete ${key}`]);
    expect(await rows.of(key)).toMatchObject({ state: 'infected', scan: 'infected', finding: 'Eicar' });
    await expectDueIn(key, 30 * DAY);
    expect(recorded).toEqual([
      {
        user: 'ada',
        kind: 'upload-quarantined',
        details: { key, finding: 'Eicar', deletedAfter: expect.stringMatching(/^\d{4}-.*Z$/) },
      },
    ]);
    const { details } = recorded[0] as { details: { deletedAfter: string } };
    const quarantineMs = Date.parse(details.deletedAfter) - before;
    expect(Math.abs(quarantineMs - 30 * DAY)).toBeLessThan(5000);
    expect([[...stored.keys()], mails()]).toEqual([[PENDING], 1]);
  });

  test.each([
    ['id', [`deleteParts ${PENDING}`]],
    [null, []],
  ])('loses its parts (%s)', async (multipart_id, first) => {
    const key = await insert({ multipart_id });
    const { look } = scansOf(PDF, infected);
    expect(await look()).toEqual([...first, `delete ${key}`]);
  });

  test('of a user who is gone is in quarantine too', async () => {
    const key = await insert();
    const { look, recorded } = scansOf(PDF, infected);
    await look();
    expect([(await rows.of(key))?.state, recorded]).toEqual(['infected', []]);
  });

  test('that is being deleted stays so: no mail', async () => {
    const key = await insert();
    await rows.insertUser(null, 'ada');
    const { look, recorded, mails } = scansOf(PDF, infected, {
      async open() {
        await database.write((tables) => tables.updateTable('uploads').set({ state: 'doomed' }).execute());
        return { size: PDF.length, bytes: Readable.from([PDF]), version: '1' };
      },
    });
    expect(await look()).toEqual([]);
    expect([(await rows.of(key))?.state, recorded, mails()]).toEqual(['doomed', [], 0]);
  });
});

test('a file that the scanner does not take waits for ten minutes', async () => {
  const key = await insert();
  const { look } = scansOf(PDF, { result: 'unknown', answer: 'too large' });
  expect(await look()).toEqual([]);
  expect(await rows.of(key)).toMatchObject({ state: 'pending', scan: 'due' });
  await expectDueIn(key, 10 * MINUTE);
});

describe('the scanner does not look at a file', () => {
  test.each([
    ['that has not arrived', undefined, { created_at: Date.now() - MINUTE }, MINUTE, []],
    ['of which its address has expired', undefined, { expires_at: Date.now() - 10 * MINUTE }, 50 * MINUTE, []],
    ['that is another one: it is deleted', Buffer.from('x'), {}, MINUTE, [`delete ${PENDING}`]],
  ])('%s', async (_title, bytes, row, dueMs, expected) => {
    const key = await insert(row);
    const { look, scanned } = scansOf(bytes, { result: 'clean' });
    expect(await look()).toEqual(expected);
    expect([scanned, await rows.of(key)]).toMatchObject([[], { state: 'pending', scan: 'due' }]);
    await expectDueIn(key, dueMs);
  });

  test.each([
    ['has not arrived', undefined],
    ['is another one', Buffer.from('x')],
  ])('that %s at the last check: it is deleted with its row', async (_title, bytes) => {
    const key = await insert({ expires_at: Date.now() - HOUR });
    const { look, scanned, stored } = scansOf(bytes, { result: 'clean' });
    expect(await look()).toContain(`delete ${key}`);
    expect([scanned, [...stored.keys()], await rows.of(key), await rows.keysBeside()]).toEqual([[], [], undefined, []]);
  });

  test.each([
    ['is deleted', undefined],
    ['gets another version', '2'],
  ])('that %s after its check: it is due at once', async (_title, version) => {
    const key = await insert();
    const bytes = Readable.from([PDF]);
    const { look, scanned } = scansOf(
      PDF,
      { result: 'clean' },
      { open: async () => (version === undefined ? undefined : { size: PDF.length, bytes, version }) },
    );
    expect(await look()).toEqual([]);
    expect([scanned, bytes.destroyed]).toEqual([[], version !== undefined]);
    expect(await rows.of(key)).toMatchObject({ state: 'pending', scan: 'due' });
    await expectDueIn(key, 0);
  });

  test('whose deletion starts after its check', async () => {
    const key = await insert();
    const { look, scanned } = scansOf(
      PDF,
      { result: 'clean' },
      {
        async find() {
          await database.write((tables) => tables.updateTable('uploads').set({ state: 'doomed' }).execute());
          return { size: PDF.length, start: PDF, version: '1' };
        },
      },
    );
    expect(await look()).toEqual([]);
    expect([scanned, await rows.of(key)]).toMatchObject([[], { state: 'doomed', scan: 'due' }]);
  });

  test('that does not wait for it', async () => {
    await insert({ state: 'kept' });
    const { look, scanned } = scansOf(PDF, { result: 'clean' });
    expect([await look(), scanned]).toEqual([[], []]);
  });
});

test('on a storage that never replaces an object, the file is scanned without a version', async () => {
  const key = await insert();
  const { look } = scansOf(
    PDF,
    { result: 'clean' },
    {
      find: async () => ({ size: PDF.length, start: PDF }),
    },
  );
  expect(await look()).toContain(`copy ${PENDING} ${key} application/pdf 1`);
});

test.each([
  ['due', Date.now() + HOUR, 0],
  ['looking', Date.now() + HOUR, HOUR],
])('a file that has arrived (%s) is due at once, unless the scanner looks at it', async (scan, due_at, dueMs) => {
  const key = await insert({ scan, due_at });
  const { hasten, upload } = scansOf(PDF, { result: 'clean' });
  await hasten(await upload(key));
  await expectDueIn(key, dueMs);
});
