import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { addPasskey, authenticatorFor, logInByPasskey } from '../contract/rig/passkey-scenario.ts';
import {
  administrator,
  deviceIn,
  loggedIn,
  logIn,
  mailedToken,
  mailsSettled,
  type Scenario,
} from '../contract/rig/scenario.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { freshSubject, loginsThrough } from '../provider/login.ts';
import { startMysql } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { type Stack, startStack } from '../rig/stack.ts';

/** The rows read by a request do not depend on the account's size: the database server counts them. */

const FEW = 10;
const MANY = 10_000;
/** Of the large account: a page, the hundred mailed logins that one is compared with, or fifty identities, four times. */
const MAX_MORE = 300;
const MAX_PASSKEYS = 10;
const MAX_IDENTITIES = 50;
/** The workers read a few rows each second. */
const NOISE = 40;
/** At most this many session rows are deleted when all sessions of a user end. */
const MAX_SESSIONS = 1000;
const TRIES = 4;
const NEW_PASSWORD = 'Difference-Engine-1822';

const provider = await startHostileProvider();
const logInThrough = loginsThrough(provider);

let mysql: PrivateServer;
let stack: Stack;
let call: Call;
const scenario = (): Scenario => ({ stack, call });

beforeAll(async () => {
  // A private server, because the counts are global.
  mysql = await startMysql();
  stack = await startStack('real', { mysqlUrl: mysql.url, env: environmentFor(provider) });
  call = callerOf('rest', stack.url);
  await furnishOthers();
});
afterAll(async () => {
  await stack?.stop();
  await mysql?.stop();
  await provider.close();
});

const digits = `(${Array.from({ length: 10 }, (_, digit) => `select ${digit} as d`).join(' union all ')})`;
/** The numbers from 0 to 9999, as `numbers.n`. */
const numbers = `(select a.d + 10 * b.d + 100 * c.d + 1000 * e.d as n from ${digits} a, ${digits} b, ${digits} c, ${digits} e) numbers`;
const now = 'cast(unix_timestamp(now(3)) * 1000 as signed)';
/** Time-ordered ids: one every five seconds into the past. */
const msHex = `lpad(lower(hex(${now} - 5000 * n - 5000)), 12, '0')`;
const id = `concat(left(${msHex}, 8), '-', right(${msHex}, 4), right(users.id, 23))`;

/** Inserts `count` rows per table, or the limit of the table if that is smaller. */
async function furnish(user: { id: string }, count: number): Promise<void> {
  const insert = (table: string, columns: Record<string, string>, most = count) =>
    stack.database(
      `insert into ${table} (${Object.keys(columns).join(', ')})
       select ${Object.values(columns).join(', ')} from users, ${numbers} where users.id = ? and n < ?`,
      [user.id, Math.min(count, most)],
    );
  const ofUser = { id, user_id: 'users.id' };
  const device = { address: "'192.0.2.1'", device: "'curl'" };
  await insert('sessions', {
    ...ofUser,
    ...device,
    epoch: 'session_epoch',
    method: "'password'",
    created_at: now,
    authenticated_at: now,
    last_used_at: now,
    expires_at: `${now} + 86400000`,
  });
  await insert('activity', {
    ...ofUser,
    ...device,
    kind: "elt(1 + n % 3, 'logged-in', 'logged-out', 'reauthenticated')",
    actor: "'user'",
    request_id: "''",
    // Hours ago, a mail told of each third login.
    details: `if(n > 2000 and n % 9 = 0, '{"method":"password","device":"new"}', '{"method":"password"}')`,
    created_at: `${now} - 5000 * n`,
  });
  await insert('outbox', {
    ...ofUser,
    kind: "elt(1 + n % 3, 'recovery-codes-renewed', 'reset-password', 'confirm-email')",
    email: 'email',
    inbox: 'email',
    // Some wait for a mail server that defers them.
    state: "elt(1 + n % 4, 'sent', 'sent', 'dropped', 'pending')",
    token_id: "if(n % 4 = 3, 'gone', null)",
    attempts: '1',
    due_at: `${now} + 86400000`,
    expires_at: `${now} + 86400000`,
    // Those with a token count for the hourly limit.
    created_at: `${now} - n - if(n % 4 = 3, 3600000, 0)`,
  });
  await insert('email_changes', {
    ...ofUser,
    email: 'email',
    former: "concat('former-', n, '@example.test')",
    confirm_hash: "concat(n, right(users.id, 12), '-a')",
    undo_hash: "concat(n, right(users.id, 12), '-b')",
    created_at: now,
    confirmed_at: now,
    expires_at: `${now} + 86400000`,
  });
  await insert('consents', { ...ofUser, version: "concat('terms-', n)", created_at: `${now} - 5000 * n` });
  await insert('uploads', {
    object_key: `concat('uploads/', ${id}, '.pdf')`,
    user_id: 'users.id',
    purpose: "'direct'",
    content_type: "'application/pdf'",
    size: '1',
    state: "'kept'",
    expires_at: now,
    created_at: now,
  });
  await insert(
    'passkeys',
    {
      ...ofUser,
      credential_id: id,
      public_key: "''",
      sign_count: '0',
      transports: "''",
      backup_eligible: '0',
      backed_up: '0',
      aaguid: "''",
      name: "'key'",
      proven: '1',
      created_at: now,
    },
    MAX_PASSKEYS - 1,
  );
  await insert(
    'identities',
    { ...ofUser, issuer: "'https://issuer.test'", subject: id, provider: "'idp'", proven: '1', created_at: now },
    MAX_IDENTITIES - 1,
  );
}

/** Identities and events of 10,000 other users: of a table that is small, or one user's, the server reads every row. */
async function furnishOthers(): Promise<void> {
  await stack.database(
    `insert into users (id, email, name, search_name, provider, role, email_verified, session_epoch, created_at, password_proven)
     select concat('user_', uuid()), concat('other-', n, '@example.test'), 'Other', 'other', 'idp', 'user', 1, 0, ${now}, 0 from ${numbers}`,
  );
  await stack.database(
    `insert into identities (id, user_id, issuer, subject, provider, proven, created_at)
     select right(id, 36), id, 'https://issuer.test', id, 'idp', 1, ${now} from users`,
  );
  await stack.database(
    `insert into activity (id, user_id, kind, actor, request_id, address, device, details, created_at)
     select concat(left(${msHex}, 8), '-', right(${msHex}, 4), '-7000-8000-', lpad(n, 12, '0')), concat('other-', n),
     'logged-in', 'user', '', '', '', '{"method":"password"}', ${now} from ${numbers}`,
  );
  await stack.database('analyze table identities, activity');
}

async function rowsReadSoFar(): Promise<number> {
  const rows = await stack.database<{ Value: string }>("show global status like 'Handler_read%'");
  return rows.reduce((sum, { Value }) => sum + Number(Value), 0);
}

/** The rows that the server reads for a request: the minimum of several tries, because workers read too. */
async function rowsReadBy(ask: () => Promise<unknown>, tries = TRIES): Promise<number> {
  const counts: number[] = [];
  for (let i = 0; i < tries; i++) {
    const before = await rowsReadSoFar();
    const own = (await rowsReadSoFar()) - before;
    const begin = await rowsReadSoFar();
    await ask();
    counts.push((await rowsReadSoFar()) - begin - own);
  }
  return Math.min(...counts);
}

const furnished = async (count: number) => {
  const person = await loggedIn(scenario());
  const device = deviceIn(await call('auth.login', person));
  const authenticator = authenticatorFor(stack);
  await addPasskey(call, person.session, authenticator);
  await furnish(person, count);
  const subject = freshSubject();
  await stack.database(
    `insert into identities (id, user_id, issuer, subject, provider, proven, created_at) values (?, ?, ?, ?, 'acme', 1, 0)`,
    [crypto.randomUUID(), person.id, provider.url, subject],
  );
  await mailsSettledOf(person.email);
  return { ...person, device, authenticator, subject };
};
type Furnished = Awaited<ReturnType<typeof furnished>>;

/** Waits for the user's mails, except those due in more than an hour. */
const mailsSettledOf = async (email: string) => {
  await stack.database("update outbox set email = '' where inbox = ? and due_at > unix_timestamp() * 1000 + 3600000", [
    email,
  ]);
  await mailsSettled(stack, email);
  await stack.database("update outbox set email = inbox where email = ''");
};

const ok = async (procedure: string, input?: unknown, options?: Parameters<Call>[2]) => {
  const reply = await call(procedure, input, options);
  expect(reply).toMatchObject({ code: undefined });
  return reply;
};

/** Frequent requests. */
const requests: Record<string, (user: Furnished) => Promise<unknown>> = {
  'a login from a known device': (user) => logIn(call, user, { device: user.device }),
  'a login from a new device': (user) => logIn(call, user),
  'a login through a provider': async ({ subject: sub, email }) => {
    const { location } = await logInThrough(stack, { sub, email, email_verified: true });
    expect(location).toBe('/dashboard');
  },
  'a login by passkey': ({ authenticator }) => logInByPasskey(call, authenticator),
  'a wrong password': (user) => call('auth.login', { ...user, password: 'Wrong-1' }, { device: user.device }),
  'the check of a session': ({ session }) => ok('profile.get', undefined, { session }),
  'a credential given again': ({ session, password }) => ok('auth.reauthenticate', { password }, { session }),
  'the list of sessions': ({ session }) => ok('sessions.list', undefined, { session }),
  'the activity': ({ session }) => ok('activity.list', { limit: '20' }, { session }),
  'the list of identities': ({ session }) => ok('identities.list', undefined, { session }),
  'the list of passkeys': ({ session }) => ok('passkeys.list', undefined, { session }),
  'the list of consents': ({ session }) => ok('consents.list', undefined, { session }),
  'the list of uploads': ({ session }) => ok('upload.list', { limit: '20' }, { session }),
  'the request for a reset': ({ email }) => ok('auth.forgotPassword', { email }),
};

/** Requests that end all sessions and delete their rows. */
const ends: Record<string, (user: Furnished) => Promise<() => Promise<unknown>>> = {
  'logging out everywhere':
    async ({ session }) =>
    () =>
      ok('auth.logoutAll', undefined, { session }),
  'a change of the password':
    async ({ session, password }) =>
    () =>
      ok('account.changePassword', { currentPassword: password, newPassword: NEW_PASSWORD }, { session }),
  'a reset of the password': async ({ email }) => {
    await ok('auth.forgotPassword', { email });
    const token = await mailedToken(stack, email, 'reset-password');
    return () => ok('auth.resetPassword', { token, email, password: NEW_PASSWORD });
  },
  '“this was not me”': async (user) => {
    await logIn(call, user);
    const token = await mailedToken(stack, user.email, 'not-me');
    return () => ok('account.notMe', { token });
  },
};

describe('with 10,000 users of each standing, a page of a list reads no more rows than with few', () => {
  const lists = [
    ...['administrator', 'unverified', 'blocked', 'deleted'].map((standing) => ({ standing })),
    ...['-created', 'created', 'name', '-name', 'email', '-email'].map((sort) => ({ sort })),
  ];
  let session = '';
  const pages = new Map<object, { first: number; second: number }>();
  /** The rows of the first and of the second page. */
  const measure = async (list: object) => {
    const cursors: string[] = [];
    const read = (cursor?: string) => async () => {
      const { data } = await ok('users.find', { ...list, limit: '20', ...(cursor && { cursor }) }, { session });
      cursors.push(data.nextCursor);
    };
    const first = await rowsReadBy(read());
    return { first, second: cursors[0] === undefined ? first : await rowsReadBy(read(cursors[0])) };
  };
  beforeAll(async () => {
    ({ session } = await administrator(scenario()));
    for (const list of lists) pages.set(list, await measure(list));
    const columns = { role: "'admin'", email_verified: '0', blocked_at: `${now} - n`, deleted_at: `${now} - n` };
    for (const [column, value] of Object.entries(columns))
      await stack.database(
        `insert into users (id, email, name, search_name, provider, role, email_verified, session_epoch, created_at, password_proven, blocked_at, deleted_at)
         select concat('user_', uuid()), concat('${column}-', n, '@example.test'), 'Many', 'many', 'email',
         ${column === 'role' ? value : "'user'"}, ${column === 'email_verified' ? value : '1'}, 0, ${now}, 1,
         ${column === 'blocked_at' ? value : 'null'}, ${column === 'deleted_at' ? value : 'null'}
         from ${numbers} where n < ?`,
        [MANY],
      );
    await stack.database('analyze table users');
  });

  test.each(lists.map((list) => [Object.values(list)[0], list] as const))('%s', async (_, list) => {
    const before = pages.get(list);
    const after = await measure(list);
    // A page is full among many: each of its rows, and the logins of its users.
    expect(after.first).toBeLessThanOrEqual((before?.first ?? 0) + 120 + NOISE);
    expect(after.second).toBeLessThanOrEqual((before?.second ?? 0) + 120 + NOISE);
  });
});

describe('an account with 10,000 rows of everything reads no more rows than one with 10', () => {
  let few: Furnished;
  let many: Furnished;
  beforeAll(async () => {
    few = await furnished(FEW);
    many = await furnished(MANY);
  });

  test.each(Object.keys(requests))('%s', async (name) => {
    const ask = requests[name] as (typeof requests)[string];
    const [ofFew, ofMany] = [await rowsReadBy(() => ask(few)), await rowsReadBy(() => ask(many))];
    expect(ofMany).toBeLessThanOrEqual(ofFew + MAX_MORE + NOISE);
  });
});

test.each(Object.keys(ends))('with 10,000 sessions, %s deletes 1,000 rows; the epoch ends the rest', async (name) => {
  const prepare = ends[name] as (typeof ends)[string];
  const readOf = async (count: number) => rowsReadBy(await prepare(await furnished(count)), 1);
  const [ofFew, ofMany] = [await readOf(FEW), await readOf(MANY)];
  expect(ofMany).toBeLessThanOrEqual(ofFew + 2 * MAX_SESSIONS + 2 * MAX_MORE + NOISE);
});
