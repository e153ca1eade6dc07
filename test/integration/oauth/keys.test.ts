import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { createSigningKeys, type SigningKeys } from '../../../server/oauth/keys.ts';
import { type Database, sql } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createSecrets } from '../../../server/secrets.ts';
import { stackNames } from '../../contract/rig/scenario.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const [OLD, NEW] = ['o'.repeat(32), 'n'.repeat(32)];

describe.each(stackNames)('on %s parts', (kind) => {
  const dataDir = temporaryDirectory('signing-keys');
  let databaseUrl: string | undefined;
  let database: Database;
  let keys: SigningKeys;
  const under = (...parts: [string, ...string[]]) => createSigningKeys({ database, secrets: createSecrets(parts) });

  beforeAll(async () => {
    databaseUrl = kind === 'real' ? await createDatabase(inject('mysqlUrl')) : undefined;
    database = await openDatabase({ databaseUrl, dataDir });
    await database.migrate();
  });
  beforeEach(async () => {
    await database.write((tables) => tables.deleteFrom('signing_keys').execute());
    keys = under(OLD);
  });
  afterAll(async () => {
    await database.close();
    if (databaseUrl) await dropDatabase(databaseUrl);
  });

  /** As if this time had passed. */
  const later = (ms: number) =>
    database.write((tables) =>
      tables
        .updateTable('signing_keys')
        .set({ active_at: sql`active_at - ${ms}` })
        .execute(),
    );
  const kids = async (from = keys) => (await from.published()).map(({ kid }) => kid);

  test('instances that begin together have one key', async () => {
    const all = await Promise.all([under(OLD), under(OLD), under(OLD)].map((one) => kids(one)));
    expect(new Set(all.flat()).size).toBe(1);
    expect(await kids()).toEqual(all[0]);
  });

  test('a new key is published for a day before it signs, and the former one for a day after', async () => {
    const [first] = await kids();
    const { id: second } = await keys.rotate();
    expect(await kids()).toEqual([first, second]);
    expect((await keys.rotate()).id).toBe(second);
    await later(DAY_MS - HOUR_MS);
    expect(await kids()).toEqual([first, second]);
    await later(2 * HOUR_MS);
    expect(await kids()).toEqual([second, first]);
    await keys.maintain();
    expect(await kids()).toEqual([second, first]);
    await later(DAY_MS);
    await keys.maintain();
    expect(await kids()).toEqual([second]);
  });

  test('the next key is made a day before the present one is 90 days old, once', async () => {
    const [first] = await kids();
    await later(88 * DAY_MS);
    await keys.maintain();
    expect(await kids()).toEqual([first]);
    await later(1.5 * DAY_MS);
    await Promise.all([keys.maintain(), under(OLD).maintain()]);
    expect(await kids()).toEqual([first, expect.any(String)]);
  });

  test('a key outlives its APP_SECRET if it was encrypted again, and is replaced otherwise', async () => {
    const [first] = await kids();
    await under(NEW, OLD).maintain();
    expect(await kids(under(NEW))).toEqual([first]);
    const [other, ...more] = await kids(under(OLD));
    expect(other).not.toBe(first);
    expect(more).toEqual([]);
  });
});
