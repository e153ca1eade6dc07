import { LockMode } from '@mikro-orm/core';
import type { CompiledQuery } from 'kysely';
import { optionalProfileFields, type ProfileChange, User } from '../../entities/index.ts';
import { ServiceError } from '../errors.ts';
import { type AllTables, columnsOf, type Database, type EntityManager } from '../parts/database/contract.ts';

const accountFields = [
  'id',
  'email',
  'name',
  ...optionalProfileFields,
  'provider',
  'role',
  'emailVerified',
  'sessionEpoch',
  'createdAt',
] as const;

type AccountField = (typeof accountFields)[number];

/** The data of a user outside the entity: everything but the password. `createdAt` in milliseconds since 1970. */
export type Account = { [Field in AccountField]: Exclude<User[Field], undefined> };

export const columns = columnsOf(accountFields);

export const accountOf = (user: User): Account =>
  Object.fromEntries(accountFields.map((field) => [field, user[field] ?? null])) as Account;

export type AccountRow = Omit<Account, 'emailVerified'> & { emailVerified: number };

export const toAccount = <Row extends { emailVerified: number }>(row: Row) =>
  ({ ...row, emailVerified: row.emailVerified === 1 }) as Omit<Row, 'emailVerified'> & { emailVerified: boolean };

/**
 * A user's row, locked until the transaction ends. Every change of a user's tokens, mails or sessions takes this lock
 * first: so these changes are serialized, and do not deadlock on their other rows.
 */
export const lockUser = (em: EntityManager, where: { id: string } | { email: string }): Promise<User | null> =>
  em.findOne(User, where, { lockMode: LockMode.PESSIMISTIC_WRITE });

/** Called within the transaction that changes a profile's avatar; an error that it throws undoes the change. */
export type AvatarChanged = (
  tables: AllTables,
  change: { userId: string; former: string | null; next: string | null },
) => Promise<void>;

export interface UserPage {
  users: Account[];
  /** The cursor of the next page; absent on the last one. */
  nextCursor?: string;
}

export const createUsers = (database: Database, avatarChanged: AvatarChanged = async () => undefined) => {
  let byId: CompiledQuery<AccountRow> | undefined;

  return {
    /** One row by its key: the read behind every authenticated request, so its SQL is compiled once. */
    find(id: string): Promise<Account | undefined> {
      return database.query(async (tables) => {
        byId ??= tables.selectFrom('users').select(columns).where('id', '=', '').compile();
        const { rows } = await tables.executeQuery<AccountRow>({ ...byId, parameters: [id] });
        return rows[0] && toAccount(rows[0]);
      });
    },

    /** The existing users among the ids, in the order of the ids, by one query. */
    async findAll(ids: readonly string[]): Promise<Account[]> {
      if (ids.length === 0) return [];
      const rows = await database.query((tables) =>
        tables.selectFrom('users').select(columns).where('id', 'in', ids).execute(),
      );
      const found = new Map(rows.map((row) => [row.id, toAccount(row)]));
      return ids.flatMap((id) => found.get(id) ?? []);
    },

    /** For a login. The password hash is not part of the user, which callers pass on. `email` must be normalized. */
    async findCredential(email: string): Promise<{ user: Account; passwordHash: string | null } | undefined> {
      const found = await database.query((tables) =>
        tables
          .selectFrom('users')
          .select([...columns, 'password_hash as passwordHash'])
          .where('email', '=', email)
          .executeTakeFirst(),
      );
      if (!found) return undefined;
      const { passwordHash, ...row } = found;
      return { user: toAccount(row), passwordHash };
    },

    /** Newest first; ids are time-ordered, so a page is a range of the primary key, whatever the number of users. */
    async list({ limit, cursor }: { limit: number; cursor?: string | undefined }) {
      const rows = await database.query((tables) => {
        const newest = tables
          .selectFrom('users')
          .select(columns)
          .orderBy('id', 'desc')
          .limit(limit + 1);
        return (cursor === undefined ? newest : newest.where('id', '<', cursor)).execute();
      });
      const users = rows.slice(0, limit).map(toAccount);
      const last = users.at(-1);
      return { users, ...(rows.length > limit && last && { nextCursor: last.id }) } satisfies UserPage;
    },

    /**
     * Changes only the given fields. `epoch` is that of the caller's session: UNAUTHENTICATED if
     * that session has ended in the meantime.
     */
    update: (id: string, epoch: number, change: ProfileChange): Promise<Account> =>
      database.transaction(async (em, tables) => {
        const user = await lockUser(em, { id });
        if (user?.sessionEpoch !== epoch) throw new ServiceError('UNAUTHENTICATED');
        const former = user.avatar ?? null;
        user.changeProfile(change);
        const next = user.avatar ?? null;
        if (next !== former) await avatarChanged(tables, { userId: id, former, next });
        return accountOf(user);
      }, id),

    /** Ends every session of the user, at once on every instance. Returns whether the user exists. */
    endSessions: (id: string): Promise<boolean> =>
      database.transaction(async (em) => {
        const user = await lockUser(em, { id });
        user?.endSessions();
        return user !== null;
      }, id),
  };
};

export type Users = ReturnType<typeof createUsers>;
