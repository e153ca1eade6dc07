import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { ask } from '../../rig/client/raw.ts';
import { entriesOf } from '../../rig/observe/key-value-view.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import { until } from '../../rig/until.ts';
import { callerOf, paths, type Reply } from '../rig/callers.ts';
import {
  eventsOf,
  expectRefusal,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  mailsSettled,
  onBothStacks,
  overEverySurface,
  PASSWORD,
  registered,
  sessionIn,
  verified,
  visibleIn,
} from '../rig/scenario.ts';

const NEW_PASSWORD = 'Difference-Engine-1822';

onBothStacks((stack, name) => {
  overEverySurface(stack, name, (scenario, surface) => {
    const askFor = async (email: string, count = 1) => {
      const { call, stack } = scenario();
      expect((await call('auth.forgotPassword', { email })).status).toBe(200);
      return mailedToken(stack, email, 'reset-password', count);
    };

    // checks: 35
    test('a reset sets the password, ends all sessions, sends a mail and does not log in', async () => {
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

    // checks: 29, 30
    test('every email gets the same answer; mails go to stored emails only', async () => {
      const { call, stack } = scenario();
      const person = await verified(scenario(), { email: freshEmail('kit') });
      const waiting = await registered(scenario());
      const external = await verified(scenario());
      await stack.database("update users set password_hash = null, provider = 'acme' where id = ?", [external.id]);
      const unknown = freshEmail();
      const addresses = [person.email.toUpperCase(), waiting.email, external.email, unknown];
      const answers = await Promise.all(addresses.map((email) => call('auth.forgotPassword', { email })));
      const message = 'If an account exists for this email, a password reset link has been sent.';
      for (const answer of answers) {
        expect(visibleIn(answer)).toEqual(visibleIn(answers[0] as Reply));
        expect(answer).toMatchObject({ status: 200, data: { success: true, message } });
      }
      // Equal to the stored address in some collations and case foldings, or not an address.
      const texts = [person.email.replace('i', 'ı'), person.email.replace('k', '\u212a'), ` ${person.email} `, '', 'x'];
      for (const email of [...texts, `${person.email}\r\nBcc: x@example.test`, 'x'.repeat(10_000)]) {
        expect(visibleIn(await call('auth.forgotPassword', { email }))).toEqual(visibleIn(answers[0] as Reply));
      }
      for (const input of [{}, { email: null }, { mail: person.email }]) {
        expectRefusal(await call('auth.forgotPassword', input), 400, 'VALIDATION_FAILED');
      }
      for (const { email } of [person, waiting, external]) {
        const { to, text } = await stack.waitForMail({ to: email, subject: 'Reset' });
        expect(to).toEqual([email]);
        expect(text).toContain(`${stack.appUrl}/reset-password?token=`);
      }
      await Promise.all(addresses.map((email) => mailsSettled(stack, email.toLowerCase())));
      for (const [i, email] of addresses.entries()) {
        const resets = (await stack.mailsTo(email)).filter(({ subject }) => subject.startsWith('Reset'));
        expect(resets).toHaveLength(i < 3 ? 1 : 0);
      }
    });

    // checks: 31, 33
    test('a newer link invalidates the older; ten are mailed per hour, and the newest mailed link stays valid', async () => {
      const { call, stack } = scenario();
      const { email } = await verified(scenario());
      const first = await askFor(email);
      const flood = await Promise.all(Array.from({ length: 20 }, () => call('auth.forgotPassword', { email })));
      expect(flood.map(({ status }) => status)).toEqual(Array(20).fill(200));
      await mailsSettled(stack, email);
      const admitted = "select id from outbox where email = ? and kind = 'reset-password' and token_id is not null";
      expect(await stack.database(admitted, [email])).toHaveLength(10);
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

    // checks: 33
    test('a missing token is refused as invalid, whatever else is missing', async () => {
      const { call } = scenario();
      for (const input of [{}, { email: 'not an address' }, { token: null, password: 'weak' }]) {
        expectRefusal(await call('auth.resetPassword', input), 400, 'INVALID_TOKEN', 'Invalid or expired token');
      }
    });

    test('a wrong token is refused before the password is checked, and counts', async () => {
      const { call } = scenario();
      const { email } = await verified(scenario());
      const address = clientAddress();
      for (let i = 0; i < 50; i++) {
        const input = { token: 'A'.repeat(43), email, ...(i > 0 && { password: i % 2 ? 'weak' : NEW_PASSWORD }) };
        const reply = await call('auth.resetPassword', input, { address });
        expectRefusal(reply, 400, 'INVALID_TOKEN', 'Invalid or expired token');
      }
      const late = { token: 'A'.repeat(43), email, password: 'weak' };
      expectRefusal(await call('auth.resetPassword', late, { address }), 429, 'RATE_LIMITED');
    });

    // checks: 34
    test('a weak password does not use up the link', async () => {
      const { call } = scenario();
      const { email } = await verified(scenario());
      const token = await askFor(email);
      const weak = await call('auth.resetPassword', { token, email, password: 'weak' });
      expectRefusal(weak, 400, 'VALIDATION_FAILED', 'Validation failed');
      expect(weak.details).toHaveProperty('password.rule', 'too_short');
      expect((await call('auth.resetPassword', { token, email, password: NEW_PASSWORD })).status).toBe(200);
    });

    test('another email than that of the token is refused as an invalid token', async () => {
      const { call } = scenario();
      const { email } = await verified(scenario());
      const token = await askFor(email);
      for (const wrong of [undefined, [email]]) {
        const reply = await call('auth.resetPassword', { token, email: wrong, password: NEW_PASSWORD });
        expectRefusal(reply, 400, 'VALIDATION_FAILED', 'Validation failed');
        expect(Object.keys(reply.details ?? {})).toEqual(['email']);
      }
      expect((await call('auth.resetPassword', { token, email, password: NEW_PASSWORD })).status).toBe(200);
    });

    // checks: 5, 33
    test('any other token is refused and changes nothing', async () => {
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
        [token, ''],
      ];
      for (const [wrong, email] of attempts) {
        const reply = await call('auth.resetPassword', { token: wrong, email, password: NEW_PASSWORD }, { address });
        expectRefusal(reply, 400, 'INVALID_TOKEN', 'Invalid or expired token');
      }
      await stack.database('update one_time_tokens set expires_at = expires_at - 3601000 where user_id = ?', [
        person.id,
      ]);
      const expired = await call('auth.resetPassword', { token, email: person.email, password: NEW_PASSWORD });
      expectRefusal(expired, 400, 'INVALID_TOKEN');
      await logIn(call, person);
    });

    // checks: 33
    test('a token works only for its own purpose', async () => {
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

    // checks: 38
    test('wrong tokens are limited to fifty, and a right one still works', async () => {
      const { call } = scenario();
      const { email } = await verified(scenario());
      const token = await askFor(email);
      const address = clientAddress();
      const guess = (i: number) =>
        call('auth.resetPassword', { token: `${i}`.padStart(43, 'x'), email, password: NEW_PASSWORD }, { address });
      const replies = await Promise.all(Array.from({ length: 100 }, (_, i) => guess(i)));
      expect(replies.filter(({ code }) => code === 'INVALID_TOKEN')).toHaveLength(50);
      expect(replies.filter(({ code }) => code === 'RATE_LIMITED')).toHaveLength(50);
      const verification = await call('auth.verifyEmail', { token: 'x'.repeat(43) }, { address });
      expectRefusal(verification, 429, 'RATE_LIMITED');
      expect((await call('auth.resetPassword', { token, email, password: NEW_PASSWORD }, { address })).status).toBe(
        200,
      );
    });

    // checks: 12
    test('a registrant loses the account to the owner of the inbox', async () => {
      const { call, stack } = scenario();
      const squatted = await registered(scenario(), { name: 'Mallory' });
      const { email } = squatted;
      const verification = await mailedToken(stack, email, 'verify-email');
      await stack.database(
        "update users set bio = 'evil', location = 'evil', website = 'https://evil.test', avatar = 'https://evil.test/a.png', language = 'en', fields = '{\"nickname\":\"evil\"}' where id = ?",
        [squatted.id],
      );
      const token = await askFor(email);
      expect((await call('auth.resetPassword', { token, email, password: NEW_PASSWORD })).status).toBe(200);
      expectRefusal(await call('auth.login', squatted), 401, 'INVALID_CREDENTIALS');
      expectRefusal(await call('auth.verifyEmail', { token: verification }), 400, 'INVALID_TOKEN');
      const session = await logIn(call, { ...squatted, password: NEW_PASSWORD });
      const { data } = await call('profile.get', undefined, { session });
      const name = email.slice(0, email.indexOf('@'));
      expect(data.user).toMatchObject({ emailVerified: true, name, bio: '', location: '', website: '', avatar: '' });
      const fields = 'name, bio, location, website, avatar, language, fields.nickname';
      expect(await eventsOf(stack, squatted.id, 'profile-changed')).toEqual([{ fields }]);
    });

    // checks: 37
    test('stored and logged values do not work as tokens, and tokens never repeat', async () => {
      const { call, stack } = scenario();
      const person = await registered(scenario());
      const { email } = person;
      const verification = await mailedToken(stack, email, 'verify-email');
      const first = await askFor(email);
      const second = await askFor(email, 2);
      const stored = async () =>
        JSON.stringify([
          await Promise.all(
            ['users', 'one_time_tokens', 'outbox'].map((table) => stack.database(`select * from ${table}`)),
          ),
          await entriesOf(stack),
        ]);
      const before = await stored();
      expect(before).toContain(createHash('sha256').update(second).digest('base64url'));
      expect((await call('auth.resetPassword', { token: second, email, password: NEW_PASSWORD })).status).toBe(200);
      const login = await call('auth.login', { email, password: NEW_PASSWORD });
      const output = () => stack.services.map((service) => service.output()).join();
      await until(() => output().includes(login.headers.get('x-request-id') ?? '?'), { what: 'the line of the login' });
      const state = before + (await stored()) + output();
      for (const secret of [verification, first, second, PASSWORD, NEW_PASSWORD]) expect(state).not.toContain(secret);
      expect(output()).not.toContain(email);
      expect(new Set([verification, first, second]).size).toBe(3);
      expect(Buffer.from(second, 'base64url')).toHaveLength(32);
    });

    // checks: 28
    test.each<[name: string, headers: Record<string, string>, status: number]>([
      ['Host: evil.test', { host: 'evil.test' }, 200],
      ['X-Forwarded-Host: evil.test', { 'x-forwarded-host': 'evil.test', forwarded: 'host=evil.test' }, 200],
      ['Host: app.test:x@evil.test', { host: 'app.test:x@evil.test' }, 400],
    ])('links start with APP_URL, whatever the Host of the request: %s', async (_, headers, status) => {
      const { stack } = scenario();
      const [forgetful, waiting, fresh] = [await verified(scenario()), await registered(scenario()), freshEmail()];
      await stack.waitForMail({ to: waiting.email });
      const requests: [procedure: string, to: string, mails: number][] = [
        ['auth.forgotPassword', forgetful.email, 2],
        ['auth.resendVerification', waiting.email, 2],
        ['auth.register', fresh, 1],
      ];
      const request = async ([procedure, email, count]: (typeof requests)[number]) => {
        // Not by fetch, which always sends the Host of the URL.
        const reply = await ask(stack.url + (surface === 'rest' ? paths[procedure]?.[1] : `/trpc/${procedure}`), {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-forwarded-for': clientAddress(), ...headers },
          body: JSON.stringify({ email, name: 'Ada Lovelace', password: PASSWORD }),
        });
        const isCreated = procedure === 'auth.register' && surface === 'rest';
        expect([procedure, reply.status]).toEqual([procedure, status === 200 && isCreated ? 201 : status]);
        if (status === 400) {
          expect(await stack.database('select id from outbox where email = ?', [email])).toHaveLength(count - 1);
          return;
        }
        const { text, html } = await stack.waitForMail({ to: email, count });
        expect(text + html).not.toContain('evil.test');
        for (const [link] of (text + html).matchAll(/https?:[^\s"<]+/g))
          expect(link.startsWith(`${stack.appUrl}/`)).toBe(true);
        expect(text).toContain(`${stack.appUrl}/`);
      };
      await Promise.all(requests.map(request));
    });
  });

  // checks: 39
  test('a token in a query is refused, and its page cannot be read by another site', async () => {
    const call = callerOf('rest', stack().url);
    const { email, ...person } = await registered({ stack: stack(), call });
    const verification = await mailedToken(stack(), email, 'verify-email');
    await call('auth.forgotPassword', { email });
    const reset = await mailedToken(stack(), email, 'reset-password');
    const input = { token: reset, email, password: NEW_PASSWORD };
    const query = new URLSearchParams(input);
    const inputOf = (value: object) => `input=${encodeURIComponent(JSON.stringify(value))}`;
    const send = async (method: string, path: string, body?: object) => {
      const headers = { 'content-type': 'application/json', 'x-forwarded-for': clientAddress() };
      const response = await fetch(stack().url + path, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      });
      return [method, path, response.status];
    };
    for (const [method, path, status, body] of [
      ['GET', `/auth/reset-password?${query}`, 404],
      ['GET', `/auth/verify-email?token=${verification}`, 404],
      ['GET', `/trpc/auth.resetPassword?${inputOf(input)}`, 404],
      ['GET', `/trpc/auth.verifyEmail?${inputOf({ token: verification })}`, 404],
      ['POST', `/auth/reset-password?${query}`, 400, { email, password: NEW_PASSWORD }],
      ['POST', `/auth/verify-email?token=${verification}`, 400, {}],
      ['POST', `/trpc/auth.resetPassword?${inputOf(input)}`, 400, { email, password: NEW_PASSWORD }],
    ] as const) {
      expect(await send(method, path, body)).toEqual([method, path, status]);
    }
    for (const path of [`/reset-password?${query}`, `/verify-email?token=${verification}`]) {
      const page = await fetch(stack().url + path, { headers: { accept: 'text/html' } });
      expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
      // interface.md section 5; the script of the page removes the token from the URL before any request.
      expect(page.headers.get('referrer-policy')).toBe('strict-origin-when-cross-origin');
    }
    expectRefusal(await call('auth.login', { ...person, email }), 403, 'EMAIL_NOT_VERIFIED');
    expect((await call('auth.verifyEmail', { token: verification })).status).toBe(200);
    expect((await call('auth.resetPassword', input)).status).toBe(200);
  });
});
