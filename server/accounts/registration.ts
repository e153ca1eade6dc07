import { User } from '../../entities/index.ts';
import { ServiceError } from '../errors.ts';
import { isDuplicate, rowOf } from '../parts/database/contract.ts';
import { browserHash } from './browsers.ts';
import type { Deps } from './deps.ts';

/** Registration by email and password. */
export const createRegistration = ({ database, limits, outbox, passwords }: Deps) => ({
  /** Rejects with EMAIL_TAKEN; the unique key decides, also between two concurrent registrations. */
  async register(
    { name, email }: { name: string; email: string },
    password: string,
    { clientAddress, browser }: { clientAddress: string; browser: string },
  ): Promise<User> {
    await limits.enforce('register', clientAddress);
    const passwordHash = await passwords.hash(password);
    const user = User.register({ name, email, passwordHash, browser: browserHash(browser) });
    try {
      await outbox.welcoming(user, 'verify-email', (welcome) =>
        database.change(async (tables) => {
          await tables.insertInto('users').values(rowOf('users', user)).execute();
          await welcome(tables);
        }),
      );
    } catch (error) {
      throw isDuplicate(error) ? new ServiceError('EMAIL_TAKEN') : error;
    }
    return user;
  },
});
