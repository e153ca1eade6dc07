/**
 * Password reset by the owner of the inbox. A reset proves the inbox, so an unverified account belongs to that owner
 * from here on, and all unproven login methods are removed. Methods added since a reported login are removed too: a
 * reset is also an answer to that mail. Every device is forgotten except this one, on which the owner can log in while
 * others guess passwords.
 */
import type { Caller } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import type { Limits } from '../../limits/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import { ignored } from '../../telemetry/background.ts';
import { type PasswordPolicy, type Passwords, removeAddedSince, removeUnprovenMethods } from '../credentials/index.ts';
import { type EmailChangeRows, mailKinds, type OneTimeTokens, type Outbox, type RecordEvent } from '../mail/index.ts';
import { type DeviceRequest, deleteSessions, type KnownDevices } from '../sessions/index.ts';
import { type Consents, claimUser, lockUser, nameFromAddress, type Users } from '../users/index.ts';

interface Needs {
  consents: Pick<Consents, 'removeSince'>;
  database: Database;
  emailChanges: EmailChangeRows;
  limits: Limits;
  outbox: Outbox;
  passwords: Passwords;
  policy: Pick<PasswordPolicy, 'estimates' | 'require'>;
  users: Pick<Users, 'findStored'>;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  tokens: OneTimeTokens;
  devices: Pick<KnownDevices, 'mark' | 'reportedLogins'>;
}

/** The token of a mailed link, and the address in the link. */
interface MailedToken {
  token: string;
  email: string;
}

export const createPasswordReset = ({
  consents,
  database,
  devices,
  emailChanges,
  limits,
  outbox,
  passwords,
  policy,
  record,
  tokens,
  users,
}: Needs) => {
  /** A usable token for the address to which it was mailed. Otherwise INVALID_TOKEN, counted as a guess. */
  const findUsable = async ({ token, email }: MailedToken, clientAddress: string) => {
    const sent = await database.query((tables) => tokens.find(tables, ['reset-password'], token));
    if (sent?.email !== email || sent.used || sent.expired) throw await limits.refuseToken(clientAddress);
    return sent;
  };

  return {
    /**
     * Mails a reset link, which replaces the older one, if there is an account; the response does not reveal it.
     * Without `email`, or past the limit, nothing is sent (interface.md section 4: always 200).
     */
    async forgotPassword(email: string | undefined, returnTo: string | undefined, caller: Caller): Promise<void> {
      const isWithinLimit = await limits.allows('mailRequest', caller.clientAddress);
      if (isWithinLimit && email !== undefined) {
        await outbox.request({ kind: 'reset-password', email }, { ...caller, returnTo });
      }
    },

    /** INVALID_TOKEN. Reserves nothing, so a refused password leaves the token usable. */
    async checkResetToken(mailed: MailedToken, clientAddress: string): Promise<void> {
      await findUsable(mailed, clientAddress);
    },

    /**
     * Sets a new password, once per token, and ends every session in the same transaction. Resolves to the new device
     * cookie and the target of the link. INVALID_TOKEN.
     */
    async resetPassword(
      { token, email }: MailedToken,
      password: string,
      request: DeviceRequest,
    ): Promise<{ deviceCookie: string; returnTo: string | null }> {
      const sent = await findUsable({ token, email }, request.clientAddress);
      // A refused password leaves the token usable: without this limit one token could fill the queue of estimates.
      const refund = policy.estimates ? await limits.enforce('token', request.clientAddress) : undefined;
      const ownerOf = async () => (await users.findStored(sent.userId))?.user ?? { email };
      await policy.require(password, 'password', request.clientAddress, ownerOf);
      await refund?.().catch(ignored('refund_attempt'));
      if (!(await database.write((tables) => tokens.reserve(tables, sent.id), sent.id)))
        throw await limits.refuseToken(request.clientAddress);
      let deviceCookie: string;
      try {
        const hash = await passwords.hash(password);
        deviceCookie = await database.transaction(async (em, tables) => {
          const user = await lockUser(em, { id: sent.userId });
          const found = await tokens.find(tables, ['reset-password'], token);
          if (!user || !found || found.used || found.expired) throw new ServiceError('INVALID_TOKEN');
          await tokens.markUsed(tables, found.id);
          await tokens.revoke(tables, user, 'verify-email');
          if (!user.emailVerified) {
            await claimUser({ record }, { tables, user, name: nameFromAddress(user.email), caller: request });
            await record(tables, user, { kind: 'verified' }, request);
          }
          const replaced = { em, tables, user, caller: request, newPassword: hash };
          await removeUnprovenMethods({ consents, tokens, record }, replaced);
          await em.flush();
          const from = Date.now() - mailKinds['new-device'].lifeMs;
          const [login] = await devices.reportedLogins(tables, user.id, from, { most: 1, order: 'asc' });
          if (login) await removeAddedSince({ record }, replaced, login.at);
          await deleteSessions(tables, user);
          await emailChanges.deleteRequested(tables, user);
          await record(tables, user, { kind: 'password-changed', details: { by: 'reset' } }, request);
          return devices.mark(request.deviceCookie, user);
        }, sent.userId);
      } catch (error) {
        // A failed reset, for example at a full queue, can be retried immediately.
        await database.write((tables) => tokens.release(tables, sent.id), sent.id).catch(ignored('release_reset_link'));
        throw error;
      }
      outbox.wake();
      return { deviceCookie, returnTo: sent.returnTo };
    },
  };
};
