import { expect, test } from 'vitest';
import { freshEmail } from '../../rig/servers/address.ts';
import type { Reply } from '../rig/callers.ts';
import {
  expectRefusal,
  inEveryForm,
  logIn,
  mailedToken,
  mailsSettled,
  PASSWORD,
  registered,
  sessionIn,
  verified,
  visibleIn,
} from '../rig/scenario.ts';

/** HTML as displayed. */
const readable = (html: string) =>
  html.replace(
    /&(lt|gt|quot|#39|amp);/g,
    (_, name: string) => ({ lt: '<', gt: '>', quot: '"', '#39': "'" })[name] ?? '&',
  );

inEveryForm((scenario, surface) => {
  const valid = () => ({ name: 'Ada Lovelace', email: freshEmail(), password: PASSWORD });

  // checks: 49
  test('a registration returns the user and mails one link, without logging in', async () => {
    const { call, stack } = scenario();
    const person = valid();
    const reply = await call('auth.register', person);
    expect(reply.status).toBe(surface === 'rest' ? 201 : 200);
    expect(reply.data).toEqual({
      success: true,
      message: expect.stringMatching(/check your email/i),
      user: { id: expect.stringMatching(/^user_[0-9a-f-]{36}$/), email: person.email, name: person.name },
    });
    expect(sessionIn(reply)).toBeUndefined();
    const mail = await stack.waitForMail({ to: person.email });
    expect(mail.text).toContain(`${stack.appUrl}/verify-email?token=`);
    expect(mail.to).toEqual([person.email]);
    expect(await stack.mailsTo(person.email)).toHaveLength(1);
  });

  // checks: 2
  test('an email can be registered once, whatever its case', async () => {
    const { call } = scenario();
    const person = await registered(scenario());
    for (const email of [person.email, person.email.toUpperCase()]) {
      expectRefusal(await call('auth.register', { ...valid(), email }), 409, 'EMAIL_TAKEN', 'Email already registered');
    }
  });

  // checks: 2, 3
  test.each([
    ['a list of two', 'v@example.test, evil@example.test'],
    ['a header in it', 'v@example.test\r\nBcc: evil@example.test'],
    ['a quoted second one', '"evil@example.test x"@b.test'],
    ['a line end', 'v@example.test\n'],
    ['a space before', ' v@example.test'],
    ['a local part of 65', `${'a'.repeat(65)}@example.test`],
    ['255 characters', `a@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.${'e'.repeat(60)}.${'f'.repeat(9)}`],
    ['a letter beyond ASCII', 'josé@example.test'],
    ['a dotless i', 'ı@example.test'],
    ['a sharp s', 'ß@example.test'],
    ['full width letters', 'ａｄａ@example.test'],
    ['NUL', 'a\0@example.test'],
    ['no domain', 'ada@'],
    ['no dot in the domain', 'ada@localhost'],
    ['two dots', 'a..b@example.test'],
    ['nothing', ''],
    ['100 kB of nothing', 'a'.repeat(90_000)],
  ])('an email with %s is refused, and no mail is sent', async (_, email) => {
    const { call, stack } = scenario();
    const mails = () => stack.database<{ id: string; email: string }>('select id, email from outbox');
    const before = (await mails()).map(({ id }) => id);
    const reply = await call('auth.register', { ...valid(), email });
    expectRefusal(reply, 400, 'VALIDATION_FAILED', 'Validation failed');
    expect(reply.details).toHaveProperty('email.rule', 'invalid_email');
    // Those of other tests may be sent and gone meanwhile.
    expect((await mails()).filter(({ id }) => !before.includes(id))).toEqual([]);
  });

  // checks: 7
  test.each([
    ['Aa1!aaa', 'too_short'],
    [`Aa1!${'a'.repeat(125)}`, 'too_long'],
    ['analytical-1843', 'uppercase'],
    ['ANALYTICAL-1843', 'lowercase'],
    ['Analytical-Engine', 'digit'],
    ['Analytical1843', 'symbol'],
    ['\ud800Analytical-1843', 'invalid_characters'],
  ])('the password %s breaks the rule %s', async (password, rule) => {
    const reply = await scenario().call('auth.register', { ...valid(), password });
    expectRefusal(reply, 400, 'VALIDATION_FAILED');
    expect(reply.details).toHaveProperty('password.rule', rule);
  });

  test.each([
    ['short', ['too_short', 'uppercase', 'digit', 'symbol']],
    ['analytical', ['uppercase', 'digit', 'symbol']],
    ['Analytical1843', ['symbol']],
    ['x'.repeat(129), ['too_long']],
  ])('all rules that the password %s breaks are reported', async (password, rules) => {
    const reply = await scenario().call('auth.register', { ...valid(), name: 'x', password });
    expectRefusal(reply, 400, 'VALIDATION_FAILED');
    expect(reply.details).toMatchObject({ password: { rule: rules[0], rules }, name: { rules: ['too_short'] } });
  });

  // checks: 7
  test('passwords of the shortest and the longest length log in exactly as given', async () => {
    const passwords = [
      'Aa1!aaaa',
      `Aa1!${'a'.repeat(124)}`,
      'Analytical 1843',
      'Analytical🎉1843',
      'ПарольНовый-1843',
      '  Analytical-1843  ',
    ];
    const tryAll = async (password: string) => {
      const { call } = scenario();
      const { email, name } = await verified(scenario(), { password });
      await logIn(call, { email, password, name });
      for (const other of [password.trim(), `${password.slice(0, -1)}x`].filter((text) => text !== password)) {
        expectRefusal(await call('auth.login', { email, password: other }), 401, 'INVALID_CREDENTIALS');
      }
    };
    await Promise.all(passwords.map(tryAll));
  });

  // checks: 8
  test.each([
    ['one visible character', ' a ', 'too_short'],
    ['101 characters', 'a'.repeat(101), 'too_long'],
    ['NUL', 'a\0b', 'invalid_characters'],
    ['a lone surrogate', 'a\ud800b', 'invalid_characters'],
    ['zero-width characters only', '\u200b\u200b\u200b', 'invisible'],
    ['a line break', 'Ada\nhttps://evil.test', 'invalid_characters'],
  ])('a name of %s is refused', async (_, name, rule) => {
    const reply = await scenario().call('auth.register', { ...valid(), name });
    expectRefusal(reply, 400, 'VALIDATION_FAILED');
    expect(reply.details).toHaveProperty('name.rule', rule);
  });

  // checks: 8
  test('a name is stored as returned, and appears in no mail', async () => {
    const { call, stack } = scenario();
    const names: [name: string, stored: string][] = [
      ['  Ada Lovelace ', 'Ada Lovelace'],
      ['🎉'.repeat(100), '🎉'.repeat(100)],
      ['Ada \u202eecalevoL', 'Ada \u202eecalevoL'],
      ['<b>"Ada" & \'Co\'</b>', '<b>"Ada" & \'Co\'</b>'],
    ];
    const followName = async ([name, stored]: [string, string]) => {
      const person = await registered(scenario(), { name });
      const { data } = await call('users.get', { id: person.id });
      expect(data.data.name).toBe(stored);
      const token = await mailedToken(stack, person.email, 'verify-email');
      // In another browser: the name may be a stranger's.
      await call('auth.verifyEmail', { token });
      await call('auth.forgotPassword', { email: person.email });
      for (const subject of ['Verify', 'Reset']) {
        const mail = await stack.waitForMail({ to: person.email, subject });
        const sent = Object.values({ ...mail, html: readable(mail.html) }).join('\n');
        expect(sent).toContain('Hello,');
        expect(sent).not.toContain(stored);
      }
    };
    await Promise.all(names.map(followName));
  });

  // checks: 4
  test('fields that the caller may not set are ignored', async () => {
    const { call, stack } = scenario();
    const person = valid();
    const { data } = await call('auth.register', {
      ...person,
      id: 'user_0',
      emailVerified: true,
      provider: 'google',
      role: 'admin',
      createdAt: 1,
      passwordHash: 'x',
      sessionEpoch: 9,
    });
    const [row] = await stack.database('select * from users where email = ?', [person.email]);
    expect(Number(row?.['created_at'])).toBeGreaterThan(Date.now() - 60_000);
    expect(row).toMatchObject({
      id: data.user.id,
      email_verified: 0,
      provider: 'email',
      role: 'user',
      session_epoch: 0,
    });
    expectRefusal(await call('auth.login', person), 403, 'EMAIL_NOT_VERIFIED');
  });

  // checks: 5
  test.each([
    { email: 0 },
    { email: ['a@b.test'] },
    { email: { $gt: '' } },
    { email: null },
    { password: true },
    { password: ['Analytical-1843'] },
    { name: 7 },
    { name: {} },
  ])('%j instead of text is refused', async (wrong) => {
    const { call } = scenario();
    const [field = ''] = Object.keys(wrong);
    const others = {
      email: ['auth.login', 'auth.forgotPassword', 'auth.resendVerification'],
      password: ['auth.login'],
    }[field];
    for (const procedure of ['auth.register', ...(others ?? [])]) {
      const reply = await call(procedure, { ...valid(), ...wrong });
      expectRefusal(reply, 400, 'VALIDATION_FAILED');
      expect(reply.details).toHaveProperty(`${field}.rule`);
    }
  });

  // checks: 10
  test('a token verifies its account without logging in; a repeated use succeeds', async () => {
    const { call, stack } = scenario();
    const { browser, ...person } = await registered(scenario());
    const other = await registered(scenario());
    const token = await mailedToken(stack, person.email, 'verify-email');
    expectRefusal(await call('auth.login', person), 403, 'EMAIL_NOT_VERIFIED', /verify your email before logging in/);
    for (let i = 0; i < 2; i++) {
      const reply = await call('auth.verifyEmail', { token }, { browser });
      expect(reply.data).toEqual({ success: true, message: expect.any(String) });
      expect(sessionIn(reply)).toBeUndefined();
    }
    await logIn(call, person);
    expectRefusal(await call('auth.login', other), 403, 'EMAIL_NOT_VERIFIED');
  });

  // checks: 5, 10
  test.each([
    ['missing', undefined],
    ['empty', ''],
    ['wrong', 'x'.repeat(43)],
    ['a list', ['x']],
    ['a number', 1],
    ['very long', 'x'.repeat(90_000)],
  ])('a verification token that is %s is invalid', async (_, token) => {
    const reply = await scenario().call('auth.verifyEmail', { token });
    expectRefusal(reply, 400, 'INVALID_TOKEN', 'Invalid or expired token');
  });

  // checks: 10
  test('a truncated, an expired and a reset token verify nothing', async () => {
    const { call, stack } = scenario();
    const person = await registered(scenario());
    const token = await mailedToken(stack, person.email, 'verify-email');
    await call('auth.forgotPassword', { email: person.email });
    const reset = await mailedToken(stack, person.email, 'reset-password');
    for (const wrong of [token.slice(0, -1), reset]) {
      expectRefusal(await call('auth.verifyEmail', { token: wrong }), 400, 'INVALID_TOKEN');
    }
    await stack.database('update one_time_tokens set expires_at = expires_at - 86401000 where user_id = ?', [
      person.id,
    ]);
    expectRefusal(await call('auth.verifyEmail', { token }), 400, 'INVALID_TOKEN');
    expectRefusal(await call('auth.login', person), 403, 'EMAIL_NOT_VERIFIED');
  });

  // checks: 10
  test('twenty concurrent confirmations all verify the account, without logging in', async () => {
    const { call, stack } = scenario();
    const person = await registered(scenario());
    const token = await mailedToken(stack, person.email, 'verify-email');
    const replies = await Promise.all(Array.from({ length: 20 }, () => call('auth.verifyEmail', { token })));
    expect(replies.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(replies.map(sessionIn)).toEqual(Array(20).fill(undefined));
    await logIn(call, person);
  });

  // checks: 11
  test('a repeated request mails a newer link to unverified users, with the same answer for all', async () => {
    const { call, stack } = scenario();
    const { browser, ...waiting } = await registered(scenario());
    const done = await verified(scenario());
    const first = await mailedToken(stack, waiting.email, 'verify-email');
    const unknown = freshEmail();
    const answers = await Promise.all(
      [waiting.email, done.email, unknown].map((email) => call('auth.resendVerification', { email }, { browser })),
    );
    for (const answer of answers) {
      expect(visibleIn(answer)).toEqual(visibleIn(answers[0] as Reply));
      expect(answer).toMatchObject({ status: 200, data: { success: true } });
      expect(answer.setCookies).toEqual([expect.stringContaining(`auth_browser=${browser}; `)]);
    }
    const second = await mailedToken(stack, waiting.email, 'verify-email', 2);
    expectRefusal(await call('auth.verifyEmail', { token: first }), 400, 'INVALID_TOKEN');
    expect((await call('auth.verifyEmail', { token: second })).status).toBe(200);
    expect(await stack.mailsTo(done.email)).toHaveLength(1);
    expect(await stack.mailsTo(unknown)).toEqual([]);
  });

  // checks: 11
  test('allows ten links per hour and address; afterwards the newest link stays valid', async () => {
    const { call, stack } = scenario();
    const person = await registered(scenario());
    const ask = async () => expect((await call('auth.resendVerification', { email: person.email })).status).toBe(200);
    for (let i = 1; i < 10; i++) await ask();
    await mailsSettled(stack, person.email);
    for (let i = 0; i < 4; i++) await ask();
    await mailsSettled(stack, person.email);
    const links = (await stack.mailsTo(person.email)).map(({ text }) => /token=(\S+)/.exec(text)?.[1] ?? '');
    expect(links.length).toBeLessThanOrEqual(10);
    const states = await stack.database<{ state: string }>('select state from outbox where email = ?', [person.email]);
    expect(states.filter(({ state }) => state === 'sent')).toHaveLength(links.length);
    const answers = [];
    for (const token of links) answers.push((await call('auth.verifyEmail', { token })).status);
    expect(answers.filter((status) => status === 200)).toHaveLength(1);
  });
});
