import { LockMode } from '@mikro-orm/core';
import { Identity, Passkey, type Session } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { Activity } from '../activity/index.ts';
import { inBatches } from '../batches.ts';
import { type AllTables, columnsOf, type Database, prepared, sql } from '../parts/database/contract.ts';
import { deleteInBatches } from '../workers/sweep.ts';
import { endSessionsOf } from './sessions-of-user.ts';
import { type Account, type AccountRow, accountColumns, lockUser, toAccount } from './users.ts';

/** The most ids of one statement. */
const MOST_IDS = 100;
/** The most sessions that are read at once to be forgotten. */
const MOST_FORGOTTEN = 100;
/** The most sessions that a user is shown. */
const MOST_LISTED = 100;
const HOUR_MS = 60 * 60_000;
/** Sensitive changes need a session whose user has given a credential within this time. */
const RECENT_MS = 10 * 60_000;

/** What users see of a session. Times in milliseconds since 1970. */
const listedFields = ['id', 'createdAt', 'lastUsedAt', 'address', 'device', 'method'] as const;
export type ListedSession = Pick<Session, (typeof listedFields)[number]>;

/**
 * A session whose row exists, and its user, in one object: every request reads it. `isUseDue` is 1 where no use in this
 * hour was recorded yet.
 */
interface Found {
  readonly sessionId: string;
  readonly isUseDue: number;
}
type SessionUser = Account & Found;

/** The row of what a session is opened with, where it has one of its own. */
export interface StoredCredential {
  /** At a provider: the id of the identity. */
  identityId?: string;
  passkeyId?: string;
}

/** A session that begins now, for `lifeMs`, with a credential that was given `ageMs` ago. */
interface NewSession extends Pick<Session, 'id' | 'tokenHash' | 'method' | 'address' | 'device'> {
  lifeMs: number;
  ageMs?: number | undefined;
}

const ownColumns = accountColumns.map((column) => `users.${column}` as const);

/** The rows of `sessions`, by the database's clock. */
export const createSessionRows = (database: Database, activity: Activity) => {
  const thisHour = sql<number>`${database.now} - ${database.now} % ${sql.lit(HOUR_MS)}`;
  const isUseDue = sql<number>`sessions.last_used_at <= ${database.now} - ${sql.lit(HOUR_MS)}`.as('isUseDue');

  const inserted = prepared();
  const rowsByIds = prepared<AccountRow & Found>();
  const readByIds = async (ids: readonly string[]): Promise<(SessionUser | undefined)[]> => {
    const rows = await database.query((tables) =>
      rowsByIds(tables, {
        shape: ids.length,
        build: () =>
          tables
            .selectFrom('sessions')
            .innerJoin('users', 'users.id', 'sessions.user_id')
            .select(ownColumns)
            .select(['sessions.id as sessionId', isUseDue])
            .where('sessions.id', 'in', ids)
            .where('users.deleted_at', 'is', null)
            // An instance of the release before opens sessions of blocked users too.
            .where('users.blocked_at', 'is', null),
        parameters: ids,
      }),
    );
    const found = new Map(rows.map((row) => [row.sessionId, toAccount(row)]));
    return ids.map((id) => found.get(id));
  };

  return {
    /** The read behind every authenticated request: the user of a session, by its id. */
    find: inBatches(readByIds, { most: MOST_IDS }),

    /**
     * Inserts a session that begins now. `user` is as it was read before the credential was checked. `recordLogin` runs
     * in the same transaction, before it: it may lock the user, which comes first everywhere. Answers its result; undefined
     * where the `credential` is an identity or a passkey that the user no longer has.
     */
    insert<Recorded>(
      user: Account,
      { id, tokenHash = null, method, address, device, ageMs = 0, lifeMs }: NewSession,
      recordLogin: (tables: AllTables) => Promise<Recorded>,
      { identityId, passkeyId }: StoredCredential = {},
    ): Promise<Recorded | undefined> {
      const insert = async (tables: AllTables): Promise<Recorded> => {
        const recorded = await recordLogin(tables);
        const row = {
          id,
          user_id: user.id,
          token_hash: tokenHash,
          epoch: user.sessionEpoch,
          method,
          address,
          device,
        };
        const credentialAgeMs = Math.round(ageMs);
        await inserted(tables, {
          shape: 'one',
          build: () =>
            tables.insertInto('sessions').values({
              ...row,
              created_at: database.now,
              last_used_at: thisHour,
              authenticated_at: sql`${database.now} - ${credentialAgeMs}`,
              expires_at: sql`${database.now} + ${lifeMs}`,
            }),
          parameters: [...Object.values(row), credentialAgeMs, lifeMs],
        });
        return recorded;
      };
      const credentialId = identityId ?? passkeyId;
      if (credentialId === undefined) return database.change(insert);
      // Its removal ends the sessions that are there: while the credential is locked, none can be added beside it.
      return database.transaction(async (em, tables) => {
        const credential = { id: credentialId, userId: user.id };
        const Entity = identityId === undefined ? Passkey : Identity;
        const found = await em.findOne<Identity | Passkey>(Entity, credential, {
          lockMode: LockMode.PESSIMISTIC_WRITE,
        });
        return found ? insert(tables) : undefined;
      }, credentialId);
    },

    /**
     * Records a use now, of a session that the store has for `lifeMs` more; its row is kept at least as long. Answers
     * false where the session has ended: an update cannot bring it back.
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

    /** Ends a session from within. */
    logOut: ({ id, userId }: { id: string; userId: string }, caller: Caller): Promise<void> =>
      database.change(async (tables) => {
        const { numDeletedRows } = await tables.deleteFrom('sessions').where('id', '=', id).executeTakeFirst();
        if (numDeletedRows === 1n) await activity.record(tables, userId, { kind: 'logged-out' }, caller);
      }, id),

    /** Ends a session of the user by its id. Answers undefined if there was none. */
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
        await activity.record(tables, user.id, { kind: 'session-ended', details: { device: found.device } }, caller);
        return found;
      }, id),

    /** Ends every session of the user, at once on every instance. Answers whether the user exists. */
    endAll: (userId: string, caller: Caller): Promise<boolean> =>
      database.transaction(async (em, tables) => {
        const user = await lockUser(em, { id: userId });
        if (!user || user.isDeleted) return false;
        await endSessionsOf(tables, user);
        await activity.record(tables, user.id, { kind: 'sessions-ended' }, caller);
        return true;
      }, userId),

    /**
     * The user has given a credential again, in this session. `user` is as it was read before the credential was checked.
     * Answers false where the session has ended, or all were ended meanwhile.
     */
    reauthenticate: (
      id: string,
      user: Pick<Account, 'id' | 'sessionEpoch'>,
      method: string,
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

    /** Some of the sessions of a user, ended ones too. */
    someOf: (userId: string): Promise<Pick<Session, 'id' | 'tokenHash'>[]> =>
      database.query((tables) =>
        tables
          .selectFrom('sessions')
          .select(['id', 'token_hash as tokenHash'])
          .where('user_id', '=', userId)
          .limit(MOST_FORGOTTEN)
          .execute(),
      ),

    async remove(ids: string[]): Promise<void> {
      await database.write((tables) => tables.deleteFrom('sessions').where('id', 'in', ids).execute());
    },

    /** Whether the session's user has given a credential in it lately. */
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

    /** Deletes expired sessions. */
    sweep: (): Promise<void> => deleteInBatches(database, 'sessions', sql`expires_at < ${database.now}`),

    /** The sessions of a user as it was read for one of them, the newest first; of very many the newest. */
    list: ({ id, sessionEpoch }: Account): Promise<ListedSession[]> =>
      database.query((tables) =>
        tables
          .selectFrom('sessions')
          .select(columnsOf(listedFields))
          .where('user_id', '=', id)
          .where('epoch', '=', sessionEpoch)
          .where('expires_at', '>', database.now)
          .orderBy('id', 'desc')
          .limit(MOST_LISTED)
          .execute(),
      ),
  };
};

export type SessionRows = ReturnType<typeof createSessionRows>;
