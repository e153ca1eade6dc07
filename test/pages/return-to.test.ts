import { createServer } from 'node:http';
import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { administrator, loggedIn, PASSWORD, verified } from '../contract/rig/scenario.ts';
import { codeOf, withApp } from '../contract/rig/totp-scenario.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { identityClaims } from '../provider/login.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { freePort } from '../rig/servers/port.ts';
import { heading, inBrowser, press, register, said } from './browser.ts';

/** `returnTo` in the URL of the pages before the login. Allowed values are tested in unit/http/return-to. */
const provider = await startHostileProvider();

/** A front end on another port, which is the same site, and the cookies of each request. */
const port = await freePort();
const FRONT_END = `http://localhost:${port}`;
const cookies: string[] = [];
const frontEnd = createServer((request, response) => {
  cookies.push(request.headers.cookie ?? '');
  response
    .setHeader('Content-Type', 'text/html')
    .end('<!doctype html><link rel="icon" href="data:,"><h1>The basket</h1>');
}).listen(port, '127.0.0.1');
afterAll(() => Promise.all([provider.close(), frontEnd.close()]));

const BASKET = `${FRONT_END}/basket?item=1#pay`;
const elsewhere = [FRONT_END, provider.url];
const asking = (path: string, returnTo = BASKET) => `${path}?${new URLSearchParams({ returnTo })}`;

async function logIn(page: Page, email: string): Promise<void> {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Log in');
}

/** The browser is at the front end, and its request had the session. */
async function expectArrived(page: Page): Promise<void> {
  await page.waitForURL(BASKET);
  await heading(page, 'The basket');
  expect(cookies.at(-1)).toContain('auth_session=');
}

/** From the provider's page on. */
async function comeBack(page: Page, next: (request: URL) => URL): Promise<void> {
  await page.waitForURL(`${provider.url}/authorize?*`);
  await page.evaluate(`location.href = ${JSON.stringify(next(new URL(page.url())).href)}`);
}

const authorize = (request: URL) => provider.authorize(request, identityClaims({ picture: undefined }));

function cancel({ searchParams }: URL): URL {
  const url = new URL(searchParams.get('redirect_uri') ?? '');
  url.search = new URLSearchParams({ error: 'access_denied', state: searchParams.get('state') ?? '' }).toString();
  return url;
}

inBrowser(
  ['real'],
  (scenario) => {
    test('a login by password returns there, even after a wrong password, a reload and a visit to the registration', async () => {
      const { visit } = scenario();
      const { email } = await verified(scenario());
      await visit(
        async (page) => {
          await page.goto(asking('/login'));
          await page.getByLabel('Email').fill(email);
          await page.getByLabel('Password').fill('Wrong-Password-1');
          await press(page, 'Log in');
          await said(page, 'alert', 'Invalid email or password');
          await page.reload();
          await page.getByRole('link', { name: 'Create an account' }).click();
          await page.getByRole('link', { name: 'Log in' }).click();
          await logIn(page, email);
          await expectArrived(page);
          // Once: later visits to the dashboard stay there.
          await page.goto('/dashboard');
          await heading(page, 'Your profile');
          await page.getByRole('button', { name: 'Save', exact: true }).waitFor();
        },
        { elsewhere },
      );
    });

    test('a login that leads on does not paint the dashboard', async () => {
      const { email } = await verified(scenario());
      await scenario().visit(
        async (page) => {
          // Not in the storage of the page: the front end has another origin.
          const painted: string[] = [];
          await page.exposeFunction('paintedHeading', (text: string) => painted.push(text));
          await page.addInitScript(`new MutationObserver(() => {
            const heading = document.querySelector('h1');
            if (heading) paintedHeading(heading.textContent);
          }).observe(document, { childList: true, subtree: true })`);
          await page.goto(asking('/login'));
          await logIn(page, email);
          await expectArrived(page);
          expect(new Set(painted)).toEqual(new Set(['Log in', 'One moment…', 'The basket']));
        },
        { elsewhere },
      );
    });

    test('a logged-in user is led on at once, but not again and again', async () => {
      const { session } = await loggedIn(scenario());
      await scenario().visit(
        async (page) => {
          await page.goto(asking('/login'));
          await expectArrived(page);
          // A front end that does not see the session sends the browser back.
          await page.goto(asking('/login'));
          await heading(page, 'Log in');
          await page.getByLabel('Email').waitFor();
        },
        { session, elsewhere },
      );
      await scenario().visit(
        async (page) => {
          await page.goto(asking('/login', 'https://evil.test/'));
          await heading(page, 'Log in');
        },
        { session, elsewhere },
      );
    });

    test.each(['https://evil.test/', '//evil.test', '/auth/acme?link=1', 'javascript:alert(1)', ''])(
      'no login returns to %j',
      async (returnTo) => {
        const { email } = await verified(scenario());
        await scenario().visit(async (page) => {
          await page.goto(asking('/login', returnTo));
          await logIn(page, email);
          await heading(page, 'Your profile');
          await page.getByRole('button', { name: 'Save', exact: true }).waitFor();
        });
      },
    );

    test('a second step, a registration and a cancelled provider login return there', async () => {
      const { stack, visit } = scenario();
      const { email, secret } = await withApp(scenario());
      await visit(
        async (page) => {
          await page.goto(asking('/login'));
          await logIn(page, email);
          await heading(page, 'One more step');
          await page.getByLabel('Code').fill(codeOf(secret));
          await expectArrived(page);
        },
        { elsewhere },
      );
      await visit(
        async (page) => {
          await page.goto(asking('/login'));
          await page.getByRole('link', { name: 'Continue with Acme' }).click();
          await comeBack(page, cancel);
          await said(page, 'alert', 'You cancelled the login.');
          await page.getByRole('link', { name: 'Continue with Acme' }).click();
          await comeBack(page, authorize);
          await expectArrived(page);
        },
        { elsewhere },
      );
      const newcomer = freshEmail();
      await visit(
        async (page) => {
          await page.goto(asking('/register'));
          await register(page, newcomer);
          await heading(page, 'Check your inbox');
          const { text } = await stack.waitForMail({ to: newcomer, subject: 'Verify your email' });
          await page.goto(text.match(/https?:\/\/\S+/)?.[0] ?? '');
          await press(page, 'Verify email');
          await page.getByRole('link', { name: 'Log in' }).click();
          await logIn(page, newcomer);
          await expectArrived(page);
        },
        { elsewhere },
      );
    });

    test('a mailed link opened in another browser leads there after the login', async () => {
      const { stack, visit } = scenario();
      const newcomer = freshEmail();
      await visit(
        async (page) => {
          await page.goto(asking('/register'));
          await register(page, newcomer);
          await heading(page, 'Check your inbox');
        },
        { elsewhere },
      );
      const linkIn = async (subject: string) =>
        (await stack.waitForMail({ to: newcomer, subject })).text.match(/https?:\/\/\S+/)?.[0] ?? '';
      const verification = await linkIn('Verify your email');
      await visit(
        async (page) => {
          await page.goto(verification);
          await press(page, 'Verify email');
          await page.getByRole('link', { name: 'Log in' }).click();
          await logIn(page, newcomer);
          await expectArrived(page);
        },
        { elsewhere },
      );

      await visit(async (page) => {
        await page.goto(asking('/login'));
        await page.getByRole('link', { name: 'Forgot your password?' }).click();
        await page.getByLabel('Email').fill(newcomer);
        await press(page, 'Send reset link');
        await heading(page, 'Check your inbox');
      });
      const reset = await linkIn('Reset your password');
      await visit(
        async (page) => {
          await page.goto(reset);
          await page.getByLabel('New password', { exact: true }).fill(PASSWORD);
          await press(page, 'Set new password');
          await page.getByRole('link', { name: 'Log in' }).click();
          await logIn(page, newcomer);
          await expectArrived(page);
        },
        { elsewhere },
      );
    });

    test('who comes back from the provider by the history, and logs in by password, still returns there', async () => {
      const { visit } = scenario();
      const { email } = await verified(scenario());
      await visit(
        async (page) => {
          // As in browsers that keep no page without a cache: Back loads it again.
          await page.addInitScript("addEventListener('unload', () => undefined)");
          await page.goto(asking('/login'));
          await page.getByRole('link', { name: 'Create an account' }).click();
          await page.getByRole('link', { name: 'Continue with Acme' }).click();
          await page.waitForURL(`${provider.url}/authorize?*`);
          await page.goBack();
          await page.getByRole('link', { name: 'Log in', exact: true }).click();
          await logIn(page, email);
          await expectArrived(page);
        },
        { elsewhere },
      );
    });

    test('a provider that does not vouch for the address gets the target: the mailed link leads there', async () => {
      const { stack, visit } = scenario();
      const claims = identityClaims({ picture: undefined, email_verified: false });
      const logInThere = async (page: Page) => {
        await page.getByRole('link', { name: 'Continue with Acme' }).click();
        await comeBack(page, (request) => provider.authorize(request, claims));
      };
      await visit(
        async (page) => {
          await page.goto(asking('/login'));
          await logInThere(page);
          await heading(page, 'Check your inbox');
        },
        { elsewhere },
      );
      const { text } = await stack.waitForMail({ to: claims.email, subject: 'Verify your email' });
      await visit(
        async (page) => {
          await page.goto(text.match(/https?:\/\/\S+/)?.[0] ?? '');
          await press(page, 'Verify email');
          await page.getByRole('link', { name: 'Log in' }).click();
          await logInThere(page);
          await expectArrived(page);
          // Once: later visits to the dashboard stay there.
          await page.goto('/dashboard');
          await heading(page, 'Your profile');
          await page.getByRole('button', { name: 'Save', exact: true }).waitFor();
        },
        { elsewhere },
      );
    });

    test('an invitation leads there after the registration', async () => {
      const { stack, call, visit } = scenario();
      const { session } = await administrator(scenario());
      const email = freshEmail();
      expect((await call('users.invite', { email, returnTo: BASKET }, { session })).data).toMatchObject({
        success: true,
      });
      const { text } = await stack.waitForMail({ to: email, subject: 'You are invited' });
      await visit(
        async (page) => {
          await page.goto(text.match(/https?:\/\/\S+/)?.[0] ?? '');
          await page.getByLabel('Name').fill('Ada');
          await page.getByLabel('Password').fill(PASSWORD);
          await press(page, 'Create account');
          await heading(page, 'Your account is ready');
          await page.getByRole('link', { name: 'Log in' }).click();
          await logIn(page, email);
          await expectArrived(page);
        },
        { elsewhere },
      );
    });

    test('a login that a front end started at the provider continues on the pages', async () => {
      const { visit } = scenario();
      const { email } = await verified(scenario());
      await visit(
        async (page) => {
          await page.goto(asking('/auth/acme'));
          await comeBack(page, cancel);
          await said(page, 'alert', 'You cancelled the login.');
          expect(new URL(page.url()).search).toBe('');
          await logIn(page, email);
          await expectArrived(page);
          await page.context().clearCookies();
          await page.goto(asking('/auth/acme'));
          await comeBack(page, authorize);
          await expectArrived(page);
        },
        { elsewhere },
      );
    });

    test('a login through a provider uses up the target, also for the next user of the tab', async () => {
      const { visit } = scenario();
      const { email } = await verified(scenario());
      await visit(
        async (page) => {
          await page.goto(asking('/login'));
          await page.getByRole('link', { name: 'Continue with Acme' }).click();
          await comeBack(page, authorize);
          await expectArrived(page);
          await page.goto('/');
          await heading(page, 'Your profile');

          await page.context().clearCookies();
          await page.goto('/login');
          await logIn(page, email);
          await heading(page, 'Your profile');
        },
        { elsewhere },
      );
    });

    test('a login by a form that may lead to this service only returns there too, and back leads past the callback', async () => {
      const claims = JSON.stringify(identityClaims({ picture: undefined }));
      await scenario().visit(
        async (page) => {
          await page.goto(FRONT_END);
          await page.goto(new URL(asking('/auth/acme'), scenario().stack.appUrl).href);
          await page.waitForURL(`${provider.url}/authorize?*`);
          await page.getByLabel('Claims').fill(claims);
          await press(page, 'Log in');
          await expectArrived(page);
          await page.goBack();
          await page.getByLabel('Claims').waitFor();
        },
        { elsewhere },
      );
    });
  },
  { env: environmentFor(provider) },
);
