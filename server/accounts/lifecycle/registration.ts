/**
 * Registration by email and password. Reserved addresses are checked after the insert of the user, because the insert
 * waits for a concurrent change that gives the address up.
 */
import { User } from '../../../entities/index.ts';
import type { Caller } from '../../activity/caller.ts';
import { ServiceError } from '../../errors.ts';
import { hashOf } from '../../lib/random-token.ts';
import type { Limits } from '../../limits/index.ts';
import { type AllTables, type Database, isDuplicate, rowOf } from '../../parts/database/contract.ts';
import type { FieldValues } from '../../shared/profile-fields.ts';
import { PASSWORD, type PasswordPolicy, type Passwords } from '../credentials/index.ts';
import type { EmailChangeRows, InvitationRows, Outbox, RecordEvent } from '../mail/index.ts';
import type { DeviceRequest, KnownDevices } from '../sessions/index.ts';
import {
  type Consents,
  type CustomFields,
  type DeleteUser,
  lockUser,
  type RegistrationPolicy,
  storeNameWords,
  toStoredFields,
} from '../users/index.ts';

interface Registrant {
  name: string;
  /** Normalized. */
  email: string;
  password: string;
  /** The operator's own fields, validated. */
  fields?: FieldValues | undefined;
  /** Whether the user accepts the current terms. */
  acceptTerms: boolean;
  /** The version of the terms shown, if known. */
  termsVersion?: string | undefined;
}

/** An invited user has proven the inbox, so the device is known from here on. */
interface InvitedUser {
  user: User;
  /** The new device cookie. */
  deviceCookie: string;
  /** The target of the invitation. */
  returnTo: string | null | undefined;
}

interface Request {
  caller: Caller;
  /** The id of the browser. */
  browser: string;
  /** Where the page of the mailed link leads. */
  returnTo: string | undefined;
}

interface Needs {
  consents: Pick<Consents, 'record' | 'requireAccepted'>;
  customFields: Pick<CustomFields, 'reserve'>;
  database: Database;
  deleteUser: DeleteUser;
  devices: Pick<KnownDevices, 'mark'>;
  emailChanges: EmailChangeRows;
  invitations: InvitationRows;
  limits: Limits;
  outbox: Outbox;
  passwords: Passwords;
  policy: Pick<PasswordPolicy, 'require'>;
  /** Inserts an event and queues its mail. */
  record: RecordEvent;
  registration: RegistrationPolicy;
}

export const createRegistration = ({
  consents,
  customFields,
  database,
  deleteUser,
  devices,
  emailChanges,
  invitations,
  limits,
  outbox,
  passwords,
  policy,
  record,
  registration,
}: Needs) => {
  const takenIfDuplicate = (error: unknown): never => {
    throw isDuplicate(error) ? new ServiceError('EMAIL_TAKEN') : error;
  };

  /** EMAIL_TAKEN comes before FIELD_TAKEN: the row of the user is inserted first. */
  const insertUser = async (tables: AllTables, user: User, fields: FieldValues): Promise<void> => {
    await tables.insertInto('users').values(rowOf('users', user)).execute();
    await storeNameWords(tables, [user]);
    await customFields.reserve(tables, user.id, fields);
  };

  return {
    /**
     * Creates an unverified account. REGISTRATION_CLOSED before any lookup, so it reveals nothing; VALIDATION_FAILED
     * without the current terms; EMAIL_TAKEN and FIELD_TAKEN, decided by unique keys.
     */
    async register(
      { name, email, password, fields = {}, ...terms }: Registrant,
      { caller, browser, returnTo }: Request,
    ): Promise<User> {
      if (!registration.admits(email)) throw new ServiceError('REGISTRATION_CLOSED');
      consents.requireAccepted(terms);
      await limits.enforce('register', caller.clientAddress);
      await policy.require(password, 'password', caller.clientAddress, () => ({ name, email }));
      const passwordHash = await passwords.hash(password);
      const user = User.register({
        name,
        email,
        passwordHash,
        browser: hashOf(browser),
        browserLanguage: caller.language(),
      });
      user.fields = toStoredFields(fields);
      await outbox
        .withFirstMail(user, 'verify-email', { ...caller, returnTo }, (queueMail) =>
          database.change(async (tables) => {
            await insertUser(tables, user, fields);
            if (await emailChanges.isReserved(tables, email, user.id)) throw new ServiceError('EMAIL_TAKEN');
            await consents.record(tables, user.id);
            await record(tables, user, { kind: 'registered', details: { method: PASSWORD } }, caller);
            await queueMail(tables);
          }),
        )
        .catch(takenIfDuplicate);
      return user;
    },

    /**
     * Creates an account by an invitation, once; address and password are proven. Replaces an unverified account.
     * REGISTRATION_CLOSED; VALIDATION_FAILED; INVALID_TOKEN, even if of another address; EMAIL_TAKEN, even if blocked;
     * FIELD_TAKEN.
     */
    async registerInvited(
      { name, email, password, fields = {}, ...terms }: Registrant,
      token: string,
      caller: DeviceRequest,
    ): Promise<InvitedUser> {
      if (!registration.takesInvitations) throw new ServiceError('REGISTRATION_CLOSED');
      consents.requireAccepted(terms);
      await limits.enforce('register', caller.clientAddress);
      const sent = await database.query((tables) => invitations.find(tables, token));
      if (sent?.email !== email) throw await limits.refuseToken(caller.clientAddress);
      await policy.require(password, 'password', caller.clientAddress, () => ({ name, email }));
      const passwordHash = await passwords.hash(password);
      const user = await database
        .transaction(async (em, tables) => {
          const invited = User.register({ name, email, passwordHash, browserLanguage: caller.language() });
          const invitedBy = await invitations.use(tables, sent, invited.id);
          if (!invitedBy) throw new ServiceError('INVALID_TOKEN');
          const holder = await lockUser(em, { email });
          if (holder?.emailVerified || holder?.isBlocked) throw new ServiceError('EMAIL_TAKEN');
          if (holder) await deleteUser(em, tables, holder);
          invited.fields = toStoredFields(fields);
          if (await emailChanges.isReserved(tables, email, invited.id)) throw new ServiceError('EMAIL_TAKEN');
          invited.verifyEmail();
          invited.provePassword();
          await insertUser(tables, invited, fields);
          await consents.record(tables, invited.id);
          await record(tables, invited, { kind: 'registered', details: { method: PASSWORD, invitedBy } }, caller);
          await record(tables, invited, { kind: 'verified' }, caller);
          return invited;
        }, email)
        .catch(takenIfDuplicate);
      return { user, deviceCookie: devices.mark(caller.deviceCookie, user), returnTo: sent.returnTo };
    },
  };
};
