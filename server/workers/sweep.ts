import type { RawBuilder } from 'kysely';
import type { Database } from '../parts/database/contract.ts';

const BATCH = 1000;

/** Deletes rows, in a transaction for each batch, so that each ends within its deadline, however many rows there are. */
export async function deleteInBatches(
  database: Database,
  table: 'outbox' | 'one_time_tokens' | 'email_changes' | 'invitations' | 'sessions' | 'activity',
  isOld: RawBuilder<boolean>,
): Promise<void> {
  const deleteBatch = () =>
    database.change(async (tables) => {
      const rows = await tables.selectFrom(table).select('id').where(isOld).limit(BATCH).execute();
      const ids = rows.map(({ id }) => id);
      if (ids.length > 0) await tables.deleteFrom(table).where('id', 'in', ids).execute();
      return ids.length;
    });
  while ((await deleteBatch()) === BATCH);
}
