import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Context } from '../../../routers/context.ts';
import { createOneTimeTokens } from '../../../server/accounts/mail/tokens/one-time.ts';
import { lockUser } from '../../../server/accounts/users/index.ts';
import { type Opened, type OpenedRules, openRules, procedures } from '../rig/rules.ts';

/** The answers and cookies of registration, verification, login and logout. */
let opened: Opened;
let rules: OpenedRules;
beforeAll(async () => {
  const rates = { LIMIT_LOGIN: '1000/900', LIMIT_MAIL: '1000/900', LIMIT_INBOX: '1000/900', LIMIT_CHANGE: '1000/900' };
  opened = await openRules('auth', { env: { PASSWORD_ITERATIONS: '1', EMAIL_CODES: 'on', ...rates } });
});
beforeEach(() => {
  rules = opened.create();
});
afterAll(() => opened.close());

const password = 'Difference-Engine-1822';
const refusal = (code: string, rest: object = {}) => ({ cause: expect.objectContaining({ code, ...rest }) });
const someToken = expect.stringMatching(/^[\w-]{43}$/);
const browser = 'b'.repeat(43);
const of = (given: Partial<Context> = {}) => procedures(rules, { browser: () => browser, ...given });

/** The token of a new mail to the user. */
const tokenFor = (email: string, purpose: 'verify-email' | 'reset-password', returnTo: string | null = null) =>
  rules.database.transaction(async (em, tables) => {
    const tokens = createOneTimeTokens(rules);
    const user = await lockUser(em, { email });
    if (!user) throw new Error('no such user');
    return tokens.derive(purpose, await tokens.issue(tables, user, purpose, { returnTo }));
  });

let count = 0;
const newcomer = () => ({ name: 'Ada Lovelace', email: `ada${++count}@example.test`, password });

/** A verified user with a password. */
async function registered() {
  const given = newcomer();
  const { user } = await of().caller.auth.register(given);
  await of().caller.auth.verifyEmail({ token: await tokenFor(given.email, 'verify-email') });
  return { ...given, id: user.id };
}

async function loggedIn() {
  const user = await registered();
  const { caller, changed } = of();
  await caller.auth.login({ email: user.email, password });
  const { session, device } = changed as { session: { token: string }; device: string };
  return { user, token: session.token, device };
}

describe('a registration', () => {
  test('answers with the user, and sets the cookie by which the browser is recognized', async () => {
    const { caller, changed } = of();
    const { name, email } = newcomer();
    expect(await caller.auth.register({ name, email, password, returnTo: '/next' })).toEqual({
      success: true,
      message: 'Registration successful. Please check your email to verify your account.',
      user: { id: expect.stringMatching(/^user_/), name, email },
    });
    expect(changed).toEqual({ browser });
  });

  test('leads to no foreign address', async () => {
    const given = { ...newcomer(), returnTo: 'https://evil.test' };
    await expect(of().caller.auth.register(given)).rejects.toMatchObject(refusal('VALIDATION_FAILED'));
    await expect(
      of().caller.auth.resendVerification({ email: given.email, returnTo: given.returnTo }),
    ).rejects.toMatchObject(refusal('VALIDATION_FAILED'));
    await expect(of().caller.auth.forgotPassword(given)).rejects.toMatchObject(refusal('VALIDATION_FAILED'));
  });

  test.each<[string, Partial<ReturnType<typeof newcomer>>, string]>([
    ['a name of one character', { name: 'A' }, 'name'],
    ['an address that is none', { email: 'ada' }, 'email'],
    ['a short password', { password: 'Aa1-567' }, 'password'],
    ['a password without a digit', { password: 'Difference-Engine' }, 'password'],
  ])('is refused with %s', async (_, wrong, field) => {
    await expect(of().caller.auth.register({ ...newcomer(), ...wrong })).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      cause: { issues: [{ path: [field] }] },
    });
  });
});

describe('a verification', () => {
  test('in the browser that registered makes the device known; the password is proven', async () => {
    const { email, ...given } = newcomer();
    await of().caller.auth.register({ ...given, email });
    const { caller, changed } = of();
    const token = await tokenFor(email, 'verify-email', '/next');
    expect(await caller.auth.verifyEmail({ token })).toEqual({
      success: true,
      message: 'Your email is verified. You can now log in.',
      returnTo: '/next',
    });
    expect(changed).toEqual({ device: expect.any(String) });
  });

  test('in another browser lists the methods that the owner may not have added', async () => {
    const { email, ...given } = newcomer();
    await of().caller.auth.register({ ...given, email });
    const { caller, changed } = of({ browser: () => 'o'.repeat(43) });
    const answer = await caller.auth.verifyEmail({
      token: await tokenFor(email, 'verify-email', 'https://former.test'),
    });
    expect(answer).toEqual({
      success: true,
      message: expect.any(String),
      unproven: [{ method: 'password', addedAt: expect.any(Number) }],
    });
    expect(answer.unproven?.[0]?.addedAt).toBeCloseTo(Date.now() / 1000, -2);
    expect(changed).toEqual({});
  });

  test('needs a token or a code that is right', async () => {
    const { verifyEmail } = of().caller.auth;
    for (const given of [{}, { token: 'x' }, { token: 'x'.repeat(43) }, { token: 7 }])
      await expect(verifyEmail(given)).rejects.toMatchObject(refusal('INVALID_TOKEN'));
    const elsewhere = of({ browser: () => 'n'.repeat(43) }).caller.auth;
    await expect(elsewhere.verifyEmail({ code: '123456' })).rejects.toMatchObject(refusal('INVALID_CODE'));
  });

  test('is mailed again without telling whether there is an account', async () => {
    const { caller, changed } = of();
    const answers = [];
    for (const email of [(await registered()).email, 'nobody@example.test'])
      answers.push(await caller.auth.resendVerification({ email }));
    expect(answers[0]).toEqual({
      success: true,
      message: 'If this email is not verified yet, a new link is on its way.',
    });
    expect(answers[1]).toEqual(answers[0]);
    expect(changed).toEqual({ browser });
  });
});

describe('a login', () => {
  test('answers with the user, and sets the cookies of session and device', async () => {
    const { id, name, email } = await registered();
    const { caller, changed } = of();
    expect(await caller.auth.login({ email: email.toUpperCase(), password })).toEqual({
      success: true,
      message: 'You are logged in.',
      user: { id, name, email, provider: 'email' },
    });
    expect(changed).toEqual({
      session: expect.objectContaining({ token: someToken }),
      device: expect.any(String),
      'logged user': id,
    });
  });

  test.each<[string, object]>([
    ['a wrong password', { password: 'wrong' }],
    ['an unknown address', { email: 'nobody@example.test' }],
  ])('is refused alike with %s', async (_, wrong) => {
    const { email } = await registered();
    const { caller, changed } = of();
    const refused = refusal('INVALID_CREDENTIALS', { details: undefined });
    await expect(caller.auth.login({ email, password, ...wrong })).rejects.toMatchObject(refused);
    expect(changed).toEqual({});
  });

  test('replaces the session of the request', async () => {
    const { user, token } = await loggedIn();
    await of({ sessionToken: token }).caller.auth.login({ email: user.email, password });
    await expect(of({ sessionToken: token }).caller.profile.get()).rejects.toMatchObject(refusal('UNAUTHENTICATED'));
  });

  test('with an authenticator app waits for its second step', async () => {
    const user = await registered();
    await rules.database.write((tables) =>
      tables.insertInto('totps').values({ user_id: user.id, secret: 'x', last_step: 0, created_at: 1 }).execute(),
    );
    const { caller, changed } = of();
    await expect(caller.auth.login({ email: user.email, password })).rejects.toMatchObject(
      refusal('SECOND_FACTOR_REQUIRED', { details: { methods: expect.objectContaining({ message: 'totp' }) } }),
    );
    expect(changed).toEqual({ pending: someToken });
  });

  test('reauthenticates its session with the password', async () => {
    const { user, token } = await loggedIn();
    await rules.database.write((tables) =>
      tables.updateTable('sessions').set({ authenticated_at: 1 }).where('user_id', '=', user.id).execute(),
    );
    const { caller } = of({ sessionToken: token });
    const change = () => caller.account.changeEmail({ email: `new${++count}@example.test` });
    await expect(change()).rejects.toMatchObject(refusal('REAUTHENTICATION_REQUIRED'));
    await expect(caller.auth.reauthenticate({ password: 'wrong' })).rejects.toMatchObject(
      refusal('INVALID_CREDENTIALS'),
    );
    expect(await caller.auth.reauthenticate({ password })).toEqual({
      success: true,
      message: 'Your identity is confirmed.',
    });
    expect(await change()).toMatchObject({ message: expect.stringContaining('We sent a link') });
    for (const given of [{}, { password, code: '123456' }])
      await expect(caller.auth.reauthenticate(given)).rejects.toMatchObject({ code: 'BAD_REQUEST' });
  });
});

describe('a second step', () => {
  test('without a pending login is refused, and its cookie cleared', async () => {
    const { caller, changed } = of({ pendingLogin: 'x'.repeat(43) });
    await expect(caller.auth.secondFactor({ code: '123456' })).rejects.toMatchObject(refusal('UNAUTHENTICATED'));
    expect(changed).toEqual({ pending: 'cleared' });
    await expect(of().caller.auth.beginPasskey({ purpose: 'second-factor' })).rejects.toMatchObject(
      refusal('UNAUTHENTICATED'),
    );
  });
});

describe('a passkey', () => {
  test('is asked for in this browser, of any user or of that of the session', async () => {
    const { caller, changed } = of();
    const { challenge, allowCredentials } = await caller.auth.beginPasskey();
    expect([challenge, allowCredentials]).toEqual([expect.any(String), undefined]);
    expect(changed).toEqual({ browser });
    await expect(caller.auth.beginPasskey({ purpose: 'reauthenticate' })).rejects.toMatchObject(
      refusal('UNAUTHENTICATED'),
    );
    const { token } = await loggedIn();
    await of({ sessionToken: token }).caller.auth.beginPasskey({ purpose: 'reauthenticate' });
  });
});

describe('a logout', () => {
  test('ends the session and clears the cookie, which is cleared without a session too', async () => {
    const { token } = await loggedIn();
    const { caller, changed } = of({ sessionToken: token });
    expect(await caller.auth.logout()).toEqual({ success: true, message: 'You are logged out.' });
    expect(changed).toMatchObject({ session: 'cleared' });
    const again = of({ sessionToken: token });
    await expect(again.caller.auth.logout()).rejects.toMatchObject(refusal('UNAUTHENTICATED'));
    expect(again.changed).toEqual({ session: 'cleared' });
  });

  test('on all devices ends each session; this device stays known', async () => {
    const { user, token, device: deviceCookie } = await loggedIn();
    const other = of();
    await other.caller.auth.login({ email: user.email, password });
    const { caller, changed } = of({ sessionToken: token, deviceCookie });
    expect(await caller.auth.logoutAll()).toMatchObject({ message: 'You are logged out on all devices.' });
    expect(changed).toMatchObject({ session: 'cleared', device: expect.any(String) });
    const { token: left } = other.changed['session'] as { token: string };
    await expect(of({ sessionToken: left }).caller.profile.get()).rejects.toMatchObject(refusal('UNAUTHENTICATED'));
    const unknown = await loggedIn();
    const { caller: second, changed: cookies } = of({ sessionToken: unknown.token });
    await second.auth.logoutAll();
    expect(cookies).not.toHaveProperty('device');
  });
});

describe('a forgotten password', () => {
  test('is answered alike for every text', async () => {
    for (const email of [(await registered()).email, 'nobody@example.test', 'no address'])
      expect(await of().caller.auth.forgotPassword({ email })).toEqual({
        success: true,
        message: 'If an account exists for this email, a password reset link has been sent.',
      });
  });

  test('is replaced by the mailed token, which a refused password leaves usable', async () => {
    const { email, token: session } = await loggedIn().then(({ user, token }) => ({ ...user, token }));
    const token = await tokenFor(email, 'reset-password', '/next');
    const { caller, changed } = of();
    const next = 'Analytical-Engine-1843';
    const reset = (given: object) => caller.auth.resetPassword({ email, token, password: next, ...given });
    await expect(reset({ password: 'short' })).rejects.toMatchObject({ code: 'BAD_REQUEST' });
    // The token is checked before the password.
    for (const wrong of [{ token: 'x'.repeat(43) }, { email: 'other@example.test' }])
      await expect(reset({ ...wrong, password: 'short' })).rejects.toMatchObject(refusal('INVALID_TOKEN'));
    expect(await reset({})).toEqual({
      success: true,
      message: 'Your password was changed. You can now log in with it.',
      returnTo: '/next',
    });
    expect(changed).toEqual({ device: expect.any(String) });
    await expect(reset({})).rejects.toMatchObject(refusal('INVALID_TOKEN'));
    await expect(of({ sessionToken: session }).caller.profile.get()).rejects.toMatchObject(refusal('UNAUTHENTICATED'));
    await of().caller.auth.login({ email, password: next });
  });
});

describe('a code by mail', () => {
  test('is bound to this browser by a cookie', async () => {
    const { caller, changed } = of();
    expect(await caller.auth.beginEmailCode({ email: 'nobody@example.test' })).toEqual({
      success: true,
      message: 'A mail with a code is on its way, if it can be sent.',
    });
    expect(changed).toEqual({ pending: someToken });
    const wrong = of({ pendingLogin: changed['pending'] as string });
    for (let i = 1; i <= 4; i++)
      await expect(wrong.caller.auth.finishEmailCode({ code: '000000' })).rejects.toMatchObject(
        refusal('INVALID_CODE'),
      );
    expect(wrong.changed).toEqual({});
    await expect(wrong.caller.auth.finishEmailCode({ code: '000000' })).rejects.toMatchObject(refusal('INVALID_CODE'));
    expect(wrong.changed).toEqual({ pending: 'cleared' });
  });

  test('is NOT_FOUND where there is none', async () => {
    const { caller } = procedures(opened.create({ emailCodes: false }));
    const { beginEmailCode, finishEmailCode } = caller.auth;
    await expect(beginEmailCode({ email: 'a@example.test' })).rejects.toMatchObject(refusal('NOT_FOUND'));
    await expect(finishEmailCode({ code: '123456' })).rejects.toMatchObject(refusal('NOT_FOUND'));
  });
});

test('a new password ends all other sessions; this one goes on under a new token', async () => {
  const { user, token } = await loggedIn();
  const { caller, changed } = of({ sessionToken: token });
  const change = { currentPassword: password, newPassword: 'Analytical-Engine-1843' };
  expect(await caller.account.changePassword(change)).toEqual({
    success: true,
    message: 'Your password was changed. All other devices were logged out.',
  });
  const { token: rotated } = changed['session'] as { token: string };
  expect(await of({ sessionToken: rotated }).caller.profile.get()).toMatchObject({ user: { id: user.id } });
  await expect(of({ sessionToken: token }).caller.profile.get()).rejects.toMatchObject(refusal('UNAUTHENTICATED'));
});

test('a deleted account has its dates, and is restored by its password', async () => {
  const { user, token } = await loggedIn();
  const { caller, changed } = of({ sessionToken: token });
  const deletion = await caller.account.delete();
  expect(deletion).toMatchObject({
    success: true,
    message: 'Your account was deleted. It can be restored for a while.',
  });
  expect(deletion.removedAfter - deletion.deletedAt).toBe(14 * 24 * 60 * 60);
  expect(changed).toMatchObject({ session: 'cleared' });
  const { email } = user;
  await expect(of().caller.auth.login({ email, password })).rejects.toMatchObject(refusal('ACCOUNT_DELETED'));
  const back = of();
  expect(await back.caller.account.restore({ email, password })).toMatchObject({
    message: 'Your account was restored.',
    user: { id: user.id },
  });
  expect(back.changed).toMatchObject({ session: { token: someToken } });
});
