import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createReservations } from '../../../server/uploads/reservations.ts';
import { createUsage, QuotaExceeded } from '../../../server/uploads/usage.ts';
import { isMutationRun } from '../../rig/mutation-run.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';

const QUOTA = 100;

/** The reservations of one process, and the number of transactions it has started. */
function instance(database: Database) {
  let transactions = 0;
  const counted: Database = {
    ...database,
    change: (work, row) => {
      transactions++;
      return database.change(work, row);
    },
  };
  const usage = createUsage(counted, { quota: QUOTA });
  const reserveRow = createReservations(counted, usage);
  const reserve = (userId: string, size: number) =>
    reserveRow({
      objectKey: `uploads/${randomUUID()}.png`,
      userId,
      purpose: 'direct',
      contentType: 'image/png',
      size,
      lifeMs: 1000,
      marginMs: 1000,
    });
  return { reserve, usage, transactions: () => transactions };
}

/** Users with a counter of zero. */
async function users(database: Database, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => `user_${randomUUID()}`);
  for (const id of ids) await createUsage(database, { quota: QUOTA }).prepare(id);
  return ids;
}

const sizesOf = async (database: Database, userId: string) => {
  const rows = await database.query((tables) =>
    tables.selectFrom('uploads').select('size').where('user_id', '=', userId).execute(),
  );
  return rows.map(({ size }) => Number(size)).sort((a, b) => a - b);
};

const outcomes = async (all: Promise<void>[]) =>
  (await Promise.allSettled(all)).map((one) => (one.status === 'fulfilled' ? 'reserved' : one.reason.constructor));

describe.each(isMutationRun ? (['SQLite'] as const) : (['SQLite', 'MySQL'] as const))('on %s', (kind) => {
  let database: Database;
  let databaseUrl: string | undefined;
  beforeAll(async () => {
    databaseUrl = kind === 'MySQL' ? await createDatabase(inject('mysqlUrl')) : undefined;
    database = await openDatabase({ databaseUrl, dataDir: temporaryDirectory('data') });
    await database.migrate();
  });
  afterAll(async () => {
    await database.close();
    if (databaseUrl) await dropDatabase(databaseUrl);
  });

  test('the reservations of a batch are one transaction, counted per user', async () => {
    const [ada = '', charles = ''] = await users(database, 2);
    const { reserve, usage, transactions } = instance(database);
    await Promise.all([reserve(ada, 10), reserve(charles, 30), reserve(ada, 5)]);
    expect(transactions()).toBe(1);
    expect(await usage.of(ada)).toEqual({ used: 15, files: 2 });
    expect(await usage.of(charles)).toEqual({ used: 30, files: 1 });
    expect([await sizesOf(database, ada), await sizesOf(database, charles)]).toEqual([[5, 10], [30]]);
  });

  test('within a batch, reservations beyond the quota are refused in order', async () => {
    const [ada = '', charles = ''] = await users(database, 2);
    const { reserve, usage, transactions } = instance(database);
    const all = [reserve(ada, 60), reserve(ada, 41), reserve(charles, QUOTA), reserve(ada, 40), reserve(charles, 1)];
    expect(await outcomes(all)).toEqual(['reserved', QuotaExceeded, 'reserved', 'reserved', QuotaExceeded]);
    expect(transactions()).toBe(1);
    expect(await usage.of(ada)).toEqual({ used: QUOTA, files: 2 });
    expect(await usage.of(charles)).toEqual({ used: QUOTA, files: 1 });
    expect([await sizesOf(database, ada), await sizesOf(database, charles)]).toEqual([[40, 60], [QUOTA]]);
  });

  test('a user’s first reservations create the counter', async () => {
    const [ada = ''] = await users(database, 1);
    const fresh = `user_${randomUUID()}`;
    const { reserve, usage } = instance(database);
    const all = [reserve(fresh, 50), reserve(ada, 1), reserve(fresh, 50), reserve(fresh, 50)];
    expect((await outcomes(all)).toSorted()).toEqual([QuotaExceeded, 'reserved', 'reserved', 'reserved']);
    expect(await usage.of(fresh)).toEqual({ used: QUOTA, files: 2 });
    expect(await sizesOf(database, fresh)).toEqual([50, 50]);
  });

  test('an outage fails the whole batch, and nothing is reserved', async () => {
    const [ada = '', charles = ''] = await users(database, 2);
    const broken = new Error('down');
    const { reserve } = instance({
      ...database,
      change: (work, row) =>
        database.change(async (tables) => {
          await work(tables);
          throw broken;
        }, row),
    });
    expect(await Promise.allSettled([reserve(ada, 1), reserve(charles, 1)])).toMatchObject(
      Array(2).fill({ status: 'rejected', reason: broken }),
    );
    expect([await sizesOf(database, ada), await sizesOf(database, charles)]).toEqual([[], []]);
  });

  if (kind === 'MySQL')
    test('a counter locked by another instance delays only its own user', async () => {
      const [ada = '', charles = ''] = await users(database, 2);
      const { reserve, usage } = instance(database);
      const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const holding = database.change(async (tables) => {
        await usage.addWithin(tables, { userId: ada, bytes: QUOTA - 10 });
        held.resolve();
        await release.promise;
      });
      await held.promise;
      const waiting = outcomes([reserve(ada, 10), reserve(ada, 11)]);
      await reserve(charles, 10);
      expect([await sizesOf(database, ada), await sizesOf(database, charles)]).toEqual([[], [10]]);
      release.resolve();
      await holding;
      expect(await waiting).toEqual(['reserved', QuotaExceeded]);
      expect(await sizesOf(database, ada)).toEqual([10]);
      expect((await usage.of(ada)).used).toBe(QUOTA);
    });
});
