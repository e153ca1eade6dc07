import type { Activity } from '../../activity/index.ts';
import type { Config } from '../../config/index.ts';
import type { Limits } from '../../limits/index.ts';
import { type Database, sql } from '../../parts/database/contract.ts';
import type { KeyValueStore } from '../../parts/key-value/contract.ts';
import type { Log } from '../../telemetry/log.ts';
import { deleteGrants } from '../../workers/sweep.ts';
import type { Credentials } from '../credentials/index.ts';
import type { Login } from '../login/index.ts';
import type { MailRules } from '../mail/index.ts';
import type { Sessions } from '../sessions/index.ts';
import type { AvatarChanged, Users } from '../users/index.ts';
import { createDeletion } from './deletion.ts';
import { createEmailChange } from './email-change.ts';
import { createEmailCodeLogin } from './email-code.ts';
import { createInvitations } from './invitations.ts';
import { createNotMe } from './not-me.ts';
import { createPasswordChange } from './password-change.ts';
import { createPasswordReset } from './password-reset.ts';
import { createRegistration } from './registration.ts';
import { createRemoval } from './removal.ts';
import { createTerms } from './terms.ts';
import { createVerification } from './verification.ts';

export type { AccountDeletion, Deletion } from './deletion.ts';

interface Parts {
  database: Database;
  activity: Activity;
  store: KeyValueStore;
  limits: Limits;
  users: Users;
  mail: MailRules;
  sessions: Sessions;
  credentials: Credentials;
  login: Login;
  avatarChanged: AvatarChanged;
  /** Deletes the uploads of a user who is being removed. Idempotent. Resolves to whether all are deleted. */
  removeUploads(userId: string): Promise<boolean>;
  /** Deletes the webhook deliveries that name the user. Idempotent. */
  removeDeliveries(userId: string): Promise<void>;
  log: Log;
}

/** The life of an account, from registration to removal. */
export function createLifecycle({ rates, deletionGraceDays: graceDays, emailCodes }: Config, parts: Parts) {
  const {
    database,
    activity,
    store,
    limits,
    users,
    mail,
    sessions,
    credentials,
    login,
    avatarChanged,
    removeUploads,
    removeDeliveries,
    log,
  } = parts;
  const removal = createRemoval({
    database,
    steps: [
      ({ userId }) => removeUploads(userId),
      ({ userId }) => activity.removeAllOf(userId).then(nothingLeft),
      ({ userId }) => removeDeliveries(userId).then(nothingLeft),
      mail.outbox.removeAllOf,
      ({ userId }) => sessions.forgetAll(userId).then(nothingLeft),
      // After the sessions: without one no grant is made.
      ({ userId }) => deleteGrants(database, sql`user_id = ${userId}`).then(nothingLeft),
    ],
    avatarChanged,
    recordRemoved: activity.recordRemoved,
    log,
  });
  const shared = {
    ...mail,
    consents: users.consents,
    customFields: users.customFields,
    registration: users.registration,
    users,
    database,
    store,
    limits,
    sessions,
    devices: sessions.devices,
    passwords: credentials.passwords,
    policy: credentials.policy,
    deleteUser: removal.deleteUser,
    recordUnmailed: activity.record,
  };
  return {
    registration: createRegistration(shared),
    verification: createVerification(shared),
    invitations: createInvitations({ ...shared, rates }),
    emailChange: createEmailChange(shared),
    /** Undefined unless EMAIL_CODES is on. */
    emailCode: emailCodes ? createEmailCodeLogin({ ...shared, codes: mail.emailCodes, login }) : undefined,
    passwordChange: createPasswordChange({ ...shared, checkPassword: login.checkPassword }),
    passwordReset: createPasswordReset(shared),
    notMe: createNotMe(shared),
    deletion: createDeletion({ ...shared, graceDays }),
    terms: createTerms(shared),
    removal,
  };
}

/** The result of a step that deletes everything in one go. */
const nothingLeft = () => true;

export type Lifecycle = ReturnType<typeof createLifecycle>;
