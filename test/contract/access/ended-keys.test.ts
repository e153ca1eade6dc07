import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { createKey, withKey } from '../rig/key-scenario.ts';
import {
  administrator,
  everywhere,
  expectRefusal,
  logIn,
  mailedToken,
  PASSWORD,
  type Scenario,
} from '../rig/scenario.ts';

/** What ends a key, and which values are no key. */

const NEW_PASSWORD = 'Difference-Engine-1822';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The checksum as docs/access-keys.md describes it. */
function withChecksum(text: string): string {
  let digits = '';
  for (let rest = crc32(text); rest > 0; rest = Math.floor(rest / 62)) digits = DIGITS[rest % 62] + digits;
  return text + digits.padStart(6, '0');
}

type Person = Awaited<ReturnType<typeof withKey>>;

const ok = async (reply: ReturnType<Scenario['call']>) => expect((await reply).code).toBeUndefined();

/** Whatever ends every session ends every key. */
const acts: Record<string, (scenario: Scenario, person: Person) => Promise<void>> = {
  'a logout on all devices': ({ call }, { session }) => ok(call('auth.logoutAll', undefined, { session })),
  async 'a password reset'({ call, stack }, { email }) {
    await ok(call('auth.forgotPassword', { email }));
    const token = await mailedToken(stack, email, 'reset-password');
    await ok(call('auth.resetPassword', { token, email, password: NEW_PASSWORD }));
  },
  'a change of the password': ({ call }, { session }) =>
    ok(call('account.changePassword', { currentPassword: PASSWORD, newPassword: NEW_PASSWORD }, { session })),
  async 'a disowned key'({ call, stack }, { email }) {
    const { text } = await stack.waitForMail({ to: email, subject: 'A new access key' });
    const token = new URL(text.match(/https?:\/\/\S+/)?.[0] ?? '').searchParams.get('token') ?? '';
    await ok(call('account.notMe', { token }));
  },
  'the deletion of the account': ({ call }, { session }) => ok(call('account.delete', undefined, { session })),
  async 'a block'(scenario, { id }) {
    const { session } = await administrator(scenario);
    await ok(scenario.call('users.block', { id }, { session }));
  },
  async 'a block and its end'(scenario, { id }) {
    const { session } = await administrator(scenario);
    await ok(scenario.call('users.block', { id }, { session }));
    await ok(scenario.call('users.unblock', { id }, { session }));
  },
  async 'an administrator who ends every session'(scenario, { id }) {
    const { session } = await administrator(scenario);
    await ok(scenario.call('users.endSessions', { id }, { session }));
  },
};

everywhere((scenario) => {
  const isRefused = async (key: string) => {
    const reply = await scenario().call('profile.get', undefined, { key });
    expectRefusal(reply, 401, 'UNAUTHENTICATED', 'The access key or token is not valid');
    expect(reply.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
  };

  // checks: 35
  test.each(Object.keys(acts))('%s ends every key', async (act) => {
    const person = await withKey(scenario());
    const { secret: other } = await createKey(scenario(), person.session);
    expect((await scenario().call('profile.get', undefined, { key: other })).code).toBeUndefined();
    await acts[act]?.(scenario(), person);
    await isRefused(person.secret);
    await isRefused(other);
  });

  test('an ended key is not listed, and works no more in a later session', async () => {
    const { call } = scenario();
    const { session, ...person } = await withKey(scenario());
    await ok(call('auth.logoutAll', undefined, { session }));
    const next = await logIn(call, person);
    expect((await call('keys.list', undefined, { session: next })).data.data).toEqual([]);
    expectRefusal(await call('keys.revoke', { id: person.key.id }, { session: next }), 404, 'NOT_FOUND');
    await isRefused(person.secret);
  });

  test.each(['blocked_at', 'deleted_at'])('a user with %s has no key, whatever the epoch is', async (column) => {
    const { secret, id } = await withKey(scenario());
    await scenario().stack.database(`update users set ${column} = 1 where id = ?`, [id]);
    await isRefused(secret);
  });

  test('the end of one session ends no key', async () => {
    const { call } = scenario();
    const { session, secret: key } = await withKey(scenario());
    await ok(call('auth.logout', undefined, { session }));
    expect((await call('profile.get', undefined, { key })).code).toBeUndefined();
  });

  test('an expired key is refused, and stays in the list', async () => {
    const { call, stack } = scenario();
    const { session, key, secret } = await withKey(scenario(), { expiresInDays: 1 });
    await stack.database('update access_keys set expires_at = 1000 where id = ?', [key.id]);
    await isRefused(secret);
    expect((await call('keys.list', undefined, { session })).data.data).toEqual([{ ...key, expiresAt: 1 }]);
  });

  test('a value that is no key is refused', async () => {
    const { session, key, secret } = await withKey(scenario());
    const { secret: other } = await createKey(scenario(), session);
    const values = [
      secret.slice(0, -1),
      `${secret}0`,
      secret.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      secret.replace('acct_', 'ACCT_'),
      secret.slice(0, 28) + other.slice(28),
      key.id,
      session,
      'acct_',
      'x',
    ];
    for (const value of values) await isRefused(value);
    // A right checksum over the id of one key and the secret of the other.
    await isRefused(withChecksum(secret.slice(0, 28) + other.slice(28, -6)));
    expect(withChecksum(secret.slice(0, -6))).toBe(secret);
  });

  test('without a credential the refusal has no challenge', async () => {
    const reply = await scenario().call('profile.get');
    expectRefusal(reply, 401, 'UNAUTHENTICATED', 'Please log in');
    expect(reply.headers.get('www-authenticate')).toBeNull();
  });
});
