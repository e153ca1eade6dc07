import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { expectRefusal, isAlive, logIn, mailedToken, registered, sessionIn } from '../contract/rig/scenario.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { atInstance, begin, identitiesOf, identityClaims, loginsThrough, usersWith } from '../provider/login.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { patient } from './in-rounds.ts';

/** The owner of an inbox and an attacker, concurrently at two instances. */
const provider = await startHostileProvider();
const TERMS_VERSION = '2026-11';
const accepting = { acceptTerms: true };
let stack: Stack;
let call: Call;
let callers: Call[];

beforeAll(async () => {
  stack = await startStack('real', {
    instances: 2,
    env: { ...environmentFor(provider), TERMS_URL: 'https://example.test/terms', TERMS_VERSION },
  });
  callers = stack.services.map(({ url }) => patient(callerOf('rest', url)));
  call = patient(callerOf('rest', stack.url));
});
afterAll(() => Promise.all([stack.stop(), provider.close()]));

const caller = (i: number) => callers[i % callers.length] ?? call;
const instance = (i: number) => stack.services[i % stack.services.length] ?? stack;

// checks: F15
test('no session of an attacker’s password outlives the owner’s login by a provider', async () => {
  let opened = 0;
  for (let round = 0; round < 5; round++) {
    const attacker = await registered({ stack, call }, accepting);
    await call('auth.verifyEmail', { token: await mailedToken(stack, attacker.email, 'verify-email') });
    const { browser, request } = await begin(stack);
    const callback = provider.authorize(request, identityClaims({ email: attacker.email }));
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
  // Otherwise nobody has raced.
  expect(opened).toBeGreaterThan(0);
});

test('after a concurrent reset, attacker logins and “This was not me”, only the owner can log in', async () => {
  for (let round = 0; round < 5; round++) {
    const attacker = identityClaims({ email_verified: false });
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
    // One is logged in, the others are pending.
    expect(await Promise.race(logins)).toBe('/dashboard');
    const [changed, removed] = await Promise.all([
      caller(round)('auth.resetPassword', { token: reset, email, password: 'Difference-Engine-1' }),
      caller(round + 1)('account.notMe', { token }),
      ...logins,
    ]);
    // The first of the two wins; the token of the other is void then.
    expect([changed.status, removed.status].sort()).toEqual([200, 400]);
    const sessions = begun.map(({ browser }) => browser.session).filter((session) => session !== undefined);
    expect(sessions.length).toBeGreaterThan(0);
    for (const session of sessions) expect(await isAlive(call, session)).toBe(false);
    const users = await usersWith(stack, email);
    if (changed.status === 200) {
      expect(await identitiesOf(stack, attacker.sub)).toEqual([]);
      expect(users).toHaveLength(1);
    } else {
      // Without the account, the address is free for an unverified one.
      expect(users.filter(({ email_verified }) => email_verified === 1)).toEqual([]);
    }
  }
});

const consentsOf = (userId: string) => stack.database('select version from consents where user_id = ?', [userId]);

/** A registrant with sessions of an account that the owner confirmed elsewhere, and the owner's reset link. */
async function stranger() {
  const account = await registered({ stack, call }, accepting);
  const { email } = account;
  await call('auth.verifyEmail', { token: await mailedToken(stack, email, 'verify-email') });
  await call('auth.forgotPassword', { email });
  const token = await mailedToken(stack, email, 'reset-password');
  return { ...account, session: await logIn(call, account), reset: { token, email, password: 'Difference-Engine-1' } };
}

test('a stranger’s consent is removed by the owner’s reset, whichever comes first', async () => {
  const firsts = new Set<number>();
  for (let round = 0; round < 10; round++) {
    const { id, session, reset } = await stranger();
    // As if the registrant had accepted another version: each acceptance stores the current one.
    await stack.database("update consents set version = 'former' where user_id = ?", [id]);
    const accept = async (i: number) => {
      // A reset takes as long as its hash.
      await new Promise((done) => setTimeout(done, i * 4));
      return caller(i)('consents.accept', { version: TERMS_VERSION }, { session });
    };
    const [changed, ...accepted] = await Promise.all([
      caller(round)('auth.resetPassword', reset),
      ...Array.from({ length: 12 }, (_, i) => accept(i)),
    ]);
    expect(changed.status).toBe(200);
    for (const { status } of accepted) firsts.add(status);
    expect(await consentsOf(id)).toEqual([]);
  }
  expect([...firsts].sort()).toEqual([200, 401]);
});

test('a reset that fails halfway keeps the consents and can be repeated', async () => {
  const { id, session, reset, ...account } = await stranger();
  await stack.database(
    `create trigger failing before insert on activity for each row
     if new.kind = 'password-changed' then signal sqlstate '45000'; end if`,
  );
  try {
    expect((await call('auth.resetPassword', reset)).status).toBe(500);
  } finally {
    await stack.database('drop trigger failing');
  }
  expect(await consentsOf(id)).toEqual([{ version: TERMS_VERSION }]);
  expect(await isAlive(call, session)).toBe(true);
  await logIn(call, account);
  expect((await call('auth.resetPassword', reset)).status).toBe(200);
  expect(await consentsOf(id)).toEqual([]);
});
