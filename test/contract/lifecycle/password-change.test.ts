import { expect, test } from 'vitest';
import { restoreEntries, sessionEntry } from '../../rig/observe/key-value-view.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import {
  everywhere,
  expectRefusal,
  growOld,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  PASSWORD,
  sessionIn,
} from '../rig/scenario.ts';

/** Password changes by logged-in users. */

const NEW_PASSWORD = 'Difference-Engine-1822';

const change = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD };

const removePassword = ({ database }: Stack, userId: string) =>
  database('update users set password_hash = null, password_proven = 0 where id = ?', [userId]);

/** What a refused change must not touch. */
const stored = async ({ database }: Stack, userId: string) => ({
  user: await database('select password_hash, password_proven, session_epoch from users where id = ?', [userId]),
  sessions: await database('select id, epoch from sessions where user_id = ? order by id', [userId]),
  events: await database("select id from activity where user_id = ? and kind = 'password-changed'", [userId]),
});

everywhere((scenario) => {
  // checks: 35
  test('a change ends all other sessions, renews the token of this one and sends a mail', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const other = await logIn(call, person);
    const [row] = await stack.database<{ id: string; created_at: number }>(
      'select id, created_at from sessions where user_id = ? order by id',
      [person.id],
    );
    const reply = await call('account.changePassword', change, { session });
    expect(reply).toMatchObject({ status: 200, data: { success: true, message: expect.any(String) } });
    const next = sessionIn(reply) ?? '';
    expect(next).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(reply.setCookies).toMatchObject([expect.stringContaining('; HttpOnly; SameSite=Strict; Max-Age=6')]);
    expect(await Promise.all([session, other, next].map((one) => isAlive(call, one)))).toEqual([false, false, true]);
    const rows = await stack.database('select id, created_at from sessions where user_id = ?', [person.id]);
    expect(rows).toMatchObject([{ created_at: row?.created_at }]);
    expect(rows).not.toMatchObject([{ id: row?.id }]);
    const { data } = await call('sessions.list', undefined, { session: next });
    expect(data.data).toMatchObject([{ current: true }]);

    expectRefusal(await call('auth.login', person), 401, 'INVALID_CREDENTIALS');
    await logIn(call, { ...person, password: NEW_PASSWORD });
    const { text } = await stack.waitForMail({ to: person.email, subject: 'was changed' });
    expect(text).toContain('you were logged out on all other devices');
    const events = await call('activity.list', undefined, { session: next });
    expect(events.data.data).toContainEqual(
      expect.objectContaining({ kind: 'password-changed', details: { by: 'user' }, actor: 'user' }),
    );
  });

  test('ended sessions stay ended when the store is restored from a snapshot', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const other = await logIn(call, person);
    const snapshot = await Promise.all([session, other].map((each) => sessionEntry(stack, each)));
    const next = sessionIn(await call('account.changePassword', change, { session })) ?? '';
    await restoreEntries(stack, snapshot);
    expect(await Promise.all([session, other, next].map((one) => isAlive(call, one)))).toEqual([false, false, true]);
  });

  test('a change invalidates mailed reset links', async () => {
    const { call, stack } = scenario();
    const { session, email } = await loggedIn(scenario());
    await call('auth.forgotPassword', { email });
    const token = await mailedToken(stack, email, 'reset-password');
    expect((await call('account.changePassword', change, { session })).status).toBe(200);
    const reset = await call('auth.resetPassword', { token, email, password: 'Another-Engine-1' });
    expectRefusal(reset, 400, 'INVALID_TOKEN');
  });

  test('a refused change changes nothing', async () => {
    const { call, stack } = scenario();
    const { session, id } = await loggedIn(scenario());
    const without = await loggedIn(scenario());
    await removePassword(stack, without.id);
    const before = await stored(stack, id);
    const wrong = { ...change, currentPassword: `${PASSWORD}!` };
    const cases: [input: object, status: number, code: string, options?: object][] = [
      [wrong, 401, 'INVALID_CREDENTIALS'],
      [{ ...change, newPassword: 'weak' }, 400, 'VALIDATION_FAILED'],
      [{ ...change, newPassword: PASSWORD }, 400, 'VALIDATION_FAILED'],
      // That it is the same is told to those who know it.
      [{ currentPassword: wrong.currentPassword, newPassword: wrong.currentPassword }, 401, 'INVALID_CREDENTIALS'],
      [{ newPassword: NEW_PASSWORD }, 400, 'VALIDATION_FAILED'],
      [{ ...change, currentPassword: '' }, 400, 'VALIDATION_FAILED'],
      [{ ...change, currentPassword: 1 }, 400, 'VALIDATION_FAILED'],
      [{ currentPassword: PASSWORD }, 400, 'VALIDATION_FAILED'],
      [change, 401, 'UNAUTHENTICATED', { session: undefined }],
      [change, 401, 'UNAUTHENTICATED', { session: 'A'.repeat(43) }],
      [change, 403, 'ORIGIN_MISMATCH', { headers: { origin: 'https://evil.test' } }],
      // Another account's password, and one for an account without any.
      [change, 401, 'INVALID_CREDENTIALS', { session: without.session }],
    ];
    for (const [input, status, code, options] of cases) {
      const reply = await call('account.changePassword', { ...input, userId: without.id }, { session, ...options });
      expectRefusal(reply, status, code);
    }
    expect(await stored(stack, id)).toEqual(before);
    expect(await isAlive(call, session)).toBe(true);
    const refused = await call('account.changePassword', { newPassword: NEW_PASSWORD }, { session });
    expect(refused.details).toEqual({
      currentPassword: { message: 'Please enter your current password', rule: 'required' },
    });
    const same = await call('account.changePassword', { ...change, newPassword: PASSWORD }, { session });
    expect(same.details).toEqual({
      newPassword: { message: 'This is your current password', rule: 'same_as_current' },
    });
    expect(await call('account.changePassword', wrong, { session })).toMatchObject({
      message: 'The password is wrong',
    });
  });

  test('attempts share the limit of logins, per client address', async () => {
    const { call } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const address = clientAddress();
    for (let attempt = 0; attempt < 5; attempt++) {
      const wrong = { ...change, currentPassword: 'Wrong-1' };
      expectRefusal(await call('account.changePassword', wrong, { session, address }), 401, 'INVALID_CREDENTIALS');
    }
    expectRefusal(await call('account.changePassword', change, { session, address }), 429, 'RATE_LIMITED');
    expectRefusal(await call('auth.login', person, { address }), 429, 'RATE_LIMITED');
    expect(await isAlive(call, session)).toBe(true);
  });

  test('a first password requires a recent session, and is as proven as the other login methods', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    await removePassword(stack, person.id);
    await growOld(stack, person.id);
    const before = await stored(stack, person.id);
    const first = { newPassword: NEW_PASSWORD };
    expectRefusal(await call('account.changePassword', first, { session }), 403, 'REAUTHENTICATION_REQUIRED');
    expect(await stored(stack, person.id)).toEqual(before);
    await stack.database('update sessions set authenticated_at = created_at where user_id = ?', [person.id]);
    const reply = await call('account.changePassword', first, { session });
    expect(reply.status).toBe(200);
    expect((await stored(stack, person.id)).user).toMatchObject([{ password_proven: 1 }]);
    expect(await isAlive(call, sessionIn(reply) ?? '')).toBe(true);
    await logIn(call, { ...person, password: NEW_PASSWORD });
  });

  test('an unproven password stays unproven', async () => {
    const { call, stack } = scenario();
    const { session, id } = await loggedIn(scenario());
    await stack.database('update users set password_proven = 0 where id = ?', [id]);
    expect((await call('account.changePassword', change, { session })).status).toBe(200);
    expect((await stored(stack, id)).user).toMatchObject([{ password_proven: 0 }]);
  });
});
