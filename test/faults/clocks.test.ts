import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callerOf } from '../contract/callers.ts';
import { isAlive, loggedIn, logIn, mailedToken, registered } from '../contract/scenario.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { atInstance, begin, somebody } from '../provider/login.ts';
import { startS3 } from '../rig/s3.ts';
import { type Service, startService } from '../rig/service.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';
import { png } from '../uploads/corpus.ts';
import { put, sendImage } from '../uploads/storage.ts';

/** F13: instances whose clocks are wrong, beside one whose clock is right. */
const provider = await startHostileProvider();
let stack: Stack;
beforeAll(async () => {
  stack = await startStack('real', { env: environmentFor(provider) });
});
afterAll(() => Promise.all([stack?.stop(), provider.close()]));

const MINUTE = 60_000;
const clock = join(import.meta.dirname, '../rig/skewed-clock.ts');

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
    // Else the clock is not wrong, and the rest shows nothing.
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
])('F13: an instance whose clock is %s', (_, offset) => {
  test('gives and takes tokens and sessions as the others do', () =>
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

test.each([
  ['taken, 20 seconds ahead of', 20_000, '/dashboard'],
  ['taken, 20 seconds behind', -20_000, '/dashboard'],
  ['refused, ten minutes ahead of', 10 * MINUTE, /^\/login\?error=/],
])('F13: an ID token is %s the clock of the provider', (_, offset, expected) =>
  withClock(offset, async (service) => {
    const { browser, request } = await begin(service);
    const location = await browser.redirectOf(atInstance(service, provider.authorize(request, somebody())));
    expect(location).toMatch(expected);
  }),
);

test('F13: a storage that finds the clock wrong stores nothing, and the log says why', async () => {
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
