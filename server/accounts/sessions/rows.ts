import { LockMode } from '@mikro-orm/core';
import { Identity, Passkey, type Session } from '../../../entities/index.ts';
import type { Caller } from '../../activity/caller.ts';
import type { Activity } from '../../activity/index.ts';
import { unavailable } from '../../errors.ts';
import { inBatches } from '../../lib/batch-loader.ts';
import {
  type AllTables,
  columnsOf,
  type Database,
  prepared,
  sql,
  type WriteTables,
} from '../../parts/database/contract.ts';
import type { LoginMethod, OwnMethod } from '../../shared/method-names.ts';
import { deleteInBatches } from '../../workers/sweep.ts';
import {
  type Account,
  type AccountRow,
  accountColumns,
  type CustomFields,
  createCustomFields,
  type LockedUser,
  lockUser,
  toAccount,
} from '../users/index.ts';
import { endOldestSessions, endSessionsOf } from './of-user.ts';

/** Maximum ids per statement. */
const MAX_IDS = 100;
/** Maximum sessions read in one batch for deletion. */
const MAX_FORGOTTEN = 100;
/** Maximum sessions in the list of a user. */
const MAX_LISTED = 100;
const HOUR_MS = 60 * 60_000;
/** Sensitive changes need a session in which a credential was given within this time. */
const RECENT_MS = 10 * 60_000;
/** The maximum age of a password login that counts as fresh. */
const FRESH_LOGIN_MS = 5 * 60_000;

/** The public fields of a session. Times in milliseconds since 1970. */
const listedFields = ['id', 'createdAt', 'lastUsedAt', 'address', 'device', 'method'] as const;
export type ListedSession = Pick<Session, (typeof listedFields)[number]>;

/**
 * An existing session and its user in one object, read by every request. `isUseDue` is 1 if no use was recorded in this
 * hour.
 */
interface Found extends Readonly<Pick<Session, 'tokenHash'>> {
  readonly sessionId: string;
  readonly isUseDue: number;
}
type SessionUser = Account & Found;

/** The reference to a session in the store. */
interface StoredId {
  id: string;
  tokenHash: string;
}

/** The row of the credential that opens a session, if it has one. */
export interface StoredCredential {
  /** For a provider login: the id of the identity. */
  identityId?: string;
  passkeyId?: string;
}

/** A session that begins now, for `lifeMs`, with a credential given `ageMs` ago. */
interface NewSession extends Pick<Session, 'id' | 'tokenHash' | 'method' | 'address' | 'device'> {
  lifeMs: number;
  ageMs?: number | undefined;
}

/**
 * One of sixteen logins looks for sessions past the limit, chosen by the random end of the id: finding the oldest reads
 * the thousand newest.
 */
const looksForOldest = (id: string): boolean => id.endsWith('0');

const ownColumns = accountColumns.map((column) => `users.${column}` as const);

/** How a user authenticated in a session. */
export interface Authentication {
  /** When a credential was last given, in milliseconds since 1970. */
  at: number;
  /** By a passkey, or with a second factor. */
  isMultiFactor: boolean;
}

/** The rows of `sessions`, by the database clock. */
export const createSessionRows = (
  database: Database,
  activity: Activity,
  { columns }: Pick<CustomFields, 'columns'> = createCustomFields(),
) => {
  const thisHour = sql<number>`${database.now} - ${database.now} % ${sql.lit(HOUR_MS)}`;
  const isUseDue = sql<number>`sessions.last_used_at <= ${database.now} - ${sql.lit(HOUR_MS)}`.as('isUseDue');

  const insertRow = async (
    tables: AllTables,
    user: Pick<Account, 'id' | 'sessionEpoch'>,
    { id, tokenHash = null, method, address, device, ageMs = 0, lifeMs }: NewSession,
  ): Promise<void> => {
    await tables
      .insertInto('sessions')
      .values({
        id,
        user_id: user.id,
        token_hash: tokenHash,
        epoch: user.sessionEpoch,
        method,
        address,
        device,
        created_at: database.now,
        last_used_at: thisHour,
        authenticated_at: sql`${database.now} - ${Math.round(ageMs)}`,
        expires_at: sql`${database.now} + ${lifeMs}`,
      })
      .execute();
  };

  const rowsByIds = prepared<AccountRow & Found>();
  const readAll = async (sessions: readonly StoredId[]): Promise<(SessionUser | undefined | Error)[]> => {
    const ids = sessions.map(({ id }) => id);
    const rows = await database.query((tables) =>
      rowsByIds(tables, {
        shape: ids.length,
        build: () =>
          tables
            .selectFrom('sessions')
            .innerJoin('users', 'users.id', 'sessions.user_id')
            .select(ownColumns)
            .select(columns)
            .select(['sessions.id as sessionId', 'sessions.token_hash as tokenHash', isUseDue])
            .where('sessions.id', 'in', ids)
            .where('users.deleted_at', 'is', null)
            // An instance of the previous release opens sessions of blocked users too.
            .where('users.blocked_at', 'is', null),
        parameters: ids,
      }),
    );
    const found = new Map(rows.map((row) => [row.sessionId, toAccount(row)]));
    return sessions.map(({ id, tokenHash }) => {
      const user = found.get(id);
      // The previous release inserts rows without a token hash.
      const isOfToken = (user?.tokenHash ?? tokenHash) === tokenHash;
      return isOfToken ? user : unavailable(new Error('the key-value store returned the session of another token'));
    });
  };

  return {
    /**
     * The read behind every authenticated request: the user of a session, by the stored id. SERVICE_UNAVAILABLE if the
     * row belongs to another token.
     */
    find: inBatches(readAll, { most: MAX_IDS }),

    /** Inserts a session in the caller's transaction. */
    insertRow,

    /**
     * Inserts a session; `user` as read before the credential check. Undefined if the identity or passkey is gone;
     * otherwise the result of `recordLogin`, run first, and the sessions ended by the limit.
     */
    insert<Recorded>(
      user: Account,
      session: NewSession,
      recordLogin: (tables: AllTables) => Promise<Recorded>,
      { identityId, passkeyId }: StoredCredential = {},
    ): Promise<{ recorded: Recorded; ended: Pick<Session, 'tokenHash'>[] } | undefined> {
      const insert = async (tables: AllTables) => {
        const recorded = await recordLogin(tables);
        await insertRow(tables, user, session);
        return { recorded, ended: looksForOldest(session.id) ? await endOldestSessions(tables, user) : [] };
      };
      const credentialId = identityId ?? passkeyId;
      if (credentialId === undefined) return database.change(insert, user.id);
      // Removing a credential ends its sessions. While it is locked, no session can be added concurrently.
      return database.transaction(async (em, tables) => {
        const credential = { id: credentialId, userId: user.id };
        const Entity = identityId === undefined ? Passkey : Identity;
        const found = await em.findOne<Identity | Passkey>(Entity, credential, {
          lockMode: LockMode.PESSIMISTIC_WRITE,
        });
        return found ? insert(tables) : undefined;
      }, user.id);
    },

    /**
     * Records a use of a session that stays in the store for `lifeMs`; the row stays at least as long. Resolves to
     * false if the session has ended: an update cannot restore it.
     */
    recordUse: (id: string, lifeMs: number): Promise<boolean> =>
      database.write(async (tables) => {
        const end = sql<number>`${database.now} + ${lifeMs}`;
        const { numUpdatedRows } = await tables
          .updateTable('sessions')
          .set({
            last_used_at: thisHour,
            expires_at: sql`case when expires_at > ${end} then expires_at else ${end} end`,
          })
          .where('id', '=', id)
          .executeTakeFirst();
        return numUpdatedRows === 1n;
      }, id),

    /** Lets a session end after `lifeMs`. */
    async shorten(tables: WriteTables, id: string, lifeMs: number): Promise<void> {
      const end = sql<number>`${database.now} + ${lifeMs}`;
      await tables.updateTable('sessions').set({ expires_at: end }).where('id', '=', id).execute();
    },

    /** Ends the caller's own session. */
    logOut: ({ id, userId }: { id: string; userId: string }, caller: Caller): Promise<void> =>
      database.change(async (tables) => {
        const { numDeletedRows } = await tables.deleteFrom('sessions').where('id', '=', id).executeTakeFirst();
        if (numDeletedRows === 1n)
          await activity.record(tables, userId, { kind: 'logged-out', details: { session: id } }, caller);
      }, id),

    /** Ends a session of the user by its id. Resolves to undefined if the user has no such session. */
    endOf: (user: Account, id: string, caller: Caller): Promise<Pick<Session, 'tokenHash'> | undefined> =>
      database.change(async (tables) => {
        const session = tables.selectFrom('sessions').where('id', '=', id).where('user_id', '=', user.id);
        const found = await session.select(['device', 'token_hash as tokenHash']).executeTakeFirst();
        const { numDeletedRows } = await tables
          .deleteFrom('sessions')
          .where('id', '=', id)
          .where('user_id', '=', user.id)
          .executeTakeFirst();
        if (!found || numDeletedRows !== 1n) return undefined;
        const details = { device: found.device, session: id };
        await activity.record(tables, user.id, { kind: 'session-ended', details }, caller);
        return found;
      }, id),

    /**
     * Ends all sessions of the user, immediately on every instance, after `before`. Resolves to whether the user exists.
     */
    endAll: (userId: string, caller: Caller, before: (user: LockedUser) => void = () => undefined): Promise<boolean> =>
      database.transaction(async (em, tables) => {
        const user = await lockUser(em, { id: userId });
        if (!user || user.isDeleted) return false;
        before(user);
        await endSessionsOf(tables, user);
        await activity.record(tables, user.id, { kind: 'sessions-ended' }, caller);
        return true;
      }, userId),

    /**
     * Records that the user has given a credential again; `user` as read before the check. Resolves to false if the
     * session has ended since.
     */
    reauthenticate: (
      id: string,
      user: Pick<Account, 'id' | 'sessionEpoch'>,
      method: LoginMethod,
      caller: Caller,
    ): Promise<boolean> =>
      database.change(async (tables) => {
        const { numUpdatedRows } = await tables
          .updateTable('sessions')
          .set({ authenticated_at: database.now })
          .where('id', '=', id)
          .where('user_id', '=', user.id)
          .where('epoch', '=', user.sessionEpoch)
          .executeTakeFirst();
        if (numUpdatedRows !== 1n) return false;
        await activity.record(tables, user.id, { kind: 'reauthenticated', details: { method } }, caller);
        return true;
      }, id),

    /** Some sessions of a user, including ended ones. */
    someOf: (userId: string): Promise<Pick<Session, 'id' | 'tokenHash'>[]> =>
      database.query((tables) =>
        tables
          .selectFrom('sessions')
          .select(['id', 'token_hash as tokenHash'])
          .where('user_id', '=', userId)
          .limit(MAX_FORGOTTEN)
          .execute(),
      ),

    async remove(ids: string[]): Promise<void> {
      await database.write((tables) => tables.deleteFrom('sessions').where('id', 'in', ids).execute());
    },

    /** Whether a credential was given in the session recently. */
    async isRecent(id: string): Promise<boolean> {
      const row = await database.query((tables) =>
        tables
          .selectFrom('sessions')
          .select('id')
          .where('id', '=', id)
          .where('authenticated_at', '>', sql<number>`${database.now} - ${RECENT_MS}`)
          .executeTakeFirst(),
      );
      return row !== undefined;
    },

    /** Whether the session was opened by password a few minutes ago. */
    async isFreshPasswordLogin(id: string): Promise<boolean> {
      const row = await database.query((tables) =>
        tables
          .selectFrom('sessions')
          .select('id')
          .where('id', '=', id)
          .where('method', '=', 'password' satisfies OwnMethod)
          .where('created_at', '>', sql<number>`${database.now} - ${FRESH_LOGIN_MS}`)
          .executeTakeFirst(),
      );
      return row !== undefined;
    },

    /** How the user authenticated in the session. Undefined if it has ended. */
    async authentication(id: string): Promise<Authentication | undefined> {
      const row = await database.query((tables) =>
        tables
          .selectFrom('sessions')
          .select(['authenticated_at as at', 'method'])
          .select(({ exists, selectFrom }) =>
            exists(selectFrom('totps').select('user_id').whereRef('user_id', '=', 'sessions.user_id')).as('hasApp'),
          )
          .where('id', '=', id)
          .executeTakeFirst(),
      );
      // A user with an app gets no session without a code, and a new app ends the other sessions.
      return row && { at: Number(row.at), isMultiFactor: row.method === 'passkey' || row.hasApp !== 0 };
    },

    sweep: (): Promise<void> => deleteInBatches(database, 'sessions', sql`expires_at < ${database.now}`),

    /** The sessions of a user, newest first, up to the limit. `user` as read for one of them. */
    list: ({ id, sessionEpoch }: Account): Promise<ListedSession[]> =>
      database.query((tables) =>
        tables
          .selectFrom('sessions')
          .select(columnsOf(listedFields))
          .where('user_id', '=', id)
          .where('epoch', '=', sessionEpoch)
          .where('expires_at', '>', database.now)
          .orderBy('id', 'desc')
          .limit(MAX_LISTED)
          .execute(),
      ),
  };
};

export type SessionRows = ReturnType<typeof createSessionRows>;
