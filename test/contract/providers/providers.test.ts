import { afterAll, describe, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import { startGithub } from '../../provider/github.ts';
import { type Claims, environmentFor, namedEnvironmentFor } from '../../provider/hostile.ts';
import { atInstance, begin, freshSubject, profileOf } from '../../provider/login.ts';
import { startOpenIdProvider } from '../../provider/openid.ts';
import { startDiscord, startFacebook } from '../../provider/token-api.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import { noS3 } from '../../rig/servers/s3.ts';
import { type Stack, startStack } from '../../rig/stack.ts';
import { documentOf } from '../rig/document.ts';
import { onBothStacks } from '../rig/scenario.ts';

/** The kinds of provider: plain OAuth 2.0, a certified OpenID provider, and the embedded one. */
const github = await startGithub();
const openId = await startOpenIdProvider();
const discord = await startDiscord();
const facebook = await startFacebook();
afterAll(() => Promise.all([github, openId, discord, facebook].map((provider) => provider.close())));

describe('GitHub', () => {
  const octocat = (changes: object = {}) => ({
    id: Math.floor(Math.random() * 1e9),
    login: 'octocat',
    name: null,
    avatar_url: 'https://avatars.example.test/u/1',
    emails: [
      { email: 'octocat@users.noreply.example.test', primary: false, verified: true, visibility: null },
      { email: freshEmail(), primary: true, verified: true, visibility: 'private' },
    ],
    ...changes,
  });
  onBothStacks(
    (stack) => {
      const come = async (person: ReturnType<typeof octocat>) => {
        const { browser, request } = await begin(stack(), new Browser(), 'github');
        expect(request.searchParams.get('scope')).toBe('read:user user:email');
        expect(request.searchParams.get('code_challenge_method')).toBe('S256');
        return { browser, location: await browser.redirectOf(atInstance(stack(), github.authorize(request, person))) };
      };

      test('a user logs in with the primary email, and is recognized by the numeric id', async () => {
        const person = octocat();
        const { browser, location } = await come(person);
        expect(location).toBe('/dashboard');
        const profile = await profileOf(stack(), browser.session);
        expect(profile).toMatchObject({
          email: person.emails[1]?.email,
          name: 'octocat',
          avatar: person.avatar_url,
          provider: 'github',
        });
        const renamed = await come({ ...person, login: 'somebody-else', emails: [] });
        expect(await profileOf(stack(), renamed.browser.session)).toEqual(profile);
      });

      test('an email that GitHub has not verified must be verified first', async () => {
        const emails = [{ email: freshEmail(), primary: true, verified: false, visibility: null }];
        expect((await come(octocat({ emails }))).location).toBe('/verify-email');
      });

      test('an unknown code fails the login', async () => {
        const { browser, request } = await begin(stack(), new Browser(), 'github');
        const callback = atInstance(stack(), github.authorize(request, octocat()));
        callback.searchParams.set('code', 'another');
        expect(await browser.redirectOf(callback)).toBe('/login?error=oauth_failed');
      });

      test('a wrong issuer fails the login', async () => {
        const { browser, request } = await begin(stack(), new Browser(), 'github');
        const callback = atInstance(stack(), github.authorize(request, octocat()));
        callback.searchParams.set('iss', 'https://evil.test');
        expect(await browser.redirectOf(callback)).toBe('/login?error=oauth_failed');
      });
    },
    { env: environmentFor(github, 'github') },
  );
});

describe('Discord and Facebook', () => {
  onBothStacks(
    (stack) => {
      const come = async (name: 'discord' | 'facebook', person: Claims, change = (_: URL) => undefined as unknown) => {
        const { browser, request } = await begin(stack(), new Browser(), name);
        const provider = { discord, facebook }[name];
        expect(request.origin).toBe(provider.url);
        const callback = atInstance(stack(), provider.authorize(request, person));
        change(callback);
        return { browser, request, location: await browser.redirectOf(callback) };
      };
      const snowflake = () => String(10n ** 17n + BigInt(Math.floor(Math.random() * 1e15)));
      const discordPerson = (changes: Claims = {}) => ({
        id: snowflake(),
        username: 'nelly',
        global_name: 'Nelly Bly',
        avatar: '8342729096ea3675442027381ff50dfe',
        email: freshEmail(),
        verified: true,
        ...changes,
      });

      test('a Discord user logs in with a verified email, and is recognized by the id', async () => {
        const person = discordPerson();
        const { browser, request, location } = await come('discord', person);
        expect([request.pathname, request.searchParams.get('scope')]).toEqual(['/oauth2/authorize', 'identify email']);
        expect(location).toBe('/dashboard');
        const profile = await profileOf(stack(), browser.session);
        expect(profile).toMatchObject({
          email: person.email,
          name: 'Nelly Bly',
          avatar: `https://cdn.discordapp.com/avatars/${person.id}/${person.avatar}.png`,
          provider: 'discord',
        });
        const renamed = await come('discord', { id: person.id, username: 'other', avatar: null, email: null });
        expect(await profileOf(stack(), renamed.browser.session)).toEqual(profile);
      });

      test.each<[string, Claims, string]>([
        ['without a display name', { global_name: null, avatar: null }, '/dashboard'],
        ['with an unverified address', { verified: false }, '/verify-email'],
        ['without an address', { email: null }, '/login?error=oauth_failed'],
      ])('a Discord user %s', async (_, changes, location) => {
        expect((await come('discord', discordPerson(changes))).location).toBe(location);
      });

      test('Facebook does not verify emails, so the user must', async () => {
        const person = { id: snowflake(), name: 'Nelly Bly', email: freshEmail() };
        const { request, location } = await come('facebook', person);
        expect([request.pathname, request.searchParams.get('scope')]).toEqual([
          '/v23.0/dialog/oauth',
          'public_profile email',
        ]);
        expect(location).toBe('/verify-email');
        await stack().waitForMail({ to: person.email, subject: 'Verify your email' });
        const taken = { id: snowflake(), name: 'Mallory', email: person.email };
        expect((await come('facebook', taken)).location).toBe('/login?error=email_unverified');
        const withheld = { id: snowflake(), name: 'Nelly Bly' };
        expect((await come('facebook', withheld)).location).toBe('/login?error=oauth_failed');
      });

      test.each(['discord', 'facebook'] as const)(
        'an unknown code or a wrong issuer fails the login at %s',
        async (name) => {
          for (const [parameter, value] of [
            ['code', 'another'],
            ['iss', 'https://evil.test'],
          ] as const) {
            const { location } = await come(name, discordPerson(), ({ searchParams }) =>
              searchParams.set(parameter, value),
            );
            expect(location).toBe('/login?error=oauth_failed');
          }
        },
      );
    },
    { env: { ...namedEnvironmentFor(discord, 'discord'), ...namedEnvironmentFor(facebook, 'facebook') } },
  );
});

describe('a certified provider, set by four variables', () => {
  onBothStacks(
    (stack) => {
      test('a subject stays the same user after a change of email', async () => {
        openId.allow(`${stack().appUrl}/auth/work/callback`);
        const sub = freshSubject();
        const comeAs = async (claims: Claims) => {
          openId.setClaims(sub, claims);
          const { browser, request } = await begin(stack(), new Browser(), 'work');
          const callback = await openId.authorize(browser, request, sub);
          expect(callback.origin + callback.pathname).toBe(`${stack().appUrl}/auth/work/callback`);
          expect(await browser.redirectOf(atInstance(stack(), callback))).toBe('/dashboard');
          return profileOf(stack(), browser.session);
        };
        const email = freshEmail();
        const first = await comeAs({ email, email_verified: true, name: 'Ada Lovelace' });
        expect(first).toMatchObject({ email, name: 'Ada Lovelace', provider: 'work' });
        expect(await comeAs({ email: freshEmail(), email_verified: true, name: 'Ada King' })).toEqual(first);
      });

      test('reauthentication requires a new login at the provider', async () => {
        openId.allow(`${stack().appUrl}/auth/work/callback`);
        const sub = freshSubject();
        openId.setClaims(sub, { email: freshEmail(), email_verified: true, name: 'Ada Lovelace' });
        const browser = new Browser();
        const { request } = await begin(stack(), browser, 'work');
        await browser.redirectOf(atInstance(stack(), await openId.authorize(browser, request, sub)));
        const again = await browser.redirectOf(`${stack().url}/auth/work?reauthenticate=1`);
        const callback = await openId.authorize(browser, new URL(again), sub);
        expect(await browser.redirectOf(atInstance(stack(), callback))).toBe('/dashboard/security?notice=confirmed');
      });
    },
    { env: environmentFor(openId, 'work') },
  );
});

/** What a user does on the page of the embedded provider. */
const typeAt = async (
  stack: Pick<Stack, 'url' | 'appUrl'>,
  form: Record<string, string>,
  browser = new Browser(),
  purpose = '',
) => {
  const { request } = await begin(stack, browser, `idp${purpose}`);
  expect(request.href).toMatch(`${stack.appUrl}/dev/idp/auth?`);
  const page = new URL(await browser.redirectOf(request), request);
  const shown = await browser.go(page);
  expect(await shown.text()).toContain('<form method="post">');
  const resume = await browser.redirectOf(page, {
    method: 'POST',
    headers: { origin: stack.appUrl },
    body: new URLSearchParams(form),
  });
  return { browser, callback: new URL(await browser.redirectOf(resume)) };
};

describe('the embedded provider', () => {
  onBothStacks((stack) => {
    const comeAs = async (form: Record<string, string>, browser = new Browser(), purpose = '') => {
      const { callback } = await typeAt(stack(), form, browser, purpose);
      return { browser, location: await browser.redirectOf(callback) };
    };

    test('logs in any entered address; the same subject is the same user', async () => {
      const email = freshEmail();
      const first = await comeAs({ email, name: 'Ada Lovelace', verified: 'yes', action: 'login' });
      expect(first.location).toBe('/dashboard');
      const profile = await profileOf(stack(), first.browser.session);
      expect(profile).toMatchObject({ email, name: 'Ada Lovelace', provider: 'idp', emailVerified: true });
      const again = await comeAs({ email, verified: 'yes', action: 'login' });
      expect(await profileOf(stack(), again.browser.session)).toEqual(profile);
    });

    test('the same subject with a changed email is the same user', async () => {
      const subject = freshSubject();
      const browser = new Browser();
      await comeAs({ email: freshEmail(), name: 'Ada', verified: 'yes', subject, action: 'login' }, browser);
      const profile = await profileOf(stack(), browser.session);
      await comeAs({ email: freshEmail(), name: 'Another', verified: 'yes', action: 'login' }, browser);
      expect(await profileOf(stack(), browser.session)).not.toEqual(profile);
      await comeAs({ email: freshEmail(), name: 'Ada', verified: 'yes', subject, action: 'login' }, browser);
      expect(await profileOf(stack(), browser.session)).toEqual(profile);
    });

    test('supports reauthentication and linking of another identity', async () => {
      const form = { email: freshEmail(), name: 'Ada', verified: 'yes', action: 'login' };
      const { browser } = await comeAs(form);
      const confirmed = await comeAs(form, browser, '?reauthenticate=1&page=/dashboard/activity');
      expect(confirmed.location).toBe('/dashboard/activity?notice=confirmed');
      const linked = await comeAs({ ...form, email: freshEmail() }, browser, '?link=1');
      expect(linked.location).toBe('/dashboard/security?notice=linked');
    });

    test.each([
      [{ email: 'x@example.test', action: 'cancel' }, '/login?error=cancelled'],
      [{ email: 'unverified', action: 'login' }, '/login?error=oauth_failed'],
    ])('%o ends at %s', async (form, location) => {
      expect((await comeAs(form)).location).toBe(location);
    });

    test('an email it has not verified must be verified first', async () => {
      const email = freshEmail();
      expect((await comeAs({ email, name: 'Ada', action: 'login' })).location).toBe('/verify-email');
      await stack().waitForMail({ to: email, subject: 'Verify your email' });
    });

    test('an unknown flow gets the standard error, without a stack', async () => {
      const response = await new Browser().go(`${stack().url}/dev/idp/interaction/unknown`);
      expect([response.status, await response.json()]).toEqual([404, expect.objectContaining({ code: 'NOT_FOUND' })]);
    });

    test('a page of another site cannot submit its form', async () => {
      const response = await new Browser().go(`${stack().url}/dev/idp/interaction/unknown`, {
        method: 'POST',
        headers: { origin: 'https://evil.test' },
        body: new URLSearchParams({ email: 'a@example.test' }),
      });
      expect(response.status).toBe(403);
    });
  });

  test('a login can end at another instance than it started', async () => {
    const stack = await startStack('real', { instances: 2 });
    try {
      const form = { email: freshEmail(), name: 'Ada', verified: 'yes', action: 'login' };
      const { browser, callback } = await typeAt(stack, form);
      expect(await browser.redirectOf(atInstance(stack.services[1] ?? stack, callback))).toBe('/dashboard');
    } finally {
      await stack.stop();
    }
  });
});

describe('production', () => {
  test('has no provider unless one is configured', async () => {
    const stack = await startStack('real', { env: { NODE_ENV: 'production', ...noS3 } });
    try {
      for (const path of ['/auth/idp', '/auth/idp/callback?code=x&state=y', '/dev/idp', '/dev/idp/auth', '/dev/mail']) {
        expect((await new Browser().go(stack.url + path)).status).toBe(404);
      }
      expect(Object.keys((await documentOf(stack.url)).paths)).not.toContainEqual(
        expect.stringContaining('{provider}'),
      );
    } finally {
      await stack.stop();
    }
  });

  test('sets its cookies for https only', async () => {
    const env = { NODE_ENV: 'production', ...noS3, ...environmentFor(openId, 'work') };
    const stack = await startStack('real', { env });
    try {
      const { browser } = await begin(stack, new Browser(), 'work');
      expect(browser.setCookies).toEqual([
        expect.stringMatching(
          /^__Host-auth_browser=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=86400; Secure$/,
        ),
        expect.stringMatching(/^work_oauth_state=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600; Secure$/),
      ]);
    } finally {
      await stack.stop();
    }
  });
});
