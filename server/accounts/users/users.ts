import { LockMode } from '@mikro-orm/core';
import {
  changedProfile,
  optionalProfileFields,
  type ProfileChange,
  type ProfileFields,
  User,
} from '../../../entities/index.ts';
import type { Caller } from '../../activity/caller.ts';
import type { Activity } from '../../activity/index.ts';
import { ServiceError } from '../../errors.ts';
import { inBatches } from '../../lib/batch-loader.ts';
import { pageById } from '../../lib/pagination.ts';
import { createBound } from '../../lib/rate-cap.ts';
import {
  type AllTables,
  columnsOf,
  type Database,
  type EntityManager,
  prepared,
  type ReadTables,
} from '../../parts/database/contract.ts';
import type { FieldValues } from '../../shared/profile-fields.ts';
import type { Language } from '../../shared/texts/languages.ts';
import { type CustomFields, createCustomFields } from './custom-fields.ts';
import { replaceNameWords } from './name-words.ts';

/** Limits of one batch: ids in a statement, and pages read together. */
const MAX_IDS = 100;
const MAX_PAGES = 100;

/** Each process inserts at most this many events of one profile per hour, so that a client cannot fill the disk. */
const MAX_CHANGES_RECORDED = 60;
const HOUR_MS = 60 * 60_000;

/** The public fields of a listed user. */
export const listedFields = ['id', 'email', 'name', 'avatar', 'provider', 'createdAt'] as const;

const accountFields = [
  ...new Set([
    ...listedFields,
    ...optionalProfileFields,
    'avatarVariants',
    'role',
    'emailVerified',
    'sessionEpoch',
  ] as const),
];

type AccountField = (typeof accountFields)[number];

/** A user's data outside the entity, without the password. `createdAt` in milliseconds since 1970. */
export type Account = { readonly [Field in AccountField]: Exclude<User[Field], undefined> } & {
  /** The JSON of the operator's own fields, in reads for output; absent without configured ones. */
  readonly fields?: string | null | undefined;
};

export type ListedUser = Pick<Account, (typeof listedFields)[number] | 'fields'>;

export const accountColumns = columnsOf(accountFields);
export const listedColumns = columnsOf(listedFields);

export const accountOf = (user: User): Account =>
  Object.fromEntries(accountFields.map((field) => [field, user[field] ?? null])) as Account;

export type AccountRow = Omit<Account, 'emailVerified'> & { emailVerified: number };

/** A user, with the further data that a login needs. */
export interface LoginAccount {
  user: Account;
  passwordHash: string | null;
  /** Whether a login requires an authenticator app. Adding one invalidates pending logins. */
  hasApp: boolean;
  /** The epoch of the device marks in the user's cookies. */
  deviceEpoch: number | null;
  /** The number of device marks issued. */
  deviceMarks: number | null;
  /** The epoch of the counters of wrong credentials. */
  limitEpoch: number | null;
  isDeleted: boolean;
  isBlocked: boolean;
}

export const toAccount = <Row extends { emailVerified: number }>(row: Row) =>
  ({ ...row, emailVerified: row.emailVerified === 1 }) as Omit<Row, 'emailVerified'> & { emailVerified: boolean };

declare const lock: unique symbol;
interface Locked {
  readonly [lock]: true;
}

/** A user whose row is locked by `lockUser` until the transaction ends. Functions that need the lock take this type. */
export type LockedUser = User & Locked;
export type LockedId = Pick<User, 'id'> & Locked;

/**
 * Locks a user's row until the transaction ends. Every change of a user's tokens, mails or sessions takes this lock
 * first, so these changes are serialized and cannot deadlock on other rows.
 */
export const lockUser = (em: EntityManager, where: { id: string } | { email: string }): Promise<LockedUser | null> =>
  em.findOne(User, where, { lockMode: LockMode.PESSIMISTIC_WRITE }) as Promise<LockedUser | null>;

/** All users except those who have requested deletion. */
export const existing = (tables: ReadTables) => tables.selectFrom('users').where('users.deleted_at', 'is', null);

/** Deletes the user's row; a job removes everything else. */
export type DeleteUser = (em: EntityManager, tables: AllTables, user: LockedUser) => Promise<void>;

/**
 * Called in the transaction that changes a profile's avatar. Resolves to what the profile stores of the new one. An
 * error rolls the change back.
 */
export type AvatarChanged = (
  tables: AllTables,
  change: { userId: string; former: string | null; next: string | null },
) => Promise<Pick<User, 'avatar' | 'avatarVariants'>>;

interface ProfileUpdate extends ProfileChange {
  /** The language of pages and mails; null: the browser's. */
  language?: Language | null | undefined;
  /** The operator's own fields, validated for their writer. */
  fields?: FieldValues | undefined;
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
  customFields?: CustomFields;
}

export const createUserStore = ({
  database,
  activity,
  avatarChanged = async (_tables, { next: avatar }) => ({ avatar, avatarVariants: null }),
  customFields = createCustomFields(),
}: Parts) => {
  const rowsByIds = prepared<AccountRow>();
  const readByIds =
    (way: 'query' | 'queryReplica') =>
    async (ids: readonly string[]): Promise<(Account | undefined)[]> => {
      const rows = await database[way]((tables) =>
        rowsByIds(tables, {
          shape: ids.length,
          build: () =>
            existing(tables)
              .select([...accountColumns, ...customFields.columns])
              .where('id', 'in', ids),
          parameters: ids,
        }),
      );
      const found = new Map(rows.map((row) => [row.id, toAccount(row)]));
      return ids.map((id) => found.get(id));
    };
  const find = inBatches(readByIds('query'), { most: MAX_IDS });
  const findOnReplica = inBatches(readByIds('queryReplica'), { most: MAX_IDS });

  const readPage = async ({ limit, cursor }: PageRequest): Promise<UserPage> => {
    const rows = await database.queryReplica((tables) =>
      existing(tables)
        .select([...listedColumns, ...customFields.publicColumns])
        .$if(cursor !== undefined, (users) => users.where('id', '<', cursor as string))
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute(),
    );
    const { page: users, ...next } = pageById(rows, limit);
    return { users, ...next };
  };

  const hasOwnEvent = createBound({ most: MAX_CHANGES_RECORDED, withinMs: HOUR_MS });

  /** Beyond the bound, an event takes the place of the actor's latest one and names its fields too. */
  const recordChange = async (tables: AllTables, id: string, fields: string[], caller: Caller): Promise<void> => {
    const { actor, actorId = '' } = caller;
    const former = hasOwnEvent(`${id} ${actor} ${actorId}`)
      ? undefined
      : await activity.takeLatest(tables, id, 'profile-changed', caller);
    const all = new Set([...(former?.fields.split(', ') ?? []), ...fields]);
    await activity.record(tables, id, { kind: 'profile-changed', details: { fields: [...all].join(', ') } }, caller);
  };

  /** Their names as in events and errors: `fields.nickname`. */
  const changeFields = async (tables: AllTables, user: LockedUser, change: FieldValues): Promise<string[]> =>
    (await customFields.change(tables, user, change)).map((name) => `fields.${name}`);

  const changeFieldsOf = async (tables: AllTables, user: LockedUser, change: FieldValues, caller: Caller) => {
    const fields = await changeFields(tables, user, change);
    if (fields.length > 0) await recordChange(tables, user.id, fields, caller);
    return { ...accountOf(user), fields: user.fields };
  };

  return {
    find,

    /** For public reads, which may be stale. A user missing on the replica is read from the primary. */
    findPublic: database.hasReplicas ? async (id: string) => (await findOnReplica(id)) ?? find(id) : find,

    /** The existing users with these ids, in the order of `ids`. */
    async findAll(ids: readonly string[]): Promise<Account[]> {
      const users = await Promise.all(ids.map(find));
      return users.filter((user) => user !== undefined);
    },

    /**
     * For a login: includes users who have requested deletion or are blocked. The password hash stays outside `user`,
     * which callers pass on. `email` must be normalized.
     */
    async findCredential(email: string): Promise<LoginAccount | undefined> {
      const found = await database.query((tables) =>
        tables
          .selectFrom('users')
          .select([
            ...accountColumns,
            'password_hash as passwordHash',
            'device_epoch as deviceEpoch',
            'device_marks as deviceMarks',
            'limit_epoch as limitEpoch',
            'deleted_at as deletedAt',
            'blocked_at as blockedAt',
          ])
          .select(({ exists, selectFrom }) =>
            exists(selectFrom('totps').select('user_id').whereRef('user_id', '=', 'users.id')).as('hasApp'),
          )
          .where('email', '=', email)
          .executeTakeFirst(),
      );
      if (!found) return undefined;
      const { passwordHash, hasApp, deviceEpoch, deviceMarks, limitEpoch, deletedAt, blockedAt, ...row } = found;
      return {
        user: toAccount(row),
        passwordHash,
        // Any value but 0 makes the login look the factors up.
        hasApp: hasApp !== 0,
        deviceEpoch,
        deviceMarks,
        limitEpoch,
        isDeleted: deletedAt !== null,
        isBlocked: blockedAt !== null,
      };
    },

    /** A user by id, including users who have requested deletion or are blocked. */
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

    /** The user's choice, and the browser language of the last login. Undefined for an unknown user. */
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

    /** Whether the user exists. Includes deleted users who can still be restored. */
    async exists(id: string): Promise<boolean> {
      const row = await database.query((tables) =>
        tables.selectFrom('users').select('id').where('id', '=', id).executeTakeFirst(),
      );
      return row !== undefined;
    },

    /** Newest first. Ids are time-ordered, so a page is a range of the primary key, however many users there are. */
    list: inBatches(
      (pages: readonly PageRequest[]) =>
        Promise.all(pages.map((page) => readPage(page).catch((error: unknown) => error as Error))),
      { most: MAX_PAGES },
    ),

    /** Changes only the given fields. UNAUTHENTICATED if the session that read the user has ended since. */
    update: (
      { id, sessionEpoch }: Account,
      { language, fields: own, ...change }: ProfileUpdate,
      caller: Caller,
    ): Promise<Account> =>
      database.transaction(async (em, tables) => {
        const user = await lockUser(em, { id });
        if (user?.sessionEpoch !== sessionEpoch) throw new ServiceError('UNAUTHENTICATED');
        const former = user.profile;
        const next = changedProfile(former, change);
        const fields: string[] = changedIn(next, former);
        user.changeProfile(change);
        if (next.name !== former.name) await replaceNameWords(tables, { id, name: next.name });
        if (next.avatar !== former.avatar) {
          const change = { userId: id, former: former.avatar, next: next.avatar };
          Object.assign(user, await avatarChanged(tables, change));
        }
        if (language !== undefined && language !== user.language) {
          user.language = language;
          fields.push('language');
        }
        if (own) fields.push(...(await changeFields(tables, user, own)));
        if (fields.length > 0) await recordChange(tables, id, fields, caller);
        return { ...accountOf(user), ...(customFields.isConfigured && { fields: user.fields }) };
      }, id),

    /** Changes the operator's own fields of a user, for another service. NOT_FOUND also for a deleted user. */
    setFields: (id: string, change: FieldValues, caller: Caller): Promise<Account> =>
      database.transaction(async (em, tables) => {
        const user = await lockUser(em, { id });
        if (!user || user.isDeleted) throw new ServiceError('NOT_FOUND', { message: 'User not found' });
        return changeFieldsOf(tables, user, change, caller);
      }, id),

    /** The same in the transaction of an administrator. */
    changeFieldsOf,
  };
};

export type UserStore = ReturnType<typeof createUserStore>;

/** The names of the fields that differ. */
export const changedIn = (next: ProfileFields, former: ProfileFields) =>
  (Object.keys(next) as (keyof ProfileFields)[]).filter((field) => next[field] !== former[field]);
