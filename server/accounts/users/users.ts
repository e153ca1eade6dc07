import { LockMode } from '@mikro-orm/core';
import {
  changedProfile,
  optionalProfileFields,
  type ProfileChange,
  type ProfileFields,
  User,
} from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import { inBatches } from '../batches.ts';
import { createBound } from '../bound.ts';
import { ServiceError } from '../errors.ts';
import { pageById } from '../page-by-id.ts';
import {
  type AllTables,
  columnsOf,
  type Database,
  type EntityManager,
  prepared,
  type ReadTables,
} from '../parts/database/contract.ts';
import type { Language } from '../texts/languages.ts';
import { createProfileReplacement } from './profile-replacement.ts';

/** The most ids of one statement, and the most pages that are read at once. */
const MOST_IDS = 100;
const MOST_PAGES = 100;

/** The most changes of a profile that each process records in an hour, so that nobody fills the disk with them. */
const MOST_CHANGES_RECORDED = 60;
const HOUR_MS = 60 * 60_000;

/** What the public list shows. */
export const listedFields = ['id', 'email', 'name', 'avatar', 'provider', 'createdAt'] as const;

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
type CredentialRow = AccountRow & {
  hasApp: number;
  passwordHash: string | null;
  deviceEpoch: number | null;
  limitEpoch: number | null;
  deletedAt: number | null;
  blockedAt: number | null;
};

/** A user, with what a login needs to know beside. */
export interface LoginAccount {
  user: Account;
  passwordHash: string | null;
  /** Whether an authenticator app is asked at a login. Those under way are void once one is added. */
  hasApp: boolean;
  /** Of the marks in the cookies of the user's devices. */
  deviceEpoch: number | null;
  /** Of the counts of wrong credentials. */
  limitEpoch: number | null;
  isDeleted: boolean;
  isBlocked: boolean;
}

export const toAccount = <Row extends { emailVerified: number }>(row: Row) =>
  ({ ...row, emailVerified: row.emailVerified === 1 }) as Omit<Row, 'emailVerified'> & { emailVerified: boolean };

/**
 * A user's row, locked until the transaction ends. Every change of a user's tokens, mails or sessions takes this lock
 * first: so these changes are serialized, and do not deadlock on their other rows.
 */
export const lockUser = (em: EntityManager, where: { id: string } | { email: string }): Promise<User | null> =>
  em.findOne(User, where, { lockMode: LockMode.PESSIMISTIC_WRITE });

/** All users but those who have asked for deletion: nobody sees them. */
export const existing = (tables: ReadTables) => tables.selectFrom('users').where('users.deleted_at', 'is', null);

/** Called within the transaction that changes a profile's avatar; an error that it throws undoes the change. */
export type AvatarChanged = (
  tables: AllTables,
  change: { userId: string; former: string | null; next: string | null },
) => Promise<void>;

interface ProfileUpdate extends ProfileChange {
  /** Of pages and mails; null: that of the browser. */
  language?: Language | null | undefined;
}

interface PageRequest {
  limit: number;
  cursor?: string | undefined;
}

export interface UserPage<Shown = ListedUser> {
  users: Shown[];
  /** The cursor of the next page; absent on the last one. */
  nextCursor?: string;
}

interface Parts {
  database: Database;
  activity: Activity;
  avatarChanged?: AvatarChanged;
}

export const createUsers = ({ database, activity, avatarChanged = async () => undefined }: Parts) => {
  const rowsByIds = prepared<AccountRow>();
  const readByIds =
    (way: 'query' | 'queryReplica') =>
    async (ids: readonly string[]): Promise<(Account | undefined)[]> => {
      const rows = await database[way]((tables) =>
        rowsByIds(tables, {
          shape: ids.length,
          build: () => existing(tables).select(accountColumns).where('id', 'in', ids),
          parameters: ids,
        }),
      );
      const found = new Map(rows.map((row) => [row.id, toAccount(row)]));
      return ids.map((id) => found.get(id));
    };
  const find = inBatches(readByIds('query'), { most: MOST_IDS });
  const findOnReplica = inBatches(readByIds('queryReplica'), { most: MOST_IDS });

  const page = prepared<ListedUser>();
  const readPage = async ({ limit, cursor }: PageRequest): Promise<UserPage> => {
    const most = limit + 1;
    const rows = await database.queryReplica((tables) => {
      const newest = existing(tables).select(listedColumns).orderBy('id', 'desc').limit(most);
      return cursor === undefined
        ? page(tables, { shape: 'first', build: () => newest, parameters: [most] })
        : page(tables, { shape: 'next', build: () => newest.where('id', '<', cursor), parameters: [cursor, most] });
    });
    const { page: users, ...next } = pageById(rows, limit);
    return { users, ...next };
  };

  const rowsByEmail = prepared<CredentialRow>();
  const replaceProfile = createProfileReplacement();
  const mayRecord = createBound({ most: MOST_CHANGES_RECORDED, withinMs: HOUR_MS });

  return {
    find,

    /** For the public, maybe a little behind. A user whom a replica does not know yet is looked for in the primary. */
    findPublic: database.hasReplicas ? async (id: string) => (await findOnReplica(id)) ?? find(id) : find,

    /** The existing users among the ids, in the order of the ids. */
    async findAll(ids: readonly string[]): Promise<Account[]> {
      const users = await Promise.all(ids.map(find));
      return users.filter((user) => user !== undefined);
    },

    /**
     * For a login, also of a user who has asked for deletion or is blocked. The password hash is not part of the user,
     * which callers pass on. `email` must be normalized.
     */
    async findCredential(email: string): Promise<LoginAccount | undefined> {
      const [found] = await database.query((tables) =>
        rowsByEmail(tables, {
          shape: 'one',
          build: () =>
            tables
              .selectFrom('users')
              .select([
                ...accountColumns,
                'password_hash as passwordHash',
                'device_epoch as deviceEpoch',
                'limit_epoch as limitEpoch',
                'deleted_at as deletedAt',
                'blocked_at as blockedAt',
              ])
              .select(({ exists, selectFrom }) =>
                exists(selectFrom('totps').select('user_id').whereRef('user_id', '=', 'users.id')).as('hasApp'),
              )
              .where('email', '=', email),
          parameters: [email],
        }),
      );
      if (!found) return undefined;
      const { passwordHash, hasApp, deviceEpoch, limitEpoch, deletedAt, blockedAt, ...row } = found;
      return {
        user: toAccount(row),
        passwordHash,
        // Any answer but a plain no has the factors looked up.
        hasApp: hasApp !== 0,
        deviceEpoch,
        limitEpoch,
        isDeleted: deletedAt !== null,
        isBlocked: blockedAt !== null,
      };
    },

    /** A user by the id, also one who has asked for deletion or is blocked. */
    findStored: (id: string): Promise<Pick<LoginAccount, 'user' | 'isBlocked'> | undefined> =>
      database.query(async (tables) => {
        const row = await tables
          .selectFrom('users')
          .select([...accountColumns, 'blocked_at as blockedAt'])
          .where('id', '=', id)
          .executeTakeFirst();
        if (!row) return undefined;
        const { blockedAt, ...user } = row;
        return { user: toAccount(user as AccountRow), isBlocked: blockedAt !== null };
      }),

    /** What the user has chosen, and the language of the browser of the last login. Undefined where there is no such user. */
    languagesOf: (
      where: { id: string } | { email: string },
    ): Promise<Pick<User, 'language' | 'browserLanguage'> | undefined> =>
      database.query((tables) =>
        tables
          .selectFrom('users')
          .select(['language', 'browser_language as browserLanguage'])
          .where((user) => user.and(where))
          .executeTakeFirst(),
      ),

    /** Whether there is such a user, deleted ones that can still be restored included. */
    async exists(id: string): Promise<boolean> {
      const row = await database.query((tables) =>
        tables.selectFrom('users').select('id').where('id', '=', id).executeTakeFirst(),
      );
      return row !== undefined;
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
    async update(user: Account, { language, ...change }: ProfileUpdate, caller: Caller): Promise<Account> {
      const { id, sessionEpoch } = user;
      const fields = namesOf(user, change);
      const recordChange = async (tables: AllTables, changed = fields) => {
        if (changed.length === 0 || !mayRecord(id)) return;
        const details = { fields: changed.join(', ') };
        await activity.record(tables, id, { kind: 'profile-changed', details }, caller);
      };
      // The language is no part of what sessions read.
      const replaced =
        language === undefined &&
        (await database.change(async (tables) => {
          const changed = await replaceProfile(tables, { user, change });
          if (changed) await recordChange(tables);
          return changed;
        }, id));
      if (replaced) return replaced;
      return database.transaction(async (em, tables) => {
        const stored = await lockUser(em, { id });
        if (stored?.sessionEpoch !== sessionEpoch) throw new ServiceError('UNAUTHENTICATED');
        const former = stored.profile.avatar;
        stored.changeProfile(change);
        const next = stored.profile.avatar;
        if (next !== former) await avatarChanged(tables, { userId: id, former, next });
        const isOther = language !== undefined && language !== stored.language;
        if (isOther) stored.language = language;
        await recordChange(tables, isOther ? [...fields, 'language'] : fields);
        return accountOf(stored);
      }, id);
    },
  };
};

export type Users = ReturnType<typeof createUsers>;

/** The fields that a change gives another value than was read. */
function namesOf(user: Account, change: ProfileChange): string[] {
  const next = changedProfile(user, change);
  const fields = Object.keys(next) as (keyof ProfileFields)[];
  return fields.filter((field) => next[field] !== user[field]);
}
