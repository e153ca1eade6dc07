import { pbkdf2Sync } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { type Accounts, createAccounts } from '../../../server/accounts/index.ts';
import { createMail } from '../../../server/accounts/mail/index.ts';
import { mailKinds, type TokenPurpose } from '../../../server/accounts/mail/kinds.ts';
import type { LeasedMail } from '../../../server/accounts/mail/outbox-rows.ts';
import { createMailedTokens } from '../../../server/accounts/mail/tokens/derivation.ts';
import { createEmailCodes, type EmailCodes } from '../../../server/accounts/mail/tokens/email-codes.ts';
import type { Session } from '../../../server/accounts/sessions/index.ts';
import { createActivity } from '../../../server/activity/index.ts';
import { parseConfig } from '../../../server/config/index.ts';
import { ServiceError } from '../../../server/errors.ts';
import { hashOf } from '../../../server/lib/random-token.ts';
import { createLimits } from '../../../server/limits/index.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import type { IdentityProvider, ProvidedIdentity } from '../../../server/parts/identity-provider/contract.ts';
import { openKeyValueStore } from '../../../server/parts/key-value/index.ts';
import { createSecrets } from '../../../server/secrets.ts';
import type { ProviderName } from '../../../server/shared/method-names.ts';
import { createLog } from '../../../server/telemetry/log.ts';
import { textsOf } from '../../../server/texts/index.ts';
import { unlimited } from '../../faults/load.ts';
import { Authenticator } from '../../rig/client/authenticator.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';

export const OWNERS = 'owner@example.test';
export const STRANGERS = 'stranger@example.test';
export const passwords = { owner: 'Difference-Engine-1822', stranger: 'Analytical-Engine-1843' };
export const browsers = { owner: 'O'.repeat(43), stranger: 'S'.repeat(43) };
export type Person = keyof typeof browsers;

const APP_URL = 'http://localhost:3000';
const ACME = 'acme' as ProviderName;
const MINUTE_MS = 60_000;
/** Restored times are this much older, so that what happens next comes later. */
const BEFORE_MS = 5_000;

/** What the persons have, beside the rows of the service. */
export interface Belongings {
  /** The session tokens in the browsers. The stranger also has that of the owner if it was stolen. */
  sessions: Partial<Record<Person, string>>;
  /** The device cookies. */
  devices: Partial<Record<Person, string>>;
  /** The ids of the mailed tokens that the stranger has read, by purpose. */
  read: Record<string, string>;
  /** The open flow in which the stranger links an identity. */
  flow: string | undefined;
  /** Whether the stranger knows the password that the owner chose. */
  knowsPassword: boolean;
  hasRead: boolean;
  /** How much time has passed, in days. */
  days: number;
  /** Whether the owner has reset the password, alone or as the link in a mail leads to. */
  secured: boolean;
  /** The day on which the stranger first came into the owner's account; `isTold`: by a login that was mailed. */
  came: { on: number; isTold: boolean } | undefined;
  /** The days on which the owner got a mail with the link “this was not me”. */
  toldOn: number[];
  /** The day on which the stranger asked for another address of the owner's account. */
  askedOn: number | undefined;
}

const nothing: Belongings = {
  sessions: {},
  devices: {},
  read: {},
  flow: undefined,
  knowsPassword: false,
  hasRead: false,
  days: 0,
  secured: false,
  came: undefined,
  toldOn: [],
  askedOn: undefined,
};

/**
 * A host that can plant the cookie of the browser too stands for a service that trusts the browser of a callback or of a
 * click. The other one is a rule of the past: “this was not me” and undo looked back from the click.
 */
export type Weakness = 'planted browser cookie' | 'looks back a week from the click';

type Row = Record<string, SQLInputValue>;
export interface State {
  tables: Record<string, Row[]>;
  entries: Row[];
  has: Belongings;
}

/** The tables that decide who can log in. The others are left as they are. */
const tableNames = [
  'users',
  'identities',
  'passkeys',
  'totps',
  'recovery_codes',
  'sessions',
  'one_time_tokens',
  'email_changes',
  'activity',
  'removals',
] as const;
const timeColumns = new Set([
  'created_at',
  'expires_at',
  'confirmed_at',
  'covers_from',
  'disowned_at',
  'last_used_at',
  'authenticated_at',
  'deleted_at',
  'due_at',
  'begun_at',
  'used_at',
]);
/** The events that rules read: reported logins, and what makes every device unknown. */
const readTopics = [
  'logged-in:new',
  'not-me',
  'password-changed',
  'totp-enabled',
  'sessions-ended',
  'email-change-undone',
  'login-methods-removed',
];

/** The mails with the link “this was not me”. */
const notMeKinds = Object.entries(mailKinds).flatMap(([kind, { link }]) =>
  link?.source === 'one-time' && link.purpose === 'new-device' ? [kind] : [],
);

const minutes = (ms: number) => Math.round(ms / MINUTE_MS);
const requestOf = (person: Person) => ({
  actor: 'user' as const,
  clientAddress: person === 'owner' ? '192.0.2.1' : '198.51.100.1',
  userAgent: '',
  requestId: 'explored',
  language: () => undefined,
});

/** The rules of accounts, as the service puts them together, on SQLite; and the persons of the model. */
export async function openWorld() {
  const DATA_DIR = temporaryDirectory('explored');
  const variables = {
    ...unlimited,
    LIMIT_IDP_START: '1000000/900',
    LIMIT_PASSKEY_START: '1000000/900',
    LIMIT_TOTP_START: '1000000/900',
    LIMIT_CODE: '1000000/900',
    EMAIL_CODES: 'on',
  };
  const parsed = parseConfig({ DATA_DIR, LOG_LEVEL: 'silent', APP_URL, ...variables });
  // What a hash costs does not matter here.
  const config = { ...parsed, passwordIterations: 1 };
  const log = await createLog(config);
  const secrets = createSecrets(['explored']);
  const database = await openDatabase(config);
  await database.migrate();
  const store = await openKeyValueStore(config, log);
  const activity = createActivity(database, { keptDays: 30 });
  const limits = createLimits(store, config.rates);
  const provider: IdentityProvider = {
    provesLogin: false,
    isTrustedForMfa: false,
    begin: async ({ state, redirectUri }) => ({ url: state, secrets: { redirectUri, nonce: '', codeVerifier: '' } }),
    finish: async ({ code = '' }) => JSON.parse(code) as ProvidedIdentity,
  };
  const parts = {
    database,
    activity,
    store,
    limits,
    transport: { send: async () => undefined, close: () => undefined } as never,
    avatarChanged: (async () => undefined) as never,
    removeUploads: async () => true,
    removeDeliveries: async () => undefined,
    publicUrl: (key: string) => key,
    identityProviders: new Map([[ACME, provider]]),
    secrets,
    texts: textsOf(config),
    log,
  };
  const accounts = createAccounts(config, parts);
  const mail = createMail(config, { ...parts, users: accounts.users, methodsOf: async () => [] });
  const rows = new DatabaseSync(join(DATA_DIR, 'database.sqlite'), { enableForeignKeyConstraints: false, timeout: 0 });
  const entries = new DatabaseSync(join(DATA_DIR, 'key-value.sqlite'), { timeout: 0 });
  // Nothing is to survive a power cut.
  for (const connection of [rows, entries]) connection.exec('pragma synchronous = off');
  const world = new World({
    accounts,
    rows,
    entries,
    derive: createMailedTokens(secrets).derive,
    codes: createEmailCodes(secrets),
    admit: mail.admission.admit,
  });
  return {
    world,
    async close() {
      rows.close();
      entries.close();
      await Promise.all([database.close(), store.close()]);
    },
  };
}

interface Parts {
  accounts: Accounts;
  rows: DatabaseSync;
  entries: DatabaseSync;
  derive: ReturnType<typeof createMailedTokens>['derive'];
  codes: EmailCodes;
  admit: (row: LeasedMail) => Promise<unknown>;
}

export class World {
  readonly accounts: Accounts;
  has: Belongings = structuredClone(nothing);
  /** What the search must find: as if a rule were weaker. */
  weakness: Weakness | undefined;
  readonly authenticators = { owner: new Authenticator(APP_URL), stranger: new Authenticator(APP_URL) };
  readonly #parts: Parts;
  readonly #columns: Map<string, string[]>;
  readonly #inserts: Map<string, ReturnType<DatabaseSync['prepare']>>;
  readonly #ownerOfHash = new Map<string, string>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.accounts = parts.accounts;
    // Without those that the database computes.
    const columnsOf = (table: string) =>
      parts.rows
        .prepare(`pragma table_xinfo(${table})`)
        .all()
        .filter(({ hidden }) => hidden === 0)
        .map(({ name }) => String(name));
    this.#columns = new Map(tableNames.map((table) => [table, columnsOf(table)]));
    this.#inserts = new Map(
      [...this.#columns].map(([table, columns]) => [
        table,
        parts.rows.prepare(`insert into ${table} (${columns}) values (${columns.map(() => '?')})`),
      ]),
    );
  }

  query(sql: string, ...parameters: SQLInputValue[]): Row[] {
    return this.#parts.rows.prepare(sql).all(...parameters) as Row[];
  }

  /** Changes rows past the rules. */
  change(sql: string, ...parameters: SQLInputValue[]): Promise<void> {
    return this.#change(() => void this.#parts.rows.prepare(sql).run(...parameters));
  }

  token(purpose: TokenPurpose | 'confirm-email' | 'email-changed', id: unknown): string {
    return this.#parts.derive(purpose, String(id));
  }

  /** The digits of the latest mail with a code to log in. */
  mailedCode(): string {
    const { id, detail } =
      this.query("select id, detail from outbox where kind = 'email-code' order by id desc limit 1")[0] ?? {};
    const found = this.#parts.codes.derive(String(id), String(detail));
    return found === 'otherKey' ? '' : found.code;
  }

  // --- Requests

  caller = requestOf;

  device(person: Person) {
    return { ...requestOf(person), deviceCookie: this.has.devices[person] };
  }

  login(person: Person) {
    return { ...this.device(person), formerToken: undefined };
  }

  /** A login through a provider that states this, begun in one browser and ended in another. */
  async throughProvider(
    person: Person,
    { subject, email, emailVerified }: Pick<ProvidedIdentity, 'subject' | 'email' | 'emailVerified'>,
    { beginsAs = person, endedBy = person }: { beginsAs?: Person; endedBy?: Person } = {},
  ) {
    return this.endFlow(await this.beginFlow(beginsAs, 'login'), { subject, email, emailVerified }, endedBy);
  }

  async beginFlow(person: Person, purpose: 'login' | 'link', session?: Session): Promise<string> {
    const owner = session && { userId: session.user.id, sessionId: session.id ?? '', epoch: session.user.sessionEpoch };
    const begun = await this.accounts.providers.login.begin({
      provider: ACME,
      purpose,
      owner,
      page: undefined,
      returnTo: undefined,
      browser: browsers[person],
      isAskedFor: true,
      ownUrl: APP_URL,
      clientAddress: requestOf(person).clientAddress,
    });
    if (begun.result !== 'begun') throw new Error(begun.result);
    return begun.state;
  }

  async endFlow(state: string, identity: Pick<ProvidedIdentity, 'subject' | 'email' | 'emailVerified'>, by: Person) {
    const code = JSON.stringify({ issuer: 'https://acme.test', name: 'Somebody', ...identity });
    const end = await this.accounts.providers.login.finish({
      provider: ACME,
      state,
      // Another host can plant this cookie.
      cookieState: state,
      code,
      browser: browsers[by],
      request: this.login(by),
    });
    if (end.result === 'logged-in') this.opened(by, end.login);
    return end.result;
  }

  /** The browser gets the cookies of a login. */
  opened(person: Person, { token, deviceCookie }: { token: string; deviceCookie: string }): void {
    this.has.sessions[person] = token;
    this.has.devices[person] = deviceCookie;
  }

  /** The session of a token. Refuses as the API does. */
  async session(token: string | undefined, { isRecent = false } = {}): Promise<{ session: Session; token: string }> {
    const session = token === undefined ? null : await this.accounts.sessions.validate(token);
    if (!session || token === undefined) throw new ServiceError('UNAUTHENTICATED');
    if (isRecent && !(session.id && (await this.accounts.sessions.isRecent(session.id))))
      throw new ServiceError('REAUTHENTICATION_REQUIRED');
    return { session, token };
  }

  /** Delivers all queued mails: requests find their user, and tokens are issued. */
  async deliver(): Promise<void> {
    await this.admitMails();
    const { days, toldOn } = this.has;
    const told = this.query(
      `select id from outbox where email = ? and kind in (${notMeKinds.map((kind) => `'${kind}'`)})`,
      OWNERS,
    );
    if (told.length > 0 && !toldOn.includes(days)) toldOn.push(days);
    await this.#change(() => this.#parts.rows.exec('delete from outbox; delete from mail_targets'));
  }

  async admitMails(): Promise<void> {
    const waiting = this.query("select * from outbox where state = 'pending' and token_id is null order by id");
    for (const { user_id: userId, token_id: tokenId, ...row } of waiting)
      await this.#parts.admit({ ...row, userId, tokenId, expired: false, isNew: false } as unknown as LeasedMail);
  }

  // --- States

  /** Another connection of this process may hold the write lock. */
  async #change(work: () => void): Promise<void> {
    for (;;) {
      try {
        this.#parts.rows.exec('begin immediate');
        break;
      } catch {
        await turn();
      }
    }
    work();
    this.#parts.rows.exec('commit');
  }

  snapshot(): { state: State; key: string } {
    const now = Date.now();
    const kept = new Set(Object.values(this.has.sessions).map((token) => hashOf(token ?? '')));
    const tables = Object.fromEntries(
      tableNames.map((table) => [
        table,
        this.#rowsOf(table, now).filter((row) => table !== 'sessions' || kept.has(String(row['token_hash']))),
      ]),
    );
    const flow = this.has.flow === undefined ? '' : `login-flow:${hashOf(this.has.flow)}`;
    const keys = [flow, ...[...kept].map((hash) => `session:${hash}`)];
    const entries = this.#parts.entries
      .prepare(`select * from entries where key in (${keys.map(() => '?')}) order by key`)
      .all(...keys) as Row[];
    const state = { tables, entries: entries.map((row) => aged(row, now)), has: structuredClone(this.has) };
    return { state, key: this.#keyOf(state) };
  }

  /** With times relative to now, in whole minutes. */
  #rowsOf(table: string, now: number): Row[] {
    const filter =
      table === 'activity' ? `where topic in (${readTopics.map((topic) => `'${topic}'`)}) order by id` : '';
    const columns = this.#columns.get(table) ?? [];
    return this.#parts.rows
      .prepare(`select ${columns} from ${table} ${filter}`)
      .all()
      .map((row) =>
        Object.fromEntries(
          Object.entries(row as Row).map(([name, value]) => {
            if (timeColumns.has(name) && value !== null) return [name, minutes(Number(value) - now)];
            if (table === 'activity' && name === 'id') return [name, minutes(timeIn(String(value)) - now)];
            return [name, value];
          }),
        ),
      );
  }

  async restore({ tables, entries, has }: State): Promise<void> {
    const base = Date.now() - BEFORE_MS;
    this.has = structuredClone(has);
    await this.#change(() => {
      for (const table of tableNames) {
        this.#parts.rows.exec(`delete from ${table}`);
        const [insert, columns] = [this.#inserts.get(table), this.#columns.get(table) ?? []];
        for (const [i, row] of (tables[table] ?? []).entries()) {
          insert?.run(
            ...columns.map((name) => {
              const value = row[name] ?? null;
              if (table === 'activity' && name === 'id') return idAt(base + Number(value) * MINUTE_MS, i);
              // A use is recorded in the background once an hour.
              if (name === 'last_used_at' && table === 'sessions') return base + 2 * 60 * MINUTE_MS;
              return timeColumns.has(name) && value !== null ? base + Number(value) * MINUTE_MS : value;
            }),
          );
        }
      }
    });
    this.#parts.entries.exec('delete from entries');
    const insert = this.#parts.entries.prepare('insert into entries (key, value, expires_at) values (?, ?, ?)');
    for (const row of entries) insert.run(...younger(row, base));
  }

  /** Lets time pass: everything gets older. */
  async pass(days: number): Promise<void> {
    const { state } = this.snapshot();
    const ms = days * 24 * 60;
    const older = (row: Row, names: Iterable<string>) => {
      for (const name of names) if (typeof row[name] === 'number') row[name] = row[name] - ms;
    };
    for (const table of tableNames)
      for (const row of state.tables[table] ?? [])
        older(row, table === 'activity' ? [...timeColumns, 'id'] : timeColumns);
    for (const row of state.entries) older(row, ['expires_at', 'createdAt', 'expiresAt', 'begunAt']);
    state.has.days += days;
    await this.restore(state);
  }

  // --- What the service has stored, in words

  whosePassword(hash: unknown): string {
    if (!hash) return '-';
    const known = this.#ownerOfHash.get(String(hash));
    if (known !== undefined) return known;
    const [rounds = '', salt = '', derived = ''] = String(hash).split(':');
    const isOf = (password: string) =>
      pbkdf2Sync(password, Buffer.from(salt, 'base64'), Number(rounds), 32, 'sha256').toString('base64') === derived;
    const whose = isOf(passwords.owner) ? 'owner' : isOf(passwords.stranger) ? 'stranger' : 'nobody';
    this.#ownerOfHash.set(String(hash), whose);
    return whose;
  }

  #keyOf({ tables, has }: State): string {
    const rows = (table: (typeof tableNames)[number], userId: unknown) =>
      (tables[table] ?? []).filter((row) => row['user_id'] === userId);
    const holderOf = new Map<unknown, string>();
    for (const [who, token] of Object.entries(has.sessions)) {
      const hash = hashOf(token ?? '');
      holderOf.set(hash, `${holderOf.get(hash) ?? ''}${who}`);
    }
    const whose = (hash: unknown) =>
      hash === hashOf(browsers.owner) ? 'owner' : hash === hashOf(browsers.stranger) ? 'stranger' : '-';
    const read = new Set(Object.values(has.read));
    const coarse = (time: unknown) => (time === null ? '-' : Math.round(Number(time) / 60));
    const texts = (tables.users ?? []).map((user) => {
      const id = user['id'];
      const account = { user: { id }, deviceEpoch: user['device_epoch'], deviceMarks: user['device_marks'] } as never;
      const isKnown = (person: Person) =>
        this.accounts.sessions.devices.knownBy(account, { deviceCookie: has.devices[person] }) !== undefined;
      const mine = (table: (typeof tableNames)[number], text: (row: Row) => unknown[]) =>
        rows(table, id)
          .map((row) => text(row).join())
          .sort();
      const changed = rows('activity', id).findLastIndex(({ kind }) => kind !== 'logged-in');
      const disowned = rows('activity', id).findLastIndex(({ kind }) => kind === 'not-me');
      return JSON.stringify([
        [user['email'], user['email_verified'], user['deleted_at'] !== null],
        [this.whosePassword(user['password_hash']), user['password_proven'], whose(user['password_browser'])],
        [isKnown('owner'), isKnown('stranger')],
        mine('identities', (row) => [row['subject'], row['proven'], whose(row['browser']), coarse(row['created_at'])]),
        mine('passkeys', (row) => [row['name'], row['proven'], coarse(row['created_at'])]),
        mine('totps', (row) => [coarse(row['created_at'])]),
        mine('sessions', (row) => [
          holderOf.get(row['token_hash']),
          row['epoch'] === user['session_epoch'],
          row['method'],
          coarse(row['authenticated_at']),
        ]),
        mine('one_time_tokens', (row) => [
          row['purpose'],
          row['used'],
          coarse(row['expires_at']),
          coarse(row['covers_from']),
          row['disowned_at'] !== null,
          read.has(String(row['id'])),
        ]),
        mine('email_changes', (row) => [
          row['email'],
          row['former'],
          whose(row['browser']),
          coarse(row['created_at']),
          coarse(row['confirmed_at']),
          read.has(String(row['id'])),
        ]),
        [
          ...new Set(
            rows('activity', id).flatMap((row, i) =>
              row['kind'] === 'logged-in'
                ? [
                    [
                      row['details'] && JSON.parse(String(row['details'])).method,
                      row['address'],
                      coarse(row['id']),
                      i > changed,
                      i > disowned,
                    ].join(),
                  ]
                : [],
            ),
          ),
        ].sort(),
      ]);
    });
    const { flow, knowsPassword, hasRead, days, secured, came, toldOn, askedOn } = has;
    return JSON.stringify([
      texts.sort(),
      flow !== undefined,
      knowsPassword,
      hasRead,
      days,
      secured,
      came,
      toldOn,
      askedOn,
    ]);
  }
}

/** The time in a UUID of version 7. */
const timeIn = (id: string) => Number.parseInt(id.replace('-', '').slice(0, 12), 16);

/** A UUID of version 7: the `i`th of its minute. */
const idAt = (ms: number, i: number) => {
  const time = Math.round(ms).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${i.toString(16).padStart(3, '0')}-8000-000000000000`;
};

const agedFields = ['createdAt', 'expiresAt', 'begunAt'];

/** A value of the store in columns, with relative times. */
function aged({ key, value, expires_at }: Row, now: number): Row {
  const { ...fields } = JSON.parse(String(value));
  const times = Object.fromEntries(
    agedFields.filter((name) => name in fields).map((name) => [name, minutes(fields[name] - now)]),
  );
  return { key: key ?? null, value: value ?? null, expires_at: minutes(Number(expires_at) - now), ...times };
}

function younger({ key, value, expires_at, ...times }: Row, base: number): [SQLInputValue, string, number] {
  const at = (relative: unknown) => base + Number(relative) * MINUTE_MS;
  const changed = Object.fromEntries(Object.entries(times).map(([name, relative]) => [name, at(relative)]));
  return [key ?? null, JSON.stringify({ ...JSON.parse(String(value)), ...changed }), at(expires_at)];
}
