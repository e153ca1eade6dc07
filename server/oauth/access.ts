import { validate as isUuid } from 'uuid';
import type { Account } from '../accounts/users/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import { ServiceError } from '../errors.ts';
import type { Database } from '../parts/database/contract.ts';
import { currentScopes, endGrants, recordEnd, validGrants, wordsIn } from './grants.ts';

/** An application with access to an account. Times in milliseconds since 1970. */
export interface ListedGrant {
  /** Of the application. */
  id: string;
  name: string;
  logoUrl: string | null;
  scopes: string[];
  createdAt: number;
  lastUsedAt: number;
}

const noAccess = () => new ServiceError('NOT_FOUND', { message: 'This application has no access to the account' });

interface Parts {
  database: Database;
  activity: Activity;
  /** Starts the housekeeping that deletes ended grants. */
  ended(): void;
}

/** What users see of the access that they gave, and end. A user has one entry for each application. */
export const createAccess = ({ database, activity, ended }: Parts) => ({
  /** The applications with access, by name. */
  async list({ id: userId }: Pick<Account, 'id'>): Promise<ListedGrant[]> {
    const rows = await database.query((tables) =>
      validGrants(tables, database)
        .select(['applications.id', 'applications.name', 'applications.logo_url as logoUrl'])
        .select('applications.scopes as applicationScopes')
        .select(['grants.scopes', 'grants.created_at as createdAt', 'grants.last_used_at as lastUsedAt'])
        .where('grants.user_id', '=', userId)
        .orderBy('applications.name')
        .execute(),
    );
    const listed = new Map<string, ListedGrant>();
    for (const { scopes, applicationScopes, ...row } of rows) {
      const former = listed.get(row.id);
      listed.set(row.id, {
        ...row,
        scopes: [...new Set([...(former?.scopes ?? []), ...wordsIn(currentScopes({ scopes, applicationScopes }))])],
        createdAt: Math.min(row.createdAt, former?.createdAt ?? row.createdAt),
        lastUsedAt: Math.max(row.lastUsedAt, former?.lastUsedAt ?? 0),
      });
    }
    return [...listed.values()];
  },

  /** Ends all grants of the user to an application. NOT_FOUND without one. */
  async revoke({ id: userId }: Pick<Account, 'id'>, applicationId: string, caller: Caller): Promise<void> {
    await database.change(async (tables) => {
      if (!isUuid(applicationId)) throw noAccess();
      const application = await tables
        .selectFrom('applications')
        .select('name')
        .where('id', '=', applicationId)
        .executeTakeFirst();
      const { numUpdatedRows } = await endGrants(tables, database)
        .where('user_id', '=', userId)
        .where('application_id', '=', applicationId)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) throw noAccess();
      await recordEnd(activity, tables, { userId, applicationId, name: application?.name ?? '' }, caller);
    }, userId);
    ended();
  },
});
