import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Call, callerOf } from '../contract/callers.ts';
import { expectRefusal, isAlive, mailedToken, registered, sessionIn } from '../contract/scenario.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { atInstance, begin, identitiesOf, loginsThrough, somebody, usersWith } from '../provider/login.ts';
import { type Stack, startStack } from '../rig/stack.ts';

/** The owner of an inbox and an attacker, at two instances at once. */
const provider = await startHostileProvider();
let stack: Stack;
let call: Call;
let callers: Call[];

beforeAll(async () => {
  stack = await startStack('real', {
    instances: 2,
    env: environmentFor(provider),
  });
  callers = stack.services.map(({ url }) => callerOf('rest', url));
  call = callerOf('rest', stack.url);
});
afterAll(() => Promise.all([stack.stop(), provider.close()]));

const caller = (i: number) => callers[i % callers.length] ?? call;
const instance = (i: number) => stack.services[i % stack.services.length] ?? stack;

test('no session of an attacker’s password outlives the owner’s login by a provider, whenever it was opened', async () => {
  let opened = 0;
  for (let round = 0; round < 5; round++) {
    const attacker = await registered({ stack, call });
    await call('auth.verifyEmail', { token: await mailedToken(stack, attacker.email, 'verify-email') });
    const { browser, request } = await begin(stack);
    const callback = provider.authorize(request, somebody({ email: attacker.email }));
    const [location, ...logins] = await Promise.all([
      browser.redirectOf(atInstance(instance(round), callback)),
      ...Array.from({ length: 20 }, (_, i) => caller(i)('auth.login', attacker)),
    ]);
    expect(location).toBe('/dashboard');
    expect(await isAlive(call, browser.session ?? '')).toBe(true);
    for (const login of logins) {
      const session = sessionIn(login);
      if (!session) continue;
      opened += 1;
      expect(await isAlive(call, session)).toBe(false);
    }
    expectRefusal(await call('auth.login', attacker), 401, 'INVALID_CREDENTIALS');
  }
  // Else nobody has raced.
  expect(opened).toBeGreaterThan(0);
});

test('a reset, the attacker’s logins and “this was not me” at once leave no way in but the owner’s', async () => {
  for (let round = 0; round < 5; round++) {
    const attacker = somebody({ email_verified: false });
    const { email } = attacker;
    await loginsThrough(provider)(stack, attacker);
    const token = await mailedToken(stack, email, 'verify-email');
    await call('auth.verifyEmail', { token });
    await call('auth.forgotPassword', { email });
    const reset = await mailedToken(stack, email, 'reset-password');
    const begun = await Promise.all(Array.from({ length: 6 }, () => begin(stack)));
    const logins = begun.map(({ browser, request }, i) =>
      browser.redirectOf(atInstance(instance(i), provider.authorize(request, attacker))),
    );
    // One is in, the others are on their way.
    expect(await Promise.race(logins)).toBe('/dashboard');
    const [changed, removed] = await Promise.all([
      caller(round)('auth.resetPassword', { token: reset, email, password: 'Difference-Engine-1' }),
      caller(round + 1)('account.notMe', { token }),
      ...logins,
    ]);
    // The first of the two decides; the token of the other is gone by then.
    expect([changed.status, removed.status].sort()).toEqual([200, 400]);
    const sessions = begun.map(({ browser }) => browser.session).filter((session) => session !== undefined);
    expect(sessions.length).toBeGreaterThan(0);
    for (const session of sessions) expect(await isAlive(call, session)).toBe(false);
    const users = await usersWith(stack, email);
    if (changed.status === 200) {
      expect(await identitiesOf(stack, attacker.sub)).toEqual([]);
      expect(users).toHaveLength(1);
    } else {
      // With the account gone, the address is free for an unverified one.
      expect(users.filter(({ email_verified }) => email_verified === 1)).toEqual([]);
    }
  }
});
