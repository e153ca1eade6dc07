import { User } from '../../entities/index.ts';
import type { Caller } from '../activity/caller.ts';
import { ServiceError } from '../errors.ts';
import { isDuplicate, rowOf } from '../parts/database/contract.ts';
import { browserHash } from './browsers.ts';
import type { Deps } from './deps.ts';
import { PASSWORD } from './login-methods.ts';
import { lockUser } from './users.ts';

interface Registrant {
  name: string;
  /** Normalized. */
  email: string;
  password: string;
  /** Whether the terms that there are have been accepted. */
  acceptTerms: boolean;
  /** The version of them that was shown, if that is known. */
  termsVersion?: string | undefined;
}

interface Request {
  caller: Caller;
  /** The id of the browser. */
  browser: string;
}

/** Registration by email and password. */
export const createRegistration = ({
  consents,
  database,
  deleteUser,
  emailChanges,
  invitations,
  limits,
  outbox,
  passwords,
  record,
  registration,
}: Deps) => {
  const takenIfDuplicate = (error: unknown): never => {
    throw isDuplicate(error) ? new ServiceError('EMAIL_TAKEN') : error;
  };

  return {
    /**
     * Makes an account whose address is to be verified. Rejects with REGISTRATION_CLOSED before anything is looked up, so that
     * it tells nothing of the address, with VALIDATION_FAILED where the current terms were not accepted, and with
     * EMAIL_TAKEN; the unique key decides, also between two concurrent registrations. An address that its user has just
     * given up is looked for after the insert, which waits for such a change.
     */
    async register({ name, email, password, ...terms }: Registrant, { caller, browser }: Request): Promise<User> {
      if (!registration.admits(email)) throw new ServiceError('REGISTRATION_CLOSED');
      consents.requireAccepted(terms);
      await limits.enforce('register', caller.clientAddress);
      const passwordHash = await passwords.hash(password);
      const user = User.register({
        name,
        email,
        passwordHash,
        browser: browserHash(browser),
        browserLanguage: caller.language(),
      });
      await outbox
        .welcoming(user, 'verify-email', caller, (welcome) =>
          database.change(async (tables) => {
            await tables.insertInto('users').values(rowOf('users', user)).execute();
            if (await emailChanges.isReserved(tables, email, user.id)) throw new ServiceError('EMAIL_TAKEN');
            await consents.record(tables, user.id);
            await record(tables, user, { kind: 'registered', details: { method: PASSWORD } }, caller);
            await welcome(tables);
          }),
        )
        .catch(takenIfDuplicate);
      return user;
    },

    /**
     * Makes an account by an invitation, once. Its link was mailed to the address, which is thereby verified, and the password
     * proven; an account that has never verified it goes. Rejects with REGISTRATION_CLOSED where invitations do not count, with
     * VALIDATION_FAILED as above, with INVALID_TOKEN, also for another address than the invited one, and with EMAIL_TAKEN, also
     * where that account is blocked.
     */
    async registerInvited(
      { name, email, password, ...terms }: Registrant,
      token: string,
      caller: Caller,
    ): Promise<User> {
      if (!registration.takesInvitations) throw new ServiceError('REGISTRATION_CLOSED');
      consents.requireAccepted(terms);
      await limits.enforce('register', caller.clientAddress);
      const sent = await database.query((tables) => invitations.find(tables, token));
      if (sent?.email !== email) throw await limits.refuseToken(caller.clientAddress);
      const passwordHash = await passwords.hash(password);
      const user = await database
        .transaction(async (em, tables) => {
          const invitedBy = await invitations.use(tables, sent);
          if (!invitedBy) throw new ServiceError('INVALID_TOKEN');
          const holder = await lockUser(em, { email });
          if (holder?.emailVerified || holder?.isBlocked) throw new ServiceError('EMAIL_TAKEN');
          if (holder) await deleteUser(em, tables, holder);
          const invited = User.register({ name, email, passwordHash, browserLanguage: caller.language() });
          if (await emailChanges.isReserved(tables, email, invited.id)) throw new ServiceError('EMAIL_TAKEN');
          invited.verifyEmail();
          invited.provePassword();
          await tables.insertInto('users').values(rowOf('users', invited)).execute();
          await consents.record(tables, invited.id);
          await record(tables, invited, { kind: 'registered', details: { method: PASSWORD, invitedBy } }, caller);
          await record(tables, invited, { kind: 'verified' }, caller);
          return invited;
        }, email)
        .catch(takenIfDuplicate);
      return user;
    },
  };
};
