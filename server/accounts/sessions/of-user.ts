import type { Session } from '../../../entities/index.ts';
import { ServiceError } from '../../errors.ts';
import type { AllTables, Database, EntityManager, ReadTables } from '../../parts/database/contract.ts';
import type { LoginMethod } from '../../shared/method-names.ts';
import { type Account, type LockedId, type LockedUser, lockUser } from '../users/index.ts';

/**
 * The approximate maximum of sessions per user; the oldest end first. Also bounds the deletions of one transaction:
 * further sessions, from before this limit, are invalid by epoch and swept when they expire.
 */
export const MAX_SESSIONS = 1000;

/** Deletes the newest sessions of a user, except `but`. */
async function deleteNewest(tables: AllTables, userId: string, but?: string): Promise<void> {
  const rows = await tables
    .selectFrom('sessions')
    .select('id')
    .where('user_id', '=', userId)
    .orderBy('id', 'desc')
    .limit(MAX_SESSIONS + 1)
    .execute();
  // With `id <> ?` in the statement MySQL reads all sessions of the user.
  const ids = rows.map(({ id }) => id).filter((id) => id !== but);
  if (ids.length > 0) await tables.deleteFrom('sessions').where('id', 'in', ids).execute();
}

/** Whether the session still exists. */
export async function isSessionOpen(
  tables: ReadTables,
  { userId, sessionId }: { userId: string; sessionId: string | undefined },
): Promise<boolean> {
  if (sessionId === undefined) return false;
  const session = tables.selectFrom('sessions').select('id').where('id', '=', sessionId).where('user_id', '=', userId);
  return (await session.executeTakeFirst()) !== undefined;
}

/** A validated session. */
interface OpenSession {
  id: string | undefined;
  user: Account;
}

/** Locks the user of a session for a change in it. UNAUTHENTICATED if the session has ended since validation. */
export async function lockOwner(
  em: EntityManager,
  tables: AllTables,
  { id: sessionId, user: { id, sessionEpoch } }: OpenSession,
): Promise<LockedUser> {
  const user = await lockUser(em, { id });
  const isOpen = user?.sessionEpoch === sessionEpoch && (await isSessionOpen(tables, { userId: id, sessionId }));
  if (!user || !isOpen) throw new ServiceError('UNAUTHENTICATED');
  return user;
}

/** A change by the user of a session, reported by mail. UNAUTHENTICATED if the session has ended since validation. */
export async function changeAsOwner<Changed>(
  { database, outbox }: { database: Database; outbox: { wake(): void } },
  session: OpenSession,
  change: (em: EntityManager, tables: AllTables, user: LockedUser) => Promise<Changed>,
): Promise<Changed> {
  const changed = await database.transaction(
    async (em, tables) => change(em, tables, await lockOwner(em, tables, session)),
    session.user.id,
  );
  outbox.wake();
  return changed;
}

/** Ends every session of the user and forgets every device. */
export async function endSessionsOf(tables: AllTables, user: LockedUser): Promise<void> {
  user.endSessions();
  await deleteSessions(tables, user);
}

/**
 * Deletes the sessions of a user in the transaction that raises the epoch. A session that is being opened concurrently
 * gets its row later: the epoch ends it.
 */
export const deleteSessions = (tables: AllTables, { id }: LockedId): Promise<void> => deleteNewest(tables, id);

/**
 * Ends some of the sessions past the limit, oldest first, in the transaction that opens another. Resolves to their
 * token hashes, from which their store keys follow.
 */
export async function endOldestSessions(
  tables: AllTables,
  { id: userId, sessionEpoch }: Pick<Account, 'id' | 'sessionEpoch'>,
): Promise<Pick<Session, 'tokenHash'>[]> {
  const rows = await tables
    .selectFrom('sessions')
    .select('id')
    .where('user_id', '=', userId)
    .where('epoch', '=', sessionEpoch)
    .orderBy('id', 'desc')
    .offset(MAX_SESSIONS)
    .limit(MAX_SESSIONS)
    .execute();
  const ids = rows.map(({ id }) => id);
  if (ids.length === 0) return [];
  const ended = tables.selectFrom('sessions').select('token_hash as tokenHash').where('id', 'in', ids);
  const hashes = await ended.execute();
  await tables.deleteFrom('sessions').where('id', 'in', ids).execute();
  return hashes;
}

/** The new id and token of a rotated session. */
export interface NextSession {
  id: string;
  next: string;
  tokenHash: string;
}

/**
 * Ends all other sessions of a user whose epoch was raised, and gives this one the id `next`. Resolves to false if it
 * has ended.
 */
export async function endOtherSessions(
  tables: AllTables,
  { id: userId, sessionEpoch }: LockedUser,
  { id, next, tokenHash }: NextSession,
): Promise<boolean> {
  const { numUpdatedRows } = await tables
    .updateTable('sessions')
    .set({ id: next, epoch: sessionEpoch, token_hash: tokenHash })
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  await deleteNewest(tables, userId, next);
  return numUpdatedRows === 1n;
}

/** Ends the user's sessions that were opened by one method (for example a provider's name), except `but`. */
export async function deleteSessionsThrough(
  tables: AllTables,
  { id }: LockedId,
  { method, but }: { method: LoginMethod; but: string | undefined },
): Promise<void> {
  await tables
    .deleteFrom('sessions')
    .where('user_id', '=', id)
    .where('method', '=', method)
    .where('id', '!=', but ?? '')
    .execute();
}
