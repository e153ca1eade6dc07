import { expect, test } from 'vitest';
import { costlyHashes, foreignVectors, unknownHashes } from '../../rig/foreign-hashes.ts';
import type { Stack } from '../../rig/stack.ts';
import { everywhere, expectRefusal, growOld, loggedIn, logIn, PASSWORD, sessionIn, verified } from '../rig/scenario.ts';

/** Users with a password hash of another product. */

const WRONG = 'Analytical-Engine-1844';
const NEW_PASSWORD = 'Difference-Engine-1822';

const storeHash = ({ database }: Stack, userId: string, hash: string) =>
  database('update users set password_hash = ? where id = ?', [hash, userId]);

async function storedHash({ database }: Stack, userId: string): Promise<string> {
  const [row] = await database<{ hash: string }>('select password_hash as hash from users where id = ?', [userId]);
  return row?.hash ?? '';
}

const vectorOf = (from: string) => {
  const vector = foreignVectors.find((one) => one.from === from);
  if (!vector) throw new Error(`no vector of ${from}`);
  return vector;
};

everywhere((scenario) => {
  test.each(foreignVectors)('a hash of $from logs in, and the first right password replaces it', async (vector) => {
    const { call, stack } = scenario();
    const person = { ...(await verified(scenario())), password: vector.password };
    await storeHash(stack, person.id, vector.hash);
    expectRefusal(await call('auth.login', { ...person, password: WRONG }), 401, 'INVALID_CREDENTIALS');
    expect(await storedHash(stack, person.id)).toBe(vector.hash);
    await logIn(call, person);
    const renewed = await storedHash(stack, person.id);
    expect(renewed).toMatch(/^1000:[\w+/]+=*:[\w+/]+=*$/);
    await logIn(call, person);
    expectRefusal(await call('auth.login', { ...person, password: WRONG }), 401, 'INVALID_CREDENTIALS');
    expect(await storedHash(stack, person.id)).toBe(renewed);
  });

  test('reauthentication and password changes accept every stored hash', async () => {
    const { call, stack } = scenario();
    const { id, session, email } = await loggedIn(scenario());
    const { hash, password } = vectorOf('argon2id');
    await storeHash(stack, id, hash);
    await growOld(stack, id);
    const [wrong, right] = [{ password: WRONG }, { password }];
    expectRefusal(await call('auth.reauthenticate', wrong, { session }), 401, 'INVALID_CREDENTIALS');
    expect((await call('auth.reauthenticate', right, { session })).status).toBe(200);
    const change = { currentPassword: WRONG, newPassword: NEW_PASSWORD };
    expectRefusal(await call('account.changePassword', change, { session }), 401, 'INVALID_CREDENTIALS');
    const changed = await call('account.changePassword', { ...change, currentPassword: password }, { session });
    expect(sessionIn(changed)).toMatch(/^[\w-]{43}$/);
    await logIn(call, { email, password: NEW_PASSWORD, name: '' });
  });

  test('an unverified account with a foreign hash is reported only for the right password', async () => {
    const { call, stack } = scenario();
    const person = await verified(scenario());
    const { hash, password } = vectorOf('bcrypt 2y');
    await storeHash(stack, person.id, hash);
    await stack.database('update users set email_verified = 0 where id = ?', [person.id]);
    expectRefusal(await call('auth.login', { ...person, password: WRONG }), 401, 'INVALID_CREDENTIALS');
    expectRefusal(await call('auth.login', { ...person, password }), 403, 'EMAIL_NOT_VERIFIED');
  });

  test.each([
    ['an unknown form', unknownHashes[5] ?? ''],
    ['a form of ours that is damaged', `1000:${'x'.repeat(20)}`],
    ['an empty one', ' '],
    ['one that would take hours', costlyHashes['the dearest bcrypt'] ?? ''],
  ])('no password matches a hash of %s, and the log says so once', async (_, hash) => {
    const { call, stack } = scenario();
    const { id, session, ...person } = await loggedIn(scenario());
    await storeHash(stack, id, hash);
    for (let i = 0; i < 2; i++) {
      expectRefusal(await call('auth.login', person), 401, 'INVALID_CREDENTIALS', 'Invalid email or password');
    }
    expectRefusal(await call('auth.reauthenticate', { password: PASSWORD }, { session }), 401, 'INVALID_CREDENTIALS');
    expect(await storedHash(stack, id)).toBe(hash);
    const output = stack.services.map((service) => service.output()).join('');
    const warnings = output.split('\n').filter((line) => line.includes('cannot be used') && line.includes(id));
    expect(warnings).toHaveLength(1);
    if (hash.trim()) expect(output).not.toContain(hash);
    // They recover like any user without a password.
    await call('auth.forgotPassword', { email: person.email });
    await stack.waitForMail({ to: person.email, subject: 'Reset' });
  });
});
