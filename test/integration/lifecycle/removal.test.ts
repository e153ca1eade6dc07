import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { Removal, User } from '../../../entities/index.ts';
import { createRemoval } from '../../../server/accounts/lifecycle/removal.ts';
import { createActivity } from '../../../server/activity/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createLog } from '../../../server/telemetry/log.ts';
import { stackNames } from '../../contract/rig/scenario.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';
import { until } from '../../rig/until.ts';

const DAY_MS = 24 * 60 * 60_000;

describe.each(stackNames)('on %s parts', (kind) => {
  const dataDir = temporaryDirectory('removals');
  let databaseUrl: string | undefined;
  let database: Database;
  beforeAll(async () => {
    databaseUrl = kind === 'real' ? await createDatabase(inject('mysqlUrl')) : undefined;
    database = await openDatabase({ databaseUrl, dataDir });
    await database.migrate();
  });
  afterAll(async () => {
    await database.close();
    if (databaseUrl) await dropDatabase(databaseUrl);
  });

  /** A deleted user whose grace period has passed. */
  async function deleted(name: string) {
    const user = User.register({ email: `${name}@example.test`, name, passwordHash: 'x' });
    user.delete(1);
    await database.transaction(async (em) => {
      await em.insert(user);
      await em.insert(Removal, { userId: user.id, email: null, begunAt: null, dueAt: 1 });
    });
    return user;
  }

  /** Runs the job until it has started on its leased users. `meanwhile` runs between lease and start. */
  async function run(meanwhile: () => Promise<unknown>) {
    let begun = 0;
    const transaction: Database['transaction'] = async (...given) => {
      await meanwhile();
      return database.transaction(...given).finally(() => begun++);
    };
    const overtaken: Database = Object.create(database, { transaction: { value: transaction } });
    const log = await createLog(parseConfig({ LOG_LEVEL: 'silent', DATA_DIR: dataDir }));
    const { recordRemoved } = createActivity(database, { keptDays: 1 });
    const removals = createRemoval({ database: overtaken, steps: [async () => true], recordRemoved, log });
    removals.start();
    await until(() => begun > 0, { what: 'a removal' });
    await removals.stop();
  }

  const stored = async (id: string) =>
    database.query((tables) =>
      tables
        .selectFrom('removals')
        .leftJoin('users', 'users.id', 'removals.user_id')
        .select(['users.id as user', 'removals.begun_at as begunAt'])
        .where('removals.user_id', '=', id)
        .executeTakeFirst(),
    );

  test('a user is removed after the grace period', async () => {
    const { id } = await deleted('ada');
    await run(async () => undefined);
    expect(await stored(id)).toMatchObject({ user: null, begunAt: expect.any(Number) });
  });

  test('a user restored during the lease and deleted again has the whole grace period', async () => {
    const { id } = await deleted('bob');
    await run(() =>
      database.write((tables) =>
        tables
          .updateTable('removals')
          .set({ due_at: Date.now() + 7 * DAY_MS })
          .where('user_id', '=', id)
          .execute(),
      ),
    );
    expect(await stored(id)).toEqual({ user: id, begunAt: null });
  });

  test('a user restored during the lease stays', async () => {
    const { id } = await deleted('eve');
    await run(() => database.write((tables) => tables.deleteFrom('removals').where('user_id', '=', id).execute()));
    expect(await stored(id)).toBeUndefined();
    const user = database.query((tables) => tables.selectFrom('users').select('id').where('id', '=', id).execute());
    expect(await user).toEqual([{ id }]);
  });
});
