import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { until } from '../../rig/until.ts';
import { addPasskey, authenticatorFor } from '../rig/passkey-scenario.ts';
import { deviceIn, eventsOf, everywhere, expectRefusal, isAlive, PASSWORD, sessionIn } from '../rig/scenario.ts';
import { codeOf, firstStep, forgetLastCode, pendingIn, stepNow, withApp, wrongCode } from '../rig/totp-scenario.ts';

/** The second step of a login: a code from an authenticator app, or a recovery code. */

everywhere(
  (scenario) => {
    const sessionsOf = async (id: string) =>
      (await scenario().stack.database('select id from sessions where user_id = ?', [id])).length;

    test('the password opens no session, the code does, and only then the former session ends', async () => {
      const { call, stack } = scenario();
      const { session, secret, ...person } = await withApp(scenario());
      const loginReply = await call('auth.login', { email: person.email, password: PASSWORD }, { session });
      expectRefusal(loginReply, 403, 'SECOND_FACTOR_REQUIRED');
      expect(loginReply.details).toEqual({ methods: { message: 'totp,recovery', rule: 'second_factor' } });
      expect(loginReply.setCookies).toEqual([
        expect.stringMatching(/^auth_pending=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=600$/),
      ]);
      expect(await isAlive(call, session)).toBe(true);
      expect(await sessionsOf(person.id)).toBe(1);

      const pending = pendingIn(loginReply);
      const reply = await call('auth.secondFactor', { code: codeOf(secret) }, { pending, session });
      const { id, email, name } = person;
      expect(reply.data).toEqual({
        success: true,
        message: 'You are logged in.',
        user: { id, email, name, provider: 'email' },
      });
      expect(pendingIn(reply)).toBe('');
      expect(deviceIn(reply)).toBeDefined();
      expect(await isAlive(call, sessionIn(reply) ?? '')).toBe(true);
      expect(await isAlive(call, session)).toBe(false);
      expect((await eventsOf(stack, id, 'logged-in')).at(-1)).toMatchObject({
        method: 'password',
        secondFactor: 'totp',
      });
      expectRefusal(await call('auth.secondFactor', { code: codeOf(secret, 1) }, { pending }), 401, 'UNAUTHENTICATED');
    });

    test('a new device is reported after the second step, and the session is recent', async () => {
      const { call, stack } = scenario();
      const { secret, ...person } = await withApp(scenario());
      const pending = await firstStep(call, person);
      expect((await stack.mailsTo(person.email)).filter(({ subject }) => subject.startsWith('New login'))).toEqual([]);
      const reply = await call('auth.secondFactor', { code: codeOf(secret) }, { pending });
      await stack.waitForMail({ to: person.email, subject: 'New login' });
      const again = await firstStep(call, person);
      await forgetLastCode(stack, person.id);
      const known = { pending: again, device: deviceIn(reply) };
      const session = sessionIn(await call('auth.secondFactor', { code: codeOf(secret) }, known));
      expect((await eventsOf(stack, person.id, 'logged-in')).map(({ device }) => device)).toEqual([
        undefined,
        'new',
        undefined,
      ]);
      expect((await call('totp.begin', undefined, { session })).status).toBe(200);
    });

    test('codes one time step early or late are right, and no others', async () => {
      const { call, stack } = scenario();
      const { secret, ...person } = await withApp(scenario());
      for (;;) {
        const step = stepNow();
        const statuses: [number, number][] = [];
        for (const steps of [-2, -1, 0, 1, 2]) {
          const pending = await firstStep(call, person);
          await forgetLastCode(stack, person.id);
          const { status } = await call('auth.secondFactor', { code: codeOf(secret, steps) }, { pending });
          statuses.push([steps, status]);
        }
        // The time step of a code may have ended between the calls.
        if (stepNow() !== step) continue;
        expect(statuses).toEqual([
          [-2, 401],
          [-1, 200],
          [0, 200],
          [1, 200],
          [2, 401],
        ]);
        return;
      }
    });

    test('a code works once, and no older one works after it', async () => {
      const { call } = scenario();
      const { secret, ...person } = await withApp(scenario());
      const pending = await Promise.all(Array.from({ length: 8 }, () => firstStep(call, person)));
      const code = codeOf(secret, 1);
      const replies = await Promise.all(pending.map((each) => call('auth.secondFactor', { code }, { pending: each })));
      expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
      for (const reply of replies.filter(({ status }) => status !== 200)) expectRefusal(reply, 401, 'INVALID_CODE');
      expect(await sessionsOf(person.id)).toBe(2);
      const next = await firstStep(call, person);
      expectRefusal(await call('auth.secondFactor', { code: codeOf(secret) }, { pending: next }), 401, 'INVALID_CODE');
    });

    test('two concurrent finishes of one login open one session', async () => {
      const { call } = scenario();
      const { secret, recoveryCodes, ...person } = await withApp(scenario());
      const pending = await firstStep(call, person);
      const codes = [{ code: codeOf(secret) }, { recoveryCode: recoveryCodes[0] }, { recoveryCode: recoveryCodes[1] }];
      const replies = await Promise.all(codes.map((each) => call('auth.secondFactor', each, { pending })));
      expect(replies.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
      expect(await sessionsOf(person.id)).toBe(2);
    });

    test('a recovery code works once, in any spelling; a mail states how many are left', async () => {
      const { call, stack } = scenario();
      const { recoveryCodes, ...person } = await withApp(scenario());
      expect(new Set(recoveryCodes).size).toBe(10);
      for (const code of recoveryCodes) expect(code).toMatch(/^[0-9a-hjkmnp-tv-z]{4}(?:-[0-9a-hjkmnp-tv-z]{4}){3}$/);
      const [first = '', second = ''] = recoveryCodes;
      const use = async (recoveryCode: string) =>
        call('auth.secondFactor', { recoveryCode }, { pending: await firstStep(call, person) });
      expect(sessionIn(await use(first.toUpperCase().replaceAll('-', ' ')))).toBeTruthy();
      expectRefusal(await use(first), 401, 'INVALID_CODE');
      expect(sessionIn(await use(second.replaceAll('-', '')))).toBeTruthy();
      expect(await eventsOf(stack, person.id, 'recovery-code-used')).toEqual([{ left: '9' }, { left: '8' }]);
      expect((await eventsOf(stack, person.id, 'logged-in')).at(-1)).toMatchObject({ secondFactor: 'recovery' });
      const { text } = await stack.waitForMail({ to: person.email, subject: 'recovery code was used', count: 2 });
      expect(text).toContain('8');
      // Only hashes are stored.
      const stored = JSON.stringify(
        await stack.database('select * from recovery_codes where user_id = ?', [person.id]),
      );
      for (const code of recoveryCodes) expect(stored).not.toContain(code.replaceAll('-', ''));
      const other = await withApp(scenario());
      const pending = await firstStep(call, person);
      const refused = await call('auth.secondFactor', { recoveryCode: other.recoveryCodes[0] }, { pending });
      expectRefusal(refused, 401, 'INVALID_CODE');
    });

    test('without unused recovery codes only the app and passkeys are offered', async () => {
      const { call, stack } = scenario();
      const person = await withApp(scenario());
      const offered = async () => (await call('auth.login', { email: person.email, password: PASSWORD })).details;
      await stack.database('update recovery_codes set used_at = 1 where user_id = ?', [person.id]);
      expect(await offered()).toMatchObject({ methods: { message: 'totp' } });
      await addPasskey(call, person.session, authenticatorFor(stack));
      expect(await offered()).toMatchObject({ methods: { message: 'totp,passkey' } });
      await stack.database('delete from totps where user_id = ?', [person.id]);
      expect((await call('auth.login', { email: person.email, password: PASSWORD })).status).toBe(200);
    });

    test('the fifth wrong code ends the login, even with one login per code', async () => {
      const { call, stack } = scenario();
      const { secret, ...person } = await withApp(scenario());
      const code = wrongCode(secret);
      const pending = await firstStep(call, person);
      for (let attempt = 1; attempt <= 5; attempt++) {
        const reply = await call('auth.secondFactor', { code }, { pending });
        expectRefusal(reply, 401, 'INVALID_CODE');
        expect(pendingIn(reply)).toBe(attempt === 5 ? '' : undefined);
      }
      expectRefusal(await call('auth.secondFactor', { code: codeOf(secret) }, { pending }), 401, 'UNAUTHENTICATED');
      await until(async () => (await eventsOf(stack, person.id, 'login-refused')).length === 5, { what: 'the events' });
      expect(await eventsOf(stack, person.id, 'login-refused')).toEqual(Array(5).fill({ reason: 'wrong-code' }));

      const next = await firstStep(call, person);
      const replies = await Promise.all(
        Array.from({ length: 20 }, () => call('auth.secondFactor', { code }, { pending: next })),
      );
      expect(replies.filter((reply) => reply.code === 'INVALID_CODE')).toHaveLength(5);
      expect(replies.filter((reply) => reply.code === 'UNAUTHENTICATED')).toHaveLength(15);
      expect(await sessionsOf(person.id)).toBe(1);
    });

    test('a right code as the fifth works', async () => {
      const { call } = scenario();
      const { secret, ...person } = await withApp(scenario());
      const pending = await firstStep(call, person);
      for (let i = 0; i < 4; i++) await call('auth.secondFactor', { code: wrongCode(secret) }, { pending });
      const reply = await call('auth.secondFactor', { code: codeOf(secret) }, { pending });
      expect(await isAlive(call, sessionIn(reply) ?? '')).toBe(true);
    });

    test('the cookie is not a session, and completes no login of another account', async () => {
      const { call } = scenario();
      const ada = await withApp(scenario());
      const eve = await withApp(scenario());
      const [ofAda, ofEve] = [await firstStep(call, ada), await firstStep(call, eve)];
      expectRefusal(await call('profile.get', undefined, { session: ofAda }), 401, 'UNAUTHENTICATED');
      expectRefusal(await call('profile.get', undefined, { pending: ofAda }), 401, 'UNAUTHENTICATED');
      expectRefusal(
        await call('auth.secondFactor', { code: codeOf(eve.secret) }, { pending: ofAda }),
        401,
        'INVALID_CODE',
      );
      expectRefusal(
        await call('auth.secondFactor', { code: codeOf(ada.secret) }, { pending: ada.session }),
        401,
        'UNAUTHENTICATED',
      );
      const own = await call('auth.secondFactor', { code: codeOf(eve.secret) }, { pending: ofEve });
      expect(own.data.user.id).toBe(eve.id);
    });

    // checks: 68
    test('a planted cookie never completes the login of the user', async () => {
      const { call } = scenario();
      const { secret, email } = await withApp(scenario());
      const planted = randomBytes(32).toString('base64url');
      const reply = await call('auth.login', { email, password: PASSWORD }, { pending: planted });
      expect(pendingIn(reply)).not.toBe(planted);
      for (const pending of [planted, '', 'x', undefined]) {
        const refused = await call('auth.secondFactor', { code: codeOf(secret) }, { pending });
        expectRefusal(refused, 401, 'UNAUTHENTICATED');
        expect(pendingIn(refused)).toBe('');
      }
      // Two of them count as none.
      const headers = { cookie: `auth_pending=${pendingIn(reply)}; auth_pending=${planted}` };
      expectRefusal(await call('auth.secondFactor', { code: codeOf(secret) }, { headers }), 401, 'UNAUTHENTICATED');
    });

    test('malformed and cross-site calls are refused and do not count', async () => {
      const { call } = scenario();
      const { secret, recoveryCodes, ...person } = await withApp(scenario());
      const pending = await firstStep(call, person);
      const code = codeOf(secret);
      const inputs = [
        {},
        { code, recoveryCode: recoveryCodes[0] },
        { code: 123456 },
        { code: '12345' },
        { code: '1234567' },
        { code: ['123456'] },
        { code: '１２３４５６' },
        { recoveryCode: '' },
        { recoveryCode: 'x'.repeat(65) },
        { code: null },
      ];
      for (const input of inputs) {
        expectRefusal(await call('auth.secondFactor', input, { pending }), 400, 'VALIDATION_FAILED');
      }
      const headers = { origin: 'https://evil.test' };
      expectRefusal(await call('auth.secondFactor', { code }, { pending, headers }), 403, 'ORIGIN_MISMATCH');
      const spaced = `${code.slice(0, 3)} ${code.slice(3)}`;
      expect((await call('auth.secondFactor', { code: spaced, admin: true }, { pending })).status).toBe(200);
    });
  },
  { env: { LIMIT_CODE: '1000/3600' } },
);
