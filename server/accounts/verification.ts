import type { User } from '../../entities/index.ts';
import { ServiceError } from '../errors.ts';
import type { AllTables, EntityManager } from '../parts/database/contract.ts';
import { browserHash } from './browsers.ts';
import type { Deps } from './deps.ts';
import { hasProvenMethod, proveMethodsOf, removeUnprovenMethods, type UnprovenMethod } from './login-methods.ts';
import type { FoundToken } from './one-time-tokens.ts';
import { endSessionsOf } from './session-rows.ts';
import { lockUser } from './users.ts';

interface Scope {
  em: EntityManager;
  tables: AllTables;
  user: User;
  found: FoundToken;
}

/**
 * The mailed token of a new account: with it the owner of the inbox verifies the address, or says that the account was
 * not asked for.
 */
export const createVerification = (deps: Deps) => {
  const { database, deleteUser, tokens, outbox, limits } = deps;

  /**
   * Works under the lock on the user to whom the token was mailed. An unusable token is refused, and counted as a
   * guess; the token is read again under the lock, because it may have been replaced meanwhile.
   */
  const withToken = async <Result>(
    { token, clientAddress }: { token: string; clientAddress: string },
    isUsable: (found: FoundToken) => boolean,
    work: (scope: Scope) => Promise<Result>,
  ): Promise<Result> => {
    const sent = await database.query((tables) => tokens.find(tables, 'verify-email', token));
    if (!sent || !isUsable(sent)) throw await limits.refuseToken(clientAddress);
    return database.transaction(async (em, tables) => {
      const user = await lockUser(em, { id: sent.userId });
      const found = await tokens.find(tables, 'verify-email', token);
      if (!user || !found || !isUsable(found)) throw new ServiceError('INVALID_TOKEN');
      return work({ em, tables, user, found });
    }, sent.userId);
  };

  return {
    /** Mails a new link to an address that waits for its verification; the answer does not reveal whether it does. */
    async resendVerification(email: string, clientAddress: string): Promise<void> {
      await limits.enforce('mailRequest', clientAddress);
      await outbox.request({ kind: 'verify-email', email });
    },

    /**
     * Verifies the address, proves the login methods that this browser asked for, and answers those that stay unproven.
     * A token that has verified its account may be repeated, within its life also from the right browser after another
     * one: a second click is no error. Rejects with INVALID_TOKEN.
     */
    verifyEmail: (
      token: string,
      { clientAddress, browser }: { clientAddress: string; browser: string },
    ): Promise<UnprovenMethod[]> =>
      withToken(
        { token, clientAddress },
        ({ used, expired }) => used || !expired,
        async ({ em, tables, user, found }) => {
          if (found.expired) return [];
          if (!found.used) {
            await tokens.markUsed(tables, found.id);
            user.verifyEmail();
          }
          return proveMethodsOf(em, user, browserHash(browser));
        },
      ),

    /**
     * For the owner of the inbox, who did not ask for the account: takes the token of the verification mail, used or
     * not. Removes unproven login methods and all sessions, and deletes an account that has no other login method.
     * Rejects with INVALID_TOKEN.
     */
    async disown(token: string, clientAddress: string): Promise<'deleted' | 'secured'> {
      const outcome = await withToken(
        { token, clientAddress },
        ({ expired }) => !expired,
        async ({ em, tables, user }) => {
          if (!(await hasProvenMethod(em, user))) {
            await deleteUser(em, tables, user);
            return 'deleted';
          }
          if (!(await removeUnprovenMethods(deps, { em, tables, user }))) {
            await endSessionsOf(tables, user);
          }
          return 'secured';
        },
      );
      outbox.wake();
      return outcome;
    },
  };
};
