import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { User } from '../../../entities/index.ts';
import { accountOf } from '../../../server/accounts/users/index.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import { type EmbeddedAccounts, openAccounts, refused, refusedField, request } from '../rig/accounts.ts';

/** Reads and changes of profiles, with fields of the operator and terms. On embedded parts. */
let service: EmbeddedAccounts;
let plain: EmbeddedAccounts;
beforeAll(async () => {
  const field = (name: string, rest: object) => ({ name, type: 'text', labels: { en: name }, write: 'owner', ...rest });
  service = await openAccounts(
    { TERMS_URL: 'https://example.test/terms', TERMS_VERSION: '2' },
    { fields: [field('nickname', { unique: true, read: 'public' }), field('plan', { read: 'owner' })] },
  );
  plain = await openAccounts();
});
afterAll(() => Promise.all([service.close(), plain.close()]));

const update = (user: User, change: object, of = service) =>
  of.accounts.users.update(accountOf(user), change, request());
const unknown = 'user_00000000-0000-7000-8000-000000000000';

describe('a user', () => {
  test('is found by id with profile and fields, unless deleted', async () => {
    const user = await service.insertUser((stored) => {
      stored.fields = '{"plan":"pro"}';
    });
    const deleted = await service.insertUser((stored) => stored.delete(1));
    const { users } = service.accounts;
    expect(await users.find(user.id)).toEqual({ ...accountOf(user), fields: '{"plan":"pro"}' });
    expect([await users.find(deleted.id), await users.find(unknown)]).toEqual([undefined, undefined]);
    const found = await users.findAll([user.id, unknown, deleted.id]);
    expect(found.map(({ id }) => id)).toEqual([user.id]);
    expect(await plain.accounts.users.find((await plain.insertUser()).id)).not.toHaveProperty('fields');
  });

  test('is found for a login with its states, also deleted or blocked', async () => {
    const user = await service.insertUser();
    const { users } = service.accounts;
    const credential = () => users.findCredential(user.email);
    expect(await credential()).toEqual({
      user: accountOf(user),
      passwordHash: 'x',
      hasApp: false,
      deviceEpoch: null,
      deviceMarks: null,
      limitEpoch: null,
      isDeleted: false,
      isBlocked: false,
    });
    await service.change(user, { deleted_at: 1, device_epoch: 2, device_marks: 3, limit_epoch: 4 });
    expect(await credential()).toMatchObject({ isDeleted: true, isBlocked: false, deviceEpoch: 2, deviceMarks: 3 });
    expect(await users.findStored(user.id)).toEqual({ user: accountOf(user), isBlocked: false });
    expect(await users.exists(user.id)).toBe(true);
    await service.change(user, { blocked_at: 1 });
    expect(await credential()).toMatchObject({ isBlocked: true, limitEpoch: 4 });
    expect(await users.findStored(user.id)).toMatchObject({ isBlocked: true });
    expect([await users.findCredential(freshEmail()), await users.findStored(unknown)]).toEqual([undefined, undefined]);
    expect(await users.exists(unknown)).toBe(false);
  });

  test('has a chosen language and one of the browser', async () => {
    const user = await service.insertUser((stored) => {
      stored.language = 'de';
      stored.browserLanguage = 'fr';
    });
    const { languagesOf } = service.accounts.users;
    const languages = { language: 'de', browserLanguage: 'fr' };
    expect(await languagesOf({ id: user.id })).toEqual(languages);
    expect(await languagesOf({ email: user.email })).toEqual(languages);
    expect(await languagesOf({ id: unknown })).toBeUndefined();
  });

  test('is listed newest first, in pages, unless deleted', async () => {
    const users: User[] = [];
    for (let i = 0; i < 3; i++) users.push(await plain.insertUser());
    const deleted = await plain.insertUser((user) => user.delete(1));
    const ids = users.map(({ id }) => id).reverse();
    const { list } = plain.accounts.users;
    const first = await list({ limit: 2 });
    expect(first.users.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(Object.keys(first.users[0] ?? {}).sort()).toEqual([
      'avatar',
      'createdAt',
      'email',
      'id',
      'name',
      'provider',
    ]);
    const rest = await list({ limit: 2, cursor: first.nextCursor });
    expect(rest.users[0]?.id).toBe(ids[2]);
    expect((await list({ limit: 100 })).users.map(({ id }) => id)).not.toContain(deleted.id);
    expect(await list({ limit: 100 })).not.toHaveProperty('nextCursor');
  });
});

describe('a change of the profile', () => {
  test('sets the given fields, finds the user by the new words, and names what has changed', async () => {
    const user = await service.insertUser();
    const change = { name: 'Ada King Noel', bio: 'Analyst', language: 'de' as const, fields: { plan: 'pro' } };
    const account = await update(user, change);
    expect(account).toMatchObject({ name: 'Ada King Noel', bio: 'Analyst', fields: '{"plan":"pro"}' });
    expect(await service.userOf(user.email)).toMatchObject({ name: 'Ada King Noel', language: 'de' });
    expect(await service.rowsOf('name_words', user)).toHaveLength(2);
    const event = { kind: 'profile-changed', fields: 'name, bio, language, fields.plan' };
    expect(await service.eventsOf(user.id)).toEqual([event]);
  });

  test('without a difference is no event, and keeps the words', async () => {
    const user = await service.insertUser((stored) => {
      stored.language = 'de';
      stored.fields = '{"plan":"pro"}';
    });
    await update(user, { name: user.name, bio: '', language: 'de', fields: { plan: 'pro', nickname: null } });
    expect(await service.eventsOf(user.id)).toEqual([]);
    expect(await update(await plain.insertUser(), { bio: 'x' }, plain)).not.toHaveProperty('fields');
  });

  test('in a session that has ended since is UNAUTHENTICATED', async () => {
    const user = await service.insertUser();
    await service.change(user, { session_epoch: 1 });
    await expect(update(user, { bio: 'x' })).rejects.toEqual(refused('UNAUTHENTICATED'));
    const gone = { ...accountOf(user), id: unknown };
    await expect(service.accounts.users.update(gone, { bio: 'x' }, request())).rejects.toEqual(
      refused('UNAUTHENTICATED'),
    );
  });

  test('past sixty events an hour the latest one names its fields too, for each actor', async () => {
    const user = await service.insertUser();
    for (let i = 0; i < 60; i++) await update(user, { bio: `${i}` });
    await update(user, { location: 'London' });
    const events = await service.eventsOf(user.id);
    expect(events).toHaveLength(60);
    expect(events.at(-1)).toEqual({ kind: 'profile-changed', fields: 'bio, location' });
    await service.accounts.users.setFields(user.id, { plan: 'pro' }, { ...request(), actor: 'operator' });
    expect(await service.eventsOf(user.id)).toHaveLength(61);
  });
});

describe('fields of the operator', () => {
  const setFields = (id: string, change: Record<string, string | null>) =>
    service.accounts.users.setFields(id, change, request());

  test('are changed by name, unset by null, and reported', async () => {
    const user = await service.insertUser();
    expect((await setFields(user.id, { plan: 'pro', nickname: 'grace' })).fields).toBe(
      '{"plan":"pro","nickname":"grace"}',
    );
    expect((await setFields(user.id, { plan: null })).fields).toBe('{"nickname":"grace"}');
    expect((await setFields(user.id, { nickname: null })).fields).toBeNull();
    expect((await service.eventsOf(user.id)).map(({ fields }) => fields)).toEqual([
      'fields.plan, fields.nickname',
      'fields.plan',
      'fields.nickname',
    ]);
    expect(await service.rowsOf('unique_values', user)).toEqual([]);
  });

  test('of a deleted or unknown user are NOT_FOUND', async () => {
    const { id } = await service.insertUser((user) => user.delete(1));
    for (const of of [id, unknown]) await expect(setFields(of, { plan: 'x' })).rejects.toEqual(refused('NOT_FOUND'));
  });

  test('with a unique value of another user are FIELD_TAKEN, until that user has another', async () => {
    const [one, other] = [await service.insertUser(), await service.insertUser()];
    await setFields(one.id, { nickname: 'Countess' });
    await expect(setFields(other.id, { nickname: 'countess ' })).rejects.toEqual(
      refusedField('fields.nickname', 'taken'),
    );
    expect((await service.userOf(other.email))?.fields).toBeNull();
    // Another spelling of the own value is free.
    await setFields(one.id, { nickname: 'COUNTESS' });
    await setFields(one.id, { nickname: 'Ada' });
    await setFields(other.id, { nickname: 'Countess' });
  });

  test('a request for a unique value asks about others, unless the user has it', () => {
    const { asksForOthers } = service.accounts.users.customFields;
    const user = { id: 'u', fields: '{"nickname":"ada","plan":"pro"}' };
    expect(asksForOthers(user, { nickname: 'ada' })).toBe(false);
    expect(asksForOthers(user, { nickname: 'bob' })).toBe(true);
    expect(asksForOthers(user, { plan: 'free' })).toBe(false);
    expect(asksForOthers(user, { nickname: null })).toBe(false);
    expect(asksForOthers({ id: 'u' }, { nickname: 'ada' })).toBe(true);
  });

  test('together have a maximum length', async () => {
    const { id } = await service.insertUser();
    await expect(setFields(id, { plan: 'x'.repeat(100_000) })).rejects.toEqual(refused('VALIDATION_FAILED'));
  });

  test('are shown to their readers only, unset ones as null', () => {
    const values = (reader: 'public' | 'owner', stored: string | null) =>
      service.accounts.users.customFields.valuesFor(reader)?.(stored);
    expect(values('public', '{"nickname":"ada","plan":"pro"}')).toEqual({ nickname: 'ada' });
    expect(values('owner', '{"plan":"pro"}')).toEqual({ nickname: null, plan: 'pro' });
    expect(values('owner', null)).toEqual({ nickname: null, plan: null });
    // Stored before the field became a text.
    expect(values('owner', '{"plan":7}')).toEqual({ nickname: null, plan: null });
    expect(plain.accounts.users.customFields.valuesFor('owner')).toBeUndefined();
  });
});

describe('consents', () => {
  const consents = () => service.accounts.users.consents;
  const accept = ({ id }: User, version = '2') =>
    service.database.change((tables) => consents().accept(tables, id, version));

  test('are required of new users, in the current version', () => {
    const { requireAccepted } = consents();
    expect(() => requireAccepted({ acceptTerms: false })).toThrow(refusedField('acceptTerms', 'terms_not_accepted'));
    const former = { acceptTerms: true, termsVersion: '1' };
    expect(() => requireAccepted(former)).toThrow(refusedField('acceptTerms', 'terms_changed'));
    requireAccepted({ acceptTerms: true });
    requireAccepted({ acceptTerms: true, termsVersion: '2' });
    plain.accounts.users.consents.requireAccepted({ acceptTerms: false });
  });

  test('are listed newest first with the current version, and stored once', async () => {
    const user = await service.insertUser();
    await service.database.write((tables) =>
      tables.insertInto('consents').values({ id: user.id, user_id: user.id, version: '1', created_at: 1 }).execute(),
    );
    for (let i = 0; i < 2; i++) await accept(user);
    const { current, consents: listed } = await consents().list(user.id);
    expect([current, listed]).toEqual([
      '2',
      [
        { version: '2', createdAt: expect.any(Number) },
        { version: '1', createdAt: 1 },
      ],
    ]);
    await service.database.write((tables) => consents().removeSince(tables, user.id, 2));
    expect((await consents().list(user.id)).consents).toEqual([{ version: '1', createdAt: 1 }]);
    await service.database.write((tables) => consents().removeSince(tables, user.id, 1));
    expect((await consents().list(user.id)).consents).toEqual([]);
  });

  test('of another version are refused, and without terms nothing is stored', async () => {
    const user = await service.insertUser();
    await expect(accept(user, '1')).rejects.toEqual(refusedField('version', 'terms_changed'));
    const other = await plain.insertUser();
    await plain.database.change((tables) => plain.accounts.users.consents.record(tables, other.id));
    expect(await plain.rowsOf('consents', other)).toEqual([]);
  });
});
