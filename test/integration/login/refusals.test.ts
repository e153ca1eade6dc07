import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { User } from '../../../entities/index.ts';
import { createLoginRefusals } from '../../../server/accounts/login/refusals.ts';
import { createUserStore } from '../../../server/accounts/users/users.ts';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { createActivity } from '../../../server/activity/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { stackNames } from '../../contract/rig/scenario.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';
import { until } from '../../rig/until.ts';

const KEPT = 20;
const AT_ONCE = 10;

describe.each(stackNames)('on %s parts', (kind) => {
  const dataDir = temporaryDirectory('login-refusals');
  const ada = User.register({ email: 'ada@example.test', name: 'Ada', passwordHash: 'x' });
  let databaseUrl: string | undefined;
  let database: Database;

  beforeAll(async () => {
    databaseUrl = kind === 'real' ? await createDatabase(inject('mysqlUrl')) : undefined;
    database = await openDatabase({ databaseUrl, dataDir });
    await database.migrate();
    await database.transaction(async (em) => {
      await em.insert(ada);
    });
  });
  afterAll(async () => {
    await database.close();
    if (databaseUrl) await dropDatabase(databaseUrl);
  });

  test('of ten concurrent refusals that pass the unlocked check, one takes the last place', async () => {
    const activity = createActivity(database, { keptDays: 1 });
    const event = { kind: 'login-refused', details: { reason: 'wrong-password' } } as const;
    for (let i = 1; i < KEPT; i++) {
      await database.write((tables) => activity.record(tables, ada.id, event, backgroundJob));
    }
    const allHaveLooked = Promise.withResolvers<void>();
    const changes: Promise<unknown>[] = [];
    let looks = 0;
    const inStep: Database = {
      ...database,
      async query(read) {
        const found = await database.query(read);
        if (++looks === AT_ONCE) allHaveLooked.resolve();
        await allHaveLooked.promise;
        return found;
      },
      transaction(work, row) {
        const change = database.transaction(work, row);
        changes.push(change);
        return change;
      },
    };
    const recordRefusal = createLoginRefusals({
      database: inStep,
      users: createUserStore({ database, activity }),
      activity,
    });
    for (let i = 0; i < AT_ONCE; i++) recordRefusal(ada.email, 'wrong-password', backgroundJob);
    await until(() => changes.length === AT_ONCE);
    await Promise.all(changes);
    const rows = await database.query((tables) =>
      tables.selectFrom('activity').select('id').where('user_id', '=', ada.id).execute(),
    );
    expect(rows).toHaveLength(KEPT);
  });
});
