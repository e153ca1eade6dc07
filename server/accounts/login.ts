import { ServiceError } from '../errors.ts';
import type { Deps } from './deps.ts';
import { PASSWORD } from './login-methods.ts';
import { type LoginRefusals, refuseBlocked } from './login-refusals.ts';
import type { Entry, LoginSteps } from './login-steps.ts';
import type { PasswordCheck } from './password-check.ts';
import type { LoginRequest } from './sessions.ts';

interface Credentials {
  email: string;
  password: string;
}

interface Rules extends Pick<LoginSteps, 'enter'> {
  checkPassword: PasswordCheck;
  recordRefusal: LoginRefusals;
}

/** Login by password. */
export const createLogin = (
  { database, passwords }: Pick<Deps, 'database' | 'passwords'>,
  { checkPassword, recordRefusal, enter }: Rules,
) => {
  /**
   * Replaces the hash, unless the password has changed meanwhile: then the stored hash is not `outdated`, and stays.
   */
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
   * The first step of a login, in place of the session that the request carries (`request.formerToken`). Rejects as the check of
   * the password does, and only with the right one with ACCOUNT_BLOCKED, EMAIL_NOT_VERIFIED, or ACCOUNT_DELETED unless it restores
   * the account.
   */
  const givePassword = async (
    given: Credentials,
    request: LoginRequest,
    { restores }: { restores: boolean },
  ): Promise<Entry> => {
    const { user, passwordHash, hasApp, isDeleted, isBlocked } = await checkPassword(given, request);
    if (isBlocked) refuseBlocked(recordRefusal, given.email, request);
    if (!user.emailVerified) {
      recordRefusal(given.email, 'unverified', request);
      throw new ServiceError('EMAIL_NOT_VERIFIED');
    }
    if (isDeleted && !restores) {
      recordRefusal(given.email, 'deleted', request);
      throw new ServiceError('ACCOUNT_DELETED');
    }
    if (passwords.isOutdated(passwordHash)) await renewHash(user.id, given.password, passwordHash);
    return enter(user, { method: PASSWORD }, { restores, isEnough: !hasApp }, request);
  };

  return {
    logIn: (given: Credentials, request: LoginRequest) => givePassword(given, request, { restores: false }),

    /** Restores a deleted account, and logs in to it; to one that is there it is a login like any other. */
    restore: (given: Credentials, request: LoginRequest) => givePassword(given, request, { restores: true }),
  };
};
