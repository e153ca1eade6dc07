import { type Database, sql, type WriteTables } from '../../../parts/database/contract.ts';

/** Longer than a hash and a transaction take. After a crash the token is usable again when this has passed. */
const RESERVED_MS = 15_000;

/** Of concurrent callers with one token, one may proceed: a token causes one password hash at a time. */
export const createTokenReservations = (database: Database) => ({
  /** Resolves to whether the caller has reserved the token. */
  async reserve(tables: WriteTables, id: string): Promise<boolean> {
    const { numUpdatedRows } = await tables
      .updateTable('one_time_tokens')
      .set({ reserved_until: sql`${database.now} + ${RESERVED_MS}` })
      .where('id', '=', id)
      .where('used', '=', 0)
      .where((eb) => eb.or([eb('reserved_until', 'is', null), eb('reserved_until', '<=', database.now)]))
      .executeTakeFirst();
    return numUpdatedRows === 1n;
  },

  async release(tables: WriteTables, id: string): Promise<void> {
    await tables.updateTable('one_time_tokens').set({ reserved_until: null }).where('id', '=', id).execute();
  },
});
