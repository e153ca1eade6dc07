import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { createConnection } from 'mysql2/promise';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cpuTime } from '../bench/measure.ts';
import { type Call, type CallOptions, callerOf } from '../contract/callers.ts';
import { loggedIn, mailedToken, mailsSettled, registered, verified } from '../contract/scenario.ts';
import { clientAddress, freshEmail } from '../rig/address.ts';
import { startMysql } from '../rig/mysql.ts';
import type { PrivateServer } from '../rig/private-server.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** What a database sees of a request must not depend on whether the address has an account; nor may one address stop others. */
let mysql: PrivateServer;
let stack: Stack;
let call: Call;

beforeAll(async () => {
  mysql = await startMysql();
  stack = await startStack('real', { mysqlUrl: mysql.url, env: { PASSWORD_ITERATIONS: '100000' } });
  call = callerOf('rest', stack.url);
});
afterAll(async () => {
  await stack?.stop();
  await mysql?.stop();
});

/** The statements about mails and users that the service sends while `ask` runs, without their values. */
async function statementsOf(ask: () => Promise<unknown>): Promise<string[]> {
  const isIdle = async () =>
    (await stack.database("select id from outbox where state = 'pending' limit 1")).length === 0;
  await until(isIdle, { within: 50_000, what: 'the end of all mails' });
  await stack.database('truncate table mysql.general_log');
  await stack.database("set global log_output = 'TABLE'");
  await stack.database('set global general_log = 1');
  await ask();
  await stack.database('set global general_log = 0');
  const rows = await stack.database<{ argument: string }>(
    "select convert(argument using utf8mb4) as argument from mysql.general_log where command_type in ('Query', 'Execute', 'Prepare')",
  );
  return (
    rows
      .map(({ argument }) => argument.replace(/'[^']*'/g, '?').replace(/\b\d+\b/g, '?'))
      // The workers poll by themselves.
      .filter((statement) => /^insert|^update|^delete|`users`|one_time_tokens/i.test(statement))
  );
}

test.each(['auth.forgotPassword', 'auth.resendVerification'])(
  '%s sends the database the same statements for every address',
  async (procedure) => {
    const known = await verified({ stack, call });
    const waiting = await registered({ stack, call });
    await Promise.all([known, waiting].map(({ email }) => mailsSettled(stack, email)));
    const ofUnknown = await statementsOf(() => call(procedure, { email: freshEmail() }));
    expect(ofUnknown).toEqual([expect.stringMatching(/^insert into `outbox`/)]);
    for (const { email } of [known, waiting]) {
      expect(await statementsOf(() => call(procedure, { email }))).toEqual(ofUnknown);
      await mailsSettled(stack, email);
    }
  },
);

test('requests for a mail to one address wait for nothing and keep no other request waiting', async () => {
  const person = await loggedIn({ stack, call });
  await mailsSettled(stack, person.email);
  const holder = await createConnection({ uri: String(stack.services[0]?.env.DATABASE_URL) });
  try {
    // As the service itself locks rows: nothing beside them.
    await holder.query('set transaction isolation level read committed');
    await holder.query('begin');
    await holder.query('select id from users where email = ? for update', [person.email]);
    const asked = await Promise.all(
      Array.from({ length: 300 }, () => call('auth.forgotPassword', { email: person.email })),
    );
    expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await call('profile.get', undefined, { session: person.session })).status).toBe(200);
    await registered({ stack, call });
  } finally {
    await holder.query('rollback');
    await holder.end();
  }
  await stack.waitForMail({ to: person.email, subject: 'Reset' });
});

/** What the work costs the service, in ms of CPU. */
async function cpuOf<T>(work: () => Promise<T>): Promise<[T, number]> {
  const pid = stack.services[0]?.pid ?? 0;
  const before = cpuTime(pid);
  const result = await work();
  return [result, cpuTime(pid) - before];
}

const logins = (times: number, email: () => string, options: () => CallOptions = () => ({})) =>
  Promise.all(
    Array.from({ length: times }, () =>
      call('auth.login', { email: email(), password: 'Wrong-Password-1' }, options()),
    ),
  );

/** Stored hashes need not be of any password: none is right. */
const storeHash = (id: string, rounds: number | null) =>
  stack.database('update users set password_hash = ? where id = ?', [
    rounds && `${rounds}:${randomBytes(16).toString('base64')}:${randomBytes(32).toString('base64')}`,
    id,
  ]);

test('a wrong password costs the same work for every address, whatever is stored of it', async () => {
  const [known, outdated, without] = await Promise.all([1, 2, 3].map(() => registered({ stack, call })));
  if (!known || !outdated || !without) throw new Error('three users');
  await storeHash(outdated.id, 1000);
  await storeHash(without.id, null);
  const costOf = async (email: () => string) => {
    const [replies, cost] = await cpuOf(() => logins(20, email));
    for (const reply of replies) expect(reply).toMatchObject({ status: 401, code: 'INVALID_CREDENTIALS' });
    return cost;
  };
  await costOf(() => known.email);
  const usual = await costOf(() => known.email);
  const ratios = {
    unknown: (await costOf(() => freshEmail())) / usual,
    outdated: (await costOf(() => outdated.email)) / usual,
    without: (await costOf(() => without.email)) / usual,
  };
  // A login without a hash, or with one of a hundredth of the rounds, costs a quarter.
  for (const [whose, ratio] of Object.entries(ratios)) {
    expect([whose, ratio > 0.6 && ratio < 1.6, ratio]).toEqual([whose, true, ratio]);
  }
});

test('a login past the limit costs no hash', async () => {
  const [, looked] = await cpuOf(() => logins(40, freshEmail));
  const address = clientAddress();
  const [replies, limited] = await cpuOf(() => logins(40, freshEmail, () => ({ address })));
  expect(replies.filter(({ status }) => status === 429)).toHaveLength(35);
  // Five hashes instead of forty.
  expect(limited).toBeLessThan(looked / 2);
});

test('more logins than a second or two of hashing are refused, and the others answered', async () => {
  const cores = availableParallelism();
  const { id, email } = await registered({ stack, call });
  // Hashes so slow that all requests have arrived before many are done.
  await storeHash(id, 300_000);
  const replies = await logins(cores * 130 + 50, () => email);
  const refused = replies.filter(({ status }) => status !== 401);
  for (const reply of refused) {
    expect(reply).toMatchObject({ status: 503, code: 'SERVICE_UNAVAILABLE', setCookies: [] });
  }
  // A part that does not answer, as on a machine that is busy with other things, would say one second.
  expect(refused.filter(({ headers }) => headers.get('retry-after') === '2').length).toBeGreaterThan(0);
  expect(replies.length - refused.length).toBeGreaterThan(cores);
  expect((await logins(1, freshEmail))[0]?.status).toBe(401);
});

test('one token tried sixty times at once buys one password hash, and its failures count', async () => {
  const { email } = await verified({ stack, call });
  await call('auth.forgotPassword', { email });
  const token = await mailedToken(stack, email, 'reset-password');
  const address = clientAddress();
  const [, tenHashes] = await cpuOf(() =>
    Promise.all(Array.from({ length: 10 }, () => call('auth.login', { email: freshEmail(), password: 'x' }))),
  );
  const [replies, sixtyResets] = await cpuOf(() =>
    Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        call('auth.resetPassword', { token, email, password: `Difference-Engine-${i}` }, { address }),
      ),
    ),
  );
  // Sixty hashes would take six times the CPU.
  expect(sixtyResets).toBeLessThan(2 * tenHashes);
  const count = (code: string | undefined) => replies.filter((reply) => reply.code === code).length;
  expect({ done: count(undefined), invalid: count('INVALID_TOKEN'), limited: count('RATE_LIMITED') }).toEqual({
    done: 1,
    invalid: 50,
    limited: 9,
  });
  const again = await call('auth.resetPassword', { token, email, password: 'Difference-Engine-1' }, { address });
  expect(again).toMatchObject({ status: 429, code: 'RATE_LIMITED' });
});
