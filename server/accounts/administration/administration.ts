/**
 * The acts of administrators, and of operators at the command line, on the accounts of users, including their own. Each
 * act is one transaction under the lock on the user, and one event. An act that changes nothing records nothing. Acts
 * of administrators are rate-limited, acts of operators are not.
 */
import type { Role } from '../../../entities/index.ts';
import type { Caller } from '../../activity/caller.ts';
import type { Activity, NewEvent } from '../../activity/index.ts';
import { ServiceError } from '../../errors.ts';
import type { Limits } from '../../limits/index.ts';
import { type AllTables, type Database, type EntityManager, nowOf } from '../../parts/database/contract.ts';
import { hasOnlyProvenMethods, removeApp } from '../credentials/index.ts';
import type { AccountDeletion, Deletion } from '../lifecycle/index.ts';
import type { Outbox, RecordEvent } from '../mail/index.ts';
import { endAdministrator, endSessionsOf, requireStillAdministrator, type Sessions } from '../sessions/index.ts';
import { type LockedUser, lockUser } from '../users/index.ts';

interface Scope {
  em: EntityManager;
  tables: AllTables;
  user: LockedUser;
  /** Records an event. Mails the user only at a verified address, because any other may be a stranger's. */
  tell(event: NewEvent): Promise<void>;
}

interface Act<Result> {
  /** True if the user can no longer act as an administrator afterwards. */
  takesAway?: boolean;
  act(scope: Scope): Promise<Result>;
}

interface Needs extends Pick<AccountDeletion, 'requestDeletion'> {
  database: Database;
  limits: Pick<Limits, 'enforce' | 'forgetLogins'>;
  outbox: Outbox;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  /** Inserts an event without a mail. */
  recordUnmailed: Activity['record'];
  sessions: Pick<Sessions, 'endingAll'>;
}

/**
 * All reject with NOT_FOUND for an unknown id, FORBIDDEN if the caller is no longer an administrator, and
 * LAST_ADMINISTRATOR if no administrator would be left.
 */
export const createAccountActs = ({
  database,
  limits,
  outbox,
  record,
  recordUnmailed,
  sessions,
  requestDeletion,
}: Needs) => {
  const perform = async <Result>(
    id: string,
    caller: Caller,
    { takesAway = false, act }: Act<Result>,
  ): Promise<Result> => {
    if (caller.actor === 'administrator') await limits.enforce('administration', caller.actorId ?? '');
    const result = await database.transaction(async (em, tables) => {
      const user = await lockUser(em, { id });
      if (!user) throw new ServiceError('NOT_FOUND', { message: 'User not found' });
      if (takesAway) await endAdministrator(em, tables, user);
      await requireStillAdministrator(tables, caller);
      const tell = (event: NewEvent) =>
        user.emailVerified ? record(tables, user, event, caller) : recordUnmailed(tables, id, event, caller);
      return act({ em, tables, user, tell });
    }, id);
    outbox.wake();
    return result;
  };

  return {
    /** Ends every session and refuses logins until `unblockUser`. */
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
     * Resets the user's login limits, on every device, and those of a client address, if given. A pending login without
     * attempts left stays over.
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
     * UNPROVEN_ACCOUNT without a verified email, or with an unproven login method. Ends the sessions of a new
     * administrator. A demoted user stays logged in, without the rights: every request reads the role.
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

    /** Mails a reset link, within the mail limit of the address. */
    sendReset: (id: string, caller: Caller): Promise<void> =>
      perform(id, caller, {
        async act({ tables, user: { email, id: userId }, tell }) {
          await outbox.enqueue(tables, { kind: 'reset-password', email, userId }, caller);
          await tell({ kind: 'reset-sent' });
        },
      }),

    /** Ends every session, immediately on every instance. */
    endSessionsOfUser: (id: string, caller: Caller): Promise<void> =>
      sessions.endingAll(id, () =>
        perform(id, caller, {
          async act({ tables, user, tell }) {
            await endSessionsOf(tables, user);
            await tell({ kind: 'sessions-ended' });
          },
        }),
      ),

    /** Removes the authenticator app and recovery codes of a user who has lost the app. */
    removeSecondFactors: (id: string, caller: Caller): Promise<void> =>
      perform(id, caller, {
        async act({ em, user, tell }) {
          if (await removeApp(em, user)) await tell({ kind: 'second-factors-removed' });
        },
      }),

    /** As the user's own deletion. If the account is already being deleted, resolves to its dates. */
    deleteAccountOf: (id: string, caller: Caller): Promise<Deletion> =>
      perform(id, caller, { takesAway: true, act: (scope) => requestDeletion(scope, caller) }),
  };
};
