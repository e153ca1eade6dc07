import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { onBothStacks } from '../contract/rig/scenario.ts';
import { Browser } from '../provider/browser.ts';
import { type Claims, environmentFor, type Lie, secondsFromNow, startHostileProvider } from '../provider/hostile.ts';
import type { Answer } from '../provider/http.ts';
import { atInstance, begin, identitiesOf, identityClaims, loginsThrough, usersWith } from '../provider/login.ts';
import { freePort } from '../rig/servers/port.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { inTime } from '../rig/until.ts';

/** Providers that lie, and providers that do not answer. */
const provider = await startHostileProvider();
const logInAs = loginsThrough(provider);
afterAll(() => provider.close());

/** For a login at a hanging provider: the service gives up after 5 s, plus a margin for a loaded machine. */
const LIMIT = { within: 30_000, what: 'the end of the login' };

const lies: [string, Lie][] = [
  ['another nonce', { idToken: { nonce: 'another' } }],
  ['no nonce', { idToken: { nonce: undefined } }],
  ['another issuer', { idToken: { iss: 'https://evil.test' } }],
  ['no issuer', { idToken: { iss: undefined } }],
  ['another audience', { idToken: { aud: 'another' } }],
  ['no audience', { idToken: { aud: undefined } }],
  ['two audiences, for another party', { idToken: { aud: ['accounts', 'another'], azp: 'another' } }],
  ['no subject', { idToken: { sub: undefined } }],
  ['a subject that is no text', { idToken: { sub: 7 } }],
  ['an ID token of yesterday', { idToken: { exp: secondsFromNow(-86_400) } }],
  ['an ID token without an end', { idToken: { exp: undefined } }],
  ['no signature', { signature: 'none' }],
  ['a signature by the client secret', { signature: 'secret' }],
  ['a signature by another key', { signature: 'other key' }],
  ['a code of another flow', { challenge: 'A'.repeat(43) }],
  ['a callback in the name of another issuer', { iss: 'https://evil.test' }],
  ['another user at the userinfo endpoint', { userinfo: { sub: 'another-user', email: 'x@example.test' } }],
  ['a failure', { token: { status: 500, type: 'text/html', body: '<h1>Internal Server Error</h1>' } }],
  ['nonsense', { token: { body: 'nonsense' } }],
  ['a list', { token: { body: [] } }],
  ['a page', { token: { type: 'text/html', body: '<p>Welcome</p>' } }],
  ['no ID token', { token: { body: { access_token: 'x', token_type: 'Bearer' } } }],
  ['a broken ID token', { token: { body: { access_token: 'x', token_type: 'Bearer', id_token: 'x.y.z' } } }],
  ['a redirect elsewhere', { token: { status: 302, body: '', headers: { location: 'http://127.0.0.1:1/' } } }],
  ['two megabytes', { token: { body: { access_token: 'x'.repeat(2 ** 21), token_type: 'Bearer' } } }],
  ['a closed connection', { token: 'drop' }],
  ['nothing', { token: 'hang' }],
];

onBothStacks(
  (stack) => {
    // checks: 42, 47
    test.concurrent.each(lies)('%s logs nobody in', async (_, lie) => {
      const person = identityClaims();
      const { browser, request } = await begin(stack());
      const callback = atInstance(stack(), provider.authorize(request, person, lie));
      const before = browser.copy();
      expect(await inTime(browser.redirectOf(callback), LIMIT)).toBe('/login?error=oauth_failed');
      expect(browser.session).toBeUndefined();
      expect(browser.cookies.has('acme_oauth_state')).toBe(false);
      const again = await before.go(callback);
      expect([again.status, await again.json()]).toEqual([400, expect.objectContaining({ code: 'INVALID_STATE' })]);
      expect(await usersWith(stack(), person.email)).toEqual([]);
      expect(await identitiesOf(stack(), person.sub)).toEqual([]);
    });

    test('an authorization code works once, whatever the browser does', async () => {
      const { browser, request } = await begin(stack());
      const callback = atInstance(stack(), provider.authorize(request, identityClaims()));
      expect(await browser.redirectOf(callback)).toBe('/dashboard');
      const second = await begin(stack());
      callback.searchParams.set('state', second.request.searchParams.get('state') ?? '');
      expect(await second.browser.redirectOf(callback)).toBe('/login?error=oauth_failed');
    });

    // checks: 41
    test('a provider error gets an answer of the service, without the provider’s text', async () => {
      const { browser, request } = await begin(stack());
      const callback = new URL(`${stack().url}/auth/acme/callback`);
      callback.searchParams.set('state', request.searchParams.get('state') ?? '');
      callback.searchParams.set('error', 'server_error');
      callback.searchParams.set('error_description', 'https://evil.test');
      expect(await browser.redirectOf(callback)).toBe('/login?error=oauth_failed');
    });
  },
  { env: environmentFor(provider) },
);

describe('an unreachable provider', () => {
  const failures: [string, Answer][] = [
    ['hangs', 'hang'],
    ['hangs up', 'drop'],
    ['fails', { status: 500, body: 'oops' }],
    ['answers nonsense', { body: 'nonsense' }],
    ['names another issuer', { body: { issuer: 'https://evil.test', authorization_endpoint: 'https://evil.test/' } }],
  ];

  onBothStacks(
    (stack) => {
      // checks: 47
      test('fails only this login, in time, and works once it is back', async () => {
        try {
          for (const [, answer] of failures) {
            provider.setDiscovery(answer);
            const browser = new Browser();
            const [location, health] = await Promise.all([
              inTime(browser.redirectOf(`${stack().url}/auth/acme`), LIMIT),
              callerOf('rest', stack().url)('health'),
            ]);
            expect(location).toBe('/login?error=oauth_failed');
            expect(browser.cookies.size).toBe(0);
            expect(health.status).toBe(200);
          }
        } finally {
          provider.setDiscovery(undefined);
        }
        expect((await logInAs(stack(), identityClaims())).location).toBe('/dashboard');
      });
    },
    { env: environmentFor(provider) },
  );

  test('does not stop the start', async () => {
    const stack = await startStack('embedded', {
      env: environmentFor({ url: `http://127.0.0.1:${await freePort()}` }),
    });
    try {
      expect(await new Browser().redirectOf(`${stack.url}/auth/acme`)).toBe('/login?error=oauth_failed');
    } finally {
      await stack.stop();
    }
  });
});

describe('two instances', () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack('real', { instances: 2, env: { ...environmentFor(provider), LIMIT_CHANGE: '100/3600' } });
  });
  afterAll(() => stack.stop());

  const instance = (i: number) => stack.services[i % 2] ?? stack;

  // checks: 43, F14
  test('of twenty concurrent uses of one callback, one logs in', async () => {
    const person = identityClaims();
    const { browser, request } = await begin(stack);
    const callback = provider.authorize(request, person);
    const ends = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        const copy = browser.copy();
        const response = await copy.go(atInstance(instance(i), callback));
        await response.body?.cancel();
        return `${response.status} ${response.headers.get('location') ?? ''} ${copy.session ? 'session' : ''}`.trim();
      }),
    );
    expect(ends.filter((end) => end === '302 /dashboard session')).toHaveLength(1);
    expect(ends.filter((end) => end === '400')).toHaveLength(19);
    expect(await usersWith(stack, person.email)).toHaveLength(1);
    expect(await identitiesOf(stack, person.sub)).toHaveLength(1);
  });

  test.each<[string, Claims, string]>([
    ['a new user', {}, '/dashboard'],
    ['a new user with an unverified address', { email_verified: false }, '/verify-email'],
  ])('%s with twenty concurrent logins is created once', async (_, claims, end) => {
    const person = identityClaims(claims);
    const begun = await Promise.all(Array.from({ length: 20 }, () => begin(stack)));
    const ends = await Promise.all(
      begun.map(({ browser, request }, i) =>
        browser.redirectOf(atInstance(instance(i), provider.authorize(request, person))),
      ),
    );
    expect(new Set(ends)).toEqual(new Set([end]));
    expect(await usersWith(stack, person.email)).toHaveLength(1);
    expect(await identitiesOf(stack, person.sub)).toHaveLength(1);
  });

  test('twenty concurrent identities with one email are one user', async () => {
    const { email } = identityClaims();
    const begun = await Promise.all(Array.from({ length: 20 }, () => begin(stack)));
    const ends = await Promise.all(
      begun.map(({ browser, request }, i) =>
        browser.redirectOf(atInstance(instance(i), provider.authorize(request, identityClaims({ email })))),
      ),
    );
    expect(new Set(ends)).toEqual(new Set(['/dashboard']));
    const [user] = await usersWith(stack, email);
    expect(await stack.database('select id from identities where user_id = ?', [user?.id ?? ''])).toHaveLength(20);
  });

  test('an email registered while its owner logs in through the provider belongs to the owner', async () => {
    const registrations: number[] = [];
    for (let round = 0; round < 10; round++) {
      const person = identityClaims();
      const { browser, request } = await begin(stack);
      const callback = provider.authorize(request, person);
      const squatter = { name: 'A Squatter', email: person.email, password: 'Difference-Engine-1' };
      const [location, registration] = await Promise.all([
        browser.redirectOf(atInstance(instance(round), callback)),
        callerOf('rest', instance(round + 1).url)('auth.register', squatter),
      ]);
      expect(location).toBe('/dashboard');
      registrations.push(registration.status);
      const login = await callerOf('rest', stack.url)('auth.login', squatter);
      expect(login.code).toBe('INVALID_CREDENTIALS');
    }
    expect(registrations.filter((status) => status !== 201 && status !== 409)).toEqual([]);
    // Otherwise the owner was always first.
    expect(registrations).toContain(201);
  });

  test('an owner who races with a squatter keeps only their own identity', async () => {
    for (let round = 0; round < 10; round++) {
      const squatter = identityClaims({ email_verified: false });
      const owner = identityClaims({ email: squatter.email });
      const begun = await Promise.all([squatter, squatter, owner].map(() => begin(stack)));
      await Promise.all(
        begun.map(({ browser, request }, i) =>
          browser.redirectOf(atInstance(instance(i), provider.authorize(request, i < 2 ? squatter : owner))),
        ),
      );
      expect(begun.map(({ browser }) => browser.session !== undefined)).toEqual([false, false, true]);
      expect(await identitiesOf(stack, squatter.sub)).toEqual([]);
      expect(await identitiesOf(stack, owner.sub)).toHaveLength(1);
    }
  });
});
