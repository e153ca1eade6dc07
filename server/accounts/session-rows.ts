import type { Session, User } from '../../entities/index.ts';
import { inBatches } from '../batches.ts';
import { type AllTables, columnsOf, type Database, preparedRead, sql } from '../parts/database/contract.ts';
import { type Account, type AccountRow, accountColumns, lockUser, toAccount } from './users.ts';

/** The most ids of one statement. */
const MOST_IDS = 100;
/** The most sessions that a user is shown. */
const MOST_LISTED = 100;
const HOUR_MS = 60 * 60_000;

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

const ownColumns = accountColumns.map((column) => `users.${column}` as const);

/** Ends every session of a user whose row is locked. */
export async function endSessionsOf(tables: AllTables, user: User): Promise<void> {
  user.endSessions();
  await deleteSessions(tables, user.id);
}

/**
 * Deletes the sessions of a user in the transaction that raises the epoch. The epoch ends one that is opened beside it
 * too, whose row is inserted later.
 */
export async function deleteSessions(tables: AllTables, userId: string): Promise<void> {
  await tables.deleteFrom('sessions').where('user_id', '=', userId).execute();
}

/** The rows of `sessions`, by the database's clock. */
export const createSessionRows = (database: Database) => {
  const thisHour = sql<number>`${database.now} - ${database.now} % ${HOUR_MS}`;
  const isUseDue = sql<number>`sessions.last_used_at <= ${database.now} - ${sql.lit(HOUR_MS)}`.as('isUseDue');

  const rowsByIds = preparedRead<AccountRow & Found>();
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
            .where('sessions.id', 'in', ids),
        parameters: ids,
      }),
    );
    const found = new Map(rows.map((row) => [row.sessionId, toAccount(row)]));
    return ids.map((id) => found.get(id));
  };

  return {
    /** The read behind every authenticated request: the user of a session, by its id. */
    find: inBatches(readByIds, { most: MOST_IDS }),

    /** Inserts a session that begins now. `user` is as it was read before the credential was checked. */
    async insert(
      user: Account,
      { lifeMs, ...row }: { lifeMs: number } & Pick<Session, 'id' | 'method' | 'address' | 'device'>,
    ): Promise<void> {
      await database.write((tables) =>
        tables
          .insertInto('sessions')
          .values({
            ...row,
            user_id: user.id,
            epoch: user.sessionEpoch,
            created_at: database.now,
            authenticated_at: database.now,
            last_used_at: thisHour,
            expires_at: sql`${database.now} + ${lifeMs}`,
          })
          .execute(),
      );
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

    /** Ends a session, of this user if one is given. Answers whether it was there. */
    end: (id: string, userId?: string): Promise<boolean> =>
      database.write(async (tables) => {
        const row = tables.deleteFrom('sessions').where('id', '=', id);
        const { numDeletedRows } = await (userId === undefined
          ? row
          : row.where('user_id', '=', userId)
        ).executeTakeFirst();
        return numDeletedRows === 1n;
      }, id),

    /** Ends every session of the user, at once on every instance. Answers whether the user exists. */
    endAll: (userId: string): Promise<boolean> =>
      database.transaction(async (em, tables) => {
        const user = await lockUser(em, { id: userId });
        if (user) await endSessionsOf(tables, user);
        return user !== null;
      }, userId),

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
