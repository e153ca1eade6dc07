import type { Role, User } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import type { NewEvent } from '../activity/index.ts';
import { ServiceError } from '../errors.ts';
import { type AllTables, type EntityManager, nowOf } from '../parts/database/contract.ts';
import { keepAdministrator, requireStillAdministrator } from './administrators.ts';
import type { AccountDeletion, Deletion } from './deletion.ts';
import type { Deps } from './deps.ts';
import { hasOnlyProvenMethods } from './login-methods.ts';
import { endSessionsOf } from './sessions-of-user.ts';
import { removeApp } from './totp.ts';
import { lockUser } from './users.ts';

/** What an act works with: the user's row is locked. */
interface Scope {
  em: EntityManager;
  tables: AllTables;
  user: User;
  /** Records an event, of which the user is told by mail at a verified address only: any other may be a stranger's. */
  tell(event: NewEvent): Promise<void>;
}

interface Act<Result> {
  /** True if the user can no longer act as an administrator afterwards. */
  takesAway?: boolean;
  act(scope: Scope): Promise<Result>;
}

/**
 * What administrators, and operators at the command line, do to the accounts of users, themselves among them. Each act is
 * one transaction under the lock on the user, and one event. All reject with NOT_FOUND for an unknown id, with FORBIDDEN where
 * the caller has ceased to be an administrator, and those that take an administrator away with LAST_ADMINISTRATOR. An act that
 * would change nothing records nothing.
 */
export const createAdministration = (
  {
    database,
    limits,
    outbox,
    record,
    recordUnmailed,
    sessions,
  }: Pick<Deps, 'database' | 'limits' | 'outbox' | 'record' | 'recordUnmailed' | 'sessions'>,
  { requestDeletion }: Pick<AccountDeletion, 'requestDeletion'>,
) => {
  const perform = async <Result>(
    id: string,
    caller: Caller,
    { takesAway = false, act }: Act<Result>,
  ): Promise<Result> => {
    const result = await database.transaction(async (em, tables) => {
      const user = await lockUser(em, { id });
      if (!user) throw new ServiceError('NOT_FOUND', { message: 'User not found' });
      if (takesAway) await keepAdministrator(em, tables, user);
      await requireStillAdministrator(tables, caller);
      const tell = (event: NewEvent) =>
        user.emailVerified ? record(tables, user, event, caller) : recordUnmailed(tables, id, event, caller);
      return act({ em, tables, user, tell });
    }, id);
    outbox.wake();
    return result;
  };

  return {
    /** Ends every session; no login opens another until `unblockUser`. */
    blockUser: (id: string, caller: Caller): Promise<void> =>
      perform(id, caller, {
        takesAway: true,
        async act({ tables, user, tell }) {
          if (user.isBlocked) return;
          user.block(await nowOf(database, tables));
          await endSessionsOf(tables, user);
          await tell({ kind: 'blocked' });
        },
      }),

    unblockUser: (id: string, caller: Caller): Promise<void> =>
      perform(id, caller, {
        async act({ user, tell }) {
          if (!user.isBlocked) return;
          user.unblock();
          await tell({ kind: 'unblocked' });
        },
      }),

    /**
     * Wrong passwords and codes for the account count anew, from whichever device; and so does what a client address has used
     * up, where one is given. A pending login that has had its attempts stays over.
     */
    async unlockUser(id: string, { address }: { address: string | undefined }, caller: Caller): Promise<void> {
      await perform(id, caller, {
        async act({ user, tell }) {
          user.forgetAttempts();
          await tell({ kind: 'unlocked', ...(address !== undefined && { details: { address } }) });
        },
      });
      if (address !== undefined) await limits.forgetLogins(address);
    },

    /**
     * UNPROVEN_ACCOUNT for a new administrator who has not verified the email, or whose account has a way in that another
     * person may have added. A new administrator's sessions end: they were opened for less. Of a user who is one no more they go on, without the
     * rights, as every request reads the role.
     */
    setRole: (id: string, role: Role, caller: Caller): Promise<void> =>
      perform(id, caller, {
        takesAway: role !== 'admin',
        async act({ em, tables, user, tell }) {
          if (user.role === role) return;
          const isProven = user.emailVerified && (await hasOnlyProvenMethods(em, user));
          if (role === 'admin' && !isProven) throw new ServiceError('UNPROVEN_ACCOUNT');
          user.role = role;
          if (role === 'admin') await endSessionsOf(tables, user);
          await tell({ kind: 'role-changed', details: { to: role } });
        },
      }),

    /** Mails the link that sets a new password, within the limit of mails to the address. */
    sendReset: (id: string, caller: Caller): Promise<void> =>
      perform(id, caller, {
        async act({ tables, user: { email, id: userId }, tell }) {
          await outbox.enqueue(tables, { kind: 'reset-password', email, userId }, caller);
          await tell({ kind: 'reset-sent' });
        },
      }),

    /** Ends every session, at once on every instance. */
    endSessionsOfUser: (id: string, caller: Caller): Promise<void> =>
      sessions.endingAll(id, () =>
        perform(id, caller, {
          async act({ tables, user, tell }) {
            await endSessionsOf(tables, user);
            await tell({ kind: 'sessions-ended' });
          },
        }),
      ),

    /** Removes the app of a user who has lost it, and the recovery codes. */
    removeSecondFactors: (id: string, caller: Caller): Promise<void> =>
      perform(id, caller, {
        async act({ em, user, tell }) {
          if (await removeApp(em, user)) await tell({ kind: 'second-factors-removed' });
        },
      }),

    /** The same as the user's own deletion. Of an account that is being deleted already it answers when. */
    deleteAccountOf: (id: string, caller: Caller): Promise<Deletion> =>
      perform(id, caller, { takesAway: true, act: (scope) => requestDeletion(scope, caller) }),
  };
};
