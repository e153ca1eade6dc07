import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { Removal, User } from '../../../entities/index.ts';
import { createRemoval } from '../../../server/accounts/lifecycle/removal.ts';
import { createActivity } from '../../../server/activity/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import { type Database, sql } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createLog } from '../../../server/telemetry/log.ts';
import { deleteGrants } from '../../../server/workers/sweep.ts';
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
    const parts = {
      database: overtaken,
      steps: [async () => true],
      avatarChanged: async () => ({ avatar: null, avatarVariants: null }),
    };
    const removals = createRemoval({ ...parts, recordRemoved, log });
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

  const grantIdOf = (userId: string) => userId.slice(-36);
  /** The number of tokens of a user. */
  const tokensOf = (userId: string) =>
    database.query(async (tables) => {
      const ofUser = tables.selectFrom('oauth_artifacts').where('grant_id', '=', grantIdOf(userId));
      return (await ofUser.select('id').execute()).length;
    });

  /** Stores a grant with used tokens. */
  const grantOf = (userId: string, used: number) =>
    database.change(async (tables) => {
      const grant = { id: grantIdOf(userId), scopes: 'openid', resources: '', created_at: 1, last_used_at: 1 };
      const of = {
        user_id: userId,
        application_id: 'a',
        session_id: grant.id,
        epoch: 0,
        expires_at: Date.now() + DAY_MS,
      };
      await tables
        .insertInto('grants')
        .values({ ...grant, ...of } as never)
        .execute();
      const token = { grant_id: grant.id, payload: '{}', consumed_at: 1, consumed_by: 'x', expires_at: of.expires_at };
      for (let from = 0; from < used; from += 500) {
        const rows = Array.from({ length: 500 }, (_, i) => ({ id: `${userId.slice(-30)}-${from + i}`, ...token }));
        await tables.insertInto('oauth_artifacts').values(rows).execute();
      }
    });

  // SQLite cannot drop the foreign key.
  if (kind === 'real')
    test('tokens, which may be very many, are not deleted with their user', async () => {
      const { id } = await deleted('joe');
      await grantOf(id, 2500);
      await run(async () => undefined);
      expect(await stored(id)).toMatchObject({ user: null });
      expect(await tokensOf(id)).toBe(2500);
    });

  test('grants are deleted after their tokens, at most a thousand of these in a transaction', async () => {
    const { id } = await deleted('kim');
    await grantOf(id, 2500);
    const left = [2500];
    const change: Database['change'] = (...given) =>
      database.change(...given).finally(async () => left.push(await tokensOf(id)));
    await deleteGrants(Object.assign(Object.create(database), { change }), sql`user_id = ${id}`);
    expect(left.at(-1)).toBe(0);
    for (const [i, count] of left.entries()) expect((left[i - 1] ?? count) - count).toBeLessThanOrEqual(1000);
  });

  test('a grant that has ended since its tokens were deleted stays for the next time', async () => {
    const { id } = await deleted('lou');
    let calls = 0;
    const change: Database['change'] = async (...given) => {
      // Between the two loops.
      if (++calls === 2) await grantOf(id, 500);
      return database.change(...given);
    };
    const meanwhile: Database = Object.assign(Object.create(database), { change });
    await deleteGrants(meanwhile, sql`user_id = ${id}`);
    expect([calls, await tokensOf(id)]).toEqual([2, 500]);
    await deleteGrants(database, sql`user_id = ${id}`);
    expect(await tokensOf(id)).toBe(0);
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
