import { hash, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { Identity, User } from '../../../entities/index.ts';
import { createMail } from '../../../server/accounts/mail/index.ts';
import type { TokenPurpose } from '../../../server/accounts/mail/kinds.ts';
import type { LeasedMail } from '../../../server/accounts/mail/outbox-rows.ts';
import { createMailedTokens } from '../../../server/accounts/mail/tokens/derivation.ts';
import { createEmailCodes } from '../../../server/accounts/mail/tokens/email-codes.ts';
import { accountOf, type LockedUser } from '../../../server/accounts/users/index.ts';
import { createActivity } from '../../../server/activity/index.ts';
import { buildHashList } from '../../../server/cli/breached-passwords/build.ts';
import { hashOf } from '../../../server/lib/random-token.ts';
import type { IdentityProvider } from '../../../server/parts/identity-provider/contract.ts';
import type { ProviderName } from '../../../server/shared/method-names.ts';
import { unlimited } from '../../faults/load.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { openRules } from './rules.ts';

/** The browser of `request`. */
export const browser = 'B'.repeat(43);
const ACME = 'acme' as ProviderName;

/** Another browser. */
export const ELSEWHERE = 'E'.repeat(43);
export const DAY_MS = 24 * 60 * 60_000;

/** An error with this code. */
export const refused = (code: string) => expect.objectContaining({ code });
/** The refusal of a field by a rule. */
export const refusedField = (field: string, rule: string) =>
  expect.objectContaining({ details: { [field]: expect.objectContaining({ rule }) } });

export const marksIn = (deviceCookie: string | undefined) => (deviceCookie?.split('.').length ?? 1) - 1;

/** Changes a new user to one who registered in the browser of `request`, and has not verified the address. */
export const unverified = (user: User) => {
  user.emailVerified = false;
  user.passwordProven = false;
  user.passwordBrowser = hashOf(browser);
};

/** A request of a client address of its own. */
export const request = (change: { deviceCookie?: string | undefined; clientAddress?: string } = {}) => ({
  actor: 'user' as const,
  clientAddress: clientAddress(),
  userAgent: 'curl',
  requestId: 'test',
  language: () => undefined,
  formerToken: undefined,
  deviceCookie: undefined,
  browser,
  ...change,
});

/** A password of `BREACHED_PASSWORDS_FILE`. */
export const BREACHED = 'Known-Password-1';

/**
 * The rules of accounts on embedded parts, without limits unless given, and without workers: no mail is sent. `fields`: the
 * operator's own fields of profiles.
 */
export async function openAccounts(
  variables: Record<string, string> = {},
  { fields = [], hasBreached = false }: { fields?: object[]; hasBreached?: boolean } = {},
) {
  const directory = temporaryDirectory('accounts');
  const [fieldsFile, breachedFile] = [join(directory, 'fields.json'), join(directory, 'breached')];
  if (fields.length > 0) writeFileSync(fieldsFile, JSON.stringify(fields));
  if (hasBreached) await buildHashList([Buffer.from(hash('sha1', BREACHED).toUpperCase())], breachedFile);
  const opened = await openRules('accounts', {
    env: {
      ...(fields.length > 0 && { PROFILE_FIELDS: fieldsFile }),
      ...(hasBreached && { BREACHED_PASSWORDS_FILE: breachedFile }),
      ...unlimited,
      ...variables,
    },
    providers: { [ACME]: {} as IdentityProvider },
  });
  // What a hash costs does not matter here.
  const rules = opened.create({ passwordIterations: 1 });
  const { accounts, config, database, store, secrets, log } = rules;
  const activity = createActivity(database, { keptDays: 30 });
  const transport = rules.parts.mail;
  const setting = { database, activity, transport, users: accounts.users, secrets, texts: rules.texts, log };
  const mail = createMail(config, { ...setting, methodsOf: async () => [] });
  const codes = createEmailCodes(secrets);
  const { derive } = createMailedTokens(secrets);

  /** The mails to an address, oldest first. */
  const mailsTo = (email: string) =>
    database.query((tables) =>
      tables.selectFrom('outbox').selectAll().where('email', '=', email).orderBy('id').execute(),
    );

  /** The events of a user without their times, oldest first. */
  const eventsOf = async (userId: string): Promise<{ kind: string; [detail: string]: string }[]> => {
    const rows = await database.query((tables) =>
      tables.selectFrom('activity').select(['kind', 'details']).where('user_id', '=', userId).orderBy('id').execute(),
    );
    return rows.map(({ kind, details }) => ({ kind, ...JSON.parse(details ?? '{}') }));
  };

  const insertUser = async (modify: (user: User) => void = () => undefined): Promise<User> => {
    const user = User.register({ email: freshEmail(), name: 'Ada Lovelace', passwordHash: 'x' });
    user.verifyEmail();
    user.provePassword();
    modify(user);
    await database.transaction((em) => em.insert(user));
    return user;
  };

  const logIn = async (user: User) => {
    const { token, deviceCookie } = await accounts.sessions.openSession(
      accountOf(user),
      { method: 'password' },
      request(),
    );
    const session = await accounts.sessions.validate(token);
    if (!session) throw new Error('the session is not open');
    return { token, deviceCookie, session };
  };

  return {
    accounts,
    activity,
    database,
    store,
    mail,
    derive,
    eventsOf,
    mailsTo,

    /** Admits the requested mails to an address, as the worker does before it sends them. */
    async admit(email: string): Promise<void> {
      for (const { user_id: userId, token_id: tokenId, ...row } of await mailsTo(email))
        await mail.admission.admit({ ...row, userId, tokenId, expired: false, isNew: false } as unknown as LeasedMail);
    },

    /** The digits of the latest mail with a code to log in. */
    async mailedCode(email: string): Promise<string> {
      const row = (await mailsTo(email)).findLast(({ kind }) => kind === 'email-code');
      const found = codes.derive(row?.id ?? '', row?.detail ?? '');
      if (found === 'otherKey') throw new Error('no code was mailed');
      return found.code;
    },

    /** Stores a user, verified and with a proven password unless changed. */
    insertUser,

    /** The stored user of an address. */
    userOf: (email: string) => database.transaction((em) => em.findOne(User, { email })),

    /** Opens a session of a stored user. */
    logIn,

    /** Stores a user and opens a session. */
    async loggedIn(modify?: (user: User) => void) {
      const user = await insertUser(modify);
      return { user, ...(await logIn(user)) };
    },

    kindsOf: async (userId: string) => (await eventsOf(userId)).map(({ kind }) => kind),
    mailKindsTo: async (email: string) => (await mailsTo(email)).map(({ kind }) => kind),
    isOpen: async (token: string) => (await accounts.sessions.validate(token)) !== null,

    /** Changes the columns of a user, as another request does. */
    change: ({ id }: Pick<User, 'id'>, columns: object) =>
      database.write((tables) => tables.updateTable('users').set(columns).where('id', '=', id).execute()),

    rowsOf: (table: UserTable, { id }: Pick<User, 'id'>) =>
      database.query((tables) => tables.selectFrom(table).selectAll().where('user_id', '=', id).execute()),

    /** Adds a login by a provider, unproven unless changed. */
    async addIdentity({ id }: Pick<User, 'id'>, modify: (identity: Identity) => void = () => undefined) {
      const identity = Identity.link(id, { issuer: 'https://acme.test', subject: randomUUID(), provider: ACME });
      modify(identity);
      await database.transaction((em) => em.insert(identity));
      return identity;
    },

    /** Mails a link. `columns` are changed in its row. Resolves to its token. */
    async linkFor(user: User, purpose: TokenPurpose, columns: object = {}) {
      const id = await database.change((tables) =>
        mail.tokens.issue(tables, user as LockedUser, purpose, { returnTo: '/there' }),
      );
      if (Object.keys(columns).length > 0)
        await database.write((tables) =>
          tables.updateTable('one_time_tokens').set(columns).where('id', '=', id).execute(),
        );
      return derive(purpose, id);
    },

    close: opened.close,
  };
}

/** Tables of rows that belong to users. */
type UserTable =
  | 'consents'
  | 'email_changes'
  | 'identities'
  | 'name_words'
  | 'one_time_tokens'
  | 'removals'
  | 'unique_values';

export type EmbeddedAccounts = Awaited<ReturnType<typeof openAccounts>>;
export type LoggedIn = Awaited<ReturnType<EmbeddedAccounts['loggedIn']>>;
