import type { Activity } from '../activity/index.ts';
import type { Config } from '../config/index.ts';
import type { Limits } from '../limits/index.ts';
import type { Database } from '../parts/database/contract.ts';
import type { IdentityProvider } from '../parts/identity-provider/contract.ts';
import type { KeyValueStore } from '../parts/key-value/contract.ts';
import type { MailTransport } from '../parts/mail/contract.ts';
import type { Secrets } from '../secrets.ts';
import type { ProviderName } from '../shared/method-names.ts';
import type { Log } from '../telemetry/log.ts';
import type { Texts } from '../texts/index.ts';
import { createHousekeeping } from '../workers/housekeeping.ts';
import { createAdministration } from './administration/index.ts';
import { addedMethodsOf, createCredentials } from './credentials/index.ts';
import { createAccountExport } from './data/index.ts';
import { createLifecycle, type Lifecycle } from './lifecycle/index.ts';
import { createLogin } from './login/index.ts';
import { createMail, type MethodsOf } from './mail/index.ts';
import { createProviders } from './providers/index.ts';
import { createSessions } from './sessions/index.ts';
import { type AvatarChanged, createUsers } from './users/index.ts';

interface Parts {
  database: Database;
  activity: Activity;
  store: KeyValueStore;
  transport: MailTransport;
  limits: Limits;
  avatarChanged: AvatarChanged;
  /** Deletes the uploads of a user who is being removed. Idempotent. Resolves to whether all are deleted. */
  removeUploads(userId: string): Promise<boolean>;
  /** Deletes the webhook deliveries that name a user who is being removed. Idempotent. */
  removeDeliveries(userId: string): Promise<void>;
  /** The public URL of an upload. */
  publicUrl(objectKey: string): string;
  /** By name. Empty without configured or embedded providers. */
  identityProviders: ReadonlyMap<ProviderName, IdentityProvider>;
  secrets: Secrets;
  texts: Texts;
  log: Log;
}

/** Creates the rooms of accounts in the order of their dependencies. The caller starts the `workers`. */
export function createAccounts(config: Config, parts: Parts) {
  const { database, activity, publicUrl, log } = parts;
  const providerNames = [...parts.identityProviders.keys()];
  const users = createUsers(config, parts);
  const methodsOf: MethodsOf = (user) => database.query((tables) => addedMethodsOf(tables, user));
  const mail = createMail(config, { ...parts, users, methodsOf });
  const { outbox, record } = mail;
  const sessions = createSessions(config, { ...parts, outbox, users });
  const credentials = createCredentials(config, { ...parts, outbox, record, sessions, providers: providerNames });
  const login = createLogin({
    ...parts,
    users,
    sessions,
    credentials,
    providers: providerNames,
    emailCodes: config.emailCodes,
    restoreAccount: (user, caller) => lifecycle.deletion.restoreAccount(user, caller),
  });
  const lifecycle: Lifecycle = createLifecycle(config, { ...parts, users, mail, sessions, credentials, login });
  const { removal, deletion } = lifecycle;
  const providers = createProviders(config, { ...parts, ...removal, users, mail, sessions, login });
  const { links } = providers;
  return {
    users,
    sessions,
    credentials,
    login,
    lifecycle,
    providers,
    administration: createAdministration(config, {
      ...parts,
      users,
      outbox,
      record,
      sessions,
      credentials,
      links,
      deletion,
    }),
    /** For changes of users outside of this room. */
    mail: { outbox, record },
    exportAccount: createAccountExport({ database, publicUrl }),
    listActivity: activity.list,
    workers: [outbox, removal, createHousekeeping({ sweeps: [...mail.sweeps, sessions.sweep, activity.sweep], log })],
  };
}

export type Accounts = ReturnType<typeof createAccounts>;
