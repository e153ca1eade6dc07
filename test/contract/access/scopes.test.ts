import { describe, expect, test } from 'vitest';
import { procedures } from '../../../routers/procedures.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import { callerOf } from '../rig/callers.ts';
import { createKey, SCOPES, withKey } from '../rig/key-scenario.ts';
import { everywhere, expectRefusal, loggedIn, onBothStacks } from '../rig/scenario.ts';

/** A key does what its scopes allow, and nothing else. */

/** Every procedure that takes a key. All others refuse it, or ignore it. */
const scopeOf: Record<string, string> = {
  'profile.get': 'profile:read',
  'profile.language': 'profile:read',
  'profile.update': 'profile:write',
  'upload.usage': 'uploads:read',
  'upload.list': 'uploads:read',
  'upload.presign': 'uploads:write',
  'upload.confirm': 'uploads:write',
  'upload.parts': 'uploads:write',
  'upload.presignParts': 'uploads:write',
  'upload.complete': 'uploads:write',
  'upload.image': 'uploads:write',
  'upload.remove': 'uploads:write',
  'upload.address': 'uploads:read',
  'upload.publish': 'uploads:write',
};

onBothStacks((stack) => {
  /** The code of the error, and its challenge. Without input: a procedure checks the caller first. */
  const ask = async ({ name, type }: { name: string; type: string }, key?: string) => {
    const response = await fetch(`${stack().url}/trpc/${name}`, {
      method: type === 'query' ? 'GET' : 'POST',
      headers: {
        'x-forwarded-for': clientAddress(),
        'content-type': 'application/json',
        ...(key && { authorization: `Bearer ${key}` }),
      },
    });
    const { error } = (await response.json()) as { error?: { data: { code: string } } };
    return { code: error?.data.code, challenge: response.headers.get('www-authenticate') };
  };

  test('every procedure names a scope, or gives a key no more than nobody', async () => {
    const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
    const { session } = await loggedIn(scenario);
    const all = (await createKey(scenario, session)).secret;
    const without = Object.fromEntries(
      await Promise.all(
        [...new Set(Object.values(scopeOf))].map(async (scope) => {
          const { secret } = await createKey(scenario, session, { scopes: SCOPES.filter((other) => other !== scope) });
          return [scope, secret] as const;
        }),
      ),
    );
    expect(procedures.length).toBeGreaterThan(70);
    for (const procedure of procedures) {
      const { name } = procedure;
      const scope = scopeOf[name];
      const nobody = await ask(procedure);
      const answer = await ask(procedure, all);
      if (scope === undefined) {
        if (answer.code === 'INSUFFICIENT_SCOPE') {
          // A logout that an application asks for needs no session, and refuses a key.
          const code = name === 'authorizations.logOut' ? undefined : 'UNAUTHENTICATED';
          expect([name, nobody]).toEqual([name, { code, challenge: null }]);
          expect([name, answer.challenge]).toEqual([name, 'Bearer error="insufficient_scope"']);
        } else expect([name, answer]).toEqual([name, nobody]);
        continue;
      }
      expect([name, nobody]).toEqual([name, { code: 'UNAUTHENTICATED', challenge: null }]);
      expect([name, answer.challenge]).toEqual([name, null]);
      expect(await ask(procedure, without[scope])).toEqual({
        code: 'INSUFFICIENT_SCOPE',
        challenge: `Bearer error="insufficient_scope", scope="${scope}"`,
      });
    }
  });
});

everywhere((scenario) => {
  const image = { filename: 'a.png', contentType: 'image/png', size: 10 };

  test('a key reads and changes what its scopes name', async () => {
    const { call } = scenario();
    const { secret: key, session, id, email } = await withKey(scenario());
    expect((await call('profile.update', { bio: 'By key' }, { key })).data.user).toMatchObject({
      bio: 'By key',
      email,
    });
    const profile = await call('profile.get', undefined, { key });
    expect(profile.data).toEqual((await call('profile.get', undefined, { session })).data);
    expect(profile.data.user).toMatchObject({ id, email });
    expect(profile.setCookies).toEqual([]);
    const { data: declared } = await call('upload.presign', image, { key });
    expect((await call('upload.list', {}, { key })).data.data).toMatchObject([{ key: declared.key }]);
    expect((await call('upload.remove', { name: declared.key.replace('uploads/', '') }, { key })).code).toBeUndefined();
  });

  test('a refusal names the missing scope', async () => {
    const { secret: key } = await withKey(scenario(), { scopes: ['profile:read'] });
    for (const [procedure, input, scope] of [
      ['profile.update', { bio: 'x' }, ', scope="profile:write"'],
      ['upload.presign', image, ', scope="uploads:write"'],
      ['sessions.list', undefined, ''],
    ] as const) {
      const reply = await scenario().call(procedure, input, { key });
      expectRefusal(reply, 403, 'INSUFFICIENT_SCOPE', 'The access key or token does not allow this');
      expect(reply.headers.get('www-authenticate')).toBe(`Bearer error="insufficient_scope"${scope}`);
    }
  });

  test('without the scope `email` the profile has no address', async () => {
    const { call } = scenario();
    const { session } = await loggedIn(scenario());
    const { secret: key } = await createKey(scenario(), session, { scopes: ['profile:read', 'profile:write'] });
    const { email, ...others } = (await call('profile.get', undefined, { session })).data.user;
    expect(email).toContain('@');
    expect((await call('profile.get', undefined, { key })).data).toEqual({ user: others });
    const { data } = await call('profile.update', { location: 'London' }, { key });
    expect(data).toEqual({ success: true, user: { ...others, location: 'London' } });
  });

  // checks: 67
  test('a client that is not a browser may send any Origin with a key; CORS stays', async () => {
    const { call, stack } = scenario();
    const { secret: key } = await withKey(scenario());
    const headers = { origin: 'https://app.example' };
    const reply = await call('profile.update', { bio: 'x' }, { key, headers });
    expect(reply.code).toBeUndefined();
    expect(reply.headers.get('access-control-allow-origin')).toBeNull();
    const preflight = await fetch(`${stack.url}/api/profile`, {
      method: 'OPTIONS',
      headers: {
        ...headers,
        'access-control-request-method': 'PUT',
        'access-control-request-headers': 'authorization',
      },
    });
    expect(preflight.status).toBe(403);
  });

  test('a request with a session cookie and a key uses neither', async () => {
    const { call } = scenario();
    const { secret: key, session } = await withKey(scenario());
    const message = 'The request has a session cookie and a bearer credential; send one of them';
    for (const [procedure, input] of [
      ['profile.update', { bio: 'Both' }],
      ['profile.get', undefined],
      ['auth.logoutAll', undefined],
      ['auth.logout', undefined],
    ] as const) {
      for (const bearer of [key, 'other']) {
        const reply = await call(procedure, input, { key: bearer, session });
        expectRefusal(reply, 400, 'VALIDATION_FAILED', message);
        expect(reply.headers.get('www-authenticate')).toBe('Bearer error="invalid_request"');
      }
    }
    expect((await call('profile.get', undefined, { session })).data.user.bio).toBe('');
    expect((await call('profile.get', undefined, { key })).code).toBeUndefined();
    // Another scheme is of the proxy in front.
    const headers = { authorization: 'Basic YTpi' };
    expect((await call('profile.get', undefined, { session, headers })).code).toBeUndefined();
  });

  test('over REST an upload that is refused for its scope has the ordinary error body', async () => {
    const { secret: key } = await withKey(scenario(), { scopes: ['email'] });
    const call = callerOf('rest', scenario().stack.url);
    const reply = await call('upload.confirm', { key: 'uploads/a.png' }, { key });
    expectRefusal(reply, 403, 'INSUFFICIENT_SCOPE', 'The access key or token does not allow this');
  });
});

describe('limits', () => {
  everywhere(
    (scenario) => {
      const declared = { filename: 'a.png', contentType: 'image/png', size: 10 };

      test('a user’s session and keys share them', async () => {
        const { call } = scenario();
        const { secret: key, session } = await withKey(scenario());
        const { secret: other } = await createKey(scenario(), session);
        for (const options of [{ session }, { key }])
          expect((await call('upload.presign', declared, options)).code).toBeUndefined();
        for (const options of [{ session }, { key }, { key: other }])
          expectRefusal(await call('upload.presign', declared, options), 429, 'RATE_LIMITED');
      });
    },
    { env: { LIMIT_UPLOAD: '2/3600' } },
  );
});
