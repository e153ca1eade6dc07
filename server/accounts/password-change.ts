import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import type { Deps } from './deps.ts';
import { hasOnlyProvenMethods } from './login-methods.ts';
import type { PasswordCheck } from './password-check.ts';
import { wrongPassword } from './reauthentication.ts';
import type { OwnSession, SessionCookie } from './sessions.ts';
import { endOtherSessions } from './sessions-of-user.ts';
import { lockUser } from './users.ts';

const currentIsRequired = {
  details: { currentPassword: { message: 'Please enter your current password', rule: 'required' } },
};

/** A new password, set by a logged-in user. */
export const createPasswordChange = (
  { database, emailChanges, limits, outbox, passwords, record, sessions, tokens, users }: Deps,
  { checkPassword }: { checkPassword: PasswordCheck },
) => {
  /** Every attempt counts as a login does: each costs a hash at least. */
  const authorize = async ({ session }: OwnSession, current: string | undefined, caller: Caller): Promise<void> => {
    const { email } = session.user;
    if (current !== undefined) {
      const { user } = await checkPassword({ email, password: current }, { ...caller, session }, wrongPassword);
      // The address may have become another's since the session was read.
      if (user.id !== session.user.id) throw new ServiceError('UNAUTHENTICATED');
      return;
    }
    const found = await users.findCredential(email);
    if (found?.passwordHash) throw new ServiceError('VALIDATION_FAILED', currentIsRequired);
    const isRecent = session.id !== undefined && (await sessions.isRecent(session.id));
    if (!isRecent) throw new ServiceError('REAUTHENTICATION_REQUIRED');
    await limits.enforce('login', caller.clientAddress);
  };

  return {
    /**
     * Sets a new password. Who has one must give it (INVALID_CREDENTIALS, as at a login); the first one takes a session
     * in which a credential was given lately (REAUTHENTICATION_REQUIRED). All other sessions of the user end, and so do
     * mailed links that set a password; this session goes on under the token that is answered. UNAUTHENTICATED if it has
     * ended meanwhile, by another change too.
     */
    async changePassword(
      own: OwnSession,
      { currentPassword, newPassword }: { currentPassword: string | undefined; newPassword: string },
      caller: Caller,
    ): Promise<SessionCookie> {
      await authorize(own, currentPassword, caller);
      const hash = await passwords.hash(newPassword);
      const { session, token } = own;
      const { id: userId, sessionEpoch } = session.user;
      const login = await sessions.goOn(session, token, (ids) =>
        database.transaction(async (em, tables) => {
          const user = await lockUser(em, { id: userId });
          if (user?.sessionEpoch !== sessionEpoch) throw new ServiceError('UNAUTHENTICATED');
          // A first password is as much the owner's as the login methods of the session that sets it.
          if (!user.hasPassword && (await hasOnlyProvenMethods(em, user))) user.provePassword();
          user.changePassword(hash);
          if (!(await endOtherSessions(tables, user, ids))) throw new ServiceError('UNAUTHENTICATED');
          await tokens.revoke(tables, user.id, 'reset-password');
          await emailChanges.forgetAsked(tables, user.id);
          await record(tables, user, { kind: 'password-changed', details: { by: 'user' } }, caller);
        }, userId),
      );
      outbox.wake();
      return login;
    },
  };
};
