import { type Database, sql, type WriteTables } from '../parts/database/contract.ts';

/** Longer than a hash and a transaction can take; after a crash the token can be used again once this time is over. */
const RESERVED_MS = 15_000;

/**
 * Of all callers that present the same token at once, one may work with it: one token buys one password hash at a time.
 */
export const createTokenReservations = (database: Database) => ({
  /** Answers whether the caller has the token now. */
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
