import { User } from '../../entities/index.ts';
import { ServiceError } from '../errors.ts';
import { isDuplicate } from '../parts/database/index.ts';
import { inConstantTime } from './constant-time.ts';
import type { Deps } from './index.ts';
import { lockUser } from './users.ts';

/** A new account, and the proof that its address is its owner's. */
export const createRegistration = ({ database, passwords, tokens, mailToken, outbox, limits }: Deps) => ({
  /** Rejects with EMAIL_TAKEN; the unique key decides, also between two that come at once. */
  async register(input: { name: string; email: string; password: string }, clientAddress: string): Promise<User> {
    await limits.enforce('register', clientAddress);
    const user = User.register({ ...input, passwordHash: await passwords.hash(input.password) });
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
      }, email),
    );
    outbox.wake();
  },

  /** A token that has verified its account may be repeated: a second click is no error. Rejects with INVALID_TOKEN. */
  async verifyEmail(token: string, clientAddress: string): Promise<void> {
    const sent = await database.query((tables) => tokens.find(tables, 'verify-email', token));
    if (!sent) {
      await limits.enforce('token', clientAddress);
      throw new ServiceError('INVALID_TOKEN');
    }
    await database.transaction(async (em, tables) => {
      const user = await lockUser(em, { id: sent.userId });
      const found = await tokens.find(tables, 'verify-email', token);
      if (!user || !found || (found.expired && !found.used)) throw new ServiceError('INVALID_TOKEN');
      if (found.used) return;
      await tokens.markUsed(tables, found.id);
      user.verifyEmail();
    }, sent.userId);
  },
});
