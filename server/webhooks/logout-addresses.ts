import { type AllTables, type Database, sql } from '../parts/database/contract.ts';

/** In `types`: the row is the address for back-channel logout of the application that has its id. */
export const LOGOUT = 'logout';

interface LogoutAddress {
  applicationId: string;
  /** Null: the application wants no messages. */
  url: string | null;
}

/** Sets where an application is told of ended logins, in the caller's transaction. Earlier ones are not told. */
export const createLogoutAddresses =
  ({ now }: Pick<Database, 'now'>) =>
  async (tables: AllTables, { applicationId, url }: LogoutAddress): Promise<void> => {
    if (url === null) {
      await tables.deleteFrom('webhooks').where('id', '=', applicationId).execute();
      return;
    }
    const { numUpdatedRows } = await tables
      .updateTable('webhooks')
      .set({ url })
      .where('id', '=', applicationId)
      .executeTakeFirst();
    if (numUpdatedRows > 0n) return;
    await tables
      .insertInto('webhooks')
      .values({
        id: applicationId,
        url,
        types: LOGOUT,
        include: '',
        description: '',
        secret: '',
        enabled_at: sql<number>`${now}`,
        due_at: 0,
        created_at: now,
      } as never)
      .execute();
  };
