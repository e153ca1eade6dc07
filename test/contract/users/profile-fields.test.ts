import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadClient, procedureOf } from '../../rig/client/client.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { until } from '../../rig/until.ts';
import type { Call, Reply } from '../rig/callers.ts';
import { documentOf } from '../rig/document.ts';
import { createKey } from '../rig/key-scenario.ts';
import {
  administrator,
  eventsOf,
  everywhere,
  expectRefusal,
  kindsOf,
  loggedIn,
  mailedToken,
  PASSWORD,
  type Scenario,
} from '../rig/scenario.ts';

/** Fields of the operator's own: PROFILE_FIELDS. */

const labels = { en: 'A field' };
const owners = { labels, read: 'owner', write: 'owner' };
const fields = [
  {
    name: 'username',
    type: 'text',
    maxLength: 30,
    labels,
    read: 'public',
    write: 'owner',
    required: true,
    unique: true,
  },
  { name: 'about', type: 'longText', ...owners },
  { name: 'height', type: 'number', min: 50, max: 250, ...owners },
  { name: 'news', type: 'boolean', ...owners },
  { name: 'born', type: 'date', ...owners },
  { name: 'color', type: 'choice', choices: ['red', 'green'], labels, read: 'public', write: 'owner' },
  { name: 'blog', type: 'url', labels, read: 'public', write: 'owner' },
  { name: 'plan', type: 'choice', choices: ['free', 'pro'], labels, read: 'owner', write: 'services' },
  { name: 'score', type: 'number', labels, read: 'services', write: 'services' },
  { name: 'level', type: 'text', labels, read: 'public', write: 'administrators' },
  ...['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, type: 'longText', maxLength: 4000, ...owners })),
];

const file = join(temporaryDirectory('profile-fields'), 'fields.json');
writeFileSync(file, JSON.stringify(fields));

const TOKEN = 'a-token-of-the-shop';
const env = { PROFILE_FIELDS: file, SERVICE_TOKENS: `shop:${createHash('sha256').update(TOKEN).digest('hex')}` };

const nothing = Object.fromEntries(
  ['about', 'height', 'news', 'born', 'color', 'blog', 'a', 'b', 'c', 'd', 'e'].map((name) => [name, null]),
);
/** What each reader gets of a user with only a username. */
const shownToOwner = (username: string) => ({ ...nothing, username, plan: null, level: null });
const shownToAll = (username: string) => ({ username, color: null, blog: null, level: null });
const shownToServices = (username: string) => ({ ...shownToOwner(username), score: null });

let names = 0;
const freshName = () => `u${process.pid}x${Date.now().toString(36)}x${names++}`;

/** A logged-in user with a fresh username. */
async function member({ stack, call }: Scenario, username = freshName()) {
  const person = { email: freshEmail(), password: PASSWORD, name: 'Ada Lovelace' };
  const reply = await call('auth.register', { ...person, fields: { username } });
  expect(reply).toMatchObject({ code: undefined });
  const token = await mailedToken(stack, person.email, 'verify-email');
  expect(await call('auth.verifyEmail', { token })).toMatchObject({ status: 200 });
  const login = await call('auth.login', person);
  const session = login.setCookies.map((cookie) => /^auth_session=([^;]+)/.exec(cookie)?.[1]).find(Boolean) ?? '';
  return { ...person, id: String(reply.data.user.id), username, session };
}

const register = (call: Call, own: unknown) =>
  call('auth.register', { email: freshEmail(), password: PASSWORD, name: 'Ada', fields: own });

const rulesIn = ({ details = {} }: Reply) =>
  Object.fromEntries(Object.entries(details).map(([field, { rule }]) => [field, rule]));

const uniqueRows = async ({ stack }: Scenario, id: string) =>
  (await stack.database('select field from unique_values where user_id = ?', [id])).length;

everywhere(
  (scenario) => {
    // biome-ignore lint/suspicious/noExplicitAny: as in a reply
    const asService = async (procedure: string, input: unknown): Promise<any> => {
      const { createServiceClient } = await loadClient();
      const { query, mutate } = procedureOf(
        createServiceClient({ url: scenario().stack.url, token: TOKEN }),
        procedure,
      );
      return procedure === 'service.users' ? query(input) : mutate(input);
    };
    const setFields = (userId: string, sent: object) => asService('service.setFields', { userId, fields: sent });
    const own = async (session: string) => {
      const { data } = await scenario().call('profile.get', undefined, { session });
      return data.user.fields;
    };

    describe('reading', () => {
      test('each reader gets the fields that are open to it, unset ones as null', async () => {
        const { call } = scenario();
        const { id, session, username } = await member(scenario());
        const admin = await administratorWith(scenario());
        expect(await own(session)).toEqual(shownToOwner(username));
        const one = await call('users.get', { id });
        expect(one.data.data.fields).toEqual(shownToAll(username));
        const listed = await call('users.list', { limit: 1 });
        expect(Object.keys(listed.data.data[0].fields).sort()).toEqual(['blog', 'color', 'level', 'username']);
        const { users } = await asService('service.users', { ids: [id] });
        expect(users[0].fields).toEqual(shownToServices(username));
        const found = await asService('service.session', { token: session });
        expect(found.user.fields).toEqual(shownToServices(username));
        const managed = await call('users.show', { id }, { session: admin.session });
        expect(managed.data.user.fields).toEqual(shownToServices(username));
      });

      test('a search shows public fields as the list does, an access key those of its user', async () => {
        const { call } = scenario();
        const person = await member(scenario());
        const { data } = await call('users.list', { q: person.email });
        expect(data.data[0].fields).toEqual(shownToAll(person.username));
        const { secret: key } = await createKey(scenario(), person.session, { scopes: ['profile:read'] });
        const reply = await call('profile.get', undefined, { key });
        expect(reply.data.user.fields).toEqual(shownToOwner(person.username));
      });

      test('/openapi.json describes the fields of each reader and writer', async () => {
        const { components, paths } = (await documentOf(scenario().stack.url)) as never as {
          components: { schemas: Record<string, { properties: { fields: { properties: object } } }> };
          paths: Record<string, Record<string, unknown>>;
        };
        const { Profile, User } = components.schemas;
        expect(Object.keys(User?.properties.fields.properties ?? {})).toEqual(['username', 'color', 'blog', 'level']);
        expect(Profile?.properties.fields.properties).toMatchObject({
          username: { type: ['string', 'null'], maxLength: 30 },
          height: { type: ['number', 'null'], minimum: 50, maximum: 250 },
          plan: { enum: ['free', 'pro', null] },
          born: { format: 'date' },
        });
        const document = JSON.stringify({ components, paths });
        expect(JSON.stringify(paths['/auth/register'])).toContain('"required":["username"]');
        for (const [, required = ''] of document.matchAll(/"required":(\[[^\]]*\])/g))
          expect(new Set(JSON.parse(required)).size).toBe(JSON.parse(required).length);
        expect(paths).toHaveProperty(['/api/users/{id}/fields']);
        expect(document).not.toMatch(/x-profile-fields|tsType/);
        // Users may not know of a field that only services read, and its names are no promise.
        expect(document).not.toContain('"score"');
        expect(JSON.stringify(paths['/api/users/{id}/fields'])).toContain('"level"');
      });
    });

    test('a value that no longer fits its field is unset to every reader, until it is written again', async () => {
      const { call, stack } = scenario();
      const { id, session, username } = await member(scenario());
      const stale = {
        username,
        blog: 'javascript:alert(1)',
        born: 'once',
        color: 'blue',
        height: 251,
        news: 'yes',
        plan: 7,
      };
      await stack.database('update users set fields = ? where id = ?', [JSON.stringify(stale), id]);
      expect(await own(session)).toEqual(shownToOwner(username));
      expect((await call('users.get', { id })).data.data.fields).toEqual(shownToAll(username));
      const { users } = await asService('service.users', { ids: [id] });
      expect(users[0].fields).toEqual(shownToServices(username));
      await call('profile.update', { fields: { color: 'red' } }, { session });
      expect(await own(session)).toEqual({ ...shownToOwner(username), color: 'red' });
      const { data } = await call('account.export', undefined, { session });
      expect(data.profile.fields).toEqual({ ...stale, color: 'red' });
    });

    describe('writing', () => {
      test('only sent fields change; null and an empty text clear; the event names them, without values', async () => {
        const { stack, call } = scenario();
        const { id, session, username } = await member(scenario());
        const update = (own: object) => call('profile.update', { fields: own }, { session });
        const all = {
          about: ' two\nlines ',
          height: 170.5,
          news: false,
          born: '1815-12-10',
          color: 'red',
          blog: 'https://example.com/ada',
        };
        const changed = await update(all);
        const stored = { ...shownToOwner(username), ...all, about: 'two\nlines' };
        expect(changed.data.user.fields).toEqual(stored);
        expect(await own(session)).toEqual(stored);
        expect((await call('profile.update', { bio: 'x' }, { session })).data.user.fields).toEqual(stored);
        await update({ about: '', height: null });
        expect(await own(session)).toEqual({ ...stored, about: null, height: null });
        await update({ color: 'red' });
        expect(await eventsOf(stack, id, 'profile-changed')).toEqual([
          {
            fields: Object.keys(all)
              .map((name) => `fields.${name}`)
              .join(', '),
          },
          { fields: 'bio' },
          { fields: 'fields.about, fields.height' },
        ]);
      });

      test.each([50, 250])('a number at an end of its range, %i, is taken', async (height) => {
        const { session } = await member(scenario());
        const { data } = await scenario().call('profile.update', { fields: { height } }, { session });
        expect(data.user.fields).toMatchObject({ height });
      });

      test.each([
        ['an unknown field', { shoe: 'x' }, { 'fields.shoe': 'unknown_field' }],
        ['a field of services', { plan: 'pro' }, { 'fields.plan': 'read_only' }],
        ['a field that only services read', { score: 1 }, { 'fields.score': 'read_only' }],
        ['a field of administrators', { level: 'x' }, { 'fields.level': 'read_only' }],
        ['a required field without a value', { username: null }, { 'fields.username': 'missing' }],
        ['a required field with spaces only', { username: '  ' }, { 'fields.username': 'missing' }],
        ['an invisible text', { username: '\u200b\u200b' }, { 'fields.username': 'invisible' }],
        ['a text that is too long', { username: 'x'.repeat(31) }, { 'fields.username': 'too_long' }],
        ['a line break in a line', { username: 'a\nb' }, { 'fields.username': 'invalid_characters' }],
        ['a number as text', { height: '170' }, { 'fields.height': 'invalid_number' }],
        ['a number out of range', { height: 251 }, { 'fields.height': 'out_of_range' }],
        ['a flag as text', { news: 'yes' }, { 'fields.news': 'invalid_type' }],
        ['a day that there is not', { born: '2026-02-30' }, { 'fields.born': 'invalid_date' }],
        ['a time', { born: '2026-02-03T00:00:00Z' }, { 'fields.born': 'invalid_date' }],
        ['another choice', { color: 'blue' }, { 'fields.color': 'unknown_choice' }],
        ['a script as link', { blog: 'javascript:alert(1)' }, { 'fields.blog': 'invalid_url' }],
        [
          'a name that JavaScript knows',
          { constructor: 'x', toString: 'x' },
          { 'fields.constructor': 'unknown_field', 'fields.toString': 'unknown_field' },
        ],
        ['a list', [], { fields: 'invalid_type' }],
        ['a text', 'x', { fields: 'invalid_type' }],
        ['several', { shoe: 1, height: 'x' }, { 'fields.shoe': 'unknown_field', 'fields.height': 'invalid_number' }],
      ])('%s is refused by its path, and nothing changes', async (_, sent, rules) => {
        const { call } = scenario();
        const { session, username } = await member(scenario());
        const reply = await call('profile.update', { bio: 'changed', fields: sent }, { session });
        expectRefusal(reply, 400, 'VALIDATION_FAILED');
        expect(rulesIn(reply)).toEqual(rules);
        const { data } = await call('profile.get', undefined, { session });
        expect(data.user).toMatchObject({ bio: '', fields: shownToOwner(username) });
      });

      test('a field __proto__ is refused, and pollutes nothing', async () => {
        const { stack } = scenario();
        const { session } = await member(scenario());
        const reply = await fetch(`${stack.url}/api/profile`, {
          method: 'PUT',
          headers: { 'content-type': 'application/json', cookie: `auth_session=${session}` },
          body: '{"fields":{"__proto__":{"news":true}}}',
        });
        expect(reply.status).toBe(400);
        expect(({} as { news?: unknown }).news).toBeUndefined();
      });

      test('all fields together have at most 16 kB, also of two changes', async () => {
        const { call } = scenario();
        const { session } = await member(scenario());
        const update = (own: object) => call('profile.update', { fields: own }, { session });
        const long = 'x'.repeat(4000);
        expect(await update({ a: long, b: long, c: long })).toMatchObject({ status: 200 });
        const reply = await update({ d: long, e: 'y'.repeat(400) });
        expectRefusal(reply, 400, 'VALIDATION_FAILED');
        expect(rulesIn(reply)).toEqual({ fields: 'fields_too_large' });
        expect(await own(session)).toMatchObject({ a: long, d: null, e: null });
      });

      test('services write their fields and those of users, not those of administrators', async () => {
        const { stack } = scenario();
        const { id, session } = await member(scenario());
        const { user } = await setFields(id, { plan: 'pro', score: 7, color: 'green' });
        expect(user.fields).toMatchObject({ plan: 'pro', score: 7, color: 'green' });
        expect(await own(session)).toMatchObject({ plan: 'pro', color: 'green' });
        await expect(setFields(id, { level: 'x' })).rejects.toMatchObject({
          code: 'VALIDATION_FAILED',
          details: { 'fields.level': { rule: 'read_only' } },
        });
        const [event] = await stack.database('select actor from activity where user_id = ? and kind = ?', [
          id,
          'profile-changed',
        ]);
        expect(event).toEqual({ actor: 'service:shop' });
        for (const userId of ['user_x', id.replace(/.$/, (last) => (last === '0' ? '1' : '0'))]) {
          await expect(setFields(userId, {})).rejects.toMatchObject({ code: 'NOT_FOUND', message: 'User not found' });
        }
        const { call } = scenario();
        await call('account.delete', undefined, { session });
        await expect(setFields(id, { score: 1 })).rejects.toMatchObject({ code: 'NOT_FOUND' });
      });

      test('administrators write every field, with a recent credential; others none', async () => {
        const { call, stack } = scenario();
        const { id, session } = await member(scenario());
        const admin = await administratorWith(scenario());
        const change = { id, fields: { level: 'gold', score: 3, news: true } };
        const reply = await call('users.setFields', change, { session: admin.session });
        expect(reply).toMatchObject({ status: 200, data: { fields: change.fields } });
        expect(await own(session)).toMatchObject({ level: 'gold', news: true });
        expect(await eventsOf(stack, id, 'profile-changed')).toEqual([
          { fields: 'fields.level, fields.score, fields.news' },
        ]);
        expectRefusal(await call('users.setFields', change, { session }), 403, 'FORBIDDEN');
        const wrong = await call('users.setFields', { id, fields: { shoe: 1 } }, { session: admin.session });
        expect(rulesIn(wrong)).toEqual({ 'fields.shoe': 'unknown_field' });
      });
    });

    describe('registration', () => {
      test('needs the required fields and takes those of owners', async () => {
        const { call } = scenario();
        const username = freshName();
        for (const sent of [undefined, {}, { username: '' }]) {
          const reply = await register(call, sent);
          expectRefusal(reply, 400, 'VALIDATION_FAILED');
          expect(rulesIn(reply)).toEqual({ 'fields.username': 'missing' });
        }
        expect(rulesIn(await register(call, { username, plan: 'pro' }))).toEqual({ 'fields.plan': 'read_only' });
        const created = await register(call, { username, color: 'red' });
        const one = await call('users.get', { id: created.data.user.id });
        expect(one.data.data.fields).toEqual({ ...shownToAll(username), color: 'red' });
      });

      test('a taken value is 409, and leaves no account and no mail', async () => {
        const { call, stack } = scenario();
        const { username } = await member(scenario());
        const email = freshEmail();
        const reply = await call('auth.register', { email, password: PASSWORD, name: 'Eve', fields: { username } });
        expectRefusal(reply, 409, 'FIELD_TAKEN');
        expect(rulesIn(reply)).toEqual({ 'fields.username': 'taken' });
        expect(await stack.database('select id from users where email = ?', [email])).toEqual([]);
        expect(await stack.database('select id from outbox where email = ?', [email])).toEqual([]);
      });

      test('an invited user needs them too', async () => {
        const { call, stack } = scenario();
        const admin = await administratorWith(scenario());
        const email = freshEmail();
        await call('users.invite', { email }, { session: admin.session });
        const invitation = await mailedToken(stack, email, 'register');
        const person = { email, password: PASSWORD, name: 'Bob', invitation };
        expect(rulesIn(await call('auth.register', person))).toEqual({ 'fields.username': 'missing' });
        expectRefusal(
          await call('auth.register', { ...person, fields: { username: admin.username } }),
          409,
          'FIELD_TAKEN',
        );
        const username = freshName();
        expect(await call('auth.register', { ...person, fields: { username } })).toMatchObject({
          code: undefined,
          data: { success: true },
        });
      });
    });

    describe('a unique field', () => {
      test.each([
        ['case', (name: string) => name.toUpperCase()],
        ['compatible characters', (name: string) => name.replace('u', '\uff55')],
        ['invisible characters', (name: string) => `${name}\u200d`],
        ['the blank of Braille', (name: string) => `${name}\u2800`],
        ['spaces around', (name: string) => ` ${name} `],
      ])('ignores %s', async (_, spelled) => {
        const { call } = scenario();
        const [ada, bob] = [await member(scenario()), await member(scenario())];
        const reply = await call(
          'profile.update',
          { fields: { username: spelled(ada.username) } },
          { session: bob.session },
        );
        expectRefusal(reply, 409, 'FIELD_TAKEN');
        expect(await own(bob.session)).toMatchObject({ username: bob.username });
        const again = await call(
          'profile.update',
          { fields: { username: spelled(ada.username) } },
          { session: ada.session },
        );
        expect(again.status).toBe(200);
      });

      test('a user finds out few values of others: twenty an hour', async () => {
        const { call } = scenario();
        const [ada, bob] = [await member(scenario()), await member(scenario())];
        const guess = (username: string) => call('profile.update', { fields: { username } }, { session: bob.session });
        for (let i = 0; i < 20; i++) expectRefusal(await guess(ada.username), 409, 'FIELD_TAKEN');
        expectRefusal(await guess(ada.username), 429, 'RATE_LIMITED');
        // The user's own value tells nothing.
        expect((await guess(bob.username)).status).toBe(200);
        const other = await call('profile.update', { fields: { about: 'Me' } }, { session: bob.session });
        expect(other.status).toBe(200);
      });

      test('of two users who want one value at once, one wins', async () => {
        const { call } = scenario();
        const [ada, bob] = [await member(scenario()), await member(scenario())];
        for (let round = 0; round < 10; round++) {
          const username = freshName();
          const replies = await Promise.all(
            [ada, bob].map(({ session }) => call('profile.update', { fields: { username } }, { session })),
          );
          expect(replies.map(({ status }) => status).sort()).toEqual([200, 409]);
        }
        const wanted = freshName();
        const created = await Promise.all([1, 2, 3].map(() => register(call, { username: wanted })));
        expect(created.map(({ code = 'CREATED' }) => code).sort()).toEqual(['CREATED', 'FIELD_TAKEN', 'FIELD_TAKEN']);
      });

      test('two users swap their values only after one has given up its own; no deadlock is answered', async () => {
        const { call } = scenario();
        const [ada, bob] = [await member(scenario()), await member(scenario())];
        for (let round = 0; round < 5; round++) {
          const replies = await Promise.all([
            call('profile.update', { fields: { username: bob.username } }, { session: ada.session }),
            call('profile.update', { fields: { username: ada.username } }, { session: bob.session }),
          ]);
          expect(replies.map(({ status }) => status)).toEqual([409, 409]);
        }
      });

      test('a change frees the former value', async () => {
        const { call } = scenario();
        const ada = await member(scenario());
        await call('profile.update', { fields: { username: freshName() } }, { session: ada.session });
        expect(await register(call, { username: ada.username })).toMatchObject({
          code: undefined,
          data: { success: true },
        });
      });

      test('the removal of the account frees it, not the request for it', async () => {
        const { call, stack } = scenario();
        const { id, session, username } = await member(scenario());
        await call('account.delete', undefined, { session });
        expectRefusal(await register(call, { username }), 409, 'FIELD_TAKEN');
        await stack.database('update removals set due_at = 1 where user_id = ?', [id]);
        await until(async () => (await register(call, { username })).code === undefined, { what: 'the removal' });
        expect(await uniqueRows(scenario(), id)).toBe(0);
      });

      test('a reset of an account that nobody confirmed frees it: the registrant may be another person', async () => {
        const { call, stack } = scenario();
        const [email, username] = [freshEmail(), freshName()];
        const created = await call('auth.register', {
          email,
          password: PASSWORD,
          name: 'Eve',
          fields: { username, color: 'red' },
        });
        await call('auth.forgotPassword', { email });
        const token = await mailedToken(stack, email, 'reset-password');
        expect(await call('auth.resetPassword', { token, email, password: `${PASSWORD}2` })).toMatchObject({
          status: 200,
        });
        const { id } = created.data.user;
        expect((await kindsOf(stack, id)).slice(-3)).toEqual(['profile-changed', 'verified', 'password-changed']);
        const one = await call('users.get', { id });
        expect(one.data.data.fields).toEqual({ username: null, color: null, blog: null, level: null });
        expect(await register(call, { username })).toMatchObject({ code: undefined, data: { success: true } });
      });
    });

    test('the export of the account has every stored field, also those that only services read', async () => {
      const { call } = scenario();
      const { id, session, username } = await member(scenario());
      await setFields(id, { score: 7, news: true });
      const { data } = await call('account.export', undefined, { session });
      expect(data.profile.fields).toEqual({ username, score: 7, news: true });
    });
  },
  { env },
);

/** An administrator, who has a username as well. */
async function administratorWith(scenario: Scenario) {
  const admin = await member(scenario);
  await scenario.stack.database("update users set role = 'admin' where id = ?", [admin.id]);
  return admin;
}

describe('without PROFILE_FIELDS', () => {
  everywhere((scenario) => {
    test('fields are ignored as any unknown input, and no answer has them', async () => {
      const { call } = scenario();
      const person = await loggedIn(scenario());
      const { session, id } = person;
      const admin = await administrator(scenario());
      for (const sent of [{ fields: { a: 1 } }, { fields: 'x' }]) {
        const { status, data } = await call('profile.update', sent, { session });
        expect(status).toBe(200);
        expect(data.user).not.toHaveProperty('fields');
      }
      expect((await call('profile.get', undefined, { session })).data.user).not.toHaveProperty('fields');
      expect((await call('users.get', { id })).data.data).not.toHaveProperty('fields');
      const { data } = await call('account.export', undefined, { session });
      expect(data.profile).not.toHaveProperty('fields');
      expectRefusal(await call('users.setFields', { id, fields: {} }, { session: admin.session }), 404, 'NOT_FOUND');
      expect(JSON.stringify(await documentOf(scenario().stack.url))).not.toContain('PROFILE_FIELDS.');
    });
  });
});
