import type { User } from '../../../entities/index.ts';
import type { Activity } from '../../activity/index.ts';
import { columnsOf, type Database, type ReadTables } from '../../parts/database/contract.ts';
import type { AuthenticatorApp, Passkeys } from '../credentials/index.ts';
import type { IdentityLinks } from '../providers/index.ts';
import type { Sessions } from '../sessions/index.ts';
import {
  type AccountRow,
  accountColumns,
  type CustomFields,
  createSearch,
  listedFields,
  toAccount,
  type UserPage,
} from '../users/index.ts';
import { encodePosition, type ListRequest, listOf, rowsOfList } from './lists.ts';

/** The fields of every user for administrators, including unverified, blocked and deleted users. */
const managedFields = [...listedFields, 'role', 'emailVerified', 'blockedAt', 'deletedAt'] as const;
const managedColumns = columnsOf(managedFields);

/** Times in milliseconds since 1970; null if not blocked or not being deleted. */
export type ManagedUser = { readonly [Field in (typeof managedFields)[number]]: Exclude<User[Field], undefined> };

type ManagedRow = Omit<ManagedUser, 'emailVerified'> & { emailVerified: number; searchName: string | null };

/** A user in a list. `lastLoginAt`: null if there was none, or it is not stored any more. */
export type FoundUser = ManagedUser & { readonly lastLoginAt: number | null };

const everyUser = (tables: ReadTables) =>
  tables.selectFrom('users').select([...managedColumns, 'search_name as searchName']);

interface Sources {
  database: Database;
  activity: Pick<Activity, 'latestLogins'>;
  customFields: Pick<CustomFields, 'columns'>;
  sessions: Pick<Sessions, 'list'>;
  links: Pick<IdentityLinks, 'list'>;
  passkeys: Pick<Passkeys, 'listPasskeys'>;
  totp: Pick<AuthenticatorApp, 'totpStatus'>;
}

interface FindRequest extends ListRequest {
  cursor?: string | undefined;
  limit: number;
}

/** Users for administrators. Read from the primary, so that administrators see their latest changes. */
export const createManagedUsers = ({
  database,
  activity,
  customFields: { columns },
  sessions,
  links,
  passkeys,
  totp,
}: Sources) => {
  const search = createSearch((read) => database.query(read), everyUser, { byWord: true });

  const get = (id: string) =>
    database.query(async (tables) => {
      const row = await tables
        .selectFrom('users')
        .select([...accountColumns, ...columns, 'blocked_at as blockedAt', 'deleted_at as deletedAt'])
        .where('id', '=', id)
        .executeTakeFirst();
      return row && toAccount(row as AccountRow & Pick<ManagedUser, 'blockedAt' | 'deletedAt'>);
    });

  const listed = async ({ cursor, limit, ...request }: FindRequest): Promise<UserPage<ManagedRow>> => {
    const list = listOf(request);
    const rows = await database.query((tables) =>
      rowsOfList(everyUser(tables), list, cursor)
        .limit(limit + 1)
        .execute(),
    );
    const users = rows.slice(0, limit);
    const last = users.at(-1);
    if (rows.length <= limit || !last) return { users };
    const value = {
      id: '',
      search_name: last.searchName,
      email: last.email,
      blocked_at: last.blockedAt,
      deleted_at: last.deletedAt,
    };
    return { users, nextCursor: list.by === 'id' ? last.id : encodePosition([value[list.by] ?? '', last.id]) };
  };

  return {
    /** Without `q` a list, newest first unless it has another order; with `q` in the order of the search. */
    async find({ q, ...request }: FindRequest & { q?: string | undefined }): Promise<UserPage<FoundUser>> {
      const { users, ...next } = await (q ? search({ q, ...request }) : listed(request));
      const logins = await database.query((tables) =>
        activity.latestLogins(
          tables,
          users.map(({ id }) => id),
        ),
      );
      return {
        users: users.map((user) => ({ ...toAccount(user), lastLoginAt: logins.get(user.id) ?? null })),
        ...next,
      };
    },

    /** A user with the profile, sessions and login methods. Undefined for an unknown user. */
    async show(id: string) {
      const user = await get(id);
      if (!user) return undefined;
      const [{ identities, hasPassword }, app, keys, open] = await Promise.all([
        links.list(id),
        totp.totpStatus(user),
        passkeys.listPasskeys(id),
        sessions.list(user),
      ]);
      return { user, hasPassword, identities, totp: app, passkeys: keys, sessions: open };
    },
  };
};
