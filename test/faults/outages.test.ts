import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { procedures } from '../../routers/procedures.ts';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { createKey } from '../contract/rig/key-scenario.ts';
import { relyingParty } from '../contract/rig/relying-party.ts';
import { inBrowser, isAlive, loggedIn, logIn, mailedToken, PASSWORD } from '../contract/rig/scenario.ts';
import { codeOf, pendingIn, withApp } from '../contract/rig/totp-scenario.ts';
import { type Service, startService } from '../rig/process/service.ts';
import { clientAddress, freshEmail } from '../rig/servers/address.ts';
import { startMysql } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { startRedis } from '../rig/servers/redis.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** Faults are made on private servers, so the tests of this file run sequentially. */
const SERVICE_TOKEN = 'token-of-another-service';
let mysql: PrivateServer;
let redis: PrivateServer;
let stack: Stack;
let call: Call;

beforeAll(async () => {
  [mysql, redis] = await Promise.all([startMysql(), startRedis({ appendfsync: 'always' })]);
  stack = await startStack('real', {
    mysqlUrl: mysql.url,
    redisUrl: redis.url,
    env: {
      EMAIL_CODES: 'on',
      SERVICE_TOKENS: `shop:${createHash('sha256').update(SERVICE_TOKEN).digest('hex')}`,
    },
  });
  call = callerOf('rest', stack.url);
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([mysql.stop(), redis.stop()]);
});

// Undoes what a failed test has left frozen.
afterEach(() => {
  mysql.resume();
  redis.resume();
});

const timed = async <T>(work: Promise<T>): Promise<[T, number]> => {
  const started = performance.now();
  return [await work, performance.now() - started];
};

/**
 * The margin beyond the service's own limit: a second, and ten times what twenty requests take with all parts up, on
 * this machine under its current load.
 */
const slack = async (): Promise<number> => {
  const [, ms] = await timed(Promise.all(Array.from({ length: 20 }, () => call('users.list'))));
  return 1000 + 10 * ms;
};

const newUser = () => ({ name: 'Ada Lovelace', email: freshEmail(), password: PASSWORD });

/** Of one process. */
const CONNECTIONS = 10;
/** The requests that wait for a connection. */
const QUEUE = 1000;
/** Connections of the test's own view. */
const OF_VIEW = 2;

const SOME_ID = '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c';

/** The shape of a browser's input for a login or a new passkey. */
const passkeyResponse = {
  id: 'AAAA',
  rawId: 'AAAA',
  type: 'public-key',
  response: { clientDataJSON: 'e30', attestationObject: 'oA', authenticatorData: 'AAAA', signature: 'AAAA' },
};
const passkeyChanges: [string, unknown][] = [
  ['passkeys.beginRegistration', undefined],
  ['passkeys.finishRegistration', passkeyResponse],
  ['passkeys.remove', { id: SOME_ID }],
];

/** Account changes that need both database and Redis. */
const changes = (session: string): [string, unknown][] => [
  ['auth.reauthenticate', { password: PASSWORD }],
  ['account.changePassword', { currentPassword: PASSWORD, newPassword: `${PASSWORD}!` }],
  ['account.changeEmail', { email: freshEmail() }],
  ['account.confirmEmail', { token: session }],
];

const ofSecondFactors: [string, unknown][] = [
  ['totp.status', undefined],
  ['totp.begin', undefined],
  ['totp.enable', { code: '123456' }],
  ['totp.disable', undefined],
  ['recoveryCodes.renew', undefined],
  ['users.removeSecondFactors', { id: SOME_ID }],
];

/** Both read the session, but need none. */
const ofApplications: [string, unknown][] = [
  ['authorizations.proceed', { id: 'x'.repeat(43) }],
  ['authorizations.logOut', {}],
];

/** Each kind of request that needs the database. */
const databaseRequests = (session: string): [string, unknown][] => [
  ['profile.get', undefined],
  ['users.list', undefined],
  ['auth.login', { email: freshEmail(), password: PASSWORD }],
  ['auth.register', newUser()],
  ['auth.forgotPassword', { email: freshEmail() }],
  ['auth.resetPassword', { token: 'x'.repeat(43), email: freshEmail(), password: PASSWORD }],
  ['account.undoEmailChange', { token: 'x'.repeat(43) }],
  ['profile.update', { name: session.slice(0, 8) }],
  ['auth.logoutAll', undefined],
  ['sessions.list', undefined],
  ['sessions.end', { id: SOME_ID }],
  ['identities.list', undefined],
  ['identities.unlink', { id: SOME_ID }],
  ['passkeys.list', undefined],
  ['passkeys.rename', { id: SOME_ID, name: 'Laptop' }],
  ...passkeyChanges,
  ...ofSecondFactors,
  ['activity.list', undefined],
  ['consents.list', undefined],
  ['consents.accept', { version: '1' }],
  ['account.notMe', { token: 'x'.repeat(43) }],
  ...changes(session),
  ['account.export', undefined],
  ['account.delete', undefined],
  ['account.restore', { email: freshEmail(), password: PASSWORD }],
  ['auth.beginEmailCode', { email: freshEmail() }],
  ...ofApplications,
];

const expectUnavailable = async (session: string, requests: [string, unknown][], within: number) => {
  const replies = await Promise.all(
    requests.map(([procedure, input]) => timed(call(procedure, input, { session, pending: 'x'.repeat(43) }))),
  );
  for (const [i, [reply, ms]] of replies.entries()) {
    expect([requests[i]?.[0], reply.status, reply.code]).toEqual([requests[i]?.[0], 503, 'SERVICE_UNAVAILABLE']);
    expect(reply.headers.get('retry-after')).toBe('1');
    expect(reply.setCookies).toEqual([]);
    expect(ms).toBeLessThan(within);
  }
};

const withSession = procedures.filter(({ meta }) => meta?.openapi?.protect);

/** The name, status and cookies of an answer under /trpc. */
const answerOf = async (name: string, headers: Record<string, string>, input?: unknown) => {
  const isQuery = procedures.find((one) => one.name === name)?.type === 'query';
  const text = input === undefined ? undefined : JSON.stringify(input);
  const query = isQuery && text !== undefined ? `?input=${encodeURIComponent(text)}` : '';
  const response = await fetch(`${stack.url}/trpc/${name}${query}`, {
    method: isQuery ? 'GET' : 'POST',
    headers: { 'x-forwarded-for': clientAddress(), 'content-type': 'application/json', ...headers },
    ...(!isQuery && text !== undefined && { body: text }),
  });
  await response.arrayBuffer();
  return [name, response.status, response.headers.getSetCookie()];
};

/** Every procedure that needs a session is unavailable. Without input: the session is checked first. */
const expectNoSessions = async (session: string) => {
  expect(withSession.length).toBeGreaterThan(60);
  const cookie = `auth_session=${session}`;
  const answers = await Promise.all(withSession.map(({ name }) => answerOf(name, { cookie })));
  expect(answers).toEqual(withSession.map(({ name }) => [name, 503, []]));
};

/** No answer about a credential that cannot be checked; each request has its own bearer credential. */
const expectNoVerdict = async (requests: [procedure: string, input: unknown, bearer: string][]) => {
  const answers = await Promise.all(
    requests.map(([name, input, bearer]) => answerOf(name, { authorization: `Bearer ${bearer}` }, input)),
  );
  expect(answers).toEqual(requests.map(([name]) => [name, 503, []]));
};

/** An application that refreshes the token of a user. */
const refreshing = async (session: string) => {
  const party = await relyingParty({ stack, call });
  const { refresh_token: token = '' } = await party.logIn(session);
  const client = { client_id: party.id, client_secret: party.secret ?? '' };
  const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: token, ...client });
  return () => fetch(party.at('/oauth/token'), { method: 'POST', body });
};

const expectOutage = async (response: Response) => {
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
  await response.text();
};

const recovers = (within: number) => {
  const isReady = async () => (await fetch(`${stack.url}/readyz`)).status === 200;
  const serves = async () => (await call('users.list')).status === 200 && (await call('health')).status === 200;
  return until(async () => (await isReady()) && (await serves()), { within });
};

describe('the database', () => {
  // checks: F3
  test.each([
    ['stopped', false],
    ['killed', true],
  ])('%s: dependent calls get 503, health reports it, and no acknowledged change is lost', async (_, kill) => {
    const { session, ...person } = await loggedIn({ stack, call });
    const more = await slack();
    await mysql.down({ kill });
    await expectUnavailable(session, databaseRequests(session), 5000 + more);
    const [health, ms] = await timed(call('health'));
    expect(health.status).toBe(503);
    expect(health.data).toMatchObject({ status: 'error', db: 'disconnected' });
    expect(ms).toBeLessThan(2000 + more);
    expect((await fetch(`${stack.url}/livez`)).status).toBe(200);
    expect((await fetch(`${stack.url}/readyz`)).status).toBe(503);
    await mysql.up();
    await recovers(3000 + more);
    expect(await isAlive(call, session)).toBe(true);
    await logIn(call, person);
  });

  // checks: F4
  test('hung: every request is answered within five seconds, and the service recovers soon', async () => {
    const { session, ...person } = await loggedIn({ stack, call });
    const refresh = await refreshing(session);
    const { secret: key } = await createKey({ stack, call }, session);
    const more = await slack();
    mysql.pause();
    await expectOutage(await refresh());
    await expectNoSessions(session);
    await expectNoVerdict([
      ['profile.get', undefined, key],
      ['service.session', { token: session }, SERVICE_TOKEN],
      ['service.session', { token: key }, SERVICE_TOKEN],
      ['service.users', { ids: [person.id] }, SERVICE_TOKEN],
      ['service.endSessions', { userId: person.id }, SERVICE_TOKEN],
      ['service.events', { after: 0 }, SERVICE_TOKEN],
    ]);
    const flood = Array.from({ length: 100 }, () => call('profile.get', undefined, { session }));
    await expectUnavailable(session, databaseRequests(session), 5000 + more);
    for (const { status } of await Promise.all(flood)) expect(status).toBe(503);
    const [health, ms] = await timed(call('health'));
    expect(health.data).toMatchObject({ db: 'disconnected' });
    expect(ms).toBeLessThan(2000 + more);
    mysql.resume();
    await recovers(3000 + more);
    expect(await isAlive(call, session)).toBe(true);
    const { data } = await call('profile.get', undefined, { session });
    // Refused changes were not made.
    expect(data.user.name).toBe(person.name);
  });
});

describe('more requests than the pool takes', () => {
  const burst = () => Promise.all(Array.from({ length: QUEUE + 100 }, () => call('users.list', { q: randomUUID() })));

  test('at a hung database are all refused as an outage', async () => {
    const more = await slack();
    mysql.pause();
    const [replies, ms] = await timed(burst());
    mysql.resume();
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([503]));
    expect(ms).toBeLessThan(5000 + more);
    await recovers(3000 + more);
  });

  test('open no more connections', async () => {
    await stack.database('flush status');
    await burst();
    const [used] = await stack.database<{ Value: string }>("show global status like 'Max_used_connections'");
    expect(Number(used?.Value)).toBeLessThanOrEqual(CONNECTIONS + OF_VIEW);
  });
});

test('attempts that no part could look at leave the limit of the address alone', async () => {
  const { session, ...person } = await loggedIn({ stack, call });
  const more = await slack();
  const address = clientAddress();
  const attempt = () => call('auth.login', { email: person.email, password: PASSWORD }, { address });
  await mysql.down();
  for (let i = 0; i < 6; i++) expect((await attempt()).status).toBe(503);
  await mysql.up();
  await recovers(3000 + more);
  expect((await attempt()).status).toBe(200);
  const wrong = () => call('auth.login', { email: person.email, password: 'Wrong-1' }, { address });
  const statuses = [];
  for (let i = 0; i < 5; i++) statuses.push((await wrong()).status);
  expect(statuses).toEqual([401, 401, 401, 401, 429]);
});

test('right credentials that cannot be stored leave all limits alone', async () => {
  const [person, user] = [await loggedIn({ stack, call }), await withApp({ stack, call })];
  const { email, password } = person;
  const address = clientAddress();
  const inSession = { session: person.session, address };
  const attempts = {
    login: () => call('auth.login', { email, password }, { address }),
    reauthentication: () => call('auth.reauthenticate', { password }, inSession),
    change: () => call('account.changePassword', { currentPassword: password, newPassword: `${password}2` }, inSession),
  };
  const givePassword = () => call('auth.login', { email: user.email, password: user.password });
  const pending = await Promise.all(Array.from({ length: 3 }, async () => pendingIn(await givePassword())));
  const giveCode = (one?: string) => call('auth.secondFactor', { code: codeOf(user.secret) }, { pending: one });
  const more = await slack();
  const writer = await createConnection(mysql.url);
  try {
    await writer.query('flush tables with read lock');
    for (const one of pending) {
      // Fewer at once than any limit: 5 logins of an address, 4 codes of a pending login.
      const calls = [...Object.values(attempts).map((attempt) => attempt()), ...[1, 2, 3, 4].map(() => giveCode(one))];
      expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(calls.map(() => 503));
    }
  } finally {
    await writer.end();
  }
  await recovers(3000 + more);
  expect((await giveCode(pending[0])).status).toBe(200);
  for (const attempt of Object.values(attempts)) expect((await attempt()).status).toBe(200);
});

/** A user with a changed email, and the token that undoes it. */
const changedAddress = async () => {
  const { session, ...person } = await loggedIn({ stack, call });
  const email = freshEmail();
  await call('account.changeEmail', { email }, inBrowser(session));
  const token = await mailedToken(stack, email, 'confirm-email');
  expect((await call('account.confirmEmail', { token }, inBrowser(session))).status).toBe(200);
  return { ...person, session, undo: await mailedToken(stack, person.email, 'undo-email-change') };
};

describe('Redis', () => {
  const protectedRequests: [string, unknown][] = [
    ['profile.get', undefined],
    ['profile.update', { name: 'Ada' }],
    ['auth.logout', undefined],
    ['auth.logoutAll', undefined],
    ['sessions.list', undefined],
    ['sessions.end', { id: SOME_ID }],
    ['identities.list', undefined],
    ['identities.unlink', { id: SOME_ID }],
    ['auth.beginPasskey', undefined],
    ['auth.finishPasskey', passkeyResponse],
    ['passkeys.list', undefined],
    ['passkeys.rename', { id: SOME_ID, name: 'Laptop' }],
    ...passkeyChanges,
    ...ofSecondFactors,
    ['auth.secondFactor', { code: '123456' }],
    ['activity.list', undefined],
    ['consents.list', undefined],
    ['consents.accept', { version: '1' }],
    ['account.export', undefined],
    ['account.delete', undefined],
    ['account.restore', { email: freshEmail(), password: PASSWORD }],
    ['auth.login', { email: freshEmail(), password: PASSWORD }],
    ['auth.beginEmailCode', { email: freshEmail() }],
    ['auth.finishEmailCode', { code: '123456' }],
    ...ofApplications,
  ];

  // checks: F5, F8, F9
  test.each([
    ['stopped', () => redis.down(), () => redis.up()],
    ['killed', () => redis.down({ kill: true }), () => redis.up()],
    ['hung', async () => redis.pause(), async () => redis.resume()],
  ])('%s: nobody is logged in or out, and a reset still ends all sessions', async (_, down, up) => {
    const { session, ...person } = await loggedIn({ stack, call });
    const { email } = person;
    const other = await loggedIn({ stack, call });
    const others = [other.session, ...(await Promise.all([0, 1, 2].map(() => logIn(call, other))))];
    const left = await logIn(call, other);
    expect((await call('auth.logout', undefined, { session: left })).status).toBe(200);
    await call('auth.forgotPassword', { email });
    const token = await mailedToken(stack, email, 'reset-password');
    const { undo, ...thief } = await changedAddress();
    const refresh = await refreshing(other.session);
    const more = await slack();
    await down();
    await expectOutage(await refresh());
    await expectUnavailable(session, [...protectedRequests, ...changes(session)], 1000 + more);
    await expectNoSessions(session);
    await expectNoVerdict([['service.session', { token: session }, SERVICE_TOKEN]]);
    expect((await call('users.list')).status).toBe(200);
    expect((await call('health')).status).toBe(200);
    const password = 'Difference-Engine-1822';
    const [reset, ms] = await timed(call('auth.resetPassword', { token, email, password }));
    expect(reset.status).toBe(200);
    expect(ms).toBeLessThan(1500 + more);
    expect((await call('account.undoEmailChange', { token: undo })).status).toBe(200);
    await up();
    await until(async () => (await call('profile.get', undefined, { session: other.session })).status === 200, {
      within: 2000 + more,
    });
    expect(await Promise.all(others.map((one) => isAlive(call, one)))).toEqual([true, true, true, true]);
    expect((await refresh()).status).toBe(200);
    for (const one of [session, left, thief.session]) expect(await isAlive(call, one)).toBe(false);
    await logIn(call, { ...person, password });
  });
});

describe('dependencies that start late', () => {
  const startedWhile = async (server: PrivateServer, check: (service: Service) => Promise<void>) => {
    const more = await slack();
    await server.down();
    const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
    const service = await startService({ env, ready: false });
    try {
      await check(service);
      await server.up();
      await until(async () => (await fetch(`${service.url}/readyz`)).status === 200, { within: 5000 + more });
      const late = callerOf('rest', service.url);
      expect((await late('users.list')).status).toBe(200);
      expect((await late('profile.get')).status).toBe(401);
    } finally {
      await service.stop();
      await server.restart();
      await recovers(5000 + more);
    }
  };

  // checks: F7
  test('the service waits for a missing database and logs it', () =>
    startedWhile(mysql, async ({ url, output }) => {
      expect((await callerOf('rest', url)('health')).data).toMatchObject({ db: 'disconnected' });
      expect((await callerOf('rest', url)('users.list')).status).toBe(503);
      await until(() => output().includes('waiting for it'));
    }));

  // checks: F7
  test('the service waits for a missing Redis', () =>
    startedWhile(redis, async ({ url, output }) => {
      const early = callerOf('rest', url);
      await until(async () => (await early('health')).status === 200);
      expect((await early('profile.get', undefined, { session: 'x'.repeat(43) })).status).toBe(503);
      await until(() => output().includes('Redis does not answer'));
    }));
});

// checks: F21
test('after a minute without database and a storm of retries the service recovers soon, and limits are exact', async () => {
  const OUTAGE_MS = 60_000;
  const { session } = await loggedIn({ stack, call });
  await mysql.down({ kill: true });
  const statuses = new Set<number>();
  let isOver = false;
  let lastRefusal = 0;
  const clients = Array.from({ length: 100 }, async () => {
    while (!isOver) {
      const response = await fetch(`${stack.url}/api/profile`, { headers: { cookie: `auth_session=${session}` } });
      await response.arrayBuffer();
      statuses.add(response.status);
      if (response.status !== 200) lastRefusal = performance.now();
      await pause(500);
    }
  });
  await pause(OUTAGE_MS);
  await mysql.up();
  const back = performance.now();
  await until(() => performance.now() - Math.max(lastRefusal, back) > 3000, { what: 'a steady state' });
  isOver = true;
  await Promise.all(clients);
  expect(statuses).toEqual(new Set([503, 200]));
  const steadyAfter = Math.max(lastRefusal - back, 0);
  expect(steadyAfter).toBeLessThan(10_000);
  const [used] = await stack.database<{ Value: string }>("show global status like 'Max_used_connections'");
  const address = clientAddress();
  const attempts = await Promise.all(
    Array.from({ length: 20 }, () => call('auth.login', { email: freshEmail(), password: PASSWORD }, { address })),
  );
  expect(attempts.filter(({ status }) => status === 401)).toHaveLength(5);
  expect(attempts.filter(({ status }) => status === 429)).toHaveLength(15);
  console.log(`F21: steady ${Math.round(steadyAfter)} ms after the database was back; connections ${used?.Value}`);
});

// checks: F19
test('SIGTERM completes requests in flight and exits with 0', async () => {
  const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
  const service = await startService({ env });
  const leaving = callerOf('rest', service.url);
  const address = clientAddress();
  const inFlight = Array.from({ length: 60 }, () => leaving('auth.register', newUser(), { address }));
  const first = await Promise.race(inFlight);
  expect(first.status).toBe(201);
  // The service exits with 1 if this takes longer than 10 seconds.
  expect(await service.stop()).toBe(0);
  const outcomes = await Promise.allSettled(inFlight);
  const answered = outcomes.filter((outcome) => outcome.status === 'fulfilled').map(({ value }) => value);
  for (const { status } of answered) expect(status).toBe(201);
  // Sent commands were answered; only commands in the client's queue were lost.
  expect(answered.length).toBeGreaterThan(1);
  const ids = answered.map(({ data }) => data.user.id);
  const rows = await stack.database(`select id from users where id in (${ids.map(() => '?').join(',')})`, ids);
  expect(rows).toHaveLength(ids.length);
});
