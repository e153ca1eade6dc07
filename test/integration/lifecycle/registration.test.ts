import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { User } from '../../../entities/index.ts';
import { hashOf } from '../../../server/lib/random-token.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import {
  BREACHED,
  browser,
  type EmbeddedAccounts,
  openAccounts,
  refused,
  refusedField,
  request,
} from '../rig/accounts.ts';

/** Registrations, with terms and a unique field of the operator. */
let open: EmbeddedAccounts;
let invited: EmbeddedAccounts;
let closed: EmbeddedAccounts;
beforeAll(async () => {
  const labels = { en: 'Nickname' };
  const fields = [{ name: 'nickname', type: 'text', labels, unique: true, read: 'public', write: 'owner' }];
  open = await openAccounts(
    { TERMS_URL: 'https://example.test/terms', TERMS_VERSION: '2', LIMIT_REGISTER: '2/900' },
    { fields, hasBreached: true },
  );
  const limits = { LIMIT_REGISTER: '1/900', LIMIT_TOKEN: '1/900' };
  invited = await openAccounts({ REGISTRATION: 'invited', ...limits }, { hasBreached: true });
  closed = await openAccounts({ REGISTRATION: 'closed' });
});
afterAll(() => Promise.all([open, invited, closed].map((service) => service.close())));

const password = 'Analytical-Engine-1843';
const person = (change: object = {}) => ({
  name: 'Grace Hopper',
  email: freshEmail(),
  password,
  acceptTerms: true,
  ...change,
});
const register = ({ accounts }: EmbeddedAccounts, values: ReturnType<typeof person>, by = request()) =>
  accounts.lifecycle.registration.register(values, { caller: by, browser, returnTo: '/start' });
const rowsOf = ({ database }: EmbeddedAccounts, table: 'consents' | 'name_words' | 'unique_values', userId: string) =>
  database.query((tables) => tables.selectFrom(table).selectAll().where('user_id', '=', userId).execute());

/** Reserves an address: its owner gave it up and can still undo that. */
async function reserve({ database, insertUser }: EmbeddedAccounts, email: string): Promise<void> {
  const user = await insertUser();
  await database.write((tables) =>
    tables
      .insertInto('email_changes')
      .values({
        id: crypto.randomUUID(),
        user_id: user.id,
        email: user.email,
        former: email,
        browser: null,
        confirm_hash: hashOf(`confirm ${email}`),
        undo_hash: hashOf(`undo ${email}`),
        created_at: Date.now(),
        expires_at: Date.now() + 60_000,
        confirmed_at: Date.now(),
      })
      .execute(),
  );
}

describe('a registration', () => {
  test('makes an unverified account of this browser, and queues its first mail', async () => {
    const values = person({ fields: { nickname: 'Amazing' } });
    const { id } = await register(open, values);
    const user = await open.userOf(values.email);
    expect(user).toMatchObject({
      id,
      name: values.name,
      emailVerified: false,
      passwordProven: false,
      passwordBrowser: hashOf(browser),
      passwordHash: expect.any(String),
      fields: '{"nickname":"Amazing"}',
    });
    expect(await open.eventsOf(id)).toEqual([{ kind: 'registered', method: 'password' }]);
    expect(await open.mailsTo(values.email)).toMatchObject([{ kind: 'verify-email' }]);
    expect(await rowsOf(open, 'consents', id)).toMatchObject([{ version: '2' }]);
    expect(await rowsOf(open, 'name_words', id)).toHaveLength(1);
    expect(await rowsOf(open, 'unique_values', id)).toMatchObject([{ field: 'nickname' }]);
  });

  test.each([
    ['without the terms', { acceptTerms: false }, 'acceptTerms', 'terms_not_accepted'],
    ['of another version of the terms', { termsVersion: '1' }, 'acceptTerms', 'terms_changed'],
    ['with a breached password', { password: BREACHED }, 'password', 'breached'],
  ])('%s is refused', async (_what, change, field, rule) => {
    const values = person(change);
    await expect(register(open, values)).rejects.toEqual(refusedField(field, rule));
    expect(await open.userOf(values.email)).toBeNull();
  });

  test.each([
    ['a user has', async (email: string) => void (await open.insertUser((user) => user.changeEmail(email)))],
    ['a change of address reserves', (email: string) => reserve(open, email)],
  ])('with an address that %s is EMAIL_TAKEN', async (_what, take) => {
    const values = person({ fields: { nickname: crypto.randomUUID() } });
    await take(values.email);
    await expect(register(open, values)).rejects.toEqual(refused('EMAIL_TAKEN'));
    const words = open.database.query((tables) =>
      tables.selectFrom('unique_values').select('user_id').where('field', '=', values.email).execute(),
    );
    expect(await words).toEqual([]);
  });

  test('with the unique value of another is FIELD_TAKEN', async () => {
    const fields = { nickname: 'Only one' };
    await register(open, person({ fields }));
    const values = person({ fields });
    await expect(register(open, values)).rejects.toEqual(refused('FIELD_TAKEN'));
    expect(await open.userOf(values.email)).toBeNull();
  });

  test('counts per client, before its password is looked at', async () => {
    const by = request();
    for (let i = 0; i < 2; i++)
      await expect(register(open, person({ password: BREACHED }), by)).rejects.toEqual(refused('VALIDATION_FAILED'));
    await expect(register(open, person(), by)).rejects.toEqual(refused('RATE_LIMITED'));
  });

  test.each([
    ['invited', () => invited],
    ['closed', () => closed],
  ])('is closed with REGISTRATION=%s', async (_mode, service) => {
    await expect(register(service(), person())).rejects.toEqual(refused('REGISTRATION_CLOSED'));
  });
});

describe('an invitation', () => {
  const invite = async (email: string, { invitedBy = null }: { invitedBy?: string | null } = {}) => {
    const { id } = await invited.database.change((tables) =>
      invited.mail.invitations.issue(tables, { email, invitedBy, returnTo: '/welcome' }),
    );
    return { id, token: invited.derive('invitation', id) };
  };
  const enter = (values: ReturnType<typeof person>, token: string, by = request()) =>
    invited.accounts.lifecycle.registration.registerInvited(values, token, by);

  test.each([
    ['operator', async () => null],
    ['administrator', async () => (await invited.insertUser()).id],
  ])('of an %s makes a verified account with a proven password, once', async (recorded, inviter) => {
    const values = person();
    const invitedBy = await inviter();
    const { token } = await invite(values.email, { invitedBy });
    const { user, deviceCookie, returnTo } = await enter(values, token);
    expect(returnTo).toBe('/welcome');
    expect(deviceCookie.split('.')).toHaveLength(2);
    expect(await invited.userOf(values.email)).toMatchObject({
      id: user.id,
      emailVerified: true,
      passwordProven: true,
    });
    expect(await invited.eventsOf(user.id)).toEqual([
      { kind: 'registered', method: 'password', invitedBy: recorded },
      { kind: 'verified' },
    ]);
    await expect(enter(values, token)).rejects.toEqual(refused('INVALID_TOKEN'));
  });

  test('replaces an unverified account of its address', async () => {
    const values = person();
    const { id } = await invited.insertUser((user) => user.changeEmail(values.email));
    const { user } = await enter(values, (await invite(values.email)).token);
    expect(user.id).not.toBe(id);
    expect((await invited.userOf(values.email))?.id).toBe(user.id);
  });

  test.each<[string, (user: User) => void]>([
    ['verified', (user) => user.verifyEmail()],
    ['blocked', (user) => user.block(1)],
  ])('of the address of a %s account is EMAIL_TAKEN, and stays usable', async (_state, change) => {
    const values = person();
    const { id } = await invited.insertUser((user) => {
      user.changeEmail(values.email);
      change(user);
    });
    const { token } = await invite(values.email);
    await expect(enter(values, token)).rejects.toEqual(refused('EMAIL_TAKEN'));
    expect((await invited.userOf(values.email))?.id).toBe(id);
    const found = invited.database.query((tables) => invited.mail.invitations.find(tables, token));
    expect(await found).toMatchObject({ email: values.email });
  });

  test('of an address that a change of address reserves is EMAIL_TAKEN', async () => {
    const values = person();
    await reserve(invited, values.email);
    await expect(enter(values, (await invite(values.email)).token)).rejects.toEqual(refused('EMAIL_TAKEN'));
  });

  test('of another address is INVALID_TOKEN, and counts as a guess', async () => {
    const { token } = await invite(freshEmail());
    const { clientAddress } = request();
    await expect(enter(person(), token, request({ clientAddress }))).rejects.toEqual(refused('INVALID_TOKEN'));
    await expect(
      invited.accounts.lifecycle.verification.verifyEmail('x', {
        request: request({ clientAddress }),
        browser,
      }),
    ).rejects.toEqual(refused('RATE_LIMITED'));
  });

  test('does not excuse a breached password', async () => {
    const values = person({ password: BREACHED });
    await expect(enter(values, (await invite(values.email)).token)).rejects.toEqual(
      refusedField('password', 'breached'),
    );
  });

  test('counts as a registration of the client', async () => {
    const by = request();
    const first = person();
    await enter(first, (await invite(first.email)).token, by);
    const next = person();
    await expect(enter(next, (await invite(next.email)).token, by)).rejects.toEqual(refused('RATE_LIMITED'));
  });

  test('makes no account with REGISTRATION=closed', async () => {
    const enterClosed = closed.accounts.lifecycle.registration.registerInvited(person(), 'x', request());
    await expect(enterClosed).rejects.toEqual(refused('REGISTRATION_CLOSED'));
  });
});
