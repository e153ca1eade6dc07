import { User } from '../../entities/index.ts';
import { ServiceError } from '../errors.ts';
import { isDuplicate } from '../parts/database/index.ts';
import { browserHash } from './browsers.ts';
import { inConstantTime } from './constant-time.ts';
import type { Deps } from './index.ts';
import { hasProvenMethod, proveMethodsOf, removeUnprovenMethods, type UnprovenMethod } from './login-methods.ts';
import { lockUser } from './users.ts';

/** A new account, and the proof that its address is its owner's, or that the account is not. */
export const createRegistration = (deps: Deps) => {
  const { database, deleteUser, passwords, tokens, mailToken, outbox, limits } = deps;

  /** The user whom this token was mailed to. One that was never mailed is a guess, and counted. */
  const recipientOf = async (token: string, clientAddress: string): Promise<string> => {
    const sent = await database.read((tables) => tokens.find(tables, 'verify-email', token));
    if (sent) return sent.userId;
    await limits.enforce('token', clientAddress);
    throw new ServiceError('INVALID_TOKEN');
  };

  return {
    /** Rejects with EMAIL_TAKEN; the unique key decides, also between two that come at once. */
    async register(
      { name, email, password }: { name: string; email: string; password: string },
      { clientAddress, browser }: { clientAddress: string; browser: string },
    ): Promise<User> {
      await limits.enforce('register', clientAddress);
      const passwordHash = await passwords.hash(password);
      const user = User.register({ name, email, passwordHash, browser: browserHash(browser) });
      try {
        await database.transaction(async (em, tables) => {
          await em.insert(user);
          await mailToken(tables, user.id, 'verify-email');
        });
      } catch (error) {
        throw isDuplicate(error) ? new ServiceError('EMAIL_TAKEN') : error;
      }
      outbox.wake();
      return user;
    },

    /** Mails a new link to an address that waits for its verification; tells nobody whether it does. */
    async resendVerification(email: string, clientAddress: string): Promise<void> {
      await limits.enforce('mailRequest', clientAddress);
      await inConstantTime(() =>
        database.transaction(async (em, tables) => {
          const user = await lockUser(em, { email });
          if (!user || user.emailVerified || !(await outbox.hasRoomFor(tables, user.id, 'verify-email'))) return;
          await mailToken(tables, user.id, 'verify-email');
        }),
      );
      outbox.wake();
    },

    /**
     * Verifies the address, proves the login methods that this browser asked for, and answers those that nobody has proven.
     * A token that has verified its account may be repeated, within its life also from the right browser after another one:
     * a second click is no error. Rejects with INVALID_TOKEN.
     */
    async verifyEmail(
      token: string,
      { clientAddress, browser }: { clientAddress: string; browser: string },
    ): Promise<UnprovenMethod[]> {
      const userId = await recipientOf(token, clientAddress);
      return database.transaction(async (em, tables) => {
        const user = await lockUser(em, { id: userId });
        const found = await tokens.find(tables, 'verify-email', token);
        if (!user || !found || (found.expired && !found.used)) throw new ServiceError('INVALID_TOKEN');
        if (found.expired) return [];
        if (!found.used) {
          await tokens.markUsed(tables, found.id);
          user.verifyEmail();
        }
        return proveMethodsOf(em, user, browserHash(browser));
      });
    },

    /**
     * The owner of the inbox says that the account was not asked for, with the token of the verification mail, used or not.
     * Unproven login methods go, and all sessions; an account that has no other is deleted. Rejects with INVALID_TOKEN.
     */
    async disown(token: string, clientAddress: string): Promise<'deleted' | 'secured'> {
      const userId = await recipientOf(token, clientAddress);
      const outcome = await database.transaction(async (em, tables) => {
        const user = await lockUser(em, { id: userId });
        const found = await tokens.find(tables, 'verify-email', token);
        if (!user || !found || found.expired) throw new ServiceError('INVALID_TOKEN');
        if (await hasProvenMethod(em, user)) {
          if (!(await removeUnprovenMethods(deps, { em, tables, user }))) user.endSessions();
          return 'secured';
        }
        await deleteUser(em, tables, user);
        return 'deleted';
      });
      outbox.wake();
      return outcome;
    },
  };
};
