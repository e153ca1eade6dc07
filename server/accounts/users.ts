import { LockMode } from '@mikro-orm/core';
import { optionalProfileFields, type ProfileChange, User } from '../../entities/index.ts';
import { inBatches } from '../batches.ts';
import { ServiceError } from '../errors.ts';
import {
  type AllTables,
  columnsOf,
  type Database,
  type EntityManager,
  preparedRead,
} from '../parts/database/contract.ts';
import { createProfileReplacement } from './profile-replacement.ts';

/** The most ids of one statement, and the most pages that are read at once. */
const MOST_IDS = 100;
const MOST_PAGES = 100;

/** What the public list shows. */
const listedFields = ['id', 'email', 'name', 'avatar', 'provider', 'createdAt'] as const;

const accountFields = [
  ...new Set([...listedFields, ...optionalProfileFields, 'role', 'emailVerified', 'sessionEpoch'] as const),
];

type AccountField = (typeof accountFields)[number];

/** The data of a user outside the entity: everything but the password. `createdAt` in milliseconds since 1970. */
export type Account = { readonly [Field in AccountField]: Exclude<User[Field], undefined> };

export type ListedUser = Pick<Account, (typeof listedFields)[number]>;

export const accountColumns = columnsOf(accountFields);
export const listedColumns = columnsOf(listedFields);

export const accountOf = (user: User): Account =>
  Object.fromEntries(accountFields.map((field) => [field, user[field] ?? null])) as Account;

export type AccountRow = Omit<Account, 'emailVerified'> & { emailVerified: number };
type CredentialRow = AccountRow & { passwordHash: string | null };

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

interface PageRequest {
  limit: number;
  cursor?: string | undefined;
}

export interface UserPage {
  users: ListedUser[];
  /** The cursor of the next page; absent on the last one. */
  nextCursor?: string;
}

export const createUsers = (database: Database, avatarChanged: AvatarChanged = async () => undefined) => {
  const rowsByIds = preparedRead<AccountRow>();
  const readByIds =
    (way: 'query' | 'queryReplica') =>
    async (ids: readonly string[]): Promise<(Account | undefined)[]> => {
      const rows = await database[way]((tables) =>
        rowsByIds(tables, {
          shape: ids.length,
          build: () => tables.selectFrom('users').select(accountColumns).where('id', 'in', ids),
          parameters: ids,
        }),
      );
      const found = new Map(rows.map((row) => [row.id, toAccount(row)]));
      return ids.map((id) => found.get(id));
    };
  const find = inBatches(readByIds('query'), { most: MOST_IDS });
  const findOnReplica = inBatches(readByIds('queryReplica'), { most: MOST_IDS });

  const page = preparedRead<ListedUser>();
  const readPage = async ({ limit, cursor }: PageRequest): Promise<UserPage> => {
    const most = limit + 1;
    const rows = await database.queryReplica((tables) => {
      const newest = tables.selectFrom('users').select(listedColumns).orderBy('id', 'desc').limit(most);
      return cursor === undefined
        ? page(tables, { shape: 'first', build: () => newest, parameters: [most] })
        : page(tables, { shape: 'next', build: () => newest.where('id', '<', cursor), parameters: [cursor, most] });
    });
    const users = rows.slice(0, limit);
    const last = users.at(-1);
    return { users, ...(rows.length > limit && last && { nextCursor: last.id }) };
  };

  const rowsByEmail = preparedRead<CredentialRow>();
  const replaceProfile = createProfileReplacement(database);

  return {
    find,

    /** For the public, maybe a little behind. A user whom a replica does not know yet is looked for in the primary. */
    findPublic: database.hasReplicas ? async (id: string) => (await findOnReplica(id)) ?? find(id) : find,

    /** The existing users among the ids, in the order of the ids. */
    async findAll(ids: readonly string[]): Promise<Account[]> {
      const users = await Promise.all(ids.map(find));
      return users.filter((user) => user !== undefined);
    },

    /** For a login. The password hash is not part of the user, which callers pass on. `email` must be normalized. */
    async findCredential(email: string): Promise<{ user: Account; passwordHash: string | null } | undefined> {
      const [found] = await database.query((tables) =>
        rowsByEmail(tables, {
          shape: 'one',
          build: () =>
            tables
              .selectFrom('users')
              .select([...accountColumns, 'password_hash as passwordHash'])
              .where('email', '=', email),
          parameters: [email],
        }),
      );
      if (!found) return undefined;
      const { passwordHash, ...row } = found;
      return { user: toAccount(row), passwordHash };
    },

    /** Newest first; ids are time-ordered, so a page is a range of the primary key, whatever the number of users. */
    list: inBatches(
      (pages: readonly PageRequest[]) =>
        Promise.all(pages.map((page) => readPage(page).catch((error: unknown) => error as Error))),
      { most: MOST_PAGES },
    ),

    /**
     * Changes only the given fields of the user, who is given as the caller's session has read it. UNAUTHENTICATED if
     * that session has ended in the meantime.
     */
    update: (user: Account, change: ProfileChange): Promise<Account> =>
      database.attempt({
        row: user.id,
        statement: (tables, latest) => replaceProfile(tables, { user, change, latest }),
        async otherwise(em, tables) {
          const { id, sessionEpoch } = user;
          const stored = await lockUser(em, { id });
          if (stored?.sessionEpoch !== sessionEpoch) throw new ServiceError('UNAUTHENTICATED');
          const former = stored.profile.avatar;
          stored.changeProfile(change);
          const next = stored.profile.avatar;
          if (next !== former) await avatarChanged(tables, { userId: id, former, next });
          return accountOf(stored);
        },
      }),
  };
};

export type Users = ReturnType<typeof createUsers>;
