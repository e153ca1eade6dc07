import { expect, test } from 'vitest';
import type { Lies } from '../../rig/client/authenticator.ts';
import { ask } from '../../rig/client/raw.ts';
import { entriesOf } from '../../rig/observe/key-value-view.ts';
import {
  authenticatorFor,
  beginLogin,
  beginRegistration,
  forgetPassword,
  lies,
  logInByPasskey,
  passkeyRows,
  refusalsOf,
  sessionsOf,
  tryPasskey,
  withPasskey,
} from '../rig/passkey-scenario.ts';
import { eventsOf, everywhere, expectRefusal, isAlive, mailedToken, sessionIn } from '../rig/scenario.ts';

/** Logins by passkey, and refused imitations. */

const REFUSED = 'This passkey was not accepted';
const MANY = { env: { LIMIT_LOGIN: '10000/900', LIMIT_PASSKEY_START: '10000/900' } };

everywhere((scenario) => {
  test('a passkey logs in like a password', async () => {
    const { call, stack } = scenario();
    const { authenticator, session: former, ...person } = await withPasskey(scenario());
    const reply = await tryPasskey(call, authenticator, {}, {});
    expect(reply.status).toBe(200);
    expect(reply.data).toEqual({
      success: true,
      message: 'You are logged in.',
      user: { id: person.id, email: person.email, name: person.name, provider: 'email' },
    });
    const session = sessionIn(reply) ?? '';
    expect(reply.setCookies).toContainEqual(
      `auth_session=${session}; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800`,
    );
    expect(await isAlive(call, session)).toBe(true);
    expect(await isAlive(call, former)).toBe(true);
    expect((await sessionsOf(stack, person.id)).map(({ method }) => method)).toEqual(['password', 'passkey']);
    expect(await eventsOf(stack, person.id, 'logged-in')).toContainEqual(
      expect.objectContaining({ method: 'passkey' }),
    );
    const [row] = await passkeyRows(stack, person.id);
    expect(Math.abs(Number(row?.['last_used_at']) - Date.now())).toBeLessThan(60_000);
    // The session is recent, as after any login.
    await beginRegistration(call, session);
  });

  test('the options name no user, require user verification, and work for five minutes in this browser', async () => {
    const { call, stack } = scenario();
    const before = (await entriesOf(stack)).map(({ key }) => key);
    const { options, browser } = await beginLogin(call);
    expect(options).toEqual({
      challenge: expect.stringMatching(/^[\w-]{43}$/),
      rpId: new URL(stack.appUrl).hostname,
      timeout: 300_000,
      userVerification: 'required',
    });
    expect(browser).toMatch(/^[\w-]{43}$/);
    const [made, ...others] = (await entriesOf(stack)).filter(
      ({ key }) => key.includes('passkey-challenge:') && !before.includes(key),
    );
    expect(others).toEqual([]);
    expect(made?.keptMs).toBeGreaterThan(280_000);
    expect(made?.keptMs).toBeLessThanOrEqual(300_000);
    expect(JSON.stringify(made)).not.toContain(options.challenge);
    expect(JSON.stringify(made)).not.toContain(browser);
  });

  test('a login ends the session that the request carried', async () => {
    const { call } = scenario();
    const { authenticator, session } = await withPasskey(scenario());
    const reply = await tryPasskey(call, authenticator, {}, { session });
    expect(reply.status).toBe(200);
    expect(await isAlive(call, session)).toBe(false);
  });

  test.each<[string, Lies]>([
    ...lies,
    ['the type of a registration', { type: 'webauthn.create' }],
    ['no user', { userHandle: null }],
    ['another user', { userHandle: Buffer.from('user_01893b2e-7f5a-7c3d-9a52-1f0f6b6f3c11').toString('base64url') }],
    ['an unknown credential', { id: 'AAAAAAAAAAAAAAAAAAAAAA' }],
    ['a backup of what cannot be backed up', { backupEligible: false, backedUp: true }],
  ])('%s is refused with the common message, and leaves nothing', async (_, lie) => {
    const { call, stack } = scenario();
    const { authenticator, id } = await withPasskey(scenario());
    const reply = await tryPasskey(call, authenticator, lie);
    expectRefusal(reply, 401, 'INVALID_CREDENTIALS', REFUSED);
    expect(reply.setCookies).toEqual([]);
    expect(await sessionsOf(stack, id)).toHaveLength(1);
    expect(await passkeyRows(stack, id)).toMatchObject([{ last_used_at: null }]);
    await logInByPasskey(call, authenticator);
  });

  test('the Host header does not choose the RP id', async () => {
    const { call, stack } = scenario();
    const rpId = new URL(stack.appUrl).hostname;
    const headers = { 'x-forwarded-host': 'evil.test', 'x-forwarded-proto': 'https' };
    expect((await call('auth.beginPasskey', undefined, { headers })).data.rpId).toBe(rpId);
    // fetch always sends the Host of the URL.
    const { body } = await ask(`${stack.url}/auth/passkey/options`, { method: 'POST', headers: { host: 'evil.test' } });
    expect(JSON.parse(body).rpId).toBe(rpId);
  });

  test('the credential of another user, with an own key or user handle, is refused', async () => {
    const { call, stack } = scenario();
    const [victim, thief] = [await withPasskey(scenario()), await withPasskey(scenario())];
    const id = victim.authenticator.credentialId.toString('base64url');
    const userHandle = Buffer.from(victim.id).toString('base64url');
    for (const lie of [{ id }, { id, userHandle }, { userHandle }]) {
      expectRefusal(await tryPasskey(call, thief.authenticator, lie), 401, 'INVALID_CREDENTIALS', REFUSED);
    }
    expect(await sessionsOf(stack, victim.id)).toHaveLength(1);
    expect(await eventsOf(stack, victim.id, 'login-refused')).toEqual([]);
  });

  test('a challenge works once, in the browser that requested it, and for its purpose', async () => {
    const { call } = scenario();
    const { authenticator, session } = await withPasskey(scenario());
    const { options, browser } = await beginLogin(call);
    const response = authenticator.assert(options);
    expect((await call('auth.finishPasskey', response, { browser })).status).toBe(200);
    expectRefusal(await call('auth.finishPasskey', response, { browser }), 401, 'INVALID_CREDENTIALS', REFUSED);
    const again = authenticator.assert(options);
    expectRefusal(await call('auth.finishPasskey', again, { browser }), 401, 'INVALID_CREDENTIALS', REFUSED);

    for (const other of [undefined, 'x'.repeat(43)]) {
      const begun = await beginLogin(call);
      const stolen = await call('auth.finishPasskey', authenticator.assert(begun.options), { browser: other });
      expectRefusal(stolen, 401, 'INVALID_CREDENTIALS', REFUSED);
    }
    const registration = await beginRegistration(call, session);
    const request = { challenge: registration.options.challenge, rpId: registration.options.rp.id };
    const reply = await call('auth.finishPasskey', authenticator.assert(request), {
      browser: registration.browser,
      session,
    });
    expectRefusal(reply, 401, 'INVALID_CREDENTIALS', REFUSED);
  });

  test('only one of many concurrent finishes of a challenge logs in', async () => {
    const { call, stack } = scenario();
    const { authenticator, id } = await withPasskey(scenario());
    const { options, browser } = await beginLogin(call);
    const response = authenticator.assert(options);
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => call('auth.finishPasskey', response, { browser })),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(401)]);
    expect(await sessionsOf(stack, id)).toHaveLength(2);
  });

  test.each([
    ['a count that stands still', 7],
    ['a count that steps back', 6],
    ['a count of 0 after another', 0],
  ])('%s indicates a copy: refused and recorded in the activity', async (_, signCount) => {
    const { call, stack } = scenario();
    const { authenticator, id } = await withPasskey(scenario(), { signCount: 6 });
    await logInByPasskey(call, authenticator);
    expect(await passkeyRows(stack, id)).toMatchObject([{ sign_count: 7 }]);
    expectRefusal(await tryPasskey(call, authenticator, { signCount }), 401, 'INVALID_CREDENTIALS', REFUSED);
    expect(await refusalsOf(stack, id, 1)).toEqual([{ reason: 'cloned-passkey' }]);
    expect(await passkeyRows(stack, id)).toMatchObject([{ sign_count: 7 }]);
    authenticator.signCount = 41;
    await logInByPasskey(call, authenticator);
    expect(await passkeyRows(stack, id)).toMatchObject([{ sign_count: 42 }]);
  });

  test('a lower counter without a valid signature does not indicate a copy', async () => {
    const { call, stack } = scenario();
    const { authenticator, id } = await withPasskey(scenario(), { signCount: 6 });
    const forger = authenticatorFor(stack);
    const lies = {
      id: authenticator.credentialId.toString('base64url'),
      userHandle: Buffer.from(id).toString('base64url'),
      signCount: 1,
    };
    expectRefusal(await tryPasskey(call, forger, lies), 401, 'INVALID_CREDENTIALS', REFUSED);
    // Only a copy is recorded.
    await tryPasskey(call, authenticator, { signCount: 1 });
    expect(await refusalsOf(stack, id, 1)).toHaveLength(1);
  });

  test('the backup flags are updated from the passkey', async () => {
    const { call, stack } = scenario();
    const { authenticator, id } = await withPasskey(scenario());
    expect(await passkeyRows(stack, id)).toMatchObject([{ backup_eligible: 1, backed_up: 1, sign_count: 0 }]);
    expect((await tryPasskey(call, authenticator, { backedUp: false })).status).toBe(200);
    expect(await passkeyRows(stack, id)).toMatchObject([{ backup_eligible: 1, backed_up: 0 }]);
  });

  test('only the owner of the passkey learns that the account is deleted', async () => {
    const { call, stack } = scenario();
    const { authenticator, id, session } = await withPasskey(scenario());
    expect((await call('account.delete', undefined, { session })).status).toBe(200);
    expectRefusal(await tryPasskey(call, authenticator), 403, 'ACCOUNT_DELETED');
    expect(await refusalsOf(stack, id, 1)).toEqual([{ reason: 'deleted' }]);
    expectRefusal(await tryPasskey(call, authenticator, { userVerified: false }), 401, 'INVALID_CREDENTIALS', REFUSED);
  });

  test('an account can exist without a password', async () => {
    const { call, stack } = scenario();
    const { authenticator, id, email, password } = await withPasskey(scenario());
    await forgetPassword(stack, id);
    expectRefusal(await call('auth.login', { email, password }), 401, 'INVALID_CREDENTIALS');
    expect(await isAlive(call, await logInByPasskey(call, authenticator))).toBe(true);
  });

  test('“This was not me” after a login by passkey removes the passkeys', async () => {
    const { call, stack } = scenario();
    const { authenticator, id, email } = await withPasskey(scenario());
    const thief = await logInByPasskey(call, authenticator);
    const token = await mailedToken(stack, email, 'not-me');
    expect((await call('account.notMe', { token })).status).toBe(200);
    expect(await isAlive(call, thief)).toBe(false);
    expect(await passkeyRows(stack, id)).toEqual([]);
    expect(await eventsOf(stack, id, 'not-me')).toEqual([{ methods: 'password,passkey' }]);
    expectRefusal(await tryPasskey(call, authenticator), 401, 'INVALID_CREDENTIALS', REFUSED);
  });
}, MANY);

/** Replacements for each field of a response. */
const junk: unknown[] = [
  null,
  7,
  true,
  '',
  'ü',
  'A',
  '=',
  [],
  {},
  ['A'],
  { toString: 'A' },
  'A'.repeat(20_000),
  '__proto__',
];
const clientDataOf = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

everywhere((scenario) => {
  test('any malformed response is 400 or 401', async () => {
    const { call } = scenario();
    const { authenticator, session } = await withPasskey(scenario());
    const { options, browser } = await beginLogin(call);
    const right = authenticator.assert(options);
    const responses: unknown[] = [...junk, undefined];
    for (const value of junk) {
      for (const field of ['id', 'rawId', 'type', 'response']) responses.push({ ...right, [field]: value });
      for (const field of ['clientDataJSON', 'authenticatorData', 'signature', 'userHandle']) {
        responses.push({ ...right, response: { ...right.response, [field]: value } });
      }
      responses.push({ ...right, response: { ...right.response, clientDataJSON: clientDataOf(value) } });
      const challenge = { ...right.response, clientDataJSON: clientDataOf({ type: 'webauthn.get', challenge: value }) };
      responses.push({ ...right, response: challenge });
    }
    for (const response of responses) {
      const reply = await call('auth.finishPasskey', response, { browser });
      expect([400, 401]).toContain(reply.status);
    }
    const begun = await beginRegistration(call, session);
    const made = authenticatorFor(scenario().stack).register(begun.options);
    for (const value of [...junk, 'gQ', Buffer.alloc(12_000, 0x81).toString('base64url')]) {
      for (const field of ['clientDataJSON', 'attestationObject']) {
        const { options, browser } = await beginRegistration(call, session);
        const fresh = authenticatorFor(scenario().stack).register(options);
        const response = { ...fresh.response, [field]: value };
        const reply = await call('passkeys.finishRegistration', { ...fresh, response }, { session, browser });
        expect(reply).toMatchObject({ status: 400, code: 'VALIDATION_FAILED' });
      }
      const reply = await call('passkeys.finishRegistration', { ...made, response: value }, { session });
      expect(reply).toMatchObject({ status: 400, code: 'VALIDATION_FAILED' });
    }
  });
}, MANY);
