/**
 * A change of address is requested in a session. It is confirmed by a link to the new address, in a session of the same
 * account and in the same browser, and undone by a link to the old address. Without these checks an attacker could
 * change the address to a stranger's: one click of the stranger would take over the account together with the
 * attacker's credentials. The browser is checked because a sibling host may have planted the session in it.
 */
import type { Caller } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import { hashOf } from '../../lib/random-token.ts';
import type { Limits } from '../../limits/index.ts';
import { type AllTables, type Database, type EntityManager, isDuplicate } from '../../parts/database/contract.ts';
import {
  isAddedSince,
  type ListedMethod,
  methodList,
  removeConsentsSince,
  removeMethods,
} from '../credentials/index.ts';
import type { EmailChangeRows, OneTimeTokens, Outbox, RecordEvent } from '../mail/index.ts';
import { changeAsOwner, endSessionsOf, type Session } from '../sessions/index.ts';
import {
  type Account,
  type Consents,
  type DeleteUser,
  type LockedUser,
  lockUser,
  type RegistrationPolicy,
} from '../users/index.ts';
import { undoDeletion } from './deletion.ts';

const ofOtherDomain = {
  details: { email: { message: 'Addresses at this domain are not allowed', rule: 'domain_not_allowed' } },
};
/**
 * Undoing a change also removes login methods added this long before it: the attacker had logged in before the change.
 */
const LOOK_BACK_MS = 7 * 24 * 60 * 60_000;
const unchanged = { details: { email: { message: 'This is already your email', rule: 'unchanged' } } };
const elsewhere = { message: 'Please open the link in the browser in which you requested the change' };

/** The request of a logged-in user. `browser` is the id of the browser. */
interface Request {
  caller: Caller;
  browser: string;
}

interface Needs {
  consents: Pick<Consents, 'removeSince'>;
  database: Database;
  deleteUser: DeleteUser;
  emailChanges: EmailChangeRows;
  limits: Limits;
  outbox: Outbox;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  registration: RegistrationPolicy;
  tokens: OneTimeTokens;
}

/** Changes of address, their confirmation and undo. */
export const createEmailChange = (needs: Needs) => {
  const { database, deleteUser, emailChanges, limits, outbox, record, registration, tokens } = needs;

  /**
   * Sets an address after its inbox was proven. EMAIL_TAKEN if another user has proven it; an unverified account with it is
   * removed, unless it is blocked. The lock or the unique key decides between two users.
   */
  const moveTo = async (em: EntityManager, tables: AllTables, user: LockedUser, email: string): Promise<void> => {
    const holder = await lockUser(em, { email });
    if (holder && holder.id !== user.id) {
      if (holder.emailVerified || holder.isBlocked) throw new ServiceError('EMAIL_TAKEN');
      await deleteUser(em, tables, holder);
      await em.flush();
    }
    if (await emailChanges.isReserved(tables, email, user.id)) throw new ServiceError('EMAIL_TAKEN');
    user.changeEmail(email);
    user.verifyEmail();
    await em.flush();
    // Invalidates links mailed to the former address.
    await tokens.revokeAll(tables, user);
  };

  const takenIfDuplicate = (error: unknown): never => {
    throw isDuplicate(error) ? new ServiceError('EMAIL_TAKEN') : error;
  };

  return {
    /**
     * Mails a confirmation link. The response does not reveal whether the address is another user's: the work is the
     * same, and the worker mails that owner instead. UNAUTHENTICATED if the session has ended since validation.
     */
    async changeEmail(session: Session, email: string, { caller, browser }: Request): Promise<void> {
      const requireOther = (user: Pick<Account, 'email'>) => {
        if (email === user.email) throw new ServiceError('VALIDATION_FAILED', unchanged);
      };
      requireOther(session.user);
      if (!registration.allowsChangeTo(email)) throw new ServiceError('VALIDATION_FAILED', ofOtherDomain);
      await limits.enforce('mailRequest', caller.clientAddress);
      await changeAsOwner(needs, session, async (_em, tables, user) => {
        requireOther(user);
        await record(tables, user, { kind: 'email-change-requested', details: { email } }, caller);
        const mail = { kind: 'confirm-email', email, userId: user.id, detail: hashOf(browser) } as const;
        await outbox.requestIn(tables, mail, caller);
      });
      outbox.wakeForRequest();
    },

    /**
     * Confirms the change once; a repeated token is no error. Mails an undo link to the former address. INVALID_TOKEN,
     * also for another user's; EMAIL_TAKEN; FORBIDDEN in another browser, which does not use up the token.
     */
    async confirmEmail(session: Session, token: string, { caller, browser }: Request): Promise<void> {
      const { id } = session.user;
      const sent = await database.query((tables) => emailChanges.find(tables, 'confirm-email', token));
      if (sent?.userId !== id || sent.expired) throw await limits.refuseToken(caller.clientAddress);
      if (sent.browser !== hashOf(browser)) throw new ServiceError('FORBIDDEN', elsewhere);
      await changeAsOwner(needs, session, async (em, tables, user) => {
        const change = await emailChanges.find(tables, 'confirm-email', token);
        if (!change || change.expired) throw new ServiceError('INVALID_TOKEN');
        const { email: from } = user;
        const { id: changeId, email: to } = change;
        if (change.confirmedAt !== null) {
          if (from !== to) throw new ServiceError('INVALID_TOKEN');
          return;
        }
        await moveTo(em, tables, user, to);
        await emailChanges.confirm(tables, user, changeId, from);
        await record(tables, user, { kind: 'email-changed', details: { from, to } }, caller);
        const notice = { kind: 'email-changed', email: from, userId: id, detail: to, tokenId: changeId } as const;
        await outbox.enqueue(tables, notice, caller);
      }).catch(takenIfDuplicate);
    },

    /**
     * Restores a former address; ends all sessions and mailed links; removes later changes, a deletion, the password,
     * and methods added since LOOK_BACK_MS before the request. Resolves to kept methods. INVALID_TOKEN; EMAIL_TAKEN.
     */
    async undoEmailChange(token: string, caller: Caller): Promise<{ kept: ListedMethod[] }> {
      const sent = await database.query((tables) => emailChanges.find(tables, 'email-changed', token));
      if (!sent || sent.expired) throw await limits.refuseToken(caller.clientAddress);
      const undone = await database
        .transaction(async (em, tables) => {
          const user = await lockUser(em, { id: sent.userId });
          const change = await emailChanges.find(tables, 'email-changed', token);
          if (!user || !change?.former || change.expired) throw new ServiceError('INVALID_TOKEN');
          const { email: from } = user;
          const { former: to } = change;
          await moveTo(em, tables, user, to);
          if (user.deletedAt && !user.isBlocked && user.deletedAt >= Number(change.confirmedAt)) {
            await undoDeletion(needs, { tables, user, caller });
          }
          await emailChanges.forgetSince(tables, user, change);
          const since = change.createdAt - LOOK_BACK_MS;
          await removeConsentsSince(needs, { em, tables, user }, since);
          const { removed, kept } = await removeMethods(em, user, {
            password: true,
            added: (added) => !added.proven || isAddedSince(added, since),
          });
          await endSessionsOf(tables, user);
          user.forgetLanguages(caller.language());
          const details = { from, to, ...(removed.length > 0 && { methods: methodList(removed) }) };
          await record(tables, user, { kind: 'email-change-undone', details }, caller);
          for (const email of new Set([to, from])) {
            await outbox.enqueue(tables, { kind: 'email-change-undone', email, userId: user.id, detail: to }, caller);
          }
          return { kept };
        }, sent.userId)
        .catch(takenIfDuplicate);
      outbox.wake();
      return undone;
    },
  };
};
