import type { RawBuilder } from 'kysely';
import { type AllTables, type Database, sql } from '../parts/database/contract.ts';

const BATCH = 1000;

/**
 * Deletes rows in batches, one transaction each, so that each meets its deadline however many rows there are. `beside`
 * runs before in the same transaction.
 */
export async function deleteInBatches(
  database: Database,
  table:
    | 'outbox'
    | 'one_time_tokens'
    | 'email_changes'
    | 'invitations'
    | 'sessions'
    | 'activity'
    | 'grants'
    | 'oauth_artifacts',
  isOld: RawBuilder<boolean>,
  beside?: (tables: AllTables, ids: string[]) => Promise<void>,
): Promise<void> {
  const deleteBatch = () =>
    database.change(async (tables) => {
      const rows = await tables.selectFrom(table).select('id').where(isOld).limit(BATCH).execute();
      const ids = rows.map(({ id }) => id);
      if (ids.length === 0) return 0;
      await beside?.(tables, ids);
      // Some may have been renewed while this waited for their locks.
      await tables.deleteFrom(table).where('id', 'in', ids).where(isOld).execute();
      return ids.length;
    });
  while ((await deleteBatch()) === BATCH);
}

/** Deletes the grants that meet a condition, after their tokens: one grant may have very many. */
export async function deleteGrants(database: Database, isOver: RawBuilder<boolean>): Promise<void> {
  const ofGrants = sql<boolean>`grant_id in (select id from grants where ${isOver})`;
  await deleteInBatches(database, 'oauth_artifacts', ofGrants);
  // Not those that have ended meanwhile.
  const isEmpty = sql<boolean>`not exists (select 1 from oauth_artifacts a where a.grant_id = grants.id)`;
  await deleteInBatches(database, 'grants', sql`${isOver} and ${isEmpty}`);
}
