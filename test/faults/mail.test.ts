import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Call, callerOf } from '../contract/callers.ts';
import { mailedToken, PASSWORD, registered, verified } from '../contract/scenario.ts';
import { freshEmail } from '../rig/address.ts';
import type { SmtpSink } from '../rig/smtp.ts';
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

test('with the mail server away a registration takes no longer, and its mail arrives when it is back', async () => {
  await smtp.stop();
  const started = performance.now();
  const { email } = await registered({ stack, call });
  expect(performance.now() - started).toBeLessThan(1000);
  await until(async () => (await stateOf(email)).attempts >= 1);
  await smtp.start();
  await stack.waitForMail({ to: email });
  await settled(email, 'sent');
});

test('a refusal for now is tried again', async () => {
  smtp.behave('refuse-temporarily');
  const before = smtp.attempts().length;
  const { email } = await registered({ stack, call });
  await until(() =>
    smtp
      .attempts()
      .slice(before)
      .some(({ outcome }) => outcome === 'refused'),
  );
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
  const before = smtp.attempts().length;
  const { email } = await registered({ stack, call });
  await until(() =>
    smtp
      .attempts()
      .slice(before)
      .some(({ outcome }) => outcome === 'dropped'),
  );
  smtp.behave('accept');
  const token = await mailedToken(stack, email, 'verify-email');
  expect((await call('auth.verifyEmail', { token })).status).toBe(200);
});

test('a mail nobody has use for any more is dropped', async () => {
  const person = await verified({ stack, call });
  smtp.behave('refuse-temporarily');
  const before = smtp.attempts().length;
  await call('auth.forgotPassword', { email: person.email });
  await until(() =>
    smtp
      .attempts()
      .slice(before)
      .some(({ outcome }) => outcome === 'refused'),
  );
  await stack.database("update outbox set expires_at = created_at where kind = 'reset-password' and user_id = ?", [
    person.id,
  ]);
  smtp.behave('accept');
  await until(async () => (await stateOf(person.email, 'reset-password')).state === 'dropped', { within: 15_000 });
  expect((await stack.mailsTo(person.email)).filter(({ subject }) => subject.startsWith('Reset'))).toEqual([]);
});

test('what was accepted before a kill -9 is mailed after it', async () => {
  smtp.behave({ slow: 3000 });
  const people = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const email = freshEmail();
      const reply = await call('auth.register', { name: 'Ada Lovelace', email, password: PASSWORD });
      expect(reply.status).toBe(201);
      return email;
    }),
  );
  await stack.services[0]?.kill();
  smtp.behave('accept');
  // The leases of the killed process run out; here they are taken away, rather than waited for.
  await stack.database("update outbox set due_at = 0 where state = 'pending'");
  for (const email of people) await stack.waitForMail({ to: email });
  for (const email of people) {
    const mails = await stack.mailsTo(email);
    expect(new Set(mails.map(({ messageId, text }) => messageId + text)).size).toBe(1);
  }
  await stack.services[0]?.restart();
});

test.each(['refuse-sender', 'refuse-message', 'refuse-relay'] as const)(
  'a setting that makes the mail server %s costs no mail, and is told once',
  async (behaviour) => {
    smtp.behave(behaviour);
    const told = () => (output().match(/mails do not go out/g) ?? []).length;
    const before = { attempts: smtp.attempts().length, told: told() };
    const people = await Promise.all(Array.from({ length: 4 }, () => registered({ stack, call })));
    await until(
      () =>
        smtp
          .attempts()
          .slice(before.attempts)
          .filter(({ outcome }) => outcome === 'refused').length >= 8,
      {
        within: 15_000,
        what: 'a second attempt for each mail',
      },
    );
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
