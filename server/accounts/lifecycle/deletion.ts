/**
 * A deleted account can be restored until it is removed. The grace period is at least as long as the undo and “this was
 * not me” links are valid: an attacker may have requested the deletion, and the owner must be able to undo it.
 */
import { Removal, type User } from '../../../entities/index.ts';
import type { Caller } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import { type AllTables, type Database, type EntityManager, nowOf } from '../../parts/database/contract.ts';
import { type EmailChangeRows, mailKinds, type OneTimeTokens, type Outbox, type RecordEvent } from '../mail/index.ts';
import { endAdministrator, lockOwner, type Session } from '../sessions/index.ts';
import { type Account, accountOf, type LockedUser, lockUser } from '../users/index.ts';

const DAY_MS = 24 * 60 * 60_000;

/** Milliseconds since 1970. The account is removed some time after `removedAfter`. */
export interface Deletion {
  deletedAt: number;
  removedAfter: number;
}

/** Restores a deleted account. */
export async function undoDeletion(
  { record }: { record: RecordEvent },
  { tables, user, caller }: { tables: AllTables; user: LockedUser; caller: Caller },
): Promise<void> {
  user.restore();
  await tables.deleteFrom('removals').where('user_id', '=', user.id).execute();
  await record(tables, user, { kind: 'deletion-undone' }, caller);
}

interface Scope {
  em: EntityManager;
  tables: AllTables;
  user: LockedUser;
}

interface Needs {
  database: Database;
  emailChanges: EmailChangeRows;
  outbox: Outbox;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  tokens: OneTimeTokens;
  /** The grace period of a deleted account. */
  graceDays: number;
}

/** Deletes and restores accounts. */
export const createDeletion = ({ database, emailChanges, outbox, record, tokens, graceDays }: Needs) => {
  const graceMs = Math.max(graceDays * DAY_MS, mailKinds['email-changed'].lifeMs, mailKinds['new-device'].lifeMs);

  /** Undefined if the account is not being deleted. */
  const deletionOf = async (tables: AllTables, { id, deletedAt }: User): Promise<Deletion | undefined> => {
    const removal = tables.selectFrom('removals').select('due_at as removedAfter').where('user_id', '=', id);
    const row = deletedAt == null ? undefined : await removal.executeTakeFirst();
    return row && deletedAt != null ? { deletedAt, removedAfter: Number(row.removedAfter) } : undefined;
  };

  /**
   * Hides the user and ends every session; session rows stay, because the removal finds keys by them. Mails the
   * verified address, and former addresses that can undo a change. No-op if already being deleted.
   */
  const requestDeletion = async ({ em, tables, user }: Scope, caller: Caller): Promise<Deletion> => {
    const { id } = user;
    const existing = await deletionOf(tables, user);
    if (existing) return existing;
    const deletedAt = await nowOf(database, tables);
    const removedAfter = deletedAt + graceMs;
    user.delete(deletedAt);
    await tokens.revoke(tables, user, 'verify-email');
    await tokens.revoke(tables, user, 'reset-password');
    await emailChanges.deleteRequested(tables, user);
    await em.upsert(Removal, { userId: id, email: null, begunAt: null, dueAt: removedAfter });
    const detail = new Date(removedAfter).toISOString();
    const event = { kind: 'deletion-requested', details: { removedAfter: detail } } as const;
    await record(tables, user, event, caller);
    const kind = caller.actor === 'user' ? 'account-deleted' : 'account-closed';
    const addresses = [...(user.emailVerified ? [user.email] : []), ...(await emailChanges.listFormer(tables, id))];
    for (const email of addresses) await outbox.enqueue(tables, { kind, email, userId: id, detail }, caller);
    return { deletedAt, removedAfter };
  };

  return {
    /** How long a deleted account can be restored: at least as long as links work that undo another person's acts. */
    restorableDays: graceMs / DAY_MS,

    requestDeletion,

    /**
     * The user's own deletion. UNAUTHENTICATED if the session has ended since; LAST_ADMINISTRATOR for the last
     * administrator.
     */
    async deleteAccount(session: Session, caller: Caller): Promise<Deletion> {
      const { id } = session.user;
      const deletion = await database.transaction(async (em, tables) => {
        const locked = await lockUser(em, { id });
        if (locked) await endAdministrator(em, tables, locked);
        const user = await lockOwner(em, tables, session);
        return requestDeletion({ em, tables, user }, caller);
      }, id);
      outbox.wake();
      return deletion;
    },

    /**
     * Restores the account of a user who has given a credential; no-op for an existing account. Takes the account as
     * read before the check. INVALID_CREDENTIALS if its session epoch has changed or it was removed.
     */
    restoreAccount: ({ id, sessionEpoch }: Account, caller: Caller): Promise<Account> =>
      database.transaction(async (em, tables) => {
        const user = await lockUser(em, { id });
        if (user?.sessionEpoch !== sessionEpoch) throw new ServiceError('INVALID_CREDENTIALS');
        if (user.isDeleted) await undoDeletion({ record }, { tables, user, caller });
        return accountOf(user);
      }, id),
  };
};

export type AccountDeletion = ReturnType<typeof createDeletion>;
