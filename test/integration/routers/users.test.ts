import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { User } from '../../../entities/index.ts';
import type { Config } from '../../../server/config/index.ts';
import type { ProfileField } from '../../../server/shared/profile-fields.ts';
import { logIn, type Opened, type OpenedRules, openRules, procedures } from '../rig/rules.ts';

/** Who reads which users and profiles, and who invites. */
let opened: Opened;
let rules: OpenedRules;
let ada: User;
let admin: User;
const field = { type: 'text', labels: { en: '' }, required: false, maxLength: 30 } as const;
const profileFields: ProfileField[] = [
  { ...field, name: 'username', read: 'public', write: 'owner', unique: true },
  { ...field, name: 'plan', read: 'owner', write: 'services', unique: false },
];
beforeAll(async () => {
  const env = { LIMIT_UNIQUE_FIELD: '3/900', LIMIT_MAIL: '1000/900', LIMIT_INBOX: '1000/900' };
  opened = await openRules('users', { env });
  const { insertUser } = opened.create();
  ada = await insertUser('ada', (user) => user.changeProfile({ bio: 'engines' }));
  admin = await insertUser('admin', (user) => {
    user.role = 'admin';
  });
});
beforeEach(() => {
  rules = opened.create();
});
afterAll(() => opened.close());

const refusal = (code: string, rest: object = {}) => ({ cause: expect.objectContaining({ code, ...rest }) });
const invalid = (field: string) => ({ code: 'BAD_REQUEST', cause: { issues: [{ path: field.split('.') }] } });
const as = async (user: User | undefined, on = rules) =>
  procedures(on, { sessionToken: user && (await logIn(on, user)) }).caller;

describe('public reads', () => {
  const nobody = refusal('UNAUTHENTICATED');
  const hidden = refusal('NOT_FOUND');

  test.each<[Config['publicUsers'], object | undefined, object | undefined, boolean]>([
    ['full', undefined, undefined, true],
    ['without-email', undefined, undefined, false],
    ['session', nobody, undefined, true],
    ['off', hidden, hidden, true],
  ])('with PUBLIC_USERS=%s', async (publicUsers, forNobody, forUser, hasEmail) => {
    const on = opened.create({ publicUsers });
    for (const [user, refused] of [
      [undefined, forNobody],
      [ada, forUser],
      [admin, undefined],
    ] as const) {
      const { users } = await as(user, on);
      const [one, list] = [users.get({ id: ada.id }), users.list({ q: 'ada' })];
      if (refused) {
        await expect(one).rejects.toMatchObject(refused);
        await expect(list).rejects.toMatchObject(refused);
        continue;
      }
      const { data: shown } = await one;
      const { data } = await list;
      expect([shown.id, data.map(({ id }) => id)]).toEqual([ada.id, [ada.id]]);
      for (const view of [shown, ...data]) expect('email' in view).toBe(hasEmail);
      expect(shown).toMatchObject({ name: 'ada', bio: 'engines', location: '', avatar: '', provider: 'email' });
    }
  });

  test('without addresses find nobody by one', async () => {
    const search = async (publicUsers: Config['publicUsers']) =>
      (await (await as(undefined, opened.create({ publicUsers }))).users.list({ q: 'ada@example' })).data.length;
    expect([await search('full'), await search('without-email')]).toEqual([1, 0]);
  });

  test('of an administrator by an access key are as those of nobody, where they are off', async () => {
    const { secret } = await (await as(admin)).keys.create({ name: 'key', scopes: ['profile:read'] });
    const { caller } = procedures(opened.create({ publicUsers: 'off' }), { credential: { token: secret } });
    await expect(caller.users.get({ id: ada.id })).rejects.toMatchObject(hidden);
  });

  test('are limited per address, if that is configured', async () => {
    const { rates } = rules.config;
    const limited = { ...rates, read: { points: 2, seconds: 60 } };
    const { users } = await as(undefined, opened.create({ rates: limited }));
    for (let i = 0; i < 2; i++) await users.get({ id: ada.id });
    await expect(users.list()).rejects.toMatchObject(refusal('RATE_LIMITED'));
  });

  test('have no other users than existing, verified ones', async () => {
    const { users } = await as(undefined);
    const unknown = refusal('NOT_FOUND', { message: 'User not found' });
    for (const id of [`user_${crypto.randomUUID()}`, 'nobody', `${ada.id} `])
      await expect(users.get({ id })).rejects.toMatchObject(unknown);
    const deleted = await rules.insertUser('deleted', (user) => user.delete(1));
    await expect(users.get({ id: deleted.id })).rejects.toMatchObject(unknown);
    expect((await users.list()).data.map(({ id }) => id)).not.toContain(deleted.id);
  });

  test('have pages, newest first', async () => {
    for (let i = 0; i < 3; i++) await rules.insertUser(`paged${i}`);
    const { users } = await as(undefined);
    const whole = (await users.list()).data.map(({ id }) => id);
    expect(whole).toEqual(whole.toSorted().reverse());
    const first = await users.list({ limit: 2 });
    const second = await users.list({ limit: 2, cursor: first.nextCursor });
    expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(whole.slice(0, 4));
  });

  test.each([
    ['cursor', { cursor: 'x' }],
    ['cursor', { cursor: `user_${'0'.repeat(8)}-0000-0000-0000-000000000000`, q: 'a' }],
    ['cursor', { cursor: `xuser_${'0'.repeat(8)}-0000-0000-0000-000000000000` }],
    ['q', { q: '\u200b' }],
    ['q', { q: 'x'.repeat(255) }],
    ['q', { q: '\ud800' }],
    ['limit', { limit: 0 }],
    ['limit', { limit: 101 }],
  ])('refuse a wrong %s: %o', async (name, input) => {
    await expect((await as(undefined)).users.list(input)).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      cause: { issues: expect.arrayContaining([expect.objectContaining({ path: [name] })]) },
    });
  });

  test('take an empty q as none', async () => {
    const { users } = await as(undefined);
    expect((await users.list({ q: '' })).data).toEqual((await users.list()).data);
  });
});

describe('the profile', () => {
  test('says that its user is an administrator, in a session only', async () => {
    const byUser = await (await as(ada)).profile.get();
    expect(byUser).not.toHaveProperty('role');
    expect(byUser).not.toHaveProperty('hasBreachedPassword');
    const session = await as(admin);
    expect(await session.profile.get()).toMatchObject({ role: 'admin' });
    const { secret } = await session.keys.create({ name: 'key', scopes: ['profile:read'] });
    const { caller } = procedures(rules, { credential: { token: secret } });
    expect(await caller.profile.get()).not.toHaveProperty('role');
  });

  test('says that the login was by a breached password', async () => {
    const account = await rules.accounts.users.find(ada.id);
    if (!account) throw new Error('no account');
    const request = { ...ownRequest, formerToken: undefined, deviceCookie: undefined };
    const { sessions } = rules.accounts;
    const { token } = await sessions.openSession(account, { method: 'password', isBreached: true }, request);
    const { caller } = procedures(rules, { sessionToken: token });
    expect(await caller.profile.get()).toMatchObject({ hasBreachedPassword: true });
  });

  test('has the chosen language, or none', async () => {
    const { profile } = await as(await rules.insertUser('speaker'));
    expect(await profile.language()).toEqual({ language: null });
    await profile.update({ language: 'de' });
    expect(await profile.language()).toEqual({ language: 'de' });
    await profile.update({ language: null });
    expect(await profile.language()).toEqual({ language: null });
  });

  test('has the fields that its reader may read; its owner writes some', async () => {
    const on = opened.create({ profileFields });
    const user = await on.insertUser('owner');
    const { profile, users } = await as(user, on);
    expect((await profile.get()).user.fields).toEqual({ username: null, plan: null });
    const { user: changed } = await profile.update({ fields: { username: 'lovelace' } });
    expect(changed.fields).toEqual({ username: 'lovelace', plan: null });
    expect((await users.get({ id: user.id })).data.fields).toEqual({ username: 'lovelace' });
    await expect(profile.update({ fields: { plan: 'gold' } })).rejects.toMatchObject(invalid('fields.plan'));
    await expect(profile.update({ fields: { username: 7 } })).rejects.toMatchObject(invalid('fields.username'));
    const { caller: shop } = procedures(on, { service: 'shop' });
    const written = await shop.service.setFields({ userId: user.id, fields: { plan: 'gold' } });
    expect(written.user.fields).toEqual({ username: 'lovelace', plan: 'gold' });
    const byAdministrator = await (await as(admin, on)).users.setFields({ id: user.id, fields: { username: 'ada' } });
    expect(byAdministrator).toEqual({ success: true, fields: { username: 'ada', plan: 'gold' } });
  });

  test('without configured fields has none, and takes none', async () => {
    const { profile } = await as(ada);
    expect((await profile.get()).user).not.toHaveProperty('fields');
    expect((await profile.update({ fields: { username: 'x' } })).user).not.toHaveProperty('fields');
    const { users } = await as(admin);
    await expect(users.setFields({ id: ada.id, fields: {} })).rejects.toMatchObject(refusal('NOT_FOUND'));
    const { caller: shop } = procedures(rules, { service: 'shop' });
    await expect(shop.service.setFields({ userId: ada.id, fields: {} })).rejects.toMatchObject(
      refusal('NOT_FOUND', { message: 'No fields are configured' }),
    );
  });

  test('limits how many values of others a user can try', async () => {
    const on = opened.create({ profileFields });
    const { profile } = await as(await on.insertUser('guesser'), on);
    await (await as(await on.insertUser('holder'), on)).profile.update({ fields: { username: 'held' } });
    const guess = (username: string) => profile.update({ fields: { username } });
    await expect(guess('HELD')).rejects.toMatchObject(refusal('FIELD_TAKEN'));
    await guess('mine');
    // The own value asks for no other.
    for (let i = 0; i < 4; i++) await guess('mine');
    await guess('mine too');
    await expect(guess('another')).rejects.toMatchObject(refusal('RATE_LIMITED'));
  });
});

const ownRequest = {
  actor: 'user' as const,
  clientAddress: '192.0.2.1',
  userAgent: '',
  requestId: '',
  language: () => undefined,
};

describe('invitations', () => {
  test('are listed newest first, in pages, and can be revoked once', async () => {
    const { users } = await as(admin);
    const invite = async (email: string) => (await users.invite({ email, returnTo: '/welcome' })).invitation;
    const [first, second] = [await invite('one@example.test'), await invite('two@example.test')];
    expect(second).toEqual({
      id: expect.any(String),
      email: 'two@example.test',
      invitedBy: admin.id,
      createdAt: expect.any(Number),
      expiresAt: second.createdAt + 7 * 24 * 60 * 60,
    });
    const page = await users.invitations({ limit: 1 });
    expect(page.data).toEqual([second]);
    expect((await users.invitations({ limit: 1, cursor: page.nextCursor })).data).toEqual([first]);
    expect((await users.invitations()).data.slice(0, 2)).toEqual([second, first]);
    expect(await users.revokeInvitation({ id: first.id })).toMatchObject({ message: 'The invitation was revoked.' });
    const gone = refusal('NOT_FOUND', { message: 'Invitation not found' });
    for (const id of [first.id, 'none']) await expect(users.revokeInvitation({ id })).rejects.toMatchObject(gone);
    const { data: left } = await users.invitations();
    expect([left[0], left.some(({ id }) => id === first.id)]).toEqual([second, false]);
  });

  test('by the operator name no administrator', async () => {
    await rules.accounts.lifecycle.invitations.inviteAsOperator('operators@example.test');
    const { data } = await (await as(admin)).users.invitations();
    expect(data.find(({ email }) => email === 'operators@example.test')).not.toHaveProperty('invitedBy');
  });

  test('lead to allowed addresses only', async () => {
    const { users } = await as(admin);
    await expect(users.invite({ email: 'a@example.test', returnTo: 'https://evil.test' })).rejects.toMatchObject(
      refusal('VALIDATION_FAILED', { details: { returnTo: expect.objectContaining({ rule: 'not_allowed' }) } }),
    );
  });
});
