import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { memory, resetPeak } from '../bench/measure.ts';
import { CLEAN, INFECTED, read, sender } from '../contract/uploads/scan.ts';
import { startUploading, type Uploading } from '../contract/uploads/storage.ts';
import { startClamd } from '../rig/servers/clamd.ts';
import type { S3, S3Behaviour } from '../rig/servers/s3.ts';
import { type HttpScanner, startHttpScanner } from '../rig/servers/scanner.ts';
import { until } from '../rig/until.ts';
import { unlimited } from './load.ts';

/** kill -9 and hanging parts between the steps of a scan; two instances share the work. */

const FILES = 24;
const MEGABYTE = 1024 ** 2;

let scanner: HttpScanner;
let uploading: Uploading;
beforeAll(async () => {
  scanner = await startHttpScanner();
  uploading = await startUploading('S3', { ...unlimited, SCAN_URL: scanner.url }, 2);
});
afterAll(async () => {
  await uploading?.stop();
  await scanner?.stop();
});
beforeEach(() => {
  scanner.behave('work');
  scanner.onFile(() => undefined);
});
afterEach(() => storage().behave('work'));

const storage = (): S3 => {
  if (!uploading.s3) throw new Error('no S3');
  return uploading.s3;
};
const database = <Row extends object>(sql: string, parameters?: (string | number)[]) =>
  uploading.stack.database<Row>(sql, parameters);

/** As when all leases have ended. */
const passTime = () =>
  database("update uploads set due_at = 1, variants_until = 1 where state in ('pending', 'doomed')");

const killAll = () => Promise.all(uploading.stack.services.map((service) => service.kill()));
const restartAll = () => Promise.all(uploading.stack.services.map((service) => service.restart()));

const objectsOf = async (name: string) => (await storage().keys()).filter((key) => key.includes(name)).sort();

/** The requests of a move, in their order, and what the storage does with the one before the kill. */
const steps: [step: string, behaviour: S3Behaviour, only: RegExp][] = [
  ['while the file is looked at', 'work', /^/],
  ['before it is copied', 'hang', /^PUT .*\/uploads\//],
  ['after it was copied, before that is recorded', 'mute', /^PUT .*\/uploads\//],
  ['after it was recorded, before the first object is deleted', 'hang', /^DELETE .*\/pending\//],
  ['after the first object was deleted', 'mute', /^DELETE .*\/pending\//],
];

/** Sends a file and kills all instances in this step. */
async function killIn([step, behaviour, only]: (typeof steps)[number], bytes = CLEAN) {
  const person = await sender(uploading);
  const reached = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  scanner.onFile(async () => {
    reached.resolve();
    if (step === 'while the file is looked at') await gate.promise;
    storage().behave(behaviour, only);
  });
  const before = storage().requests().length;
  const file = await person.sent(bytes);
  await reached.promise;
  if (behaviour !== 'work')
    await until(() =>
      storage()
        .requests()
        .slice(before)
        .some((request) => only.test(request) && request.includes(file.name)),
    );
  // The copy of a mute storage has been made.
  if (behaviour === 'mute')
    await until(
      async () =>
        (await storage().keys()).includes(file.key) &&
        (!only.source.startsWith('^DELETE') || !(await storage().keys()).includes(`pending/${file.name}`)),
    );
  await killAll();
  gate.resolve();
  storage().behave('work');
  scanner.onFile(() => undefined);
  return { ...person, ...file };
}

// checks: F1, 90
test.each(steps)('kill -9 %s: the file is given out once, and nothing else is left', async (...step) => {
  const { key, name, publicUrl, id, becomes, inspected } = await killIn(step);
  await restartAll();
  await passTime();
  await becomes(key, 'stored');
  expect(await read(publicUrl)).toEqual({ status: 200, body: CLEAN });
  const events = await database("select 1 from activity where user_id = ? and kind = 'upload-stored'", [id]);
  expect(events).toHaveLength(1);
  await inspected(key, 3_600_000);
  expect(await objectsOf(name)).toEqual([key]);
  expect(await database('select 1 from upload_variants where upload_key = ?', [key])).toEqual([]);
});

// checks: F1, 90
test.each(steps)('kill -9 %s, and the file is deleted afterwards: nothing is left', async (...step) => {
  const { key, name, of, rowOf, publicUrl, id } = await killIn(step);
  await restartAll();
  expect((await of('upload.remove', { name })).status).toBe(200);
  await until(async () => {
    await database('update uploads set expires_at = 1, due_at = 1, variants_until = 1 where object_key = ?', [key]);
    return (await rowOf(key)) === undefined;
  });
  expect(await objectsOf(name)).toEqual([]);
  expect([403, 404]).toContain((await read(publicUrl)).status);
  expect((await of('upload.usage')).data).toMatchObject({ used: 0, files: 0 });
  const kinds = await database<{ kind: string }>(
    "select kind from activity where user_id = ? and kind like 'upload%'",
    [id],
  );
  // One that was recorded as stored is recorded as removed.
  expect(kinds.filter(({ kind }) => kind === 'upload-stored')).toHaveLength(
    kinds.filter(({ kind }) => kind === 'upload-removed').length,
  );
});

// checks: F1, 90
test('kill -9 while malware is looked at: one quarantine, one event, one mail', async () => {
  const { key, becomes, id, email } = await killIn(steps[0] as (typeof steps)[number], INFECTED);
  await restartAll();
  await passTime();
  await becomes(key, 'quarantined');
  await uploading.stack.waitForMail({ to: email, subject: 'is in quarantine' });
  const events = await database("select 1 from activity where user_id = ? and kind = 'upload-quarantined'", [id]);
  expect(events).toHaveLength(1);
  expect(await database("select 1 from outbox where email = ? and kind = 'file-quarantined'", [email])).toHaveLength(1);
});

// checks: F14, 90
test('a file that is deleted while it is copied does not appear, also if the copy comes after the deletion', async () => {
  const person = await sender(uploading);
  scanner.onFile(() => storage().behave('hang', /^PUT .*\/uploads\//));
  const before = storage().requests().length;
  const { key, name, publicUrl } = await person.sent();
  await until(() =>
    storage()
      .requests()
      .slice(before)
      .some((request) => request.startsWith('PUT') && request.includes(`/uploads/${name}`)),
  );
  await database('update uploads set expires_at = 1 where object_key = ?', [key]);
  expect((await person.of('upload.remove', { name })).status).toBe(200);
  // The row stays while the copy may still be made.
  expect(await person.rowOf(key)).toMatchObject({ state: 'doomed' });
  await storage().put(key, CLEAN);
  await killAll();
  storage().behave('work');
  await restartAll();
  await until(async () => {
    await database('update uploads set due_at = 1, variants_until = 1 where object_key = ?', [key]);
    return (await person.rowOf(key)) === undefined;
  });
  expect(await objectsOf(name)).toEqual([]);
  expect([403, 404]).toContain((await read(publicUrl)).status);
});

// checks: F14, 90
test(`two instances look at each of ${FILES} files once`, async () => {
  const person = await sender(uploading);
  const files = await Promise.all(
    Array.from({ length: FILES }, async (_, n) => {
      const bytes = n % 4 === 0 ? INFECTED : CLEAN;
      const file = await person.declared(bytes.length);
      expect(await person.send(file.presignedUrl, bytes)).toBe(200);
      return { ...file, state: n % 4 === 0 ? 'infected' : 'kept' };
    }),
  );
  const before = scanner.received.length;
  await database("update uploads set due_at = 1 where user_id = ? and state = 'pending'", [person.id]);
  await until(
    async () =>
      (await database("select 1 from uploads where user_id = ? and state = 'pending'", [person.id])).length === 0,
  );
  for (const { key, state } of files) expect((await person.rowOf(key))?.state).toBe(state);
  expect(scanner.received.slice(before)).toHaveLength(FILES);
});

// checks: F11, 90
test('while the storage hangs a file waits, and is given out afterwards', async () => {
  const person = await sender(uploading);
  const { key, presignedUrl } = await person.declared(CLEAN.length);
  expect(await person.send(presignedUrl, CLEAN)).toBe(200);
  storage().behave('slow-down');
  await database('update uploads set due_at = 1 where object_key = ?', [key]);
  await until(async () => Number((await person.rowOf(key))?.due_at) > Date.now() + 30_000);
  expect((await person.listed(key)).state).toBe('pending');
  storage().behave('work');
  await person.becomes(key, 'stored');
});

test('the memory of the service does not depend on the size of the files', async () => {
  const clamd = await startClamd();
  const { stack, objects, stop } = await startUploading('S3', { ...unlimited, SCAN_URL: clamd.url });
  try {
    const person = await sender({ stack, objects, s3: undefined, stop });
    const { key: first } = await person.sent();
    await person.becomes(first, 'stored');
    const pid = stack.services[0]?.pid ?? 0;
    resetPeak(pid);
    const before = memory(pid);
    const bytes = Buffer.concat([CLEAN, Buffer.alloc(48 * MEGABYTE)]);
    const files = await Promise.all(Array.from({ length: 4 }, () => person.declared(bytes.length)));
    for (const { name } of files) await objects.put(`pending/${name}`, bytes);
    // Again: a look that began before the file was there schedules the next one.
    const isEachLookedAt = async () => {
      await stack.database("update uploads set due_at = 1 where state = 'pending' and scan = 'due'");
      return (await stack.database("select 1 from uploads where state = 'pending'")).length === 0;
    };
    await until(isEachLookedAt, { every: 2000, within: 150_000, what: 'a look at each file' });
    for (const { key } of files) expect((await person.rowOf(key))?.scan).toBe('clean');
    const growth = memory(pid, 'peak') - before;
    console.log(`four files of 48 MB at once: memory +${Math.round(growth)} MB`);
    // All four files would be 192 MB.
    expect(growth).toBeLessThan(150);
  } finally {
    await stop();
    await clamd.stop();
  }
});
