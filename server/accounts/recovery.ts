import { ServiceError } from '../errors.ts';
import { claimAccount } from './claim.ts';
import { inConstantTime } from './constant-time.ts';
import type { Deps } from './index.ts';
import { lockUser } from './users.ts';

/** A way back in for whoever owns the inbox. */
export const createRecovery = ({ database, passwords, tokens, mailToken, outbox, limits }: Deps) => ({
  /** Mails a reset link if there is an account; tells nobody whether there is. A newer link kills the older. */
  async forgotPassword(email: string, clientAddress: string): Promise<void> {
    await limits.enforce('mailRequest', clientAddress);
    await inConstantTime(() =>
      database.transaction(async (em, tables) => {
        const user = await lockUser(em, { email });
        if (!user || !(await outbox.hasRoomFor(tables, user.id, 'reset-password'))) return;
        await mailToken(tables, user.id, 'reset-password');
      }, email),
    );
    outbox.wake();
  },

  /**
   * Sets a new password, once per token, and ends every session in the same transaction. The inbox was proven: an
   * unverified account is its owner's from here on, whoever registered it. Rejects with INVALID_TOKEN.
   */
  async resetPassword(
    { token, email, password }: { token: string; email: string; password: string },
    clientAddress: string,
  ): Promise<void> {
    const sent = await database.query((tables) => tokens.find(tables, 'reset-password', token));
    if (sent?.email !== email) {
      await limits.enforce('token', clientAddress);
      throw new ServiceError('INVALID_TOKEN');
    }
    if (sent.used || sent.expired) throw new ServiceError('INVALID_TOKEN');
    const hash = await passwords.hash(password);
    await database.transaction(async (em, tables) => {
      const user = await lockUser(em, { id: sent.userId });
      const found = await tokens.find(tables, 'reset-password', token);
      if (!user || !found || found.used || found.expired) throw new ServiceError('INVALID_TOKEN');
      await tokens.markUsed(tables, found.id);
      if (!user.emailVerified) await claimAccount(tables, tokens, user, 'email');
      user.changePassword(hash);
      await outbox.enqueue(tables, { kind: 'password-changed', userId: user.id });
    }, sent.userId);
    outbox.wake();
  },
});
