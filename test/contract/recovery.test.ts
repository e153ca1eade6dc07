import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { clientAddress, freshEmail } from '../rig/address.ts';
import { ask } from '../rig/raw.ts';
import {
  everywhere,
  expectRefusal,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  mailsSettled,
  PASSWORD,
  registered,
  sessionIn,
  verified,
} from './scenario.ts';

const NEW_PASSWORD = 'Difference-Engine-1822';

everywhere((scenario, surface) => {
  const askFor = async (email: string, count = 1) => {
    const { call, stack } = scenario();
    expect((await call('auth.forgotPassword', { email })).status).toBe(200);
    return mailedToken(stack, email, 'reset-password', count);
  };

  test('a reset sets the password, ends every session, logs nobody in and mails a notice', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const { email } = person;
    const other = await logIn(call, person);
    const token = await askFor(email);
    const reply = await call('auth.resetPassword', { token, email: email.toUpperCase(), password: NEW_PASSWORD });
    expect(reply.data).toEqual({ success: true, message: expect.any(String) });
    expect(sessionIn(reply)).toBeUndefined();
    expect(await isAlive(call, session)).toBe(false);
    expect(await isAlive(call, other)).toBe(false);
    expectRefusal(await call('auth.login', person), 401, 'INVALID_CREDENTIALS');
    await logIn(call, { ...person, password: NEW_PASSWORD });
    await stack.waitForMail({ to: email, subject: 'was changed' });
    expectRefusal(
      await call('auth.resetPassword', { token, email, password: NEW_PASSWORD }),
      400,
      'INVALID_TOKEN',
      'Invalid or expired token',
    );
  });

  test('known, unknown and unverified addresses get the same answer; mail goes to the stored address only', async () => {
    const { call, stack } = scenario();
    const person = await verified(scenario());
    const waiting = await registered(scenario());
    const unknown = freshEmail();
    const answers = await Promise.all(
      [person.email.toUpperCase(), waiting.email, unknown].map((email) => call('auth.forgotPassword', { email })),
    );
    const message = 'If an account exists for this email, a password reset link has been sent.';
    for (const { status, data } of answers)
      expect({ status, data }).toEqual({ status: 200, data: { success: true, message } });
    const { to, text } = await stack.waitForMail({ to: person.email, subject: 'Reset' });
    expect(to).toEqual([person.email]);
    expect(text).toContain(`${stack.appUrl}/reset-password?token=`);
    await stack.waitForMail({ to: waiting.email, subject: 'Reset' });
    expect(await stack.mailsTo(unknown)).toEqual([]);
  });

  test('a newer link kills the older; ten an hour are mailed, and the newest mailed one stays good', async () => {
    const { call, stack } = scenario();
    const { email } = await verified(scenario());
    const first = await askFor(email);
    for (let i = 0; i < 14; i++) expect((await call('auth.forgotPassword', { email })).status).toBe(200);
    await mailsSettled(stack, email);
    const links = (await stack.mailsTo(email)).flatMap(
      ({ text }) => /reset-password\?token=([\w-]+)/.exec(text)?.[1] ?? [],
    );
    expect(links.length).toBeGreaterThan(1);
    expect(links.length).toBeLessThanOrEqual(10);
    const reset = (token: string) => call('auth.resetPassword', { token, email, password: NEW_PASSWORD });
    expectRefusal(await reset(first), 400, 'INVALID_TOKEN');
    const answers = [];
    for (const token of links) answers.push((await reset(token)).status);
    expect(answers.filter((status) => status === 200)).toHaveLength(1);
  });

  test('without a token the token is what is wrong, whatever else is missing', async () => {
    const { call } = scenario();
    for (const input of [{}, { email: 'not an address' }, { token: null, password: 'weak' }]) {
      expectRefusal(await call('auth.resetPassword', input), 400, 'INVALID_TOKEN', 'Invalid or expired token');
    }
  });

  test('a weak password costs the link nothing', async () => {
    const { call } = scenario();
    const { email } = await verified(scenario());
    const token = await askFor(email);
    const weak = await call('auth.resetPassword', { token, email, password: 'weak' });
    expectRefusal(weak, 400, 'VALIDATION_FAILED', 'Validation failed');
    expect(weak.details).toHaveProperty('password.rule', 'too_short');
    expect((await call('auth.resetPassword', { token, email, password: NEW_PASSWORD })).status).toBe(200);
  });

  test('no other token does, and none of them changes anything', async () => {
    const { call, stack } = scenario();
    const person = await verified(scenario());
    const other = await verified(scenario());
    const token = await askFor(person.email);
    const address = clientAddress();
    const attempts: [unknown, unknown][] = [
      [undefined, person.email],
      ['', person.email],
      [token.slice(0, -1), person.email],
      [[token], person.email],
      [1, person.email],
      ['x'.repeat(90_000), person.email],
      [token, other.email],
      [token, undefined],
      [token, [person.email]],
    ];
    for (const [wrong, email] of attempts) {
      const reply = await call('auth.resetPassword', { token: wrong, email, password: NEW_PASSWORD }, { address });
      expectRefusal(reply, 400, 'INVALID_TOKEN', 'Invalid or expired token');
    }
    await stack.database('update one_time_tokens set expires_at = expires_at - 3601000 where user_id = ?', [person.id]);
    const expired = await call('auth.resetPassword', { token, email: person.email, password: NEW_PASSWORD });
    expectRefusal(expired, 400, 'INVALID_TOKEN');
    await logIn(call, person);
  });

  test('a token does the work that it was mailed for, and no other', async () => {
    const { call, stack } = scenario();
    const person = await registered(scenario());
    const { email } = person;
    const verification = await mailedToken(stack, email, 'verify-email');
    const reset = await askFor(email);
    const password = NEW_PASSWORD;
    const wrongReset = await call('auth.resetPassword', { token: verification, email, password });
    expectRefusal(wrongReset, 400, 'INVALID_TOKEN', 'Invalid or expired token');
    const wrongVerification = await call('auth.verifyEmail', { token: reset });
    expectRefusal(wrongVerification, 400, 'INVALID_TOKEN', 'Invalid or expired token');
    expectRefusal(await call('auth.login', person), 403, 'EMAIL_NOT_VERIFIED');
    expect((await call('auth.verifyEmail', { token: verification })).status).toBe(200);
    await logIn(call, person);
    expect((await call('auth.resetPassword', { token: reset, email, password })).status).toBe(200);
  });

  test('guessing ends after fifty wrong tokens, while a right one still works', async () => {
    const { call } = scenario();
    const { email } = await verified(scenario());
    const token = await askFor(email);
    const address = clientAddress();
    const guess = (i: number) =>
      call('auth.resetPassword', { token: `${i}`.padStart(43, 'x'), email, password: NEW_PASSWORD }, { address });
    const replies = await Promise.all(Array.from({ length: 70 }, (_, i) => guess(i)));
    expect(replies.filter(({ code }) => code === 'INVALID_TOKEN')).toHaveLength(50);
    expect(replies.filter(({ code }) => code === 'RATE_LIMITED')).toHaveLength(20);
    const verification = await call('auth.verifyEmail', { token: 'x'.repeat(43) }, { address });
    expectRefusal(verification, 429, 'RATE_LIMITED');
    expect((await call('auth.resetPassword', { token, email, password: NEW_PASSWORD }, { address })).status).toBe(200);
  });

  test('who registered an address that is not his loses it to whoever owns the inbox', async () => {
    const { call, stack } = scenario();
    const squatted = await registered(scenario(), { name: 'Mallory' });
    const { email } = squatted;
    const verification = await mailedToken(stack, email, 'verify-email');
    await stack.database("update users set bio = 'evil', website = 'https://evil.test' where id = ?", [squatted.id]);
    const token = await askFor(email);
    expect((await call('auth.resetPassword', { token, email, password: NEW_PASSWORD })).status).toBe(200);
    expectRefusal(await call('auth.login', squatted), 401, 'INVALID_CREDENTIALS');
    expectRefusal(await call('auth.verifyEmail', { token: verification }), 400, 'INVALID_TOKEN');
    const session = await logIn(call, { ...squatted, password: NEW_PASSWORD });
    const { data } = await call('profile.get', undefined, { session });
    const name = email.slice(0, email.indexOf('@'));
    expect(data.user).toMatchObject({ emailVerified: true, name, bio: '', website: '' });
  });

  test('nothing that is stored opens anything', async () => {
    const { call, stack } = scenario();
    const { email, id } = await registered(scenario());
    const verification = await mailedToken(stack, email, 'verify-email');
    const reset = await askFor(email);
    const rows = await Promise.all(
      ['users', 'one_time_tokens', 'outbox'].map((table) => stack.database(`select * from ${table}`)),
    );
    const stored = JSON.stringify(rows);
    const output = stack.services.map((service) => service.output()).join();
    for (const secret of [verification, reset, PASSWORD]) {
      expect(stored).not.toContain(secret);
      expect(output).not.toContain(secret);
    }
    expect(output).not.toContain(email);
    expect(stored).toContain(createHash('sha256').update(reset).digest('base64url'));
    expect(reset).not.toBe(verification);
    expect(Buffer.from(reset, 'base64url')).toHaveLength(32);
    expect(id).toBeTruthy();
    expect((await call('users.get', { id })).status).toBe(200);
  });

  test('links start with the configured address, whatever the request calls us', async () => {
    const { stack } = scenario();
    const { email } = await verified(scenario());
    // Not by fetch, which sends the Host of the address whatever it is given.
    const asked = await ask(
      `${stack.url}${surface === 'rest' ? '/auth/forgot-password' : '/trpc/auth.forgotPassword'}`,
      {
        method: 'POST',
        headers: {
          host: 'evil.test',
          'content-type': 'application/json',
          'x-forwarded-host': 'evil.test',
          'x-forwarded-for': clientAddress(),
        },
        body: JSON.stringify({ email }),
      },
    );
    expect(asked.status).toBe(200);
    const { text, html } = await stack.waitForMail({ to: email, subject: 'Reset' });
    expect(text + html).not.toContain('evil.test');
    expect(text).toContain(`${stack.appUrl}/reset-password`);
  });
});
