import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { isAlive, loggedIn, logIn, mailedToken, type Person, registered } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { put, sendImage } from '../contract/uploads/storage.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { atInstance, begin, identityClaims } from '../provider/login.ts';
import { startMysqlWithMovableClock } from '../rig/process/movable-clock.ts';
import { type Service, startService } from '../rig/process/service.ts';
import { clientAddress, freshEmail } from '../rig/servers/address.ts';
import { startS3 } from '../rig/servers/s3.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';

/** Instances with wrong clocks, beside one with a right clock. */
const provider = await startHostileProvider();
let stack: Stack;
beforeAll(async () => {
  stack = await startStack('real', { env: environmentFor(provider) });
});
afterAll(() => Promise.all([stack?.stop(), provider.close()]));

const MINUTE = 60_000;
const clock = join(import.meta.dirname, '../rig/process/skewed-clock.ts');

async function withClock(
  offset: number,
  check: (service: Service) => Promise<void>,
  changes: Record<string, string> = {},
) {
  const { PORT, DATA_DIR, ...env } = stack.services[0]?.env ?? {};
  const service = await startService({
    env: { ...env, ...changes, NODE_OPTIONS: `--import=${clock}`, CLOCK_OFFSET_MS: String(offset) },
  });
  try {
    const { data } = await callerOf('rest', service.url)('health');
    const shown = Date.parse(data.timestamp) - Date.now();
    // Otherwise the clock is right, and the test shows nothing.
    expect(Math.abs(shown - offset)).toBeLessThan(5000);
    await check(service);
  } finally {
    await service.stop();
  }
}

describe.each([
  ['ten minutes ahead', 10 * MINUTE],
  ['ten minutes behind', -10 * MINUTE],
  ['an hour behind', -60 * MINUTE],
  ['a day ahead', 24 * 60 * MINUTE],
])('an instance whose clock is %s', (_, offset) => {
  // checks: F13
  test('issues and accepts tokens and sessions as the others do', () =>
    withClock(offset, async ({ url }) => {
      const [wrong, right] = [callerOf('rest', url), callerOf('rest', stack.url)];
      for (const [giving, taking] of [
        [wrong, right],
        [right, wrong],
      ] as const) {
        const { id, browser, ...person } = await registered({ stack, call: giving });
        const { email } = person;
        const verification = await mailedToken(stack, email, 'verify-email');
        expect((await taking('auth.verifyEmail', { token: verification }, { browser })).status).toBe(200);
        const session = await logIn(giving, person);
        expect([await isAlive(taking, session), await isAlive(giving, session)]).toEqual([true, true]);
        expect((await giving('auth.forgotPassword', { email })).status).toBe(200);
        const token = await mailedToken(stack, email, 'reset-password');
        const [row] = await stack.database<{ left: number }>(
          `select expires_at - timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) div 1000 as \`left\`
           from one_time_tokens where user_id = ? and purpose = 'reset-password'`,
          [id],
        );
        expect(Number(row?.left)).toBeLessThanOrEqual(60 * MINUTE);
        expect(Number(row?.left)).toBeGreaterThan(59 * MINUTE);
        const password = 'Difference-Engine-1';
        expect((await taking('auth.resetPassword', { token, email, password })).status).toBe(200);
        expect([await isAlive(taking, session), await isAlive(giving, session)]).toEqual([false, false]);
        await logIn(taking, { ...person, password });
      }
    }));
});

/** A user with everything that expires: a session, and mailed reset and verification links. */
async function inTheMiddle({ stack, call }: { stack: Stack; call: Call }) {
  const [user, unverified] = [await loggedIn({ stack, call }), await registered({ stack, call })];
  expect((await call('auth.forgotPassword', { email: user.email })).status).toBe(200);
  return {
    ...user,
    unverified,
    reset: await mailedToken(stack, user.email, 'reset-password'),
    verification: await mailedToken(stack, unverified.email, 'verify-email'),
  };
}

const isAdmitted = async (call: Call, person: Person): Promise<boolean> =>
  (await call('auth.login', { email: person.email, password: person.password })).status === 200;

describe.each([
  ['ahead', 60 * MINUTE],
  ['back', -60 * MINUTE],
])('a clock jumps an hour %s', (_, jump) => {
  // checks: F13
  test('of an instance: sessions, mailed links, limits and mails still work', () =>
    withClock(
      0,
      async (service) => {
        const call = callerOf('rest', service.url);
        const { session, reset, verification, unverified, ...user } = await inTheMiddle({ stack, call });
        const address = { headers: { 'x-forwarded-for': clientAddress() } };
        const guess = () => call('auth.login', { email: freshEmail(), password: user.password }, address);
        for (let i = 0; i < 5; i++) expect((await guess()).status).toBe(401);

        service.signal('SIGUSR2');
        const now = async () => Date.parse((await call('health')).data.timestamp);
        await until(async () => Math.abs((await now()) - Date.now() - jump) < 5000);

        expect(await isAlive(call, session)).toBe(true);
        expect((await guess()).status).toBe(429);
        expect((await call('auth.verifyEmail', { token: verification })).status).toBe(200);
        expect(await isAdmitted(call, unverified)).toBe(true);
        const password = 'Difference-Engine-1';
        const changed = await call('auth.resetPassword', { token: reset, email: user.email, password });
        expect(changed.status).toBe(200);
        expect(await isAlive(call, session)).toBe(false);
        await stack.waitForMail({ to: user.email, subject: 'password' });
        // As on instances with a right clock.
        const later = await loggedIn({ stack, call });
        expect(await isAlive(callerOf('rest', stack.url), later.session)).toBe(true);
      },
      { CLOCK_JUMP_MS: String(jump) },
    ));

  // checks: F13
  test('of the database: sessions and mails still work; links of an hour expire an hour earlier or later', async () => {
    const mysql = await startMysqlWithMovableClock();
    const own = await startStack('real', { mysqlUrl: mysql.url });
    try {
      const call = callerOf('rest', own.url);
      const { session, reset, verification, unverified, ...user } = await inTheMiddle({ stack: own, call });

      await mysql.moveClock(jump);
      const [row] = await own.database<{ now: number }>(
        `select timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) div 1000 as now`,
      );
      expect(Math.abs(Number(row?.now) - Date.now() - jump)).toBeLessThan(5000);

      expect(await isAlive(call, session)).toBe(true);
      expect((await call('auth.verifyEmail', { token: verification })).status).toBe(200);
      expect(await isAdmitted(call, unverified)).toBe(true);
      const password = 'Difference-Engine-1';
      const former = await call('auth.resetPassword', { token: reset, email: user.email, password });
      expect(former.status).toBe(jump > 0 ? 400 : 200);
      // New requests use the new time, on both sides.
      const later = await inTheMiddle({ stack: own, call });
      expect(await isAlive(call, later.session)).toBe(true);
      const changed = await call('auth.resetPassword', { token: later.reset, email: later.email, password });
      expect(changed.status).toBe(200);
      expect(await isAlive(call, later.session)).toBe(false);

      await mysql.moveClock(0);
      expect(await isAdmitted(call, { ...later, password })).toBe(true);
      const last = await inTheMiddle({ stack: own, call });
      expect(await isAlive(call, last.session)).toBe(true);
    } finally {
      await own.stop();
      await mysql.stop();
    }
  });
});

// checks: F13
test.each([
  ['taken, 20 seconds ahead of', 20_000, '/dashboard'],
  ['taken, 20 seconds behind', -20_000, '/dashboard'],
  ['refused, ten minutes ahead of', 10 * MINUTE, /^\/login\?error=/],
])('an ID token is %s the clock of the provider', (_, offset, expected) =>
  withClock(offset, async (service) => {
    const { browser, request } = await begin(service);
    const location = await browser.redirectOf(atInstance(service, provider.authorize(request, identityClaims())));
    expect(location).toMatch(expected);
  }),
);

// checks: F13
test('a storage that rejects the clock stores nothing, and the log says why', async () => {
  const s3 = await startS3({ cors: true });
  try {
    await withClock(
      -60 * MINUTE,
      async (service) => {
        const call = callerOf('rest', service.url);
        const { session } = await loggedIn({ stack, call });
        const body = await png(20, 20);
        const image = await sendImage({ stack: service }, session, { bytes: body });
        expect(image).toMatchObject({ status: 503, body: { error: expect.any(String) } });
        const file = { filename: 'a.png', contentType: 'image/png', size: body.length };
        const { data } = await call('upload.presign', file, { session });
        expect((await put(data.presignedUrl, body, { 'content-type': 'image/png' })).status).toBe(403);
        expect(await s3.keys()).toEqual([]);
        await until(() => service.output().includes('the clocks of this machine and of the storage differ'));
      },
      s3.env,
    );
  } finally {
    await s3.stop();
  }
});
