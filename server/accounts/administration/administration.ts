/**
 * The acts of administrators, and of operators at the command line, on the accounts of users, including their own. Each
 * act is one transaction under the lock on the user, and one event. An act that changes nothing records nothing. Acts
 * of administrators are rate-limited, acts of operators are not.
 */
import type { Role } from '../../../entities/index.ts';
import type { Caller } from '../../activity/caller.ts';
import type { Activity, NewEvent } from '../../activity/index.ts';
import type { Config } from '../../config/index.ts';
import { ServiceError } from '../../errors.ts';
import type { Limits } from '../../limits/index.ts';
import { type AllTables, type Database, type EntityManager, nowOf } from '../../parts/database/contract.ts';
import type { FieldValues } from '../../shared/profile-fields.ts';
import { hasOnlyProvenMethods, removeApp } from '../credentials/index.ts';
import type { AccountDeletion, Deletion } from '../lifecycle/index.ts';
import type { Outbox, RecordEvent } from '../mail/index.ts';
import {
  endAdministrator,
  endSessionsOf,
  isSessionOpen,
  requireStillAdministrator,
  type Session,
  type Sessions,
} from '../sessions/index.ts';
import { type Account, accountOf, type LockedUser, lockUser, type Users } from '../users/index.ts';

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
  sessions: Pick<Sessions, 'authentication' | 'endingAll' | 'impersonate'>;
  impersonation: Config['impersonation'];
  changeFieldsOf: Users['changeFieldsOf'];
}

/** A session in which an administrator acts for `user`. */
interface Impersonation {
  user: Account;
  token: string;
  expiresAt: number;
}

const forbidden = (rule: string, message: string) =>
  new ServiceError('FORBIDDEN', { message, details: { user: { message, rule } } });

/** States of a user in which nobody can act for the user: those in which the user cannot log in, and equal rights. */
function requireActable(user: LockedUser, actorId: string | undefined): void {
  if (user.id === actorId || user.role === 'admin')
    throw forbidden('is_administrator', 'Nobody can act for an administrator');
  if (user.isBlocked) throw new ServiceError('ACCOUNT_BLOCKED');
  if (user.isDeleted) throw new ServiceError('ACCOUNT_DELETED');
  if (!user.emailVerified) throw new ServiceError('EMAIL_NOT_VERIFIED');
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
  impersonation,
  changeFieldsOf,
}: Needs) => {
  const perform = async <Result>(
    id: string,
    caller: Caller,
    { takesAway = false, act }: Act<Result>,
  ): Promise<Result> => {
    if (caller.actor === 'administrator') await limits.enforce('administration', caller.actorId);
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
    /** Changes the operator's own fields of the user, without a mail. */
    setFields: (id: string, change: FieldValues, caller: Caller): Promise<Account> =>
      perform(id, caller, { act: ({ tables, user }) => changeFieldsOf(tables, user, change, caller) }),

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
          if (role === 'admin' && !(user.emailVerified && (await hasOnlyProvenMethods(em, user))))
            throw new ServiceError('UNPROVEN_ACCOUNT');
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

    /**
     * Opens a session of the user for the administrator of `own`, who must have given a second factor: FORBIDDEN. Also
     * FORBIDDEN for administrators; ACCOUNT_BLOCKED, ACCOUNT_DELETED, EMAIL_NOT_VERIFIED. NOT_FOUND unless it is on.
     */
    async impersonate(id: string, own: Session & { token: string }, caller: Caller): Promise<Impersonation> {
      if (impersonation === 'off') throw new ServiceError('NOT_FOUND');
      const { id: sessionId, user: administrator, token } = own;
      const authentication = sessionId === undefined ? undefined : await sessions.authentication(sessionId);
      if (sessionId === undefined || !authentication) throw new ServiceError('UNAUTHENTICATED');
      if (!authentication.isMultiFactor)
        throw forbidden('second_factor', 'Acting for users requires a second factor or a passkey');
      return perform(id, caller, {
        async act({ tables, user, tell }) {
          requireActable(user, caller.actorId);
          if (!(await isSessionOpen(tables, { userId: administrator.id, sessionId })))
            throw new ServiceError('UNAUTHENTICATED');
          const by = { id: sessionId, user: administrator, token };
          const { id: session, ...opened } = await sessions.impersonate(tables, user, by);
          const event = { kind: 'impersonated', details: { session } } as const;
          await (impersonation === 'quiet' ? recordUnmailed(tables, id, event, caller) : tell(event));
          return { user: accountOf(user), ...opened };
        },
      });
    },

    /** As the user's own deletion. If the account is already being deleted, resolves to its dates. */
    deleteAccountOf: (id: string, caller: Caller): Promise<Deletion> =>
      perform(id, caller, { takesAway: true, act: (scope) => requestDeletion(scope, caller) }),
  };
};
