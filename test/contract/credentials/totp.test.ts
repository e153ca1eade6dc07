import { expect, test } from 'vitest';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import { until } from '../../rig/until.ts';
import { addPasskey, authenticatorFor } from '../rig/passkey-scenario.ts';
import {
  deviceIn,
  eventsOf,
  everywhere,
  expectRefusal,
  growOld,
  isAlive,
  kindsOf,
  loggedIn,
  logIn,
  PASSWORD,
  sessionIn,
} from '../rig/scenario.ts';
import { codeOf, firstStep, forgetLastCode, pendingIn, setUpApp, withApp, wrongCode } from '../rig/totp-scenario.ts';

/** Authenticator apps: set-up, recovery codes, removal. */

everywhere((scenario) => {
  const appsOf = (id: string) => scenario().stack.database('select * from totps where user_id = ?', [id]);
  const statusOf = async (session: string) => (await scenario().call('totp.status', undefined, { session })).data;

  test('the first right code turns the app on, and the user gets a mail', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    expect(await statusOf(session)).toEqual({ enabled: false, recoveryCodesLeft: 0 });
    const { data } = await call('totp.begin', undefined, { session });
    expect(data).toEqual({
      secret: expect.stringMatching(/^[A-Z2-7]{32}$/),
      uri: expect.any(String),
      qr: expect.any(String),
    });
    const uri = new URL(data.uri);
    const host = new URL(stack.appUrl).host;
    expect([uri.protocol, uri.host]).toEqual(['otpauth:', 'totp']);
    expect(decodeURIComponent(uri.pathname)).toBe(`/${host}:${person.email}`);
    expect(Object.fromEntries(uri.searchParams)).toEqual({
      issuer: host,
      secret: data.secret,
      algorithm: 'SHA1',
      digits: '6',
      period: '30',
    });
    // Contains nothing that the Content-Security-Policy forbids.
    expect(data.qr).toMatch(/^<svg [^>]*>.*<\/svg>$/s);
    expect(data.qr).not.toMatch(/style|script|href|on\w+=/);
    expect(await statusOf(session)).toMatchObject({ enabled: false });
    expectRefusal(await call('totp.enable', { code: wrongCode(data.secret) }, { session }), 401, 'INVALID_CODE');
    expect(await appsOf(person.id)).toEqual([]);
    const elsewhere = await logIn(call, person);

    const reply = await call('totp.enable', { code: codeOf(data.secret) }, { session });
    expect(reply.data).toEqual({ success: true, message: expect.any(String), recoveryCodes: expect.any(Array) });
    // No code was required when the other sessions were opened.
    const own = sessionIn(reply) ?? '';
    expect(await Promise.all([own, session, elsewhere].map((one) => isAlive(call, one)))).toEqual([true, false, false]);
    expect(await statusOf(own)).toEqual({ enabled: true, enabledAt: expect.any(Number), recoveryCodesLeft: 10 });
    expect(await eventsOf(stack, person.id, 'totp-enabled')).toEqual([null]);
    await stack.waitForMail({ to: person.email, subject: 'now requires a code' });
    const [row] = await appsOf(person.id);
    expect(JSON.stringify(row)).not.toContain(data.secret);
    // The first code is now used.
    const pending = await firstStep(call, person);
    expectRefusal(await call('auth.secondFactor', { code: codeOf(data.secret) }, { pending }), 401, 'INVALID_CODE');
    const again = await call('totp.enable', { code: codeOf(data.secret, 1) }, { session: own });
    expectRefusal(again, 401, 'INVALID_CODE');
  });

  // checks: 72
  test('creating secrets is limited per user', async () => {
    const { call } = scenario();
    const [{ session }, other] = [await loggedIn(scenario()), await loggedIn(scenario())];
    const begin = (session: string) => call('totp.begin', undefined, { session });
    for (let i = 0; i < 20; i++) expect((await begin(session)).status).toBe(200);
    const refused = await begin(session);
    expectRefusal(refused, 429, 'RATE_LIMITED');
    expect(refused.headers.get('ratelimit-limit')).toBe('20');
    expect((await begin(other.session)).status).toBe(200);
  });

  test('a login started before the app was set up opens no session after it', async () => {
    const { call } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const { secret } = (await call('totp.begin', undefined, { session })).data;
    const [enabled, ...logins] = await Promise.all([
      call('totp.enable', { code: codeOf(secret) }, { session }),
      ...[0, 1, 2].map(() => call('auth.login', { email: person.email, password: PASSWORD })),
    ]);
    expect(enabled?.status).toBe(200);
    const opened = logins.map(sessionIn).filter((one) => one !== undefined);
    expect(await Promise.all(opened.map((one) => isAlive(call, one)))).toEqual(opened.map(() => false));
  });

  test('only the newest secret of its own session can be confirmed, once', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const other = await logIn(call, person);
    const former = (await call('totp.begin', undefined, { session })).data;
    const { secret } = (await call('totp.begin', undefined, { session })).data;
    expectRefusal(await call('totp.enable', { code: codeOf(former.secret) }, { session }), 401, 'INVALID_CODE');
    expectRefusal(await call('totp.enable', { code: codeOf(secret) }, { session: other }), 401, 'INVALID_CODE');
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => call('totp.enable', { code: codeOf(secret) }, { session })),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    const codes = await stack.database('select id from recovery_codes where user_id = ?', [person.id]);
    expect(codes).toHaveLength(10);
    expect(await eventsOf(stack, person.id, 'totp-enabled')).toHaveLength(1);
  });

  test('a new app replaces the former one and its recovery codes', async () => {
    const { call, stack } = scenario();
    const first = await withApp(scenario());
    const second = await setUpApp(scenario(), first);
    const refused = [{ code: codeOf(first.secret) }, { recoveryCode: first.recoveryCodes[0] }];
    const pending = await firstStep(call, first);
    for (const factor of refused)
      expectRefusal(await call('auth.secondFactor', factor, { pending }), 401, 'INVALID_CODE');
    expect((await call('auth.secondFactor', { code: codeOf(second.secret) }, { pending })).status).toBe(200);
    expect(await appsOf(first.id)).toHaveLength(1);
    expect(await kindsOf(stack, first.id)).toContain('totp-enabled');
  });

  test('turning the app off removes the recovery codes, and no passkey; new codes replace the former ones', async () => {
    const { call, stack } = scenario();
    const { session, recoveryCodes, ...person } = await withApp(scenario());
    await addPasskey(call, session, authenticatorFor(stack));
    const { data } = await call('recoveryCodes.renew', undefined, { session });
    expect(new Set([...data.recoveryCodes, ...recoveryCodes]).size).toBe(20);
    const pending = await firstStep(call, person);
    const use = (recoveryCode?: string) => call('auth.secondFactor', { recoveryCode }, { pending });
    expectRefusal(await use(recoveryCodes[0]), 401, 'INVALID_CODE');
    expect((await use(data.recoveryCodes[0])).status).toBe(200);
    expect(await eventsOf(stack, person.id, 'recovery-codes-renewed')).toEqual([null]);
    await stack.waitForMail({ to: person.email, subject: 'New recovery codes' });

    expect((await call('totp.disable', undefined, { session })).status).toBe(200);
    expect(await statusOf(session)).toEqual({ enabled: false, recoveryCodesLeft: 0 });
    expect(await stack.database('select id from recovery_codes where user_id = ?', [person.id])).toEqual([]);
    expect(await stack.database('select id from passkeys where user_id = ?', [person.id])).toHaveLength(1);
    expect(await eventsOf(stack, person.id, 'totp-disabled')).toEqual([null]);
    await stack.waitForMail({ to: person.email, subject: 'no longer requires a code' });
    await logIn(call, person);
    expectRefusal(await call('totp.disable', undefined, { session }), 404, 'NOT_FOUND');
    expectRefusal(await call('recoveryCodes.renew', undefined, { session }), 404, 'NOT_FOUND');
  });

  test('every change requires an own page and a session with a recent credential', async () => {
    const { call, stack } = scenario();
    const { session, secret, ...person } = await withApp(scenario());
    const calls: [string, unknown][] = [
      ['totp.begin', undefined],
      ['totp.enable', { code: codeOf(secret) }],
      ['totp.disable', undefined],
      ['recoveryCodes.renew', undefined],
    ];
    const before = [await appsOf(person.id), await kindsOf(stack, person.id)];
    const headers = { origin: 'https://evil.test' };
    for (const [procedure, input] of calls) {
      expectRefusal(await call(procedure, input), 401, 'UNAUTHENTICATED');
      expectRefusal(await call(procedure, input, { session, headers }), 403, 'ORIGIN_MISMATCH');
    }
    expectRefusal(await call('totp.status'), 401, 'UNAUTHENTICATED');
    await growOld(stack, person.id);
    for (const [procedure, input] of calls) {
      expectRefusal(await call(procedure, input, { session }), 403, 'REAUTHENTICATION_REQUIRED');
    }
    expect([await appsOf(person.id), await kindsOf(stack, person.id)]).toEqual(before);
  });

  test('unknown fields change nothing', async () => {
    const { call } = scenario();
    const [victim, { session, id }] = [await loggedIn(scenario()), await loggedIn(scenario())];
    const { secret } = (await call('totp.begin', { userId: victim.id, secret: 'A'.repeat(32) }, { session })).data;
    const input = { code: codeOf(secret), userId: victim.id, user_id: victim.id, proven: false, lastStep: 0, secret };
    expect((await call('totp.enable', input, { session })).status).toBe(200);
    expect(await appsOf(victim.id)).toEqual([]);
    expect(await appsOf(id)).toHaveLength(1);
  });

  test('an account with an unproven login method cannot set up an app', async () => {
    const { call, stack } = scenario();
    const { session, id } = await loggedIn(scenario());
    const { secret } = (await call('totp.begin', undefined, { session })).data;
    await stack.database('update users set password_proven = 0 where id = ?', [id]);
    const reply = await call('totp.begin', undefined, { session });
    expectRefusal(reply, 403, 'FORBIDDEN', reply.details?.['account']?.message);
    expect(reply.details?.['account']?.rule).toBe('unproven');
    expectRefusal(await call('totp.enable', { code: codeOf(secret) }, { session }), 403, 'FORBIDDEN');
    expect(await appsOf(id)).toEqual([]);
    expect(await isAlive(call, session)).toBe(true);
  });

  test('with an app, the password alone does not confirm an identity', async () => {
    const { call, stack } = scenario();
    const { session, id } = await withApp(scenario());
    await growOld(stack, id);
    const reply = await call('auth.reauthenticate', { password: PASSWORD }, { session });
    expectRefusal(reply, 403, 'SECOND_FACTOR_REQUIRED');
    expect(reply.details).toEqual({ methods: { message: 'totp', rule: 'second_factor' } });
    expectRefusal(await call('totp.disable', undefined, { session }), 403, 'REAUTHENTICATION_REQUIRED');
  });

  test('a right code confirms an identity; a recovery, used or wrong code does not', async () => {
    const { call, stack } = scenario();
    const { session, secret, recoveryCodes, ...person } = await withApp(scenario());
    await growOld(stack, person.id);
    const again = (input: unknown) => call('auth.reauthenticate', input, { session });
    expectRefusal(await again({ code: wrongCode(secret) }), 401, 'INVALID_CODE');
    for (const input of [{}, { recoveryCode: recoveryCodes[0] }, { code: codeOf(secret), password: PASSWORD }]) {
      expectRefusal(await again(input), 400, 'VALIDATION_FAILED');
    }
    expectRefusal(await call('totp.disable', undefined, { session }), 403, 'REAUTHENTICATION_REQUIRED');
    const code = codeOf(secret);
    expect(await again({ code })).toMatchObject({ status: 200, setCookies: [] });
    expect(await eventsOf(stack, person.id, 'reauthenticated')).toEqual([{ method: 'totp' }]);
    expect((await call('recoveryCodes.renew', undefined, { session })).status).toBe(200);
    expectRefusal(await again({ code }), 401, 'INVALID_CODE');
    await until(async () => (await eventsOf(stack, person.id, 'login-refused')).length === 2, { what: 'the events' });
    const without = await loggedIn(scenario());
    const refused = await call('auth.reauthenticate', { code: '123456' }, { session: without.session });
    expectRefusal(refused, 401, 'INVALID_CODE');
  });

  test('wrong codes are limited per user across addresses, but lock out no known device, session or other factor', async () => {
    const { call, stack } = scenario();
    const { session, secret, recoveryCodes, ...person } = await withApp(scenario());
    const right = { code: codeOf(secret) };
    const device = deviceIn(await call('auth.secondFactor', right, { pending: await firstStep(call, person) }));
    await forgetLastCode(stack, person.id);
    const code = wrongCode(secret);
    for (let attempt = 0; attempt < 10; attempt++) {
      const pending = await firstStep(call, person);
      expectRefusal(await call('auth.secondFactor', { code }, { pending }), 401, 'INVALID_CODE');
    }
    const pending = await firstStep(call, person);
    const reply = await call('auth.secondFactor', right, { pending, address: clientAddress() });
    expectRefusal(reply, 429, 'RATE_LIMITED');
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(3000);
    expect(await stack.database('select last_step from totps where user_id = ?', [person.id])).toEqual([
      { last_step: 0 },
    ]);
    const onKnown = { pending: await firstStep(call, person), device };
    expect((await call('auth.secondFactor', right, onKnown)).status).toBe(200);
    await forgetLastCode(stack, person.id);
    expect((await call('auth.reauthenticate', right, { session })).status).toBe(200);
    const recovery = { pending: await firstStep(call, person) };
    expect((await call('auth.secondFactor', { recoveryCode: recoveryCodes[0] }, recovery)).status).toBe(200);
    // A session has ten too, and right ones do not count.
    await forgetLastCode(stack, person.id);
    for (let attempt = 0; attempt < 10; attempt++) {
      expectRefusal(await call('auth.reauthenticate', { code }, { session }), 401, 'INVALID_CODE');
    }
    expectRefusal(await call('auth.reauthenticate', right, { session }), 429, 'RATE_LIMITED');
    expect(await stack.database('select last_step from totps where user_id = ?', [person.id])).toEqual([
      { last_step: 0 },
    ]);
    // The limit affects nobody else.
    const other = await withApp(scenario());
    const own = { pending: await firstStep(call, other) };
    expect((await call('auth.secondFactor', { code: codeOf(other.secret) }, own)).status).toBe(200);
  });

  test('an administrator can remove the app of a user who has lost it', async () => {
    const { call, stack } = scenario();
    const [target, admin] = [await withApp(scenario()), await loggedIn(scenario())];
    const remove = (id: string, session?: string) => call('users.removeSecondFactors', { id }, { session });
    expectRefusal(await remove(target.id), 401, 'UNAUTHENTICATED');
    expectRefusal(await remove(target.id, target.session), 403, 'FORBIDDEN');
    expectRefusal(await remove(target.id, admin.session), 403, 'FORBIDDEN');
    await stack.database("update users set role = 'admin' where id = ?", [admin.id]);
    await growOld(stack, admin.id);
    expectRefusal(await remove(target.id, admin.session), 403, 'REAUTHENTICATION_REQUIRED');
    expect(await appsOf(target.id)).toHaveLength(1);
    await call('auth.reauthenticate', { password: PASSWORD }, { session: admin.session });
    for (const id of ['user_', freshEmail(), 'user_00000000-0000-7000-8000-000000000000']) {
      expectRefusal(await remove(id, admin.session), 404, 'NOT_FOUND');
    }
    for (let times = 0; times < 2; times++) expect((await remove(target.id, admin.session)).status).toBe(200);
    expect(await appsOf(target.id)).toEqual([]);
    expect(await stack.database('select id from recovery_codes where user_id = ?', [target.id])).toEqual([]);
    const events = await stack.database(
      "select actor, actor_id from activity where user_id = ? and kind = 'second-factors-removed'",
      [target.id],
    );
    expect(events).toEqual([{ actor: 'administrator', actor_id: admin.id }]);
    await stack.waitForMail({ to: target.email, subject: 'no longer requires a code' });
    expect(await isAlive(call, target.session)).toBe(true);
    await logIn(call, target);
  });

  test('the export shows the app without its secret; removing the account removes it', async () => {
    const { call, stack } = scenario();
    const { session, secret, recoveryCodes, ...person } = await withApp(scenario());
    const pending = await firstStep(call, person);
    expect((await call('auth.secondFactor', { recoveryCode: recoveryCodes[0] }, { pending })).status).toBe(200);
    const { data } = await call('account.export', undefined, { session });
    expect(data.authenticatorApp).toEqual([{ createdAt: expect.any(Number) }]);
    expect(data.recoveryCodes).toHaveLength(10);
    expect(data.recoveryCodes.filter(({ usedAt }: { usedAt: number | null }) => usedAt !== null)).toHaveLength(1);
    const text = JSON.stringify(data);
    for (const hidden of [secret, 'codeHash', 'lastStep']) expect(text).not.toContain(hidden);
    expect((await call('account.delete', undefined, { session })).status).toBe(200);
    await stack.database('update removals set due_at = 0 where user_id = ?', [person.id]);
    await until(async () => (await appsOf(person.id)).length === 0, { what: 'the removal' });
    expect(await stack.database('select id from recovery_codes where user_id = ?', [person.id])).toEqual([]);
  });

  test('a wrong password does not reveal whether there is an app', async () => {
    const { call, stack } = scenario();
    const person = await withApp(scenario());
    const reply = await call('auth.login', { email: person.email, password: `${PASSWORD}!` });
    expectRefusal(reply, 401, 'INVALID_CREDENTIALS');
    expect(pendingIn(reply)).toBeUndefined();
    expect(reply.details).toBeUndefined();
    expect(await eventsOf(stack, person.id, 'logged-in')).toHaveLength(1);
  });
});
