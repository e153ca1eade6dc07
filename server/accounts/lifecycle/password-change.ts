/**
 * A logged-in user sets a new password. The current password is required if there is one (INVALID_CREDENTIALS, as at a
 * login). A first password, and any password of an account with an authenticator app, needs a recent credential in the
 * session (REAUTHENTICATION_REQUIRED). All other sessions and reset links end, and other devices are forgotten.
 */
import { ServiceError } from '../../errors.ts';
import type { Limits } from '../../limits/index.ts';
import type { Database } from '../../parts/database/contract.ts';
import { hasOnlyProvenMethods, type PasswordPolicy, type Passwords } from '../credentials/index.ts';
import { type PasswordCheck, wrongPassword } from '../login/index.ts';
import type { EmailChangeRows, OneTimeTokens, Outbox, RecordEvent } from '../mail/index.ts';
import {
  type DeviceRequest,
  endOtherSessions,
  type KnownDevices,
  type OwnSession,
  type RotatedSession,
  type Sessions,
} from '../sessions/index.ts';
import { type Account, lockUser, type Users } from '../users/index.ts';

const currentIsRequired = {
  details: { currentPassword: { message: 'Please enter your current password', rule: 'required' } },
};

const isSame = {
  details: { newPassword: { message: 'This is your current password', rule: 'same_as_current' } },
};

interface GivenPasswords {
  /** Undefined for a user without one. */
  currentPassword: string | undefined;
  newPassword: string;
}

interface Needs {
  database: Database;
  devices: Pick<KnownDevices, 'keep'>;
  emailChanges: EmailChangeRows;
  limits: Limits;
  outbox: Outbox;
  passwords: Passwords;
  policy: Pick<PasswordPolicy, 'require'>;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  sessions: Sessions;
  tokens: OneTimeTokens;
  users: Users;
  checkPassword: PasswordCheck;
}

/** Sets a new password for a logged-in user. */
export const createPasswordChange = ({
  database,
  devices,
  emailChanges,
  limits,
  outbox,
  passwords,
  policy,
  record,
  sessions,
  tokens,
  users,
  checkPassword,
}: Needs) => {
  /** Every attempt counts as a login does: each costs at least one hash. */
  const authorized = async <Result>(
    { session }: OwnSession,
    current: string | undefined,
    caller: DeviceRequest,
    change: () => Promise<Result>,
  ): Promise<Result> => {
    const { email } = session.user;
    const found = await users.findCredential(email);
    if (current === undefined && found?.passwordHash) throw new ServiceError('VALIDATION_FAILED', currentIsRequired);
    // With an app, the password is one of two factors and is checked only after the other.
    const takesRecent = current === undefined || found?.hasApp;
    const isRecent = () => session.id !== undefined && sessions.isRecent(session.id);
    if (takesRecent && !(await isRecent())) throw new ServiceError('REAUTHENTICATION_REQUIRED');
    if (current === undefined) return limits.attempt('login', caller.clientAddress, change);
    const onRight = ({ user }: { user: Account }) => {
      // The address may belong to another user since the session was read.
      if (user.id !== session.user.id) throw new ServiceError('UNAUTHENTICATED');
      return change();
    };
    return checkPassword({ email, password: current }, { ...caller, session }, onRight, wrongPassword);
  };

  const setPassword = async (
    { session, token }: OwnSession,
    { currentPassword, newPassword }: GivenPasswords,
    caller: DeviceRequest,
  ): Promise<RotatedSession> => {
    if (newPassword === currentPassword) throw new ServiceError('VALIDATION_FAILED', isSame);
    await policy.require(newPassword, 'newPassword', caller.clientAddress, () => session.user);
    const hash = await passwords.hash(newPassword);
    const { id: userId, sessionEpoch } = session.user;
    const login = await sessions.rotate({ ...session, hasBreachedPassword: false }, token, (ids) =>
      database.transaction(async (em, tables) => {
        const user = await lockUser(em, { id: userId });
        if (user?.sessionEpoch !== sessionEpoch) throw new ServiceError('UNAUTHENTICATED');
        // The check before looked the user up by address, which may have changed, or a password was set since.
        if (currentPassword === undefined && user.hasPassword)
          throw new ServiceError('VALIDATION_FAILED', currentIsRequired);
        // A first password is proven if all login methods of the account are.
        if (!user.hasPassword && (await hasOnlyProvenMethods(em, user))) user.provePassword();
        const keptDevice = devices.keep(caller.deviceCookie, user);
        user.changePassword(hash);
        if (!(await endOtherSessions(tables, user, ids))) throw new ServiceError('UNAUTHENTICATED');
        await tokens.revoke(tables, user, 'reset-password');
        await emailChanges.deleteRequested(tables, user);
        await record(tables, user, { kind: 'password-changed', details: { by: 'user' } }, caller);
        return keptDevice();
      }, userId),
    );
    outbox.wake();
    return login;
  };

  return {
    /**
     * Sets a new password and rotates this session. VALIDATION_FAILED if it equals the current one; UNAUTHENTICATED if
     * the session has ended since, even by a concurrent change.
     */
    changePassword: (own: OwnSession, given: GivenPasswords, caller: DeviceRequest): Promise<RotatedSession> =>
      authorized(own, given.currentPassword, caller, () => setPassword(own, given, caller)),
  };
};
