import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { type Call, callerOf } from '../contract/callers.ts';
import { mailedToken, PASSWORD, registered, verified } from '../contract/scenario.ts';
import { freshEmail } from '../rig/address.ts';
import { viewMysql } from '../rig/database-view.ts';
import { createDatabase, dropDatabase } from '../rig/mysql.ts';
import { accepts } from '../rig/port.ts';
import { startService } from '../rig/service.ts';
import { type Attempt, type SmtpSink, startSmtpSink } from '../rig/smtp.ts';
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

/** A database and a mail server for a service of one test's own. */
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
  until(async () => (await stateOf(email)).state === state, { within: 15_000, what: `${state} mail to ${email}` });

test('each mail goes out once, though two processes deliver', async () => {
  const people = await Promise.all(Array.from({ length: 30 }, () => registered({ stack, call })));
  for (const { email } of people) {
    await stack.waitForMail({ to: email });
    await settled(email, 'sent');
    expect(await stack.mailsTo(email)).toHaveLength(1);
    expect(await stateOf(email)).toMatchObject({ attempts: 1 });
  }
});

test('with the mail server away a registration is answered, and its mail arrives when it is back', async () => {
  await smtp.stop();
  // Answered though nothing can be delivered: `attempts` is the worker's.
  const { email } = await registered({ stack, call });
  await until(async () => (await stateOf(email)).attempts >= 1);
  await smtp.start();
  await stack.waitForMail({ to: email });
  await settled(email, 'sent');
});

test('a refusal for now is tried again', async () => {
  smtp.behave('refuse-temporarily');
  const before = attemptsThatWere('refused');
  const { email } = await registered({ stack, call });
  await smtp.waitForAttempts({ outcome: 'refused', count: before + 1 });
  smtp.behave('accept');
  await stack.waitForMail({ to: email });
  await settled(email, 'sent');
  expect((await stateOf(email)).attempts).toBeGreaterThan(1);
});

test('a mail that the release before has queued, which names its user alone, goes out', async () => {
  smtp.behave('refuse-temporarily');
  const { id, email } = await registered({ stack, call });
  await until(async () => (await stateOf(email)).attempts >= 1);
  await stack.database("update outbox set email = '', inbox = '' where user_id = ?", [id]);
  smtp.behave('accept');
  await stack.waitForMail({ to: email });
});

test('a refusal for good is the end, after one attempt', async () => {
  smtp.behave('refuse-permanently');
  const { email } = await registered({ stack, call });
  await settled(email, 'dead');
  expect(await stateOf(email)).toEqual({ state: 'dead', attempts: 1 });
  expect(output()).toContain('refused for good');
  expect(output()).not.toContain(email);
});

test('a mail whose fate is unknown goes out again as the same mail with the same link', async () => {
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

test('a mail nobody has use for any more is dropped', async () => {
  const person = await verified({ stack, call });
  smtp.behave('refuse-temporarily');
  const before = attemptsThatWere('refused');
  await call('auth.forgotPassword', { email: person.email });
  await smtp.waitForAttempts({ outcome: 'refused', count: before + 1 });
  await stack.database("update outbox set expires_at = created_at where kind = 'reset-password' and user_id = ?", [
    person.id,
  ]);
  smtp.behave('accept');
  await until(async () => (await stateOf(person.email, 'reset-password')).state === 'dropped', { within: 15_000 });
  expect((await stack.mailsTo(person.email)).filter(({ subject }) => subject.startsWith('Reset'))).toEqual([]);
});

test('what was accepted before a kill -9 is mailed after it', async () => {
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
  // By the process that was asked, which looks at once: at the mail server before the crash, and not answered.
  await smtp.waitForAttempts({ outcome: 'held', count: before + 1 });
  await stack.services[0]?.kill();
  smtp.behave('accept');
  // The leases of the killed process run out; here they are taken away, rather than waited for.
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

test.each(['refuse-sender', 'refuse-message', 'refuse-relay'] as const)(
  'a setting that makes the mail server %s costs no mail, and is told once',
  async (behaviour) => {
    smtp.behave(behaviour);
    const told = () => (output().match(/mails do not go out/g) ?? []).length;
    const before = { refused: attemptsThatWere('refused'), told: told() };
    const people = await Promise.all(Array.from({ length: 4 }, () => registered({ stack, call })));
    // A second one for each mail.
    await smtp.waitForAttempts({ outcome: 'refused', count: before.refused + 8, within: 15_000 });
    // By each of the two processes, where it was not in trouble already.
    expect(told()).toBeGreaterThan(0);
    expect(told() - before.told).toBeLessThanOrEqual(2);
    smtp.behave('accept');
    for (const { email } of people) {
      await stack.waitForMail({ to: email, within: 20_000 });
      await settled(email, 'sent');
    }
  },
);

test('credentials that the mail server refuses cost no mail', async () => {
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
    expect(service.output()).toContain('mails do not go out');
    other.smtp.behave('accept');
    await other.smtp.waitFor({ to: email });
  } finally {
    await service.stop({ by: 'SIGINT' });
    await other.stop();
  }
});

test('a mail on its way when the service is told to end goes out once, and is known to have gone', async () => {
  const { PORT, DATA_DIR, APP_URL, ...env } = stack.services[0]?.env ?? {};
  const other = await startMailOnly();
  const service = await startService({ env: { ...env, SMTP_URL: other.smtp.url, DATABASE_URL: other.databaseUrl } });
  try {
    other.smtp.behave('hold');
    const { email } = await registered({ stack, call: callerOf('rest', service.url) });
    await other.smtp.waitForAttempts({ outcome: 'held' });
    service.signal('SIGINT');
    await until(async () => !(await accepts(service.port)), { what: 'the end of listening' });
    // A process that does not wait for it is gone before this time is over.
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

test('a delivery renews its lease of at most 20 seconds for as long as it takes, and goes out once', async () => {
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
  await until(async () => ((await lease())?.due ?? 0) > first.due, { within: 15_000, what: 'a renewed lease' });
  await until(async () => (await stateOf(email)).state === 'sent', { within: 20_000, what: 'a slow delivery' });
  expect(await stateOf(email)).toEqual({ state: 'sent', attempts: 1 });
  expect(await stack.mailsTo(email)).toHaveLength(1);
}, 40_000);
