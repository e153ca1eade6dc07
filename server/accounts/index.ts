import type { Kysely } from 'kysely';
import type { TokenPurpose } from '../../entities/index.ts';
import type { Config } from '../config.ts';
import type { Log } from '../log.ts';
import type { Database } from '../parts/database/index.ts';
import type { Tables } from '../parts/database/tables.ts';
import type { IdentityProvider } from '../parts/identity-provider/index.ts';
import type { KeyValueStore } from '../parts/key-value/index.ts';
import type { MailTransport } from '../parts/mail/index.ts';
import { createExternalLogin } from './external-login.ts';
import { createLimits, type Limits } from './limits.ts';
import { createLogin } from './login.ts';
import { createMailComposer } from './mails.ts';
import { createOneTimeTokens, type OneTimeTokens, TOKEN_LIFE_MS } from './one-time-tokens.ts';
import { createOutbox, type Outbox } from './outbox.ts';
import { createPasswords, type Passwords } from './passwords.ts';
import { createRecovery } from './recovery.ts';
import { createRegistration } from './registration.ts';
import { createServiceTokens } from './service-tokens.ts';
import { createSessions, type Sessions } from './sessions.ts';
import { createUserSearch } from './user-search.ts';
import { type AvatarChanged, createUsers, type Users } from './users.ts';

/** What the rules about people work with. */
export interface Deps {
  database: Database;
  limits: Limits;
  /** Replaces the user's token of this purpose and owes him the mail that carries it. Call `outbox.wake` after the commit. */
  mailToken(tables: Kysely<Tables>, userId: string, purpose: TokenPurpose): Promise<void>;
  outbox: Outbox;
  passwords: Passwords;
  sessions: Sessions;
  tokens: OneTimeTokens;
  users: Users;
}

interface Parts {
  database: Database;
  store: KeyValueStore;
  mail: MailTransport;
  avatarChanged: AvatarChanged;
  /** Undefined where nobody can log in through one. */
  identityProvider: IdentityProvider | undefined;
  /** Key of everything that is derived. */
  secret: string;
  log: Log;
}

/** The rules about people, on the given parts. `outbox.start` sets its worker going. */
export function createAccounts(
  config: Config,
  { database, store, mail, avatarChanged, identityProvider, secret, log }: Parts,
) {
  const users = createUsers(database, avatarChanged);
  const tokens = createOneTimeTokens({ database, secret });
  const compose = createMailComposer({ appUrl: config.appUrl, users, tokens });
  const outbox = createOutbox({ database, mail, rate: config.rates.mail, compose, log });
  const passwords = createPasswords({ iterations: config.passwordIterations });
  const sessions = createSessions({ store, users });
  const limits = createLimits(store, config.rates);
  const mailToken: Deps['mailToken'] = async (tables, userId, purpose) => {
    const tokenId = await tokens.issue(tables, userId, purpose);
    await outbox.enqueue(tables, { kind: purpose, userId, tokenId, lifeMs: TOKEN_LIFE_MS[purpose] });
  };
  const deps: Deps = { database, limits, mailToken, outbox, passwords, sessions, tokens, users };
  return {
    users,
    searchUsers: createUserSearch(database),
    sessions,
    serviceTokens: createServiceTokens(config.serviceTokens),
    limits,
    outbox,
    ...createRegistration(deps),
    ...createLogin(deps),
    ...createExternalLogin(deps, {
      store,
      provider: identityProvider,
      providerName: config.identityProvider.name,
      log,
    }),
    ...createRecovery(deps),
  };
}

export type Accounts = ReturnType<typeof createAccounts>;
