import { expect, test } from 'vitest';
import { clientAddress } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { until } from '../../rig/until.ts';
import {
  eventsOf,
  everywhere,
  expectRefusal,
  growOld,
  isAlive,
  loggedIn,
  logIn,
  PASSWORD,
  sessionIn,
} from '../rig/scenario.ts';

/** Reauthentication before sensitive changes. */

/** The number of the user's recent sessions. */
const recentOf = async ({ database }: Stack, userId: string) =>
  (await database('select id from sessions where user_id = ? and authenticated_at > created_at - ?', [userId, 1000]))
    .length;

everywhere((scenario) => {
  test('the right password makes this session recent, and no other', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const other = await logIn(call, person);
    await growOld(stack, person.id);
    const reply = await call('auth.reauthenticate', { password: PASSWORD }, { session });
    expect(reply).toMatchObject({ status: 200, data: { success: true, message: expect.any(String) }, setCookies: [] });
    expect(await recentOf(stack, person.id)).toBe(1);
    expect(await eventsOf(stack, person.id, 'reauthenticated')).toEqual([{ method: 'password' }]);
    expect(await Promise.all([session, other].map((one) => isAlive(call, one)))).toEqual([true, true]);
  });

  test('a wrong password, or an account without one, gets the same refusal and event', async () => {
    const { call, stack } = scenario();
    const wrong = await loggedIn(scenario());
    const without = await loggedIn(scenario());
    await stack.database('update users set password_hash = null where id = ?', [without.id]);
    for (const { id, session, password } of [{ ...wrong, password: `${PASSWORD}!` }, without]) {
      await growOld(stack, id);
      const reply = await call('auth.reauthenticate', { password }, { session });
      expectRefusal(reply, 401, 'INVALID_CREDENTIALS', 'The password is wrong');
      expect(sessionIn(reply)).toBeUndefined();
      expect(await recentOf(stack, id)).toBe(0);
      expect(await isAlive(call, session)).toBe(true);
      await until(async () => (await eventsOf(stack, id, 'login-refused')).length === 1, { what: 'the event' });
    }
  });

  // checks: 13
  test('attempts share the limit of logins, per client address', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const address = clientAddress();
    for (let attempt = 0; attempt < 3; attempt++) {
      const reply = await call('auth.reauthenticate', { password: 'Wrong-1' }, { session, address });
      expectRefusal(reply, 401, 'INVALID_CREDENTIALS');
    }
    for (let attempt = 0; attempt < 2; attempt++) {
      expect((await call('auth.login', { ...person, password: 'Wrong-1' }, { address })).status).toBe(401);
    }
    await growOld(stack, person.id);
    const reply = await call('auth.reauthenticate', { password: PASSWORD }, { session, address });
    expectRefusal(reply, 429, 'RATE_LIMITED');
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await recentOf(stack, person.id)).toBe(0);
  });

  // checks: 24
  test('without a session, a password, or an own page nothing is hashed', async () => {
    const { call } = scenario();
    const { session } = await loggedIn(scenario());
    const input = { password: PASSWORD };
    expectRefusal(await call('auth.reauthenticate', input), 401, 'UNAUTHENTICATED');
    const headers = { origin: 'https://evil.test' };
    expectRefusal(await call('auth.reauthenticate', input, { session, headers }), 403, 'ORIGIN_MISMATCH');
    for (const password of ['', 1, null, undefined]) {
      expectRefusal(await call('auth.reauthenticate', { password }, { session }), 400, 'VALIDATION_FAILED');
    }
  });
});
