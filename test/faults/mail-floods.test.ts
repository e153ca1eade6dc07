import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { loggedIn } from '../contract/rig/scenario.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** Users who cause mails without end, beyond any limit; another user's mail is still delivered. */
const FLOODERS = 4;
/** Of each flooder, three at once: a busy machine too makes more notices than the mail server takes. */
const ACTS = 90;
const AT_ONCE = 3;
/** The time of the mail server per mail: with ten at once, at most 13 a second. */
const SLOW_MS = 800;

let stack: Stack;
let call: Call;

beforeAll(async () => {
  stack = await startStack('real', { env: { LIMIT_CHANGE: '100000/3600', LIMIT_MAIL: '100000/3600' } });
  call = callerOf('rest', stack.url);
});
afterAll(() => stack?.stop());

/** From the request to the mail, in ms. */
async function resetMail(email: string, count: number): Promise<number> {
  const began = performance.now();
  expect((await call('auth.forgotPassword', { email })).status).toBe(200);
  await stack.waitForMail({ to: email, subject: 'Reset your password', count });
  return performance.now() - began;
}

const pending = async () => {
  const [row] = await stack.database<{ rows: number }>(
    "select count(*) as `rows` from outbox where state = 'pending' and kind = 'recovery-codes-renewed'",
  );
  return Number(row?.rows);
};

// checks: 72
test('four users who flood the outbox with notices do not delay another user’s reset mail', async () => {
  const other = await loggedIn({ stack, call });
  const flooders = await Promise.all(Array.from({ length: FLOODERS }, () => loggedIn({ stack, call })));
  for (const { id } of flooders) {
    await stack.database("insert into totps (user_id, secret, last_step, created_at) values (?, 'sealed', 0, 0)", [id]);
  }
  stack.smtp?.behave({ slow: SLOW_MS });
  const idle = await resetMail(other.email, 1);
  const floods = Promise.all(
    Array.from({ length: FLOODERS * AT_ONCE }, async (_, n) => {
      const { session } = flooders[n % FLOODERS] as (typeof flooders)[number];
      for (let i = 0; i < ACTS / AT_ONCE; i++) {
        expect((await call('recoveryCodes.renew', undefined, { session })).status).toBe(200);
      }
    }),
  );
  await until(async () => (await pending()) > 100, { what: 'a backlog of notices' });
  const during = [];
  for (let count = 2; count <= 4; count++) during.push(await resetMail(other.email, count));
  await floods;
  const left = await pending();
  during.push(await resetMail(other.email, 5));
  console.info(
    `a reset mail took ${Math.round(idle)} ms; during the flood ${during.map(Math.round).join(', ')} ms, with ${left} notices waiting`,
  );
  expect(left).toBeGreaterThan(100);
  expect(Math.max(...during)).toBeLessThan(idle + 1500);
  // Nothing is lost: they are sent later.
  await until(async () => (await pending()) === 0, { what: 'the end of the flood', within: 90_000 });
});
