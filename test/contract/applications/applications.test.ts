import { createHash, randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { callerOf } from '../rig/callers.ts';
import { administrator, eventsOf, everywhere, expectRefusal, growOld, loggedIn, onStack } from '../rig/scenario.ts';

/** What administrators do with applications. */

const UNKNOWN = '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c';
const hashOf = (secret: string) => createHash('sha256').update(secret).digest('base64url');
const fields = {
  name: 'Shop',
  kind: 'web',
  redirectUris: ['https://shop.example.com/callback'],
  scopes: ['openid', 'email'],
};

const changes: [procedure: string, input: object][] = [
  ['applications.create', fields],
  ['applications.update', { id: UNKNOWN, name: 'Other' }],
  ['applications.delete', { id: UNKNOWN }],
  ['applications.rotateSecret', { id: UNKNOWN }],
];
const reads: [procedure: string, input: object | undefined][] = [
  ['applications.list', undefined],
  ['applications.get', { id: UNKNOWN }],
];

everywhere((scenario) => {
  const created = async (given: object = {}) => {
    const { session, id: adminId } = await administrator(scenario());
    const reply = await scenario().call('applications.create', { ...fields, ...given }, { session });
    expect(reply.code).toBeUndefined();
    const { application, secret } = reply.data;
    const call = (procedure: string, input: object = {}) =>
      scenario().call(procedure, { id: application.id, ...input }, { session });
    return { application, secret, session, adminId, call };
  };

  test('a new application is listed without its secret, which is stored as a hash', async () => {
    const { application, secret, session, adminId, call } = await created();
    expect(secret).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(application).toMatchObject({
      ...fields,
      postLogoutRedirectUris: [],
      resources: [],
      tokenFormat: 'jwt',
      trusted: false,
      logoUrl: null,
      publicKeys: [],
      enabled: true,
    });
    const { data: list } = await scenario().call('applications.list', undefined, { session });
    expect(list.data).toContainEqual(application);
    expect((await call('applications.get')).data).toEqual({ application });
    const [row] = await scenario().stack.database('select * from applications where id = ?', [application.id]);
    expect(row).toMatchObject({ secret_hash: hashOf(secret), former_hash: null });
    expect(JSON.stringify([list, row])).not.toContain(secret);
    expect(await eventsOf(scenario().stack, adminId, 'application-added')).toEqual([{ name: 'Shop' }]);
  });

  test.each([
    ['browser', ['https://spa.example.com/']],
    ['device', []],
    ['native', ['http://127.0.0.1/callback', 'http://[::1]/', 'com.example.app:/callback', 'https://example.com/app']],
  ])('a %s application has no secret', async (kind, redirectUris) => {
    const { application, secret, call } = await created({ kind, redirectUris });
    expect(application).toMatchObject({ kind, redirectUris });
    expect(secret).toBeUndefined();
    expectRefusal(await call('applications.rotateSecret'), 404, 'NOT_FOUND');
  });

  test('an update changes what is sent, and enables or disables', async () => {
    const { application, call } = await created();
    const other = {
      name: 'Other',
      redirectUris: ['https://other.example.com/'],
      postLogoutRedirectUris: ['https://other.example.com/goodbye', 'https://other.example.com/?bye'],
      resources: ['https://api.example.com'],
      scopes: ['openid', 'orders:read'],
      tokenFormat: 'opaque',
      trusted: true,
      logoUrl: 'https://other.example.com/logo.png',
    };
    expect((await call('applications.update', other)).data.application).toEqual({ ...application, ...other });
    const disabled = await call('applications.update', { enabled: false });
    expect(disabled.data.application).toEqual({ ...application, ...other, enabled: false });
    const enabled = await call('applications.update', { enabled: true, logoUrl: null });
    expect(enabled.data.application).toEqual({ ...application, ...other, logoUrl: null });
    expectRefusal(await call('applications.update', { redirectUris: ['http://a.example'] }), 400, 'VALIDATION_FAILED');
  });

  test('a deleted application is gone', async () => {
    const { call, adminId } = await created();
    expect((await call('applications.delete')).data.success).toBe(true);
    expectRefusal(await call('applications.get'), 404, 'NOT_FOUND', 'There is no such application');
    expectRefusal(await call('applications.delete'), 404, 'NOT_FOUND', 'There is no such application');
    expect(await eventsOf(scenario().stack, adminId, 'application-removed')).toEqual([{ name: 'Shop' }]);
  });

  // checks: 73
  test('the applications of an administrator are disabled with the role, until another one enables them', async () => {
    const { application, adminId } = await created();
    const { session } = await administrator(scenario());
    const act = (procedure: string, input: object) => scenario().call(procedure, input, { session });
    expect((await act('users.setRole', { id: adminId, role: 'user' })).code).toBeUndefined();
    const { data } = await act('applications.get', { id: application.id });
    expect(data.application).toEqual({ ...application, enabled: false });
    const enabled = await act('applications.update', { id: application.id, enabled: true });
    expect(enabled.data.application).toEqual(application);
  });

  // checks: 73
  test.each([
    ['changed', 'applications.update', { trusted: true }],
    ['given a new secret', 'applications.rotateSecret', {}],
  ])('an application that another administrator has %s is disabled with that role', async (_, change, input) => {
    const { application, call } = await created({ backchannelLogoutUri: 'https://shop.example.com/logout' });
    const isTold = async () =>
      (await scenario().stack.database('select id from webhooks where id = ?', [application.id])).length === 1;
    expect(await isTold()).toBe(true);
    const other = await administrator(scenario());
    const changed = await scenario().call(change, { id: application.id, ...input }, { session: other.session });
    expect(changed.code).toBeUndefined();
    expect((await call('users.setRole', { id: other.id, role: 'user' })).code).toBeUndefined();
    expect((await call('applications.get')).data.application.enabled).toBe(false);
    // Not even of logouts.
    expect(await isTold()).toBe(false);
    await call('applications.update', { enabled: true });
    expect(await isTold()).toBe(true);
  });

  // checks: 73
  test('a change by another administrator does not keep an application beyond the role of its creator', async () => {
    const { application, adminId } = await created();
    const { session } = await administrator(scenario());
    const act = (procedure: string, input: object) => scenario().call(procedure, input, { session });
    expect(
      (await act('applications.update', { id: application.id, ...{ logoUrl: null, name: 'Shop 2' } })).code,
    ).toBeUndefined();
    expect((await act('users.setRole', { id: adminId, role: 'user' })).code).toBeUndefined();
    expect((await act('applications.get', { id: application.id })).data.application.enabled).toBe(false);
  });

  test('after a rotation two secrets are stored, the former one for 24 hours', async () => {
    const { application, secret, adminId, call } = await created();
    const { data } = await call('applications.rotateSecret');
    expect(data.formerUntil - Date.now() / 1000).toBeCloseTo(24 * 3600, -2);
    const [row] = await scenario().stack.database('select * from applications where id = ?', [application.id]);
    expect(row).toMatchObject({ secret_hash: hashOf(data.secret), former_hash: hashOf(secret) });
    expect(await eventsOf(scenario().stack, adminId, 'application-changed')).toEqual([{ name: 'Shop' }]);
  });

  test.each([
    ['web', 'http://shop.example.com/', 'forbidden_scheme'],
    ['web', 'https://a:b@shop.example.com/', 'credentials'],
    ['web', 'https://shop.example.com@evil.example/', 'credentials'],
    ['web', 'https://@shop.example.com/', 'credentials'],
    ['web', 'https://shop.example.com/#', 'fragment'],
    ['web', 'https://*.example.com/', 'malformed'],
    ['web', 'https://shöp.example.com/', 'malformed'],
    ['web', 'https:\\\\shop.example.com', 'malformed'],
    ['web', 'https://shop.example.com/a b', 'malformed'],
    ['web', 'com.example.app:/callback', 'forbidden_scheme'],
    ['browser', 'javascript:alert(1)', 'forbidden_scheme'],
    ['native', 'http://localhost/callback', 'forbidden_scheme'],
    ['native', 'http://127.0.0.1.example.com/', 'forbidden_scheme'],
    ['native', 'myapp:/callback', 'forbidden_scheme'],
    ['service', 'https://shop.example.com/', 'not_allowed'],
    ['device', 'http://127.0.0.1/callback', 'not_allowed'],
  ])('a %s application must not have the redirect address %s', async (kind, uri, rule) => {
    const { session } = await administrator(scenario());
    const reply = await scenario().call('applications.create', { ...fields, kind, redirectUris: [uri] }, { session });
    expectRefusal(reply, 400, 'VALIDATION_FAILED');
    expect(reply.details?.['redirectUris']?.rule).toBe(rule);
  });

  test.each([
    ['web', 'http://shop.example.com/', 'forbidden_scheme'],
    ['browser', 'https://*.example.com/', 'malformed'],
    ['native', 'myapp:/goodbye', 'forbidden_scheme'],
    ['service', 'https://shop.example.com/', 'not_allowed'],
  ])('the browser of a %s application must not go to %s after a logout', async (kind, uri, rule) => {
    const { session, call } = await created();
    const redirectUris = kind === 'service' ? [] : fields.redirectUris;
    const given = { ...fields, kind, redirectUris, postLogoutRedirectUris: [uri] };
    const replies = [await scenario().call('applications.create', given, { session })];
    if (kind === 'web') replies.push(await call('applications.update', { postLogoutRedirectUris: [uri] }));
    for (const reply of replies) {
      expectRefusal(reply, 400, 'VALIDATION_FAILED');
      expect(reply.details).toEqual({ postLogoutRedirectUris: { message: expect.any(String), rule } });
    }
  });

  test.each([
    ['no redirect address', { redirectUris: [] }, 'redirectUris'],
    ['an unknown kind', { kind: 'desktop' }, 'kind'],
    ['a scope with a space', { scopes: ['a b'] }, 'scopes.0'],
    ['a relative resource', { resources: ['/api'] }, 'resources.0'],
    ['a resource with a space', { resources: ['https://api.example.com/a b'] }, 'resources.0'],
    ['a script as logo', { logoUrl: 'javascript:alert(1)' }, 'logoUrl'],
  ])('an application with %s is refused', async (_, given, field) => {
    const { session } = await administrator(scenario());
    const reply = await scenario().call('applications.create', { ...fields, ...given }, { session });
    expectRefusal(reply, 400, 'VALIDATION_FAILED');
    expect(Object.keys(reply.details ?? {})).toEqual([field]);
  });

  describe('only administrators', () => {
    test.each([...changes, ...reads])('%s', async (procedure, input) => {
      const { session } = await loggedIn(scenario());
      expectRefusal(await scenario().call(procedure, input, { session }), 403, 'FORBIDDEN');
      expectRefusal(await scenario().call(procedure, input), 401, 'UNAUTHENTICATED');
    });
  });

  test.each(changes)('%s needs a recent credential', async (procedure, input) => {
    const { session, id } = await administrator(scenario());
    await growOld(scenario().stack, id);
    expectRefusal(await scenario().call(procedure, input, { session }), 403, 'REAUTHENTICATION_REQUIRED');
  });
});

// SQLite runs all transactions one after the other.
onStack('real', (stack) => {
  test('there are at most a hundred, also when two administrators add some at once', async () => {
    const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
    const [{ session }, { session: other }] = [await administrator(scenario), await administrator(scenario)];
    const add = (by: string) => scenario.call('applications.create', fields, { session: by });
    const { id } = (await add(session)).data.application;
    for (let count = 1; count < 99; count++)
      await stack().database(
        `insert into applications (id, name, kind, redirect_uris, resources, scopes, token_format, trusted, created_at)
         select ?, name, kind, redirect_uris, resources, scopes, token_format, trusted, created_at from applications where id = ?`,
        [randomUUID(), id],
      );
    const race = Array.from({ length: 8 }, (_, i) => add(i % 2 === 0 ? session : other));
    const codes = (await Promise.all(race)).map(({ code }) => code ?? 'created').toSorted();
    expect(codes).toEqual([...Array(7).fill('TOO_MANY_APPLICATIONS'), 'created']);
  });
});
