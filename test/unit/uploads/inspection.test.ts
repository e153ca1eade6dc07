import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createActivity } from '../../../server/activity/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { ObjectStorage } from '../../../server/parts/object-storage/contract.ts';
import { createLog } from '../../../server/telemetry/log.ts';
import { createUploads } from '../../../server/uploads/index.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { until } from '../../rig/until.ts';
import { emptyStorage } from './empty-storage.ts';

const config = parseConfig({ DATA_DIR: temporaryDirectory('inspection'), LOG_LEVEL: 'silent' });
let database: Database;
beforeAll(async () => {
  database = await openDatabase(config);
  await database.migrate();
});
afterAll(() => database.close());

const states = () =>
  database.query((tables) => tables.selectFrom('uploads').select(['user_id', 'state']).orderBy('user_id').execute());

test('a failed inspection does not abandon others: the round and stop wait for all', async () => {
  const slow = Promise.withResolvers<void>();
  const found: string[] = [];
  let failing = '';
  const objects: ObjectStorage = {
    ...emptyStorage,
    async find(key) {
      found.push(key);
      if (key === failing) throw new Error('not now');
      await slow.promise;
      return { size: 8, start: Buffer.from('%PDF-1.7') };
    },
  };
  const uploads = createUploads(config, {
    database,
    activity: createActivity(database, { keptDays: 1 }),
    objects,
    log: await createLog(config),
  });
  const declare = (userId: string) =>
    uploads.presign(userId, { contentType: 'application/pdf', size: 8, visibility: 'public' });
  failing = (await declare('first')).key;
  await declare('second');
  // Due in this order, both for their last check.
  await database.write((tables) => tables.updateTable('uploads').set({ expires_at: 1, due_at: 1 }).execute());

  uploads.inspection.start();
  await until(() => found.length === 2);
  let stopped = false;
  const stop = uploads.inspection.stop().then(() => {
    stopped = true;
  });
  for (let i = 0; i < 100; i++) await turn();
  expect(stopped).toBe(false);
  slow.resolve();
  await stop;
  expect(await states()).toEqual([
    { user_id: 'first', state: 'expected' },
    { user_id: 'second', state: 'kept' },
  ]);
});
