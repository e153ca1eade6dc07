import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import type { Deps } from './deps.ts';
import type { DeviceRequest, KnownDevices } from './known-devices.ts';
import { removeUnprovenMethods } from './login-methods.ts';
import { deleteSessions } from './sessions-of-user.ts';
import { nameFromAddress } from './text-rules.ts';
import { lockUser } from './users.ts';

/** Password reset by the owner of the inbox. */
export const createRecovery = (
  { consents, database, emailChanges, passwords, tokens, outbox, limits, record }: Deps,
  { devices }: { devices: Pick<KnownDevices, 'mark'> },
) => ({
  /** Mails a reset link if there is an account; the answer does not reveal it. A newer link replaces the older. */
  async forgotPassword(email: string, caller: Caller): Promise<void> {
    await limits.enforce('mailRequest', caller.clientAddress);
    await outbox.request({ kind: 'reset-password', email }, caller);
  },

  /**
   * Sets a new password, once per token, and ends every session in the same transaction. The reset proves the inbox:
   * all unproven login methods are removed, and an unverified account belongs to the owner of the inbox from here on.
   * Every device is forgotten but this one: while its account is guessed at from elsewhere, the owner of the inbox can log in
   * here. Answers the new value of the device's cookie. Rejects with INVALID_TOKEN.
   */
  async resetPassword(
    { token, email }: { token: string; email: string },
    password: string,
    request: DeviceRequest,
  ): Promise<string> {
    const sent = await database.query((tables) => tokens.find(tables, ['reset-password'], token));
    const isUsable = sent?.email === email && !sent.used && !sent.expired;
    const isReserved = isUsable && (await database.write((tables) => tokens.reserve(tables, sent.id)));
    if (!isReserved) throw await limits.refuseToken(request.clientAddress);
    let deviceCookie: string;
    try {
      const hash = await passwords.hash(password);
      deviceCookie = await database.transaction(async (em, tables) => {
        const user = await lockUser(em, { id: sent.userId });
        const found = await tokens.find(tables, ['reset-password'], token);
        if (!user || !found || found.used || found.expired) throw new ServiceError('INVALID_TOKEN');
        await tokens.markUsed(tables, found.id);
        await tokens.revoke(tables, user.id, 'verify-email');
        if (!user.emailVerified) user.claim(nameFromAddress(user.email));
        const replaced = { em, tables, user, caller: request, newPassword: hash };
        await removeUnprovenMethods({ consents, tokens, record }, replaced);
        await deleteSessions(tables, user.id);
        await emailChanges.forgetAsked(tables, user.id);
        user.forgetDevices();
        await record(tables, user, { kind: 'password-changed', details: { by: 'reset' } }, request);
        return devices.mark(request.deviceCookie, user);
      }, sent.userId);
    } catch (error) {
      // A reset that failed, at a full queue for example, can be retried at once; if the release fails too, the
      // reservation expires.
      await database.write((tables) => tokens.release(tables, sent.id)).catch(() => undefined);
      throw error;
    }
    outbox.wake();
    return deviceCookie;
  },
});
