import type { User } from '../../entities/index.ts';
import { ServiceError } from '../errors.ts';
import type { AllTables, Database, EntityManager, ReadTables } from '../parts/database/contract.ts';
import { type Account, lockUser } from './users.ts';

/** The sessions of a user, in the transaction that holds the lock on the user. */

/** Whether a session of the user is still there. */
export async function isSessionOpen(
  tables: ReadTables,
  { userId, sessionId }: { userId: string; sessionId: string | undefined },
): Promise<boolean> {
  if (sessionId === undefined) return false;
  const session = tables.selectFrom('sessions').select('id').where('id', '=', sessionId).where('user_id', '=', userId);
  return (await session.executeTakeFirst()) !== undefined;
}

/** A session as it was validated. */
interface OpenSession {
  id: string | undefined;
  user: Account;
}

/** Locks the user of a session, for a change in it. UNAUTHENTICATED if it has ended since it was validated. */
export async function lockOwner(
  em: EntityManager,
  tables: AllTables,
  { id: sessionId, user: { id, sessionEpoch } }: OpenSession,
): Promise<User> {
  const user = await lockUser(em, { id });
  const isOpen = user?.sessionEpoch === sessionEpoch && (await isSessionOpen(tables, { userId: id, sessionId }));
  if (!user || !isOpen) throw new ServiceError('UNAUTHENTICATED');
  return user;
}

/** A change by the user of a session, of which a mail tells. UNAUTHENTICATED if the session has ended since it was validated. */
export async function changeAsOwner<Changed>(
  { database, outbox }: { database: Database; outbox: { wake(): void } },
  session: OpenSession,
  change: (em: EntityManager, tables: AllTables, user: User) => Promise<Changed>,
): Promise<Changed> {
  const changed = await database.transaction(
    async (em, tables) => change(em, tables, await lockOwner(em, tables, session)),
    session.user.id,
  );
  outbox.wake();
  return changed;
}

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

/** A session that goes on under another id and another token. */
export interface NextSession {
  id: string;
  next: string;
  tokenHash: string;
}

/**
 * The same for all but one session of a locked user whose epoch was raised: that one goes on under the id `next`. Answers
 * false where it has ended.
 */
export async function endOtherSessions(
  tables: AllTables,
  { id: userId, sessionEpoch }: User,
  { id, next, tokenHash }: NextSession,
): Promise<boolean> {
  const { numUpdatedRows } = await tables
    .updateTable('sessions')
    .set({ id: next, epoch: sessionEpoch, token_hash: tokenHash })
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  await tables.deleteFrom('sessions').where('user_id', '=', userId).where('id', '<>', next).execute();
  return numUpdatedRows === 1n;
}

/** Ends the sessions of a user, whose row is locked, that were opened by a method, such as the name of a provider, but for one. */
export async function deleteSessionsThrough(
  tables: AllTables,
  { userId, method, but }: { userId: string; method: string; but: string | undefined },
): Promise<void> {
  await tables
    .deleteFrom('sessions')
    .where('user_id', '=', userId)
    .where('method', '=', method)
    .$if(but !== undefined, (sessions) => sessions.where('id', '!=', but as string))
    .execute();
}
