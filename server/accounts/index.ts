import type { Config } from '../config/index.ts';
import type { Log } from '../log.ts';
import type { AllTables, Database } from '../parts/database/contract.ts';
import type { IdentityProvider } from '../parts/identity-provider/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import type { MailTransport } from '../parts/mail/contract.ts';
import type { Secrets } from '../secrets.ts';
import type { Deps } from './deps.ts';
import { createExternalLogin } from './external-login.ts';
import { createInboxTurns } from './inbox-turns.ts';
import { createLimits } from './limits.ts';
import { createLogin } from './login.ts';
import { countLogins } from './login-count.ts';
import { createMailAdmission } from './mail-requests.ts';
import { createMailComposer } from './mails.ts';
import { createOneTimeTokens } from './one-time-tokens.ts';
import { createOutbox } from './outbox.ts';
import { createPasswords } from './passwords.ts';
import { createRecovery } from './recovery.ts';
import { createRegistration } from './registration.ts';
import { createServiceTokens } from './service-tokens.ts';
import { createSessionRows, deleteSessions } from './session-rows.ts';
import { createSessions } from './sessions.ts';
import { createUserSearch } from './user-search.ts';
import { type AvatarChanged, createUsers } from './users.ts';
import { createVerification } from './verification.ts';

interface Parts {
  database: Database;
  store: KeyValueStore;
  mail: MailTransport;
  avatarChanged: AvatarChanged;
  /** Called within the transaction that deletes a user. */
  userDeleted(tables: AllTables, userId: string): Promise<void>;
  /** By name. Empty where none is configured or embedded. */
  identityProviders: ReadonlyMap<string, IdentityProvider>;
  secrets: Secrets;
  log: Log;
}

/** The account rules, on the given parts. `outbox.start` starts the worker. */
export function createAccounts(
  config: Config,
  { database, store, mail, avatarChanged, userDeleted, identityProviders, secrets, log }: Parts,
) {
  const users = createUsers(database, avatarChanged);
  const tokens = createOneTimeTokens({ database, secrets });
  const compose = createMailComposer({ appUrl: config.appUrl, database, users, tokens });
  const { rates } = config;
  const turns = createInboxTurns();
  const admission = createMailAdmission({ database, tokens, rates, turns });
  const outbox = createOutbox({ database, mail, rates, admission, turns, compose, log });
  const passwords = createPasswords({ iterations: config.passwordIterations, cores: config.cores });
  const sessions = createSessions({ store, users, rows: createSessionRows(database) });
  const limits = createLimits(store, rates);
  const deleteUser: Deps['deleteUser'] = async (em, tables, user) => {
    await userDeleted(tables, user.id);
    await deleteSessions(tables, user.id);
    em.remove(user);
  };
  const deps: Deps = { database, deleteUser, limits, outbox, passwords, sessions, tokens, users };
  const logins = { ...createLogin(deps), ...createExternalLogin(deps, { identityProviders, store, log }) };
  return {
    users,
    searchUsers: createUserSearch(database),
    sessions,
    serviceTokens: createServiceTokens(config.serviceTokens),
    limits,
    outbox,
    ...createRegistration(deps),
    ...createVerification(deps),
    ...logins,
    ...countLogins(logins, identityProviders),
    ...createRecovery(deps),
  };
}

export type Accounts = ReturnType<typeof createAccounts>;
