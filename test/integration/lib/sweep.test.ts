import { expect, inject, onTestFinished, test } from 'vitest';
import { sql } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { deleteInBatches } from '../../../server/workers/sweep.ts';
import { createDatabase, dropDatabase } from '../../rig/servers/mysql.ts';

test('a row that is renewed while its deletion waits for the lock stays', async () => {
  const databaseUrl = await createDatabase(inject('mysqlUrl'));
  const database = await openDatabase({ databaseUrl, dataDir: '' });
  onTestFinished(async () => {
    await database.close();
    await dropDatabase(databaseUrl);
  });
  await database.migrate();
  for (const name of ['renewed', 'old'])
    await database.change((tables) =>
      sql`insert into invitations (id, email, token_hash, created_at, expires_at) values (${name}, ${name}, ${name}, 0, 1)`.execute(
        tables,
      ),
    );
  const swept = await database.change(async (tables) => {
    await tables.updateTable('invitations').set({ expires_at: 3 }).where('id', '=', 'renewed').execute();
    const { promise: isSelected, resolve } = Promise.withResolvers<void>();
    const sweeping = deleteInBatches(database, 'invitations', sql`expires_at < 2`, async () => resolve());
    await isSelected;
    return { sweeping };
  });
  await swept.sweeping;
  const rows = await database.query((tables) => tables.selectFrom('invitations').select('id').execute());
  expect(rows).toEqual([{ id: 'renewed' }]);
});
