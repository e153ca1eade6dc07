import type { Activity } from '../activity/index.ts';
import type { Config } from '../config/index.ts';
import type { Log } from '../log.ts';
import type { Database } from '../parts/database/contract.ts';
import type { IdentityProvider } from '../parts/identity-provider/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import type { MailTransport } from '../parts/mail/contract.ts';
import type { Secrets } from '../secrets.ts';
import type { Texts } from '../texts/index.ts';
import { createAdministration } from './administration.ts';
import { createConsents } from './consents.ts';
import { createDeletion } from './deletion.ts';
import type { Deps } from './deps.ts';
import { createEmailChange } from './email-change.ts';
import { createEmailChangeRows } from './email-change-rows.ts';
import { createEvents } from './events.ts';
import { createAccountExport } from './export.ts';
import { createExternalLogin } from './external-login.ts';
import { createInboxTurns } from './inbox-turns.ts';
import { createInvitationRows } from './invitation-rows.ts';
import { createInvitations } from './invitations.ts';
import { createKnownDevices } from './known-devices.ts';
import { createLimits } from './limits.ts';
import { createLogin } from './login.ts';
import { countLogins } from './login-count.ts';
import { createLoginRefusals } from './login-refusals.ts';
import { createLoginSteps } from './login-steps.ts';
import { createMailAdmission } from './mail-requests.ts';
import { createMailComposer } from './mails.ts';
import { createManagedUsers } from './managed-users.ts';
import { createNotMe } from './not-me.ts';
import { createOneTimeTokens } from './one-time-tokens.ts';
import { createOutbox } from './outbox.ts';
import { createPasskeyAssertions } from './passkey-assertions.ts';
import { createPasskeyChallenges } from './passkey-challenges.ts';
import { createPasskeyLogin } from './passkey-login.ts';
import { createPasskeys } from './passkeys.ts';
import { createPasswordChange } from './password-change.ts';
import { createPasswordCheck } from './password-check.ts';
import { createPasswords } from './passwords.ts';
import { createReauthentication } from './reauthentication.ts';
import { createRecovery } from './recovery.ts';
import { createRegistration } from './registration.ts';
import { createRegistrationPolicy } from './registration-policy.ts';
import { createRemovals } from './removals.ts';
import { createSecondFactors } from './second-factors.ts';
import { createServiceTokens } from './service-tokens.ts';
import { createSessionRows } from './session-rows.ts';
import { createSessions } from './sessions.ts';
import { createTotp } from './totp.ts';
import { createUserSearch } from './user-search.ts';
import { type AvatarChanged, createUsers } from './users.ts';
import { createVerification } from './verification.ts';
import { createWebAuthn } from './webauthn.ts';

interface Parts {
  database: Database;
  activity: Activity;
  store: KeyValueStore;
  mail: MailTransport;
  avatarChanged: AvatarChanged;
  /** Deletes the uploads of a user who is being removed. Answers whether none is left; may be repeated. */
  removeUploads(userId: string): Promise<boolean>;
  /** The address of an upload. */
  publicUrl(objectKey: string): string;
  /** By name. Empty where none is configured or embedded. */
  identityProviders: ReadonlyMap<string, IdentityProvider>;
  secrets: Secrets;
  texts: Texts;
  log: Log;
}

/** The account rules, on the given parts. `outbox.start` starts the worker. */
export function createAccounts(
  config: Config,
  {
    database,
    activity,
    store,
    mail,
    avatarChanged,
    removeUploads,
    publicUrl,
    identityProviders,
    secrets,
    texts,
    log,
  }: Parts,
) {
  const users = createUsers({ database, activity, avatarChanged });
  const tokens = createOneTimeTokens({ database, secrets });
  const emailChanges = createEmailChangeRows({ database, secrets });
  const invitations = createInvitationRows({ database, secrets });
  const { appUrl, brand, rates } = config;
  /** What mails and authenticators call the service. */
  const site = brand.name ?? new URL(appUrl).host;
  const compose = createMailComposer({
    appUrl,
    site,
    brand,
    texts,
    database,
    users,
    tokens,
    emailChanges,
    invitations,
  });
  const turns = createInboxTurns();
  const admission = createMailAdmission({ database, tokens, emailChanges, rates, turns });
  const sessionRows = createSessionRows(database, activity);
  const sweeps = [sessionRows.sweep, tokens.sweep, emailChanges.sweep, invitations.sweep, activity.sweep];
  const outbox = createOutbox({ database, mail, rates, admission, turns, compose, sweeps, log });
  const record = createEvents(activity, outbox);
  const passwords = createPasswords({ iterations: config.passwordIterations, cores: config.cores, log });
  const devices = createKnownDevices({ database, activity, secrets, outbox });
  const sessions = createSessions({ store, users, rows: sessionRows, devices, outbox });
  const limits = createLimits(store, rates);
  const removals = createRemovals(database, {
    steps: [
      ({ userId }) => removeUploads(userId),
      ({ userId }) => activity.removeAllOf(userId).then(isEmpty),
      outbox.removeAllOf,
      ({ userId }) => sessions.forgetAll(userId).then(isEmpty),
    ],
    log,
  });
  const { deleteUser } = removals;
  const consents = createConsents({ database, current: config.termsVersion });
  const deps: Deps = {
    consents,
    database,
    deleteUser,
    emailChanges,
    invitations,
    limits,
    outbox,
    passwords,
    record,
    recordUnmailed: activity.record,
    registration: createRegistrationPolicy(config.registration),
    sessions,
    takesPictures: !config.ownAvatars,
    tokens,
    users,
  };
  const recordRefusal = createLoginRefusals({ database, users, activity });
  const checkPassword = createPasswordCheck(deps, { devices, recordRefusal });
  const { deleteAccount, requestDeletion, restoreAccount } = createDeletion(deps, {
    graceDays: config.deletionGraceDays,
  });
  const challenges = createPasskeyChallenges(store);
  const webauthn = createWebAuthn(appUrl, { name: site });
  const assertions = createPasskeyAssertions(deps, { challenges, webauthn });
  const app = createTotp(deps, { store, secrets, log, issuer: site });
  const secondFactors = createSecondFactors(deps, { app, assertions, devices, recordRefusal });
  const steps = createLoginSteps(deps, { secondFactors, recordRefusal, restoreAccount, store });
  const logins = {
    ...steps,
    ...createLogin(deps, { checkPassword, recordRefusal, enter: steps.enter }),
    ...createPasskeyLogin(deps, { assertions, recordRefusal, enter: steps.enter }),
    ...createExternalLogin(deps, { identityProviders, enter: steps.enter, recordRefusal, secondFactors, store, log }),
  };
  const passkeys = createPasskeys(deps, { challenges, webauthn, providers: [...identityProviders.keys()] });
  return {
    users,
    publicUsers: config.publicUsers,
    activity: activity.list,
    searchUsers: createUserSearch(database),
    managedUsers: createManagedUsers(database, { sessions, ...logins, ...passkeys, ...app }),
    sessions,
    serviceTokens: createServiceTokens(config.serviceTokens),
    limits,
    outbox,
    removals,
    deleteAccount,
    exportAccount: createAccountExport(database, { publicUrl }),
    listConsents: consents.listConsents,
    acceptTerms: consents.acceptTerms,
    ...createRegistration(deps),
    ...createInvitations(deps, { admission, rates }),
    ...createVerification(deps),
    ...createNotMe(deps, devices),
    ...logins,
    ...countLogins(logins, identityProviders),
    ...passkeys,
    ...createRecovery(deps, { devices }),
    ...createAdministration(deps, { requestDeletion }),
    ...createEmailChange(deps, devices),
    ...createReauthentication(deps, { checkPassword, secondFactors }),
    ...app,
    ...createPasswordChange(deps, { checkPassword }),
  };
}

/** What a step answers that deletes everything in one go. */
const isEmpty = () => true;

export type Accounts = ReturnType<typeof createAccounts>;
