import { createServer } from 'node:http';
import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { loggedIn, PASSWORD, verified } from '../contract/rig/scenario.ts';
import { codeOf, withApp } from '../contract/rig/totp-scenario.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { identityClaims } from '../provider/login.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { freePort } from '../rig/servers/port.ts';
import { findings } from './axe.ts';
import { heading, inBrowser, mailedLink, press, register } from './browser.ts';

/** APP_HOME_URL: the product that users come from and go back to. */
const provider = await startHostileProvider();
const port = await freePort();
const product = createServer((_, response) => {
  response.setHeader('Content-Type', 'text/html').end('<!doctype html><link rel="icon" href="data:,"><h1>Acme</h1>');
}).listen(port, '127.0.0.1');
afterAll(() => Promise.all([provider.close(), product.close()]));

const HOME = `http://localhost:${port}/app?from=accounts`;
const elsewhere = [new URL(HOME).origin, provider.url];

async function logIn(page: Page, email: string): Promise<void> {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Log in');
}

async function expectHome(page: Page): Promise<void> {
  await page.waitForURL(HOME);
  await heading(page, 'Acme');
}

inBrowser(
  ['real'],
  (scenario) => {
    test('every page leads back to the product, by its logo and by a link, at 320 px too', async () => {
      const { session } = await loggedIn(scenario());
      for (const viewport of [
        { width: 320, height: 640 },
        { width: 1280, height: 800 },
      ]) {
        await scenario().visit(
          async (page) => {
            for (const [path, title] of [
              ['/login', 'Log in'],
              ['/register', 'Create your account'],
              ['/dashboard', 'Your profile'],
              ['/dashboard/security', 'Security'],
              ['/nowhere', 'Page not found'],
            ] as const) {
              await page.goto(path);
              await heading(page, title);
              const header = page.getByRole('banner');
              expect(await header.getByRole('link', { name: 'Acme & Co', exact: true }).getAttribute('href')).toBe(
                HOME,
              );
              expect(await header.getByRole('link', { name: 'Back to Acme & Co' }).getAttribute('href')).toBe(HOME);
              expect(await findings(page)).toEqual([]);
              expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
            }
          },
          { session, viewport },
        );
      }
    });

    test('a login by password, after a registration and with a second step ends there', async () => {
      const { stack, visit } = scenario();
      const email = freshEmail();
      await visit(
        async (page) => {
          await page.goto('/register');
          await register(page, email);
          await heading(page, 'Check your inbox');
          await page.goto(await mailedLink(stack, email, 'Verify your email'));
          await press(page, 'Verify email');
          await page.getByRole('link', { name: 'Log in' }).click();
          await logIn(page, email);
          await expectHome(page);
          // The account stays within reach.
          await page.goto('/');
          await heading(page, 'Your profile');
        },
        { elsewhere },
      );
      const person = await withApp(scenario());
      await visit(
        async (page) => {
          await page.goto('/login');
          await logIn(page, person.email);
          await page.getByLabel('Code').fill(codeOf(person.secret));
          await expectHome(page);
        },
        { elsewhere },
      );
    });

    test('a login through a provider ends there, unless a page asked for it', async () => {
      const claims = JSON.stringify(identityClaims({ picture: undefined }));
      await scenario().visit(
        async (page) => {
          const throughProvider = async () => {
            await page.getByRole('link', { name: 'Continue with Acme' }).click();
            await page.getByLabel('Claims').fill(claims);
            await press(page, 'Log in');
          };
          await page.goto('/login');
          await throughProvider();
          await expectHome(page);
          await page.context().clearCookies();
          await page.goto('/dashboard/security');
          await page.waitForURL('**/login');
          await throughProvider();
          await page.waitForURL('**/dashboard/security');
          await heading(page, 'Security');
        },
        { elsewhere },
      );
    });

    test('a page that asked for a login comes first', async () => {
      const { email } = await verified(scenario());
      await scenario().visit(
        async (page) => {
          await page.goto('/dashboard/devices');
          await page.waitForURL('**/login');
          await logIn(page, email);
          await heading(page, 'Devices');
        },
        { elsewhere },
      );
    });
  },
  { env: { ...environmentFor(provider), APP_NAME: 'Acme & Co', APP_HOME_URL: HOME } },
);
