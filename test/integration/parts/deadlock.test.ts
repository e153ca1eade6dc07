import { expect, inject, test } from 'vitest';
import { User } from '../../../entities/index.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';

test('two deadlocked transactions both succeed, in either form of write', async () => {
  const databaseUrl = await createDatabase(inject('mysqlUrl'));
  const database = await openDatabase({ databaseUrl, dataDir: '' });
  try {
    await database.migrate();
    const ids = await database.transaction(async (em) => {
      const users = ['a', 'b'].map((name) =>
        User.register({ email: `${name}@example.test`, name, passwordHash: null }),
      );
      for (const user of users) await em.insert(user);
      return users.map(({ id }) => id);
    });
    let tries = 0;
    let held = 0;
    const bothHold = Promise.withResolvers<void>();
    const write = (order: string[]) =>
      database.transaction(async (_em, tables) => {
        tries++;
        for (const id of order) {
          await tables.updateTable('users').set({ name: 'c' }).where('id', '=', id).execute();
          if (++held >= 2) bothHold.resolve();
          await bothHold.promise;
        }
      });
    await Promise.all([write(ids), write(ids.toReversed())]);
    expect(tries).toBe(3);
  } finally {
    await database.close();
    await dropDatabase(databaseUrl);
  }
});
