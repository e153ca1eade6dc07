import { expect, test } from 'vitest';
import type { Authenticator, Lies } from '../../rig/client/authenticator.ts';
import type { Call, CallOptions } from '../rig/callers.ts';
import { addPasskey, authenticatorFor, lies, passkeyRows, withPasskey } from '../rig/passkey-scenario.ts';
import {
  browserIn,
  eventsOf,
  everywhere,
  expectRefusal,
  growOld,
  isAlive,
  loggedIn,
  PASSWORD,
  sessionIn,
} from '../rig/scenario.ts';
import { firstStep, pendingIn, withApp } from '../rig/totp-scenario.ts';

/** Passkeys as second factor, and for reauthentication. */

type Purpose = 'second-factor' | 'reauthenticate';

/** An authenticator's response to the options for a purpose, and the cookies to send with it. */
async function asserted(call: Call, purpose: Purpose, authenticator: Authenticator, given: CallOptions, lies?: Lies) {
  const reply = await call('auth.beginPasskey', { purpose }, given);
  expect(reply).toMatchObject({ code: undefined, status: 200 });
  return {
    options: reply.data,
    input: { passkey: authenticator.assert(reply.data, lies) },
    given: { ...given, browser: browserIn(reply) },
  };
}

everywhere((scenario) => {
  /** A user with an authenticator app and a passkey. */
  const withBoth = async () => {
    const person = await withApp(scenario());
    const authenticator = authenticatorFor(scenario().stack);
    await addPasskey(scenario().call, person.session, authenticator);
    return { ...person, authenticator };
  };

  test('a passkey is offered as second factor, and completes the login once', async () => {
    const { call, stack } = scenario();
    const { authenticator, id, ...person } = await withBoth();
    const loginReply = await call('auth.login', { email: person.email, password: PASSWORD });
    expect(loginReply.details).toEqual({ methods: { message: 'totp,recovery,passkey', rule: 'second_factor' } });
    const step = { pending: pendingIn(loginReply) };
    const { options, input, given } = await asserted(call, 'second-factor', authenticator, step);
    const [row] = await passkeyRows(stack, id);
    expect(options.allowCredentials).toEqual([expect.objectContaining({ id: row?.['credential_id'] })]);
    const reply = await call('auth.secondFactor', input, given);
    expect(await isAlive(call, sessionIn(reply) ?? '')).toBe(true);
    expect((await eventsOf(stack, id, 'logged-in')).at(-1)).toMatchObject({
      method: 'password',
      secondFactor: 'passkey',
    });
    expectRefusal(await call('auth.secondFactor', input, given), 401, 'UNAUTHENTICATED');
    const again = { ...given, pending: await firstStep(call, person) };
    expectRefusal(await call('auth.secondFactor', input, again), 401, 'INVALID_CODE');
  });

  test('a login by passkey counts as both factors', async () => {
    const { call } = scenario();
    const { authenticator } = await withBoth();
    const begun = await call('auth.beginPasskey');
    const reply = await call('auth.finishPasskey', authenticator.assert(begun.data), { browser: browserIn(begun) });
    expect(await isAlive(call, sessionIn(reply) ?? '')).toBe(true);
  });

  test('a passkey alone does not require a second factor', async () => {
    const { call } = scenario();
    const { email } = await withPasskey(scenario());
    expect((await call('auth.login', { email, password: PASSWORD })).status).toBe(200);
  });

  test.each(lies)('with %s it completes nothing', async (_, lie) => {
    const { call, stack } = scenario();
    const { authenticator, id, session, ...person } = await withBoth();
    const pending = await firstStep(call, person);
    const second = await asserted(call, 'second-factor', authenticator, { pending }, lie);
    expectRefusal(await call('auth.secondFactor', second.input, second.given), 401, 'INVALID_CODE');
    await growOld(stack, id);
    const again = await asserted(call, 'reauthenticate', authenticator, { session }, lie);
    expectRefusal(await call('auth.reauthenticate', again.input, again.given), 401, 'INVALID_CODE');
    expect(await eventsOf(stack, id, 'reauthenticated')).toEqual([]);
    const sessions = await stack.database('select id from sessions where user_id = ?', [id]);
    expect(sessions).toHaveLength(1);
  });

  test('another user’s passkey, another browser or another purpose completes neither login nor reauthentication', async () => {
    const { call } = scenario();
    const { authenticator, session, ...person } = await withBoth();
    const other = await withBoth();
    const pending = await firstStep(call, person);
    const step = { pending };
    const mine = await asserted(call, 'second-factor', authenticator, step);
    const theirs = await asserted(call, 'second-factor', other.authenticator, {
      pending: await firstStep(call, other),
    });
    const inSession = await asserted(call, 'reauthenticate', other.authenticator, { session: other.session });
    const login = await call('auth.beginPasskey');
    const cases: [unknown, CallOptions][] = [
      [theirs.input, { ...step, browser: theirs.given.browser }],
      [inSession.input, { ...step, browser: inSession.given.browser }],
      [mine.input, { ...step, browser: theirs.given.browser }],
      [{ passkey: authenticator.assert(login.data) }, { ...step, browser: browserIn(login) }],
    ];
    for (const [input, given] of cases) {
      expectRefusal(await call('auth.secondFactor', input, given), 401, 'INVALID_CODE');
    }
    expectRefusal(
      await call('auth.reauthenticate', inSession.input, { ...inSession.given, session }),
      401,
      'INVALID_CODE',
    );
    expectRefusal(await call('auth.finishPasskey', theirs.input.passkey, theirs.given), 401, 'INVALID_CREDENTIALS');
  });

  test('without a pending login or a session there is no challenge', async () => {
    const { call } = scenario();
    const { session } = await loggedIn(scenario());
    for (const [purpose, given] of [
      ['second-factor', {}],
      ['second-factor', { session }],
      ['second-factor', { pending: 'A'.repeat(43) }],
      ['reauthenticate', {}],
      ['reauthenticate', { session: 'A'.repeat(43) }],
    ] as const) {
      expectRefusal(await call('auth.beginPasskey', { purpose }, given), 401, 'UNAUTHENTICATED');
    }
  });

  test('a passkey makes the session recent again', async () => {
    const { call, stack } = scenario();
    const { authenticator, id, session } = await withPasskey(scenario());
    await growOld(stack, id);
    expectRefusal(await call('passkeys.beginRegistration', undefined, { session }), 403, 'REAUTHENTICATION_REQUIRED');
    const { input, given } = await asserted(call, 'reauthenticate', authenticator, { session });
    expect((await call('auth.reauthenticate', input, given)).status).toBe(200);
    expect((await call('passkeys.beginRegistration', undefined, { session })).status).toBe(200);
    expect(await eventsOf(stack, id, 'reauthenticated')).toEqual([{ method: 'passkey' }]);
    await growOld(stack, id);
    expectRefusal(await call('auth.reauthenticate', input, given), 401, 'INVALID_CODE');
  });
});
