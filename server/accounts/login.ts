import { ServiceError } from '../errors.ts';
import type { Deps } from './deps.ts';
import { PASSWORD } from './login-methods.ts';
import type { Login, LoginRequest } from './sessions.ts';

/** Login by password. */
export const createLogin = ({ database, passwords, users, sessions, limits }: Deps) => {
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

  return {
    /**
     * Opens a session in place of the one that the request carried (`request.formerToken`). Unknown address, wrong password and
     * an account without one have the same answer after the same time: INVALID_CREDENTIALS. EMAIL_NOT_VERIFIED only
     * with the right password.
     */
    async logIn({ email, password }: { email: string; password: string }, request: LoginRequest): Promise<Login> {
      await limits.enforce('login', request.clientAddress);
      const found = await users.findCredential(email);
      const isRight = await passwords.verify(password, found?.passwordHash ?? null);
      if (!found?.passwordHash || !isRight) throw new ServiceError('INVALID_CREDENTIALS');
      const { user, passwordHash } = found;
      if (!user.emailVerified) throw new ServiceError('EMAIL_NOT_VERIFIED');
      if (passwords.isOutdated(passwordHash)) await renewHash(user.id, password, passwordHash);
      return sessions.openSession(user, PASSWORD, request);
    },
  };
};
