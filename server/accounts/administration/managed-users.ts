import type { User } from '../../entities/index.ts';
import { pageById } from '../page-by-id.ts';
import { columnsOf, type Database, type ReadTables } from '../parts/database/contract.ts';
import type { IdentityLinks } from './identity-links.ts';
import type { Passkeys } from './passkeys.ts';
import type { Sessions } from './sessions.ts';
import type { AuthenticatorApp } from './totp.ts';
import { createSearch } from './user-search.ts';
import { type AccountRow, accountColumns, listedFields, toAccount, type UserPage } from './users.ts';

/** What administrators see of every user: also of those who are unverified, blocked, or being deleted. */
const managedFields = [...listedFields, 'role', 'emailVerified', 'blockedAt', 'deletedAt'] as const;
const managedColumns = columnsOf(managedFields);

/** Times in milliseconds since 1970; null for a user who is not blocked, or not being deleted. */
export type ManagedUser = { readonly [Field in (typeof managedFields)[number]]: Exclude<User[Field], undefined> };

type ManagedRow = Omit<ManagedUser, 'emailVerified'> & { emailVerified: number };

const everyUser = (tables: ReadTables) => tables.selectFrom('users').select(managedColumns);

const toPage = ({ users, ...next }: UserPage<ManagedRow>): UserPage<ManagedUser> => ({
  users: users.map(toAccount),
  ...next,
});

interface Sources {
  sessions: Pick<Sessions, 'list'>;
  listIdentities: IdentityLinks['list'];
  listPasskeys: Passkeys['listPasskeys'];
  totpStatus: AuthenticatorApp['totpStatus'];
}

/** Users as administrators see them: from the database itself, so that they see what they have just done. */
export const createManagedUsers = (
  database: Database,
  { sessions, listIdentities, listPasskeys, totpStatus }: Sources,
) => {
  const search = createSearch(
    (read) => database.query(read),
    (tables) => everyUser(tables).select('search_name as searchName'),
  );

  const get = (id: string) =>
    database.query(async (tables) => {
      const row = await tables
        .selectFrom('users')
        .select([...accountColumns, 'blocked_at as blockedAt', 'deleted_at as deletedAt'])
        .where('id', '=', id)
        .executeTakeFirst();
      return row && toAccount(row as AccountRow & Pick<ManagedUser, 'blockedAt' | 'deletedAt'>);
    });

  return {
    /** Newest first, in pages as those of the public list; with `q` in the order of its search. */
    async find({ q, cursor, limit }: { q?: string | undefined; cursor?: string | undefined; limit: number }) {
      if (q) return toPage(await search({ q, cursor, limit }));
      const rows = await database.query((tables) =>
        everyUser(tables)
          .$if(cursor !== undefined, (users) => users.where('id', '<', cursor as string))
          .orderBy('id', 'desc')
          .limit(limit + 1)
          .execute(),
      );
      const { page: users, ...next } = pageById(rows, limit);
      return toPage({ users, ...next });
    },

    /** A user with the whole profile, the sessions and the ways to log in. Undefined where there is no such user. */
    async show(id: string) {
      const user = await get(id);
      if (!user) return undefined;
      const [{ identities, hasPassword }, totp, passkeys, open] = await Promise.all([
        listIdentities(id),
        totpStatus(user),
        listPasskeys(id),
        sessions.list(user),
      ]);
      return { user, hasPassword, identities, totp, passkeys, sessions: open };
    },
  };
};
