import { pbkdf2Sync, randomBytes } from 'node:crypto';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { migrationNames } from '../../entities/migrations/index.ts';
import { type Call, callerOf, type Reply } from '../contract/rig/callers.ts';
import {
  administrator,
  inBrowser,
  isAlive,
  kindsOf,
  loggedIn,
  logIn,
  mailedToken,
  PASSWORD,
  registered,
  sessionIn,
  verified,
} from '../contract/rig/scenario.ts';
import { type Service, startService } from '../rig/process/service.ts';
import { clientAddress, freshEmail } from '../rig/servers/address.ts';
import { createDatabase, startMysql } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';
import { patient } from './in-rounds.ts';

/** Two instances on the same parts, with concurrent requests. */
let stack: Stack;
let call: Call;
let callers: Call[];

beforeAll(async () => {
  stack = await startStack('real', { instances: 2 });
  callers = stack.services.map(({ url }) => patient(callerOf('rest', url)));
  call = patient(callerOf('rest', stack.url));
});
afterAll(() => stack.stop());

const atOnce = (times: number, ask: (caller: Call, i: number) => Promise<Reply>) =>
  Promise.all(Array.from({ length: times }, (_, i) => ask(callers[i % callers.length] ?? call, i)));

const tally = (replies: Reply[]) => {
  const counts: Record<string, number> = {};
  for (const { status, code } of replies) {
    const key = code ? `${status} ${code}` : `${status}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
};

// checks: 1
test('forty concurrent registrations of one email create one account and one mail', async () => {
  const person = { name: 'Ada Lovelace', email: freshEmail(), password: PASSWORD };
  const replies = await atOnce(40, (caller) => caller('auth.register', person));
  expect(tally(replies)).toEqual({ '201': 1, '409 EMAIL_TAKEN': 39 });
  expect(await stack.database('select id from users where email = ?', [person.email])).toHaveLength(1);
  await stack.waitForMail({ to: person.email });
  expect(await stack.database('select id from outbox where email = ?', [person.email])).toHaveLength(1);
});

test('forty concurrent uses of one invitation create one account without another mail', async () => {
  const { session } = await administrator({ stack, call });
  const person = { name: 'Ada Lovelace', email: freshEmail(), password: PASSWORD };
  expect((await call('users.invite', { email: person.email }, { session })).status).toBe(201);
  const invitation = await mailedToken(stack, person.email, 'register');
  const replies = await atOnce(40, (caller) => caller('auth.register', { ...person, invitation }));
  const { 201: made, ...refused } = tally(replies);
  expect([made, Object.keys(refused)]).toEqual([1, ['400 INVALID_TOKEN']]);
  expect(await stack.database('select email_verified from users where email = ?', [person.email])).toEqual([
    { email_verified: 1 },
  ]);
  expect(await stack.database('select id from invitations where email = ?', [person.email])).toEqual([]);
  expect(await stack.database('select id from outbox where email = ?', [person.email])).toHaveLength(1);
});

test('forty concurrent invitations of one email leave one, and its mailed link works', async () => {
  const { session } = await administrator({ stack, call });
  const email = freshEmail();
  const replies = await atOnce(40, (caller) => caller('users.invite', { email }, { session }));
  expect(replies.filter(({ status }) => status >= 500).map(({ status }) => status)).toEqual([]);
  const [row, ...others] = await stack.database('select id from invitations where email = ?', [email]);
  expect(others).toEqual([]);
  const newest = { kind: 'invitation', token_id: row?.['id'] };
  expect(await stack.database('select kind, token_id from outbox where email = ? order by id', [email])).toContainEqual(
    newest,
  );
});

// checks: 32
test('forty concurrent uses of one reset token set one password', async () => {
  const { email, id } = await verified({ stack, call });
  await call('auth.forgotPassword', { email });
  const token = await mailedToken(stack, email, 'reset-password');
  const address = clientAddress();
  const passwordOf = (i: number) => `Difference-Engine-${i}`;
  const replies = await atOnce(40, (caller, i) =>
    caller('auth.resetPassword', { token, email, password: passwordOf(i) }, { address }),
  );
  expect(tally(replies)).toEqual({ '200': 1, '400 INVALID_TOKEN': 39 });
  const winner = replies.findIndex(({ status }) => status === 200);
  await logIn(call, { name: '', email, password: passwordOf(winner) });
  expect(await stack.database('select session_epoch from users where id = ?', [id])).toEqual([{ session_epoch: 1 }]);
});

/** A change by another instance that holds the user's row until a request of ours waits for it. */
async function whileChanging<T>(id: string, changes: string, values: string[], ask: () => Promise<T>): Promise<T> {
  const holder = await createConnection({ uri: String(stack.services[0]?.env['DATABASE_URL']) });
  try {
    await holder.query('begin');
    await holder.query('select id from users where id = ? for update', [id]);
    const response = ask();
    // Not one that only reads: it does not wait, and would see either state.
    const waiting = () =>
      stack.database(
        `select 1 from information_schema.processlist where db = database() and id <> connection_id()
         and command <> 'Sleep' and (info like 'update%users%' or info like '%users%for update%')`,
      );
    await until(async () => (await waiting()).length > 0, { what: 'a request that waits for the row' });
    await holder.query(`update users set ${changes} where id = ?`, [...values, id]);
    await holder.query('commit');
    return await response;
  } finally {
    await holder.end();
  }
}

const resetMeanwhile = <T>(id: string, passwordHash: string, ask: () => Promise<T>): Promise<T> =>
  whileChanging(id, 'password_hash = ?, session_epoch = session_epoch + 1', [passwordHash], ask);

const hashOf = (password: string, rounds: number) => {
  const salt = randomBytes(16);
  const hash = pbkdf2Sync(password, salt, rounds, 32, 'sha256');
  return `${rounds}:${salt.toString('base64')}:${hash.toString('base64')}`;
};

// checks: F14
test('a profile change started before a reset and continued after it changes nothing', async () => {
  const { id, session, name } = await loggedIn({ stack, call });
  const reply = await resetMeanwhile(id, hashOf('Difference-Engine-1', 1000), () =>
    call('profile.update', { name: 'Mallory' }, { session }),
  );
  expect(reply).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
  expect(await stack.database('select name from users where id = ?', [id])).toEqual([{ name }]);
});

test('a login that checked the old password before a reset does not store its language', async () => {
  const { id, email, password } = await verified({ stack, call });
  await stack.database("update users set browser_language = 'fr' where id = ?", [id]);
  const headers = { 'accept-language': 'de' };
  await resetMeanwhile(id, hashOf('Difference-Engine-5', 1000), () =>
    call('auth.login', { email, password }, { headers }),
  );
  expect(await stack.database('select browser_language as language from users where id = ?', [id])).toEqual([
    { language: 'fr' },
  ]);
});

test('a first password does not replace one that a concurrent request has set', async () => {
  const { id, session } = await loggedIn({ stack, call });
  await stack.database('update users set password_hash = null where id = ?', [id]);
  const other = hashOf('Difference-Engine-3', 1000);
  const first = { newPassword: 'Difference-Engine-4' };
  const reply = await whileChanging(id, 'password_hash = ?', [other], () =>
    call('account.changePassword', first, { session }),
  );
  expect(reply).toMatchObject({ status: 400, code: 'VALIDATION_FAILED', data: { details: { currentPassword: {} } } });
  expect(await stack.database('select password_hash from users where id = ?', [id])).toEqual([
    { password_hash: other },
  ]);
});

test('a change of address that waits while its session is ended is mailed to nobody', async () => {
  const { id, session } = await loggedIn({ stack, call });
  const email = freshEmail();
  const reply = await whileChanging(id, 'session_epoch = session_epoch + 1', [], () =>
    call('account.changeEmail', { email }, inBrowser(session)),
  );
  expect(reply).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
  expect(await stack.database('select id from outbox where email = ?', [email])).toEqual([]);
});

test('the requests of new addresses beyond the limit are refused, also if all come at once', async () => {
  const { id, session } = await loggedIn({ stack, call });
  const replies = await atOnce(40, (caller) =>
    caller('account.changeEmail', { email: freshEmail() }, { ...inBrowser(session), address: clientAddress() }),
  );
  expect(tally(replies)).toEqual({ '200': 10, '429 RATE_LIMITED': 30 });
  expect((await kindsOf(stack, id)).filter((kind) => kind === 'email-change-requested')).toHaveLength(10);
});

// checks: 36
test('a login that checked the old password before a reset keeps the new hash and has no session', async () => {
  const person = await verified({ stack, call });
  // Fewer rounds than configured, so the login replaces the hash.
  await stack.database('update users set password_hash = ? where id = ?', [hashOf(person.password, 500), person.id]);
  const password = 'Difference-Engine-2';
  const hash = hashOf(password, 1000);
  const { email } = person;
  const login = await resetMeanwhile(person.id, hash, () => call('auth.login', { email, password: person.password }));
  expect(login.status).toBe(200);
  expect(await isAlive(call, sessionIn(login) ?? '')).toBe(false);
  const rows = await stack.database('select password_hash from users where id = ?', [person.id]);
  expect(rows).toEqual([{ password_hash: hash }]);
  expect(await isAlive(call, await logIn(call, { ...person, password }))).toBe(true);
});

// checks: 73
test.each([
  ['webhook', { url: 'https://hooks.example.com/accounts', types: ['user.removed'] }],
  ['application', { name: 'Shop', kind: 'service', redirectUris: [], scopes: ['orders:read'] }],
])('a %s that an administrator creates while the role ends is refused', async (what, fields) => {
  const { id, session } = await administrator({ stack, call });
  const reply = await whileChanging(id, "role = 'user'", [], () => call(`${what}s.create`, fields, { session }));
  expect(reply).toMatchObject({ status: 403, code: 'FORBIDDEN' });
  expect(await stack.database(`select id from ${what}s where administrator_id = ?`, [id])).toEqual([]);
});

// checks: 21
test('a logout on one instance holds on the other', async () => {
  const { session, ...person } = await loggedIn({ stack, call });
  expect((await callers[1]?.('auth.logout', undefined, { session }))?.status).toBe(200);
  expect(await isAlive(call, session)).toBe(false);
  const again = await logIn(call, person);
  await callers[0]?.('auth.logoutAll', undefined, { session: again });
  expect(await isAlive(callers[1] as Call, again)).toBe(false);
});

// checks: 13
test('login attempts share one limit', async () => {
  const address = clientAddress();
  const attempt = { email: freshEmail(), password: PASSWORD };
  const replies = await atOnce(20, (caller) => caller('auth.login', attempt, { address }));
  expect(tally(replies)).toEqual({ '401 INVALID_CREDENTIALS': 5, '429 RATE_LIMITED': 15 });
});

// checks: F14
test('concurrent profile changes, mail requests and logouts of one user cause no deadlock', async () => {
  const { session, email, password, name } = await loggedIn({ stack, call });
  const sessions = [session, ...(await Promise.all([1, 2, 3].map(() => logIn(call, { email, password, name }))))];
  const replies = await atOnce(60, (caller, i) => {
    if (i % 3 === 0) return caller('profile.update', { bio: `${i}` }, { session: sessions[i % 4] });
    if (i % 3 === 1) return caller('auth.forgotPassword', { email });
    return caller('profile.get', undefined, { session: sessions[i % 4] });
  });
  expect(tally(replies)).toEqual({ '200': 60 });
});

test('instances that start concurrently on an empty database all succeed', async () => {
  const fresh = await startStack('real');
  try {
    const tables = await fresh.database('show tables');
    for (const row of [...tables].reverse()) {
      await fresh.database(`set foreign_key_checks = 0`);
      await fresh.database(`drop table ${Object.values(row)[0]}`);
    }
    const { PORT, DATA_DIR, APP_URL, ...env } = fresh.services[0]?.env ?? {};
    const services = await Promise.all([1, 2, 3].map(() => startService({ env })));
    for (const { url } of services) expect((await callerOf('rest', url)('users.list')).status).toBe(200);
    await registered({ stack: fresh, call: callerOf('rest', services[2]?.url ?? '') });
    expect(await fresh.database('select name from mikro_orm_migrations')).toEqual(
      migrationNames.map((name) => ({ name })),
    );
    await Promise.all(services.map((service) => service.stop()));
  } finally {
    await fresh.stop();
  }
});

/** The lock as another migrating instance leaves it: until `seconds` from now. */
const lockMigrations = async (connection: Connection, seconds: number) => {
  await connection.query(
    'create table if not exists migration_lock (id tinyint not null primary key, owner varchar(36) not null, ends_at bigint not null)',
  );
  await connection.query("replace into migration_lock values (1, 'another', (unix_timestamp() + ?) * 1000)", [seconds]);
};

describe('an instance that starts during another’s migration', () => {
  /** A private server with counted statements. */
  let mysql: PrivateServer;
  let other: Connection;
  let databaseUrl: string;
  let service: Service | undefined;
  beforeAll(async () => {
    mysql = await startMysql();
  });
  beforeEach(async () => {
    databaseUrl = await createDatabase(mysql.url);
    other = await createConnection({ uri: databaseUrl });
  });
  afterEach(async () => {
    await service?.stop({ by: 'SIGINT' });
    await other.end();
  });
  afterAll(() => mysql.stop());

  const count = async (sql: string) => {
    const [[row]] = await other.query<RowDataPacket[]>(`select count(*) as n from ${sql}`);
    return Number(row?.['n']);
  };
  const tables = () => count('information_schema.tables where table_schema = database()');
  /** The number of attempts to take the lock: nothing else is updated there. */
  const lockWaits = async () => {
    const [[row]] = await other.query<RowDataPacket[]>("show global status like 'Com_update'");
    return Number(row?.['Value']);
  };
  const start = async () => {
    const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
    service = await startService({ env: { ...env, DATABASE_URL: databaseUrl }, ready: false });
    return service.url;
  };
  const isReady = async (url: string) => (await fetch(`${url}/readyz`)).status === 200;

  test('waits for it before changing the schema', async () => {
    await lockMigrations(other, 600);
    const before = await lockWaits();
    const url = await start();
    await until(async () => (await lockWaits()) > before + 3, { what: 'the wait for the lock' });
    expect(await tables()).toBe(1);
    await other.query('update migration_lock set ends_at = 0');
    await until(() => isReady(url), { what: 'the service' });
    expect(await tables()).toBeGreaterThan(1);
    expect(await count('migration_lock where ends_at = 0')).toBe(1);
  });

  test('takes over when the other has crashed', async () => {
    await lockMigrations(other, 2);
    const url = await start();
    await until(() => isReady(url), { what: 'the service' });
    expect(await count("migration_lock where owner <> 'another'")).toBe(1);
  });
});

test('an instance that starts on a current schema takes no migration lock', async () => {
  const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
  const other = await createConnection({ uri: env.DATABASE_URL ?? '' });
  try {
    await lockMigrations(other, 600);
    const service = await startService({ env });
    expect(await service.stop({ by: 'SIGINT' })).toBe(0);
  } finally {
    await other.query('update migration_lock set ends_at = 0');
    await other.end();
  }
});
