import { ServiceError } from '../../errors.ts';
import type { Database } from '../../parts/database/contract.ts';
import { PASSWORD, type PasswordPolicy, type Passwords } from '../credentials/index.ts';
import type { LoginRequest } from '../sessions/index.ts';
import { counted } from './count.ts';
import type { PasswordCheck } from './password-check.ts';
import { type LoginRefusals, refuseBlocked } from './refusals.ts';
import type { Entry, LoginSteps } from './steps.ts';

interface Credentials {
  email: string;
  password: string;
}

interface Rules extends Pick<LoginSteps, 'completeFirstFactor'> {
  database: Database;
  passwords: Passwords;
  policy: Pick<PasswordPolicy, 'isBreached'>;
  checkPassword: PasswordCheck;
  recordRefusal: LoginRefusals;
}

export const createPasswordLogin = ({
  database,
  passwords,
  policy,
  checkPassword,
  recordRefusal,
  completeFirstFactor,
}: Rules) => {
  /** Replaces the hash, unless the password has changed since: then the stored hash is not `outdated`. */
  const renewHash = async (userId: string, password: string, outdated: string) => {
    const hash = await passwords.hash(password);
    await database.write(
      (tables) =>
        tables
          .updateTable('users')
          .set({ password_hash: hash })
          .where('id', '=', userId)
          .where('password_hash', '=', outdated)
          .execute(),
      userId,
    );
  };

  /**
   * The first step of a login. Rejects as the password check does; for a right password also with ACCOUNT_BLOCKED,
   * EMAIL_NOT_VERIFIED, or ACCOUNT_DELETED unless it restores the account.
   */
  const givePassword = (
    credentials: Credentials,
    request: LoginRequest,
    { restores }: { restores: boolean },
  ): Promise<Entry> =>
    checkPassword(credentials, request, async ({ user, passwordHash, hasApp, isDeleted, isBlocked }) => {
      if (isBlocked) refuseBlocked(recordRefusal, credentials.email, request);
      if (!user.emailVerified) {
        recordRefusal(credentials.email, 'unverified', request);
        throw new ServiceError('EMAIL_NOT_VERIFIED');
      }
      if (isDeleted && !restores) {
        recordRefusal(credentials.email, 'deleted', request);
        throw new ServiceError('ACCOUNT_DELETED');
      }
      if (passwords.isOutdated(passwordHash)) await renewHash(user.id, credentials.password, passwordHash);
      const credential = { method: PASSWORD, ...(policy.isBreached(credentials.password) && { isBreached: true }) };
      return completeFirstFactor(user, credential, { restores, skipSecondFactor: !hasApp }, request);
    });

  return {
    logIn: (credentials: Credentials, request: LoginRequest) =>
      counted(PASSWORD, givePassword(credentials, request, { restores: false })),

    /** Restores a deleted account and logs in. For an existing account it is a normal login. */
    restore: (credentials: Credentials, request: LoginRequest) =>
      counted(PASSWORD, givePassword(credentials, request, { restores: true })),
  };
};
