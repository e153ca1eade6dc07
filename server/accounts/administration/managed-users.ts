import type { User } from '../../../entities/index.ts';
import { pageById } from '../../lib/pagination.ts';
import { columnsOf, type Database, type ReadTables } from '../../parts/database/contract.ts';
import type { AuthenticatorApp, Passkeys } from '../credentials/index.ts';
import type { IdentityLinks } from '../providers/index.ts';
import type { Sessions } from '../sessions/index.ts';
import {
  type AccountRow,
  accountColumns,
  createSearch,
  listedFields,
  toAccount,
  type UserPage,
} from '../users/index.ts';

/** The fields of every user for administrators, including unverified, blocked and deleted users. */
const managedFields = [...listedFields, 'role', 'emailVerified', 'blockedAt', 'deletedAt'] as const;
const managedColumns = columnsOf(managedFields);

/** Times in milliseconds since 1970; null if not blocked or not being deleted. */
export type ManagedUser = { readonly [Field in (typeof managedFields)[number]]: Exclude<User[Field], undefined> };

type ManagedRow = Omit<ManagedUser, 'emailVerified'> & { emailVerified: number };

const everyUser = (tables: ReadTables) => tables.selectFrom('users').select(managedColumns);

const toPage = ({ users, ...next }: UserPage<ManagedRow>): UserPage<ManagedUser> => ({
  users: users.map(toAccount),
  ...next,
});

interface Sources {
  database: Database;
  sessions: Pick<Sessions, 'list'>;
  links: Pick<IdentityLinks, 'list'>;
  passkeys: Pick<Passkeys, 'listPasskeys'>;
  totp: Pick<AuthenticatorApp, 'totpStatus'>;
}

/** Users for administrators. Read from the primary, so that administrators see their latest changes. */
export const createManagedUsers = ({ database, sessions, links, passkeys, totp }: Sources) => {
  const search = createSearch(
    (read) => database.query(read),
    (tables) => everyUser(tables).select('search_name as searchName'),
    { byWord: true },
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
    /** Newest first, in pages as the public list; with `q` in the order of the search. */
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
