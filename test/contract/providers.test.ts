import { afterAll, describe, expect, test } from 'vitest';
import { Browser } from '../provider/browser.ts';
import { startGithub } from '../provider/github.ts';
import { type Claims, environmentFor } from '../provider/hostile.ts';
import { atInstance, begin, freshSubject, profileOf } from '../provider/login.ts';
import { startOpenIdProvider } from '../provider/openid.ts';
import { freshEmail } from '../rig/address.ts';
import { noS3 } from '../rig/s3.ts';
import { type Stack, startStack } from '../rig/stack.ts';
import { documentOf } from './document.ts';
import { onBothStacks } from './scenario.ts';

/** The kinds of provider: GitHub, a certified OpenID provider of an operator's own, and the embedded one. */
const github = await startGithub();
const openId = await startOpenIdProvider();
afterAll(() => Promise.all([github.close(), openId.close()]));

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

      test('somebody comes in with his primary address, and is known by his number', async () => {
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

      test('an address that GitHub has not verified is proven first', async () => {
        const emails = [{ email: freshEmail(), primary: true, verified: false, visibility: null }];
        expect((await come(octocat({ emails }))).location).toBe('/verify-email');
      });

      test('a code that GitHub does not know ends the login', async () => {
        const { browser, request } = await begin(stack(), new Browser(), 'github');
        const callback = atInstance(stack(), github.authorize(request, octocat()));
        callback.searchParams.set('code', 'another');
        expect(await browser.redirectOf(callback)).toBe('/login?error=oauth_failed');
      });

      test('the issuer of another provider ends the login', async () => {
        const { browser, request } = await begin(stack(), new Browser(), 'github');
        const callback = atInstance(stack(), github.authorize(request, octocat()));
        callback.searchParams.set('iss', 'https://evil.test');
        expect(await browser.redirectOf(callback)).toBe('/login?error=oauth_failed');
      });
    },
    { env: environmentFor(github, 'github') },
  );
});

describe('a certified provider, by four variables', () => {
  onBothStacks(
    (stack) => {
      test('the same subject is the same user after his address changed', async () => {
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
    },
    { env: environmentFor(openId, 'work') },
  );
});

/** What a person does on the page of the embedded provider. */
const typeAt = async (stack: Pick<Stack, 'url' | 'appUrl'>, form: Record<string, string>, browser = new Browser()) => {
  const { request } = await begin(stack, browser, 'idp');
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
    const comeAs = async (form: Record<string, string>, browser = new Browser()) => {
      const { callback } = await typeAt(stack(), form, browser);
      return { browser, location: await browser.redirectOf(callback) };
    };

    test('lets in whoever is typed, as the same user for the same subject', async () => {
      const email = freshEmail();
      const first = await comeAs({ email, name: 'Ada Lovelace', verified: 'yes', action: 'login' });
      expect(first.location).toBe('/dashboard');
      const profile = await profileOf(stack(), first.browser.session);
      expect(profile).toMatchObject({ email, name: 'Ada Lovelace', provider: 'idp', emailVerified: true });
      const again = await comeAs({ email, verified: 'yes', action: 'login' });
      expect(await profileOf(stack(), again.browser.session)).toEqual(profile);
    });

    test('can be told that an address has changed, by one browser after the other', async () => {
      const subject = freshSubject();
      const browser = new Browser();
      await comeAs({ email: freshEmail(), name: 'Ada', verified: 'yes', subject, action: 'login' }, browser);
      const profile = await profileOf(stack(), browser.session);
      await comeAs({ email: freshEmail(), name: 'Another', verified: 'yes', action: 'login' }, browser);
      expect(await profileOf(stack(), browser.session)).not.toEqual(profile);
      await comeAs({ email: freshEmail(), name: 'Ada', verified: 'yes', subject, action: 'login' }, browser);
      expect(await profileOf(stack(), browser.session)).toEqual(profile);
    });

    test.each([
      [{ email: 'x@example.test', action: 'cancel' }, '/login?error=cancelled'],
      [{ email: 'unverified', action: 'login' }, '/login?error=oauth_failed'],
    ])('%o ends at %s', async (form, location) => {
      expect((await comeAs(form)).location).toBe(location);
    });

    test('an address that it has not verified is proven first', async () => {
      const email = freshEmail();
      expect((await comeAs({ email, name: 'Ada', action: 'login' })).location).toBe('/verify-email');
      await stack().waitForMail({ to: email, subject: 'Verify your email' });
    });

    test('a flow that it does not know is an error of ours, without a stack', async () => {
      const response = await new Browser().go(`${stack().url}/dev/idp/interaction/unknown`);
      expect([response.status, await response.json()]).toEqual([404, expect.objectContaining({ code: 'NOT_FOUND' })]);
    });

    test('another site cannot submit its page', async () => {
      const response = await new Browser().go(`${stack().url}/dev/idp/interaction/unknown`, {
        method: 'POST',
        headers: { origin: 'https://evil.test' },
        body: new URLSearchParams({ email: 'a@example.test' }),
      });
      expect(response.status).toBe(403);
    });
  });

  test('a login may end at another instance than it began', async () => {
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
        expect.stringMatching(/^work_oauth_state=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600; Secure$/),
      ]);
    } finally {
      await stack.stop();
    }
  });
});
