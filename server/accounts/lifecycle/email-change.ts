import type { User } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import { type AllTables, type EntityManager, isDuplicate } from '../parts/database/contract.ts';
import { undoDeletion } from './deletion.ts';
import type { Deps } from './deps.ts';
import type { KnownDevices } from './known-devices.ts';
import { isAddedSince, methodsDetail, removeConsentsSince, removeMethods } from './login-methods.ts';
import { mailKinds } from './mail-kinds.ts';
import type { Session } from './sessions.ts';
import { changeAsOwner, endSessionsOf } from './sessions-of-user.ts';
import { lockUser } from './users.ts';

const ofOtherDomain = {
  details: { email: { message: 'Accounts here cannot have an address of this domain', rule: 'domain_not_allowed' } },
};
const unchanged = { details: { email: { message: 'This is your email already', rule: 'unchanged' } } };

/**
 * The change of a user's address: asked for in a session, confirmed by a link to the new address in a session of the same
 * account, and undone by a link to the old one. Without the session a stranger, to whose address an attacker changes an
 * account, could make that account the stranger's by one click, with all that the attacker can log in by.
 */
export const createEmailChange = (deps: Deps, devices: Pick<KnownDevices, 'reportedLogins'>) => {
  const { database, deleteUser, emailChanges, limits, outbox, record, registration, tokens } = deps;

  /**
   * Gives the user an address whose inbox was proven. Rejects with EMAIL_TAKEN; an account that never proved it has no
   * right to it, and goes, unless it is blocked. Of two users the lock or the unique key decides.
   */
  const moveTo = async (em: EntityManager, tables: AllTables, user: User, email: string): Promise<void> => {
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
    // Links mailed to the former address must not work any more.
    await tokens.revokeAll(tables, user.id);
  };

  const takenIfDuplicate = (error: unknown): never => {
    throw isDuplicate(error) ? new ServiceError('EMAIL_TAKEN') : error;
  };

  return {
    /**
     * Mails a link to an address, which becomes the user's once it is confirmed. The answer does not reveal whether the
     * address is another's, whose owner is mailed instead: the work is the same, and the worker finds out.
     */
    async changeEmail({ user }: Session, email: string, caller: Caller): Promise<void> {
      if (email === user.email) throw new ServiceError('VALIDATION_FAILED', unchanged);
      if (!registration.allowsChangeTo(email)) throw new ServiceError('VALIDATION_FAILED', ofOtherDomain);
      await limits.enforce('mailRequest', caller.clientAddress);
      await outbox.request({ kind: 'confirm-email', email, userId: user.id }, caller, (tables) =>
        record(tables, user, { kind: 'email-change-requested', details: { email } }, caller),
      );
    },

    /**
     * Makes the change, once, in a session of its user; a repeated token is no error. The former address is mailed a link
     * that undoes it. Rejects with INVALID_TOKEN, also for the token of another user, and with EMAIL_TAKEN if the address
     * has become another's since.
     */
    async confirmEmail(session: Session, token: string, caller: Caller): Promise<void> {
      const { id } = session.user;
      const sent = await database.query((tables) => emailChanges.find(tables, 'confirm-email', token));
      if (sent?.userId !== id || sent.expired) throw await limits.refuseToken(caller.clientAddress);
      await changeAsOwner(deps, session, async (em, tables, user) => {
        const change = await emailChanges.find(tables, 'confirm-email', token);
        if (!change || change.expired) throw new ServiceError('INVALID_TOKEN');
        const { email: from } = user;
        const { id: changeId, email: to } = change;
        if (change.confirmedAt !== null) {
          if (from !== to) throw new ServiceError('INVALID_TOKEN');
          return;
        }
        await moveTo(em, tables, user, to);
        await emailChanges.confirm(tables, changeId, from);
        await record(tables, user, { kind: 'email-changed', details: { from, to } }, caller);
        const told = { kind: 'email-changed', email: from, userId: id, detail: to, tokenId: changeId } as const;
        await outbox.enqueue(tables, told, caller);
      }).catch(takenIfDuplicate);
    },

    /**
     * Puts a former address back, whatever the address has become since. All sessions and mailed links end, later changes
     * are forgotten, and so are the password and what was added since, or since a login that the user was told of: another
     * person may know it, or have added it. A deletion since is undone. Rejects with
     * INVALID_TOKEN, and with EMAIL_TAKEN where another user has the address after all.
     */
    async undoEmailChange(token: string, caller: Caller): Promise<void> {
      const sent = await database.query((tables) => emailChanges.find(tables, 'email-changed', token));
      if (!sent || sent.expired) throw await limits.refuseToken(caller.clientAddress);
      await database
        .transaction(async (em, tables) => {
          const user = await lockUser(em, { id: sent.userId });
          const change = await emailChanges.find(tables, 'email-changed', token);
          if (!user || !change?.former || change.expired) throw new ServiceError('INVALID_TOKEN');
          const { email: from } = user;
          const { former: to } = change;
          await moveTo(em, tables, user, to);
          if (user.deletedAt && !user.isBlocked && user.deletedAt >= Number(change.confirmedAt)) {
            await undoDeletion(deps, { tables, user, caller });
          }
          await emailChanges.forgetSince(tables, change);
          const logins = await devices.reportedLogins(tables, user.id, mailKinds['new-device'].lifeMs);
          const since = Math.min(change.createdAt, ...logins.map(({ at }) => at));
          await removeConsentsSince(deps, { em, tables, user }, since);
          const methods = await removeMethods(em, user, {
            password: true,
            added: (added) => !added.proven || isAddedSince(added, since),
          });
          await endSessionsOf(tables, user);
          user.forgetDevices();
          user.forgetLanguages(caller.language());
          const details = { from, to, ...methodsDetail(methods) };
          await record(tables, user, { kind: 'email-change-undone', details }, caller);
          for (const email of new Set([to, from])) {
            await outbox.enqueue(tables, { kind: 'email-change-undone', email, userId: user.id, detail: to }, caller);
          }
        }, sent.userId)
        .catch(takenIfDuplicate);
      outbox.wake();
    },
  };
};
