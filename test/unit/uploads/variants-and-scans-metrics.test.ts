import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { Recorder } from '../../../server/telemetry/metrics.ts';
import { createUploadLeases } from '../../../server/uploads/leases.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { MINUTE, memoryStorage, silent, uploadRows } from './upload-rows.ts';

// Loaded anew: other files in this process have no recorder.
vi.resetModules();
const { recordWith } = await import('../../../server/telemetry/metrics.ts');
const { createVariants } = await import('../../../server/uploads/variants.ts');
const { createScans } = await import('../../../server/uploads/scans.ts');
const { createUsage } = await import('../../../server/uploads/usage.ts');
vi.resetModules();

const counted: [name: string, labels: object, by: number][] = [];
const gauges: Parameters<Recorder['gauges']>[0][] = [];
recordWith({
  count: (...call) => void counted.push(call),
  observe: () => undefined,
  gauges: (read) => void gauges.push(read),
});

let database: Database;
let rows: ReturnType<typeof uploadRows>;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('variants-and-scans-metrics') });
  await database.migrate();
  rows = uploadRows(database);
});
afterAll(() => database.close());
beforeEach(async () => {
  await rows.clear();
  counted.length = 0;
  gauges.length = 0;
});

const read = async () => Object.assign({}, ...(await Promise.all(gauges.map((each) => each()))));

const variantsOf = () =>
  createVariants(
    { avatar: [], post: [20, 40] },
    {
      database,
      objects: memoryStorage().storage,
      usage: createUsage(database, { quota: 1 }),
      isIdle: () => true,
      log: silent,
    },
  );

const outcomes = (by: number, ...names: string[]) =>
  names.map((outcome) => ['account_image_variants_total', { outcome }, by]);

test('the images that wait for variants are a gauge; every outcome is counted from zero', async () => {
  variantsOf();
  expect(counted).toEqual(outcomes(0, 'made', 'skipped', 'deleted'));
  for (const name of ['a', 'b']) await rows.insert(name);
  await rows.insert('c', { variants_for: '20,40' });
  expect(await read()).toEqual({ account_images_without_variants: 2 });
});

test.each([
  ['made', 'that needs no others', { width: 10, placeholder: 'hash' }],
  ['skipped', 'that is missing in the storage', {}],
  ['deleted', 'whose deletion has started', { placeholder: 'hash', width: 10, state: 'doomed' }],
] as const)('the outcome “%s” is of an image %s', async (outcome, _title, row) => {
  const key = await rows.insert('a', { ...row, state: 'kept' });
  const { take, make } = variantsOf();
  const [image] = await take(1);
  await database.write((tables) =>
    tables
      .updateTable('uploads')
      .set({ state: 'kept', ...row })
      .where('object_key', '=', key)
      .execute(),
  );
  counted.length = 0;
  await make(image as NonNullable<typeof image>);
  expect(counted).toEqual(outcomes(1, outcome));
});

test('the files that wait for the scanner and those in quarantine are gauges', async () => {
  const parts = { database, leases: createUploadLeases(database, 'pending'), log: silent };
  // The gauges need no others.
  createScans(parts as Parameters<typeof createScans>[0]);
  const due = { due_at: Date.now() + MINUTE };
  for (const name of ['a', 'b', 'c']) await rows.insert(name, { ...due, state: 'pending' });
  for (const name of ['d', 'e']) await rows.insert(name, { ...due, state: 'infected' });
  for (const state of ['kept', 'doomed'] as const) await rows.insert(state, { ...due, state });
  expect(await read()).toEqual({ account_uploads_pending: 3, account_uploads_quarantined: 2 });
});
