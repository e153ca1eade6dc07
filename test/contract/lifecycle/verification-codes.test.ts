import { expect, test } from 'vitest';
import { askForCode, mailedCode, otherThan } from '../rig/mailed-codes.ts';
import {
  browserIn,
  deviceIn,
  everywhere,
  expectRefusal,
  kindsOf,
  logIn,
  mailedToken,
  registered,
} from '../rig/scenario.ts';
import { storedUser } from '../rig/stored-user.ts';

/** The code beside the link of the verification mail. */
everywhere((scenario) => {
  const isVerified = async (id: string) => {
    const [row] = await scenario().stack.database<{ email_verified: number }>(
      'select email_verified from users where id = ?',
      [id],
    );
    return row?.email_verified === 1;
  };

  test('verifies in the browser that registered, as the link does, and knows the device', async () => {
    const { call, stack } = scenario();
    const person = await registered(scenario());
    const code = await mailedCode(stack, person.email, 'verification');
    const spaced = `${code.slice(0, 3)} ${code.slice(3)}`;
    const reply = await call('auth.verifyEmail', { code: spaced }, { browser: person.browser });
    expect(reply).toMatchObject({ status: 200, data: { success: true } });
    expect(reply.data.unproven).toBeUndefined();
    expect(await kindsOf(stack, person.id)).toEqual(['registered', 'verified']);
    await logIn(call, person, { device: deviceIn(reply) });
    expect((await stack.mailsTo(person.email)).map(({ subject }) => subject)).toHaveLength(1);
  });

  test('proves nothing in another browser, nor without one; the link still does', async () => {
    const { call, stack } = scenario();
    const person = await registered(scenario());
    const code = await mailedCode(stack, person.email, 'verification');
    const stranger = browserIn(await call('auth.beginPasskey', {}));
    for (const browser of [undefined, stranger]) {
      expectRefusal(await call('auth.verifyEmail', { code }, { browser }), 401, 'INVALID_CODE');
    }
    expect(await isVerified(person.id)).toBe(false);
    const token = await mailedToken(stack, person.email, 'verify-email');
    expect((await call('auth.verifyEmail', { token }, { browser: stranger })).data.unproven).toHaveLength(1);
  });

  test('after the link was opened elsewhere, the code still proves the password in the right browser', async () => {
    const { call, stack } = scenario();
    const person = await registered(scenario());
    const token = await mailedToken(stack, person.email, 'verify-email');
    expect((await call('auth.verifyEmail', { token })).data.unproven).toHaveLength(1);
    const code = await mailedCode(stack, person.email, 'verification');
    expect((await call('auth.verifyEmail', { code }, { browser: person.browser })).status).toBe(200);
    const [row] = await stack.database('select password_proven from users where id = ?', [person.id]);
    expect(row).toMatchObject({ password_proven: 1 });
  });

  test('the code of a newer mail replaces the older one', async () => {
    const { call, stack } = scenario();
    const person = await registered(scenario());
    const first = await mailedCode(stack, person.email, 'verification');
    await call('auth.resendVerification', { email: person.email }, { browser: person.browser });
    const second = await mailedCode(stack, person.email, 'verification', 2);
    // One in a million: then the test proves nothing.
    if (first !== second) {
      const reply = await call('auth.verifyEmail', { code: first }, { browser: person.browser });
      expectRefusal(reply, 401, 'INVALID_CODE');
    }
    const reply = await call('auth.verifyEmail', { code: second }, { browser: person.browser });
    expect(reply.status).toBe(200);
  });

  test('the code is for the latest account of the browser', async () => {
    const { call, stack } = scenario();
    const mistyped = await registered(scenario());
    const email = `right-${mistyped.email}`;
    const reply = await call(
      'auth.register',
      { name: 'Ada', email, password: mistyped.password },
      { browser: mistyped.browser },
    );
    const { browser } = mistyped;
    const former = await mailedCode(stack, mistyped.email, 'verification');
    const code = await mailedCode(stack, email, 'verification');
    if (former !== code)
      expectRefusal(await call('auth.verifyEmail', { code: former }, { browser }), 401, 'INVALID_CODE');
    expect((await call('auth.verifyEmail', { code }, { browser })).status).toBe(200);
    expect(await isVerified(reply.data.user.id)).toBe(true);
    expect(await isVerified(mistyped.id)).toBe(false);
  });

  test('five guesses are looked at, and no more of fifty at once', async () => {
    const { call, stack } = scenario();
    const [patient, guesser] = [await registered(scenario()), await registered(scenario())];
    const code = await mailedCode(stack, patient.email, 'verification');
    for (let guess = 1; guess < 5; guess++) {
      const reply = await call('auth.verifyEmail', { code: otherThan(code) }, { browser: patient.browser });
      expectRefusal(reply, 401, 'INVALID_CODE');
    }
    expect((await call('auth.verifyEmail', { code }, { browser: patient.browser })).status).toBe(200);

    const right = await mailedCode(stack, guesser.email, 'verification');
    const { browser } = guesser;
    const replies = await Promise.all(
      Array.from({ length: 50 }, () => call('auth.verifyEmail', { code: otherThan(right) }, { browser })),
    );
    for (const reply of replies) expectRefusal(reply, 401, 'INVALID_CODE');
    expectRefusal(await call('auth.verifyEmail', { code: right }, { browser }), 401, 'INVALID_CODE');
    expect(await isVerified(guesser.id)).toBe(false);
  });

  test('neither token nor code is an invalid token, and a malformed code a validation error', async () => {
    const { call } = scenario();
    expectRefusal(await call('auth.verifyEmail', {}), 400, 'INVALID_TOKEN');
    expectRefusal(await call('auth.verifyEmail', { code: '12345' }), 400, 'VALIDATION_FAILED');
    const { email } = await storedUser(scenario(), {});
    expectRefusal(await call('auth.verifyEmail', { code: '123456' }, { browser: email }), 401, 'INVALID_CODE');
  });

  test('codes that log in are not found unless they are on', async () => {
    const { call, stack } = scenario();
    const { email } = await registered(scenario());
    expectRefusal(await call('auth.beginEmailCode', { email }), 404, 'NOT_FOUND');
    expectRefusal(await call('auth.finishEmailCode', { code: '123456' }), 404, 'NOT_FOUND');
    await expect(askForCode(call, email)).rejects.toThrow();
    expect(await stack.database("select id from outbox where kind = 'email-code'")).toEqual([]);
  });
});
