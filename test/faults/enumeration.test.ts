import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { createConnection } from 'mysql2/promise';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cpuTime, duration, median } from '../bench/measure.ts';
import { type Call, type CallOptions, callerOf, type Reply } from '../contract/rig/callers.ts';
import {
  inBrowser,
  loggedIn,
  mailedToken,
  mailsSettled,
  registered,
  sessionIn,
  verified,
  visibleIn,
} from '../contract/rig/scenario.ts';
import { clientAddress, freshEmail } from '../rig/servers/address.ts';
import { startMysql } from '../rig/servers/mysql.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** Hundreds of hashes in sequence, on a busy machine. */
const TIMED = 300_000;

/** The statements of a request must not depend on whether the email has an account; no email may block others. */
let mysql: PrivateServer;
let stack: Stack;
let call: Call;

beforeAll(async () => {
  mysql = await startMysql();
  const env = { PASSWORD_ITERATIONS: '100000', LIMIT_ACCOUNT: '100000/3600', EMAIL_CODES: 'on' };
  stack = await startStack('real', { mysqlUrl: mysql.url, env });
  call = callerOf('rest', stack.url);
});
afterAll(async () => {
  await stack?.stop();
  await mysql?.stop();
});

/** The service's statements about mails and users while `ask` runs, without their values. */
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
      // The workers poll on their own.
      .filter((statement) => /^insert|^update|^delete|`users`|one_time_tokens/i.test(statement))
  );
}

// checks: 11, 29
test.each(['auth.forgotPassword', 'auth.resendVerification', 'auth.beginEmailCode'])(
  '%s sends the same statements to the database for every email',
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

// checks: 11, 29
test('account.changeEmail sends the same statements to the database for every email', async () => {
  const { session } = await loggedIn({ stack, call });
  const known = await verified({ stack, call });
  const waiting = await registered({ stack, call });
  await Promise.all([known, waiting].map(({ email }) => mailsSettled(stack, email)));
  const statementsFor = (email: string) =>
    statementsOf(() => call('account.changeEmail', { email }, inBrowser(session)));
  const ofUnknown = await statementsFor(freshEmail());
  expect(ofUnknown).toContainEqual(expect.stringMatching(/^insert into `outbox`/));
  for (const { email } of [known, waiting]) {
    await mailsSettled(stack, email);
    expect(await statementsFor(email)).toEqual(ofUnknown);
  }
});

test('requests for a mail to one address neither wait nor delay others', async () => {
  const person = await loggedIn({ stack, call });
  await mailsSettled(stack, person.email);
  const holder = await createConnection({ uri: String(stack.services[0]?.env.DATABASE_URL) });
  try {
    // Locks rows as the service does, and nothing else.
    await holder.query('set transaction isolation level read committed');
    await holder.query('begin');
    await holder.query('select id from users where email = ? for update', [person.email]);
    const replies = await Promise.all(
      Array.from({ length: 300 }, () => call('auth.forgotPassword', { email: person.email })),
    );
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await call('profile.get', undefined, { session: person.session })).status).toBe(200);
    await registered({ stack, call });
  } finally {
    await holder.query('rollback');
    await holder.end();
  }
  await stack.waitForMail({ to: person.email, subject: 'Reset' });
});

/** The CPU time of the work in the service, in ms. */
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

/** The hashes need not match any password: all passwords are wrong. */
const storeHash = (id: string, rounds: number | null) =>
  stack.database('update users set password_hash = ? where id = ?', [
    rounds && `${rounds}:${randomBytes(16).toString('base64')}:${randomBytes(32).toString('base64')}`,
    id,
  ]);

// checks: 18
test('a wrong password costs the same work for every email, whatever is stored', async () => {
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

/** One account of each kind, and an unknown email. */
async function addresses() {
  const [known, waiting, external] = [
    await verified({ stack, call }),
    await registered({ stack, call }),
    await verified({ stack, call }),
  ];
  await storeHash(external.id, null);
  return { unknown: freshEmail(), known: known.email, unverified: waiting.email, external: external.email };
}

const SAMPLES = 200;

/**
 * The median times of requests for each email, in turn, so that a slow phase of the machine affects all.
 * `differences`: the median of the differences to the unknown email within a turn.
 */
async function timesOf(emails: Record<string, string>, ask: (email: string) => Promise<Reply>) {
  const times = Object.fromEntries(Object.keys(emails).map((kind) => [kind, [] as number[]]));
  const kinds = Object.entries(emails);
  for (let i = 0; i < SAMPLES; i++) {
    const turn = i % kinds.length;
    for (const [kind, email] of [...kinds.slice(turn), ...kinds.slice(0, turn)]) {
      times[kind]?.push(await duration(() => ask(email)));
    }
  }
  const { unknown = [], ...others } = times;
  const differences = Object.values(others).map((own) => median(own.map((ms, i) => ms - (unknown[i] ?? 0))));
  return { unknown: median(unknown), differences: differences.map(Math.abs) };
}

/** A real difference appears each time; noise of a busy machine does not. */
async function expectSameTimes(measure: () => Promise<{ differences: number[]; allowed: number }>): Promise<void> {
  const seen = [];
  for (let i = 0; i < 3; i++) {
    const { differences, allowed } = await measure();
    if (differences.every((difference) => difference <= allowed)) return;
    seen.push({ differences, allowed });
  }
  throw new Error(`the times differ: ${JSON.stringify(seen)}`);
}

// checks: 18
test(
  `${SAMPLES} interleaved logins take the same time for every email, within a tenth of a hash`,
  async () => {
    const { unverified, ...emails } = await addresses();
    await expectSameTimes(async () => {
      const { unknown, differences } = await timesOf(emails, (email) =>
        call('auth.login', { email, password: 'Wrong-Password-1' }),
      );
      return { differences, allowed: unknown / 10 };
    });
  },
  TIMED,
);

// checks: 11, 29
test.each(['auth.forgotPassword', 'auth.resendVerification', 'auth.beginEmailCode'])(
  `%s, ${SAMPLES} times interleaved, takes the same time for every email, within 5 ms`,
  async (procedure) => {
    const emails = await addresses();
    await expectSameTimes(async () => {
      const { differences } = await timesOf(emails, (email) => call(procedure, { email }));
      return { differences, allowed: 5 };
    });
  },
  TIMED,
);

// checks: 29
test('while the mail server is down every email gets the same answer, and accounts get their mail afterwards', async () => {
  const emails = await addresses();
  await Promise.all(Object.values(emails).map((email) => mailsSettled(stack, email)));
  await stack.smtp?.stop();
  const answers = [];
  for (const email of Object.values(emails)) answers.push(await call('auth.forgotPassword', { email }));
  for (const answer of answers) {
    expect(answer.status).toBe(200);
    expect(visibleIn(answer)).toEqual(visibleIn(answers[0] as Reply));
  }
  await stack.smtp?.start();
  const { unknown, ...others } = emails;
  for (const to of Object.values(others)) await stack.waitForMail({ to, subject: 'Reset', within: 50_000 });
  expect(await stack.mailsTo(unknown)).toEqual([]);
});

test('while the mail server is down email changes get the same answer, and their mails arrive afterwards', async () => {
  const { session, email, password } = await loggedIn({ stack, call });
  const taken = await verified({ stack, call });
  const [next, free] = [freshEmail(), freshEmail()];
  await call('account.changeEmail', { email: next }, inBrowser(session));
  const token = await mailedToken(stack, next, 'confirm-email');
  await mailsSettled(stack, taken.email);
  await stack.smtp?.stop();
  expect((await call('account.confirmEmail', { token }, inBrowser(session))).status).toBe(200);
  const passwords = { currentPassword: password, newPassword: 'Difference-Engine-1' };
  const changed = await call('account.changePassword', passwords, { session });
  expect(changed.status).toBe(200);
  const answers = [];
  for (const email of [free, taken.email]) {
    answers.push(await call('account.changeEmail', { email }, inBrowser(sessionIn(changed) ?? '')));
  }
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(visibleIn(answers[1] as Reply)).toEqual(visibleIn(answers[0] as Reply));
  await stack.smtp?.start();
  const mails = [
    [email, 'The email of your account'],
    [taken.email, 'was entered for another account'],
    [next, 'Your password'],
  ] as const;
  for (const [to, subject] of mails) await stack.waitForMail({ to, subject, within: 50_000 });
  const undo = await mailedToken(stack, email, 'undo-email-change');
  expect((await call('account.undoEmailChange', { token: undo })).status).toBe(200);
});

// checks: 38
test('an invalid token, or another user’s, costs no hash', async () => {
  const [owner, other] = [await verified({ stack, call }), await verified({ stack, call })];
  await call('auth.forgotPassword', { email: owner.email });
  const token = await mailedToken(stack, owner.email, 'reset-password');
  const [, hashes] = await cpuOf(() => logins(40, freshEmail));
  const [replies, cost] = await cpuOf(() =>
    Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        call('auth.resetPassword', {
          token: i % 2 ? token : `${i}`.padStart(43, 'x'),
          email: other.email,
          password: 'Difference-Engine-1',
        }),
      ),
    ),
  );
  expect(replies.map(({ code }) => code)).toEqual(Array(40).fill('INVALID_TOKEN'));
  // With a hash for each half it would be more than half.
  expect(cost).toBeLessThan(hashes / 3);
});

test('a login past the limit costs no hash', async () => {
  const [, looked] = await cpuOf(() => logins(40, freshEmail));
  const address = clientAddress();
  const [replies, limited] = await cpuOf(() => logins(40, freshEmail, () => ({ address })));
  expect(replies.filter(({ status }) => status === 429)).toHaveLength(35);
  // Five hashes instead of forty.
  expect(limited).toBeLessThan(looked / 2);
});

test('logins beyond one or two seconds of hashing are refused, and the others answered', async () => {
  const cores = availableParallelism();
  const { id, email } = await registered({ stack, call });
  // The hashes are so slow that all requests arrive before many are done.
  await storeHash(id, 300_000);
  const replies = await logins(cores * 130 + 50, () => email);
  const refused = replies.filter(({ status }) => status !== 401);
  for (const reply of refused) {
    expect(reply).toMatchObject({ status: 503, code: 'SERVICE_UNAVAILABLE', setCookies: [] });
  }
  // An unresponsive part, as on a busy machine, would say one second.
  expect(refused.filter(({ headers }) => headers.get('retry-after') === '2').length).toBeGreaterThan(0);
  expect(replies.length - refused.length).toBeGreaterThan(cores);
  expect((await logins(1, freshEmail))[0]?.status).toBe(401);
});

// checks: 38
test('sixty concurrent uses of one token cost one hash, and failures count', async () => {
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
