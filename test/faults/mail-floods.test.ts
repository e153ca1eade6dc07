import { afterAll, beforeAll, expect, test } from 'vitest';
import { DELIVERIES_AT_ONCE } from '../../server/parts/mail/contract.ts';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { loggedIn } from '../contract/rig/scenario.ts';
import type { SmtpSink } from '../rig/servers/smtp.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** Users who cause mails without end, beyond any limit; another user's mail is still delivered. */
const FLOODERS = 4;
const BACKLOG = 100;

let stack: Stack;
let call: Call;
let smtp: SmtpSink;

beforeAll(async () => {
  stack = await startStack('real', { env: { LIMIT_CHANGE: '100000/3600', LIMIT_MAIL: '100000/3600' } });
  call = callerOf('rest', stack.url);
  smtp = stack.smtp as SmtpSink;
});
afterAll(() => stack?.stop());

const countOf = async (condition: string, values: string[] = []) => {
  const [row] = await stack.database<{ rows: number }>(
    `select count(*) as \`rows\` from outbox where ${condition}`,
    values,
  );
  return Number(row?.rows);
};
const waiting = () => countOf("state = 'pending' and kind = 'recovery-codes-renewed'");

/** Waits until the mail server holds this many more mails than it ever did, and resolves to their recipients. */
async function nextHeld(before: number, count: number): Promise<string[]> {
  const attempts = await smtp.waitForAttempts({ outcome: 'held', count: before + count });
  return attempts
    .filter(({ outcome }) => outcome === 'held')
    .slice(before)
    .flatMap(({ to }) => to);
}

// checks: 72
test('four users who flood the outbox with notices do not delay another user’s reset mail', async () => {
  const other = await loggedIn({ stack, call });
  const flooders = await Promise.all(Array.from({ length: FLOODERS }, () => loggedIn({ stack, call })));
  for (const { id } of flooders) {
    await stack.database("insert into totps (user_id, secret, last_step, created_at) values (?, 'sealed', 0, 0)", [id]);
  }
  smtp.behave('hold');
  let flooding = true;
  let renewed = 0;
  const floods = Promise.all(
    flooders.map(async ({ session }) => {
      while (flooding) {
        expect((await call('recoveryCodes.renew', undefined, { session })).status).toBe(200);
        renewed++;
      }
    }),
  );
  try {
    await until(async () => (await waiting()) > BACKLOG, { what: 'a backlog' });
    for (let held = 0; held <= 2 * DELIVERIES_AT_ONCE; held += DELIVERIES_AT_ONCE) {
      await nextHeld(held, DELIVERIES_AT_ONCE);
      expect((await call('auth.forgotPassword', { email: other.email })).status).toBe(200);
      const isDue =
        "state = 'pending' and kind = 'reset-password' and email = ? and due_at <= 1000 * unix_timestamp(now(3))";
      await until(async () => (await countOf(isDue, [other.email])) === 1, { what: 'the reset mail' });
      // The mails in delivery finish. The reset mail is among those that take their places.
      smtp.behave('hold');
      expect(await nextHeld(held + DELIVERIES_AT_ONCE, DELIVERIES_AT_ONCE)).toContain(other.email);
      expect(await waiting()).toBeGreaterThan(BACKLOG / 2);
    }
  } finally {
    flooding = false;
    await floods;
  }
  smtp.behave('accept');
  await stack.waitForMail({ to: other.email, subject: 'Reset your password', count: 3 });
  // Nothing is lost: they are sent later.
  await until(async () => (await waiting()) === 0, { what: 'the end of the flood', within: 90_000 });
  const sent = flooders
    .flatMap(({ email }) => smtp.mails(email))
    .filter(({ subject }) => /recovery codes/.test(subject));
  expect(new Set(sent.map(({ messageId }) => messageId)).size).toBe(renewed);
});
