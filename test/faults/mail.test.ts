import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { mailedToken, PASSWORD, registered, verified } from '../contract/rig/scenario.ts';
import { viewMysql } from '../rig/observe/database-view.ts';
import { startService } from '../rig/process/service.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { createDatabase, dropDatabase } from '../rig/servers/mysql.ts';
import { accepts } from '../rig/servers/port.ts';
import { type Attempt, type Behaviour, type SmtpSink, startSmtpSink } from '../rig/servers/smtp.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

let stack: Stack;
let call: Call;
let smtp: SmtpSink;

beforeAll(async () => {
  stack = await startStack('real', { instances: 2 });
  call = callerOf('rest', stack.url);
  if (!stack.smtp) throw new Error('the real stack has a mail server');
  smtp = stack.smtp;
});
afterAll(() => stack.stop());
beforeEach(() => smtp.behave('accept'));

const stateOf = async (email: string, kind = 'verify-email') => {
  const [row] = await stack.database('select state, attempts from outbox where email = ? and kind = ?', [email, kind]);
  return row as { state: string; attempts: number };
};

/** A database and a mail server for a service of one test. */
async function startMailOnly() {
  const [databaseUrl, own] = await Promise.all([createDatabase(inject('mysqlUrl')), startSmtpSink()]);
  const view = viewMysql(databaseUrl);
  return {
    ...{ databaseUrl, smtp: own, view },
    async stop() {
      await view.close();
      await Promise.all([dropDatabase(databaseUrl), own.stop()]);
    },
  };
}

const attemptsThatWere = (outcome: Attempt['outcome']) =>
  smtp.attempts().filter((attempt) => attempt.outcome === outcome).length;

const output = () => stack.services.map((service) => service.output()).join();
const settled = (email: string, state: string) =>
  until(async () => (await stateOf(email)).state === state, { what: `${state} mail to ${email}` });

test('two processes deliver each mail once', async () => {
  const people = await Promise.all(Array.from({ length: 30 }, () => registered({ stack, call })));
  for (const { email } of people) {
    await stack.waitForMail({ to: email });
    await settled(email, 'sent');
    expect(await stack.mailsTo(email)).toHaveLength(1);
    expect(await stateOf(email)).toMatchObject({ attempts: 1 });
  }
});

// checks: F10
test('while the mail server is down registrations are answered, and their mails arrive later', async () => {
  await smtp.stop();
  // Answered while nothing can be delivered: `attempts` belongs to the worker.
  const { email } = await registered({ stack, call });
  await until(async () => (await stateOf(email)).attempts >= 1);
  await smtp.start();
  await stack.waitForMail({ to: email });
  await settled(email, 'sent');
});

// checks: F10
test('a temporary rejection is retried', async () => {
  smtp.behave('refuse-temporarily');
  const before = attemptsThatWere('refused');
  const { email } = await registered({ stack, call });
  await smtp.waitForAttempts({ outcome: 'refused', count: before + 1 });
  smtp.behave('accept');
  await stack.waitForMail({ to: email });
  await settled(email, 'sent');
  expect((await stateOf(email)).attempts).toBeGreaterThan(1);
});

test('a mail queued by the previous release, with the user id only, is delivered', async () => {
  smtp.behave('refuse-temporarily');
  const { id, email } = await registered({ stack, call });
  await until(async () => (await stateOf(email)).attempts >= 1);
  await stack.database("update outbox set email = '', inbox = '' where user_id = ?", [id]);
  smtp.behave('accept');
  await stack.waitForMail({ to: email });
});

// checks: F10
test('a permanent rejection ends delivery after one attempt', async () => {
  smtp.behave('refuse-permanently');
  const { email } = await registered({ stack, call });
  await settled(email, 'dead');
  expect(await stateOf(email)).toEqual({ state: 'dead', attempts: 1 });
  expect(output()).toContain('refused permanently');
  expect(output()).not.toContain(email);
});

// checks: F2
test('a mail with an unknown outcome is sent again with the same id and link', async () => {
  smtp.behave('drop-after-data');
  const before = attemptsThatWere('dropped');
  const { email } = await registered({ stack, call });
  await smtp.waitForAttempts({ outcome: 'dropped', count: before + 1 });
  const dropped = smtp.attempts().find(({ outcome, to }) => outcome === 'dropped' && to.includes(email));
  smtp.behave('accept');
  const token = await mailedToken(stack, email, 'verify-email');
  const { messageId } = await stack.waitForMail({ to: email });
  expect(messageId).toMatch(/^<[^<>@\s]+@accounts\.test>$/);
  expect(messageId).toBe(dropped?.messageId);
  expect((await call('auth.verifyEmail', { token })).status).toBe(200);
});

// checks: F10
test('an obsolete mail is dropped', async () => {
  const person = await verified({ stack, call });
  smtp.behave('refuse-temporarily');
  const before = attemptsThatWere('refused');
  await call('auth.forgotPassword', { email: person.email });
  await smtp.waitForAttempts({ outcome: 'refused', count: before + 1 });
  await stack.database("update outbox set expires_at = created_at where kind = 'reset-password' and user_id = ?", [
    person.id,
  ]);
  smtp.behave('accept');
  await until(async () => (await stateOf(person.email, 'reset-password')).state === 'dropped');
  expect((await stack.mailsTo(person.email)).filter(({ subject }) => subject.startsWith('Reset'))).toEqual([]);
});

// checks: F2
test('mails acknowledged before a kill -9 are sent after it', async () => {
  smtp.behave('hold');
  const before = attemptsThatWere('held');
  const people = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const email = freshEmail();
      const reply = await call('auth.register', { name: 'Ada Lovelace', email, password: PASSWORD });
      expect(reply.status).toBe(201);
      return email;
    }),
  );
  // By the process that handled the request: with the mail server before the crash, and unacknowledged.
  await smtp.waitForAttempts({ outcome: 'held', count: before + 1 });
  await stack.services[0]?.kill();
  smtp.behave('accept');
  // The leases of the killed process expire; the test removes them instead of waiting.
  await stack.database("update outbox set due_at = 0 where state = 'pending'");
  for (const email of people) await stack.waitForMail({ to: email });
  let copies = 0;
  for (const email of people) {
    await settled(email, 'sent');
    const mails = await stack.mailsTo(email);
    expect(new Set(mails.map(({ messageId, text }) => messageId + text)).size).toBe(1);
    copies += mails.length - 1;
  }
  // Otherwise no mail has met the crash.
  expect(copies).toBeGreaterThan(0);
  await stack.services[0]?.restart();
});

// checks: 79, F10
test.each<[string, Behaviour]>([
  ['refuse-sender', 'refuse-sender'],
  ['refuse-message', 'refuse-message'],
  ['refuse-relay', 'refuse-relay'],
  ['say “relay not permitted”, as Exim does', { refusal: { responseCode: 550, message: 'relay not permitted' } }],
  ['say “sorry… (#5.7.1)”, as qmail does', { refusal: { responseCode: 553, message: 'sorry, not allowed (#5.7.1)' } }],
  ['answer nonsense', { refusal: { responseCode: 999, message: '5.1.1 Nonsense' } }],
])('an outage that makes the mail server %s loses no mail, and is logged once', async (_, behaviour) => {
  smtp.behave(behaviour);
  const told = () => (output().match(/mails cannot be sent/g) ?? []).length;
  const before = { refused: attemptsThatWere('refused'), told: told() };
  const people = await Promise.all(Array.from({ length: 4 }, () => registered({ stack, call })));
  // A second attempt for each mail.
  await smtp.waitForAttempts({ outcome: 'refused', count: before.refused + 8 });
  // By each of the two processes, unless it had an outage already.
  expect(told()).toBeGreaterThan(0);
  expect(told() - before.told).toBeLessThanOrEqual(2);
  smtp.behave('accept');
  for (const { email } of people) {
    await stack.waitForMail({ to: email });
    await settled(email, 'sent');
  }
});

// checks: F10
test('rejected credentials lose no mail', async () => {
  const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
  const other = await startMailOnly();
  const url = new URL(other.smtp.url);
  url.username = 'accounts';
  url.password = 'accounts-password';
  const service = await startService({ env: { ...env, SMTP_URL: url.href, DATABASE_URL: other.databaseUrl } });
  try {
    other.smtp.behave('refuse-credentials');
    const { email } = await registered({ stack, call: callerOf('rest', service.url) });
    await other.smtp.waitForAttempts({ outcome: 'refused', count: 2 });
    expect(service.output()).toContain('mails cannot be sent');
    other.smtp.behave('accept');
    await other.smtp.waitFor({ to: email });
  } finally {
    await service.stop({ by: 'SIGINT' });
    await other.stop();
  }
});

// checks: F19
test('a mail in delivery at shutdown is sent once, and recorded as sent', async () => {
  const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
  const other = await startMailOnly();
  const service = await startService({ env: { ...env, SMTP_URL: other.smtp.url, DATABASE_URL: other.databaseUrl } });
  try {
    other.smtp.behave('hold');
    const { email } = await registered({ stack, call: callerOf('rest', service.url) });
    await other.smtp.waitForAttempts({ outcome: 'held' });
    service.signal('SIGINT');
    await until(async () => !(await accepts(service.port)), { what: 'the end of listening' });
    // A process that does not wait for it has exited before this time.
    const gone = service.exited.then(() => true);
    expect(await Promise.race([gone, pause(500, false)])).toBe(false);
    other.smtp.behave('accept');
    expect(await service.exited).toBe(0);
    const rows = await other.view.query('select state, attempts from outbox where email = ?', [email]);
    expect(rows).toEqual([{ state: 'sent', attempts: 1 }]);
    expect(other.smtp.mails()).toHaveLength(1);
  } finally {
    await service.stop({ by: 'SIGINT' });
    await other.stop();
  }
});

test('a long delivery renews its lease of at most 20 seconds, and is sent once', async () => {
  smtp.behave({ slow: 9000 });
  const { email } = await registered({ stack, call });
  const lease = async () => {
    const [row] = await stack.database<{ due: number; ms: number }>(
      "select due_at as due, due_at - timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) div 1000 as ms from outbox where email = ? and attempts = 1",
      [email],
    );
    return row && { due: Number(row.due), ms: Number(row.ms) };
  };
  const first = await until(lease, { what: 'the lease of a mail' });
  expect(first.ms).toBeLessThanOrEqual(20_000);
  await until(async () => ((await lease())?.due ?? 0) > first.due, { what: 'a renewed lease' });
  await until(async () => (await stateOf(email)).state === 'sent', { what: 'a slow delivery' });
  expect(await stateOf(email)).toEqual({ state: 'sent', attempts: 1 });
  expect(await stack.mailsTo(email)).toHaveLength(1);
});
