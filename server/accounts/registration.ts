import { User } from '../../entities/index.ts';
import { ServiceError } from '../errors.ts';
import { isDuplicate } from '../parts/database/index.ts';
import type { Deps } from './index.ts';
import { lockUser } from './users.ts';

/** A new account, and the proof that its address is its owner's. */
export const createRegistration = ({ database, passwords, tokens, outbox, limits }: Deps) => ({
  /** Rejects with EMAIL_TAKEN; the unique key decides, also between two that come at once. */
  async register(input: { name: string; email: string; password: string }, clientAddress: string): Promise<User> {
    await limits.enforce('register', clientAddress);
    const user = User.register({ ...input, passwordHash: await passwords.hash(input.password) });
    try {
      await database.transaction(async (em, tables) => {
        await em.insert(user);
        await outbox.enqueue(tables, { kind: 'verify-email', email: user.email });
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
    await outbox.request({ kind: 'verify-email', email });
  },

  /** A token that has verified its account may be repeated: a second click is no error. Rejects with INVALID_TOKEN. */
  async verifyEmail(token: string, clientAddress: string): Promise<void> {
    const sent = await database.read((tables) => tokens.find(tables, 'verify-email', token));
    if (!sent || (sent.expired && !sent.used)) throw await limits.refuseToken(clientAddress);
    await database.transaction(async (em, tables) => {
      const user = await lockUser(em, { id: sent.userId });
      const found = await tokens.find(tables, 'verify-email', token);
      if (!user || !found) throw new ServiceError('INVALID_TOKEN');
      if (found.used) return;
      await tokens.markUsed(tables, found.id);
      user.verifyEmail();
    });
  },
});
