import { describe, expect, test } from 'vitest';
import { freshEmail } from '../../rig/servers/address.ts';
import { documentOf, type OpenApiDocument } from '../rig/document.ts';
import { createKey } from '../rig/key-scenario.ts';
import {
  administrator,
  expectRefusal,
  inEveryForm,
  loggedIn,
  onStack,
  registered,
  type Scenario,
} from '../rig/scenario.ts';

/** Who can read users, and their emails: PUBLIC_USERS. */

const LISTED = ['avatar', 'createdAt', 'email', 'id', 'name', 'provider'];
const PUBLIC = [...LISTED, 'bio', 'location', 'website'].sort();
const withoutEmail = (fields: string[]) => fields.filter((field) => field !== 'email');

const fieldsOf = (users: object[]) => new Set(users.flatMap((user) => Object.keys(user).sort().join()));
const fresh = () => `u${Math.random().toString(36).slice(2, 12)}`;

/** Reads everything that users may read, with these fields; own profiles always include the email. */
async function expectReadable(scenario: Scenario, session: string | undefined, has: (fields: string[]) => string[]) {
  const { call } = scenario;
  const name = fresh();
  const { id, email } = await registered(scenario, { name, email: freshEmail(fresh()) });
  const list = await call('users.list', { limit: 5 }, { session });
  expect(list.status).toBe(200);
  expect(fieldsOf(list.data.data)).toEqual(new Set([has(LISTED).join()]));
  const one = await call('users.get', { id }, { session });
  expect(fieldsOf([one.data.data])).toEqual(new Set([has(PUBLIC).join()]));
  const found = await call('users.list', { q: name }, { session });
  expect(found.data.data.map((user: { id: string }) => user.id)).toEqual([id]);
  return { id, email };
}

/** The operations of the public reads in /openapi.json. */
const readsIn = ({ paths }: OpenApiDocument) => [paths['/api/users']?.['get'], paths['/api/users/{id}']?.['get']];

describe('without-email', () => {
  inEveryForm(
    (scenario, surface) => {
      test('emails are neither shown nor searched; own profiles show them', async () => {
        const { call } = scenario();
        const { session, ...person } = await loggedIn(scenario());
        const admin = await administrator(scenario());
        for (const reader of [undefined, session, admin.session]) {
          const { email } = await expectReadable(scenario(), reader, withoutEmail);
          for (const q of [email, email.slice(0, 9)]) {
            const reply = await call('users.list', { q }, { session: reader });
            expect(reply).toMatchObject({ status: 200, data: { data: [] } });
            expect(reply.data).not.toHaveProperty('nextCursor');
          }
        }
        const profile = await call('profile.get', undefined, { session });
        expect(profile.data.user.email).toBe(person.email);
        const { data } = await call('profile.update', { bio: 'x' }, { session });
        expect(data.user.email).toBe(person.email);
      });

      test('a search by names continues from page to page, and its cursors reveal no email', async () => {
        const { call } = scenario();
        const name = fresh();
        const ids = [];
        for (let i = 0; i < 3; i++) ids.push((await registered(scenario(), { name })).id);
        await registered(scenario(), { email: freshEmail(name) });
        const first = await call('users.list', { q: name, limit: 2 });
        const cursor = Buffer.from(first.data.nextCursor, 'base64url').toString();
        expect(cursor).not.toContain('@');
        const second = await call('users.list', { q: name, limit: 2, cursor: first.data.nextCursor });
        expect([...first.data.data, ...second.data.data].map(({ id }) => id)).toEqual(ids);
        expect(second.data).not.toHaveProperty('nextCursor');
        const byAddress = Buffer.from(JSON.stringify({ email: name })).toString('base64url');
        expect((await call('users.list', { q: name, cursor: byAddress })).data).toEqual({ data: [] });
      });

      if (surface === 'rest') {
        test('the document omits the email, and nothing else', async () => {
          const document = await documentOf(scenario().stack.url);
          for (const read of readsIn(document)) expect(JSON.stringify(read?.responses['200'])).not.toContain('"email"');
          expect(JSON.stringify(document.components.schemas['Profile'])).toContain('"email"');
        });
      }
    },
    { env: { PUBLIC_USERS: 'without-email' } },
  );
});

describe('session', () => {
  inEveryForm(
    (scenario, surface) => {
      test('logged-in users read everything, others nothing', async () => {
        const { call } = scenario();
        const { session, id, email } = await loggedIn(scenario());
        await expectReadable(scenario(), session, (fields) => fields);
        const found = await call('users.list', { q: email }, { session });
        expect(found.data.data).toMatchObject([{ id, email }]);
        for (const none of [undefined, 'x'.repeat(43)]) {
          for (const [procedure, input] of [
            ['users.list', {}],
            ['users.list', { q: email }],
            ['users.get', { id }],
            ['users.get', { id: 'x' }],
          ] as const) {
            expectRefusal(await call(procedure, input, { session: none }), 401, 'UNAUTHENTICATED');
          }
        }
      });

      if (surface === 'rest') {
        test('the document requires the session', async () => {
          for (const read of readsIn(await documentOf(scenario().stack.url))) {
            expect(read).toMatchObject({ security: [{ session: [] }], responses: { 401: expect.anything() } });
          }
        });
      }
    },
    { env: { PUBLIC_USERS: 'session' } },
  );
});

describe('off', () => {
  inEveryForm(
    (scenario) => {
      test('administrators read everything; everyone else gets 404, even for themselves', async () => {
        const { call } = scenario();
        const { session, id, email } = await loggedIn(scenario());
        const admin = await administrator(scenario());
        await expectReadable(scenario(), admin.session, (fields) => fields);
        const found = await call('users.list', { q: email }, { session: admin.session });
        expect(found.data.data).toMatchObject([{ id, email }]);
        for (const reader of [undefined, 'x'.repeat(43), session]) {
          for (const [procedure, input] of [
            ['users.list', {}],
            ['users.get', { id }],
            ['users.get', { id: admin.id }],
            ['users.get', { id: 'x' }],
          ] as const) {
            expectRefusal(await call(procedure, input, { session: reader }), 404, 'NOT_FOUND', 'Not found');
          }
        }
        const profile = await call('profile.get', undefined, { session });
        expect(profile.data.user).toMatchObject({ id, email });
        const { secret: key } = await createKey(scenario(), admin.session);
        expectRefusal(await call('users.get', { id }, { key }), 404, 'NOT_FOUND', 'Not found');
      });
    },
    { env: { PUBLIC_USERS: 'off' } },
  );
});

describe('full', () => {
  onStack('embedded', (stack) => {
    test('is the default of the document: no session, and an email in each answer', async () => {
      const document = await documentOf(stack().url);
      for (const read of readsIn(document)) {
        expect(read).not.toHaveProperty('security');
        expect(read?.responses).not.toHaveProperty('401');
      }
      expect(JSON.stringify(readsIn(document)[0]?.responses['200'])).toContain('"email"');
      expect(JSON.stringify(document.components.schemas['User'])).toContain('"email"');
    });
  });
});
