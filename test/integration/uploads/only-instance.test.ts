import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createOnlyInstance } from '../../../server/uploads/only-instance.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

let database: Database;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('only-instance') });
  await database.migrate();
});
afterAll(() => database.close());

const instance = () => createOnlyInstance({ database, log: { error: () => undefined } });
const running = new AbortController().signal;

test('an instance that is stopped while it waits for the lease of another one does not have it', async () => {
  const other = instance();
  expect(await other.claim(running)).toBe(true);
  const stopping = new AbortController();
  const claimed = instance().claim(stopping.signal);
  stopping.abort();
  expect(await claimed).toBe(false);
  await other.release();
  // Nor when the other one has just ended.
  expect(await instance().claim(AbortSignal.abort())).toBe(false);
  expect(await instance().claim(running)).toBe(true);
});
