import { Removal, type User } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import { type AllTables, type EntityManager, nowOf } from '../parts/database/contract.ts';
import { keepAdministrator } from './administrators.ts';
import type { Deps } from './deps.ts';
import type { Session } from './sessions.ts';
import { lockOwner } from './sessions-of-user.ts';
import { type Account, accountOf, lockUser } from './users.ts';

const DAY_MS = 24 * 60 * 60_000;

/** Milliseconds since 1970: an account is removed some time after `removedAfter`. */
export interface Deletion {
  deletedAt: number;
  removedAfter: number;
}

/** Restores a deleted account, whose row is locked. */
export async function undoDeletion(
  { record }: Pick<Deps, 'record'>,
  { tables, user, caller }: { tables: AllTables; user: User; caller: Caller },
): Promise<void> {
  user.restore();
  await tables.deleteFrom('removals').where('user_id', '=', user.id).execute();
  await record(tables, user, { kind: 'deletion-undone' }, caller);
}

interface Scope {
  em: EntityManager;
  tables: AllTables;
  user: User;
}

/** Accounts are deleted, and their users have them back while they are not removed yet. `graceDays`: how long they are kept. */
export const createDeletion = (
  {
    database,
    emailChanges,
    outbox,
    record,
    recordUnmailed,
    tokens,
  }: Pick<Deps, 'database' | 'emailChanges' | 'outbox' | 'record' | 'recordUnmailed' | 'tokens'>,
  { graceDays }: { graceDays: number },
) => {
  /** Undefined for an account that is not being deleted. */
  const deletionOf = async (tables: AllTables, { id, deletedAt }: User): Promise<Deletion | undefined> => {
    const removal = tables.selectFrom('removals').select('due_at as removedAfter').where('user_id', '=', id);
    const row = deletedAt == null ? undefined : await removal.executeTakeFirst();
    return row && deletedAt != null ? { deletedAt, removedAfter: Number(row.removedAfter) } : undefined;
  };

  /**
   * Hides a user, whose row is locked, from everybody and ends every session. The rows of the sessions stay, for the removal to
   * find their keys by. The former addresses that can still undo a change are mailed too, and keep their time. The links of
   * mails about new devices go on working, because such a device may be deleting. To an address that was never verified no mail
   * goes. Nothing happens to an account that is being deleted already.
   */
  const requestDeletion = async ({ em, tables, user }: Scope, caller: Caller): Promise<Deletion> => {
    const { id } = user;
    const asked = await deletionOf(tables, user);
    if (asked) return asked;
    const deletedAt = await nowOf(database, tables);
    const undos = await emailChanges.listUndos(tables, id);
    const removedAfter = Math.max(deletedAt + graceDays * DAY_MS, ...undos.map(({ expiresAt }) => expiresAt));
    user.delete(deletedAt);
    await tokens.revoke(tables, id, 'verify-email');
    await tokens.revoke(tables, id, 'reset-password');
    await emailChanges.forgetAsked(tables, id);
    await em.upsert(Removal, { userId: id, email: null, begunAt: null, dueAt: removedAfter });
    const detail = new Date(removedAfter).toISOString();
    const event = { kind: 'deletion-requested', details: { removedAfter: detail } } as const;
    await recordUnmailed(tables, id, event, caller);
    const kind = caller.actor === 'user' ? 'account-deleted' : 'account-closed';
    const addresses = [...(user.emailVerified ? [user.email] : []), ...undos.map(({ former }) => former)];
    for (const email of addresses) await outbox.enqueue(tables, { kind, email, userId: id, detail }, caller);
    return { deletedAt, removedAfter };
  };

  return {
    requestDeletion,

    /**
     * The user's own deletion. UNAUTHENTICATED if the session has ended in the meantime, LAST_ADMINISTRATOR of the last
     * administrator.
     */
    async deleteAccount(session: Session, caller: Caller): Promise<Deletion> {
      const { id } = session.user;
      const deletion = await database.transaction(async (em, tables) => {
        const locked = await lockUser(em, { id });
        if (locked) await keepAdministrator(em, tables, locked);
        const user = await lockOwner(em, tables, session);
        return requestDeletion({ em, tables, user }, caller);
      }, id);
      outbox.wake();
      return deletion;
    },

    /**
     * Restores the account of a user who has given a credential; nothing happens to one that is there. `user` is as it was read
     * before the credential was checked: INVALID_CREDENTIALS if that is void by now, or the account removed.
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
