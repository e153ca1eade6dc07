import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { root, type Service } from '../rig/process/service.ts';
import { addAuthenticator } from './virtual-authenticator.ts';

interface Person {
  email: string;
  password: string;
}

const widths = { phone: 390, desktop: 1280 };
const before = ['login', 'register', 'forgot-password', 'verify-email', 'reset-password', 'second-factor', 'nowhere'];
const within = [
  'dashboard',
  'dashboard/security',
  'dashboard/devices',
  'dashboard/activity',
  'dashboard/applications',
  'dashboard/data',
  'admin',
  'admin/webhooks',
  'admin/applications',
  'device',
];

/** What is opened on a page before its picture: the name of the picture, the page, and the buttons to press. */
const opened: [name: string, path: string, steps: (page: Page) => Promise<unknown>][] = [
  ['security-password', 'dashboard/security#password', (page) => page.getByLabel('New password').fill('short')],
  ['security-app', 'dashboard/security#app', (page) => page.getByRole('button', { name: 'Set up an app' }).click()],
  [
    'security-code',
    'dashboard/security#app',
    async (page) => {
      await page.getByRole('button', { name: 'Set up an app' }).click();
      await page.getByRole('button', { name: 'Continue' }).click();
    },
  ],
  [
    'security-passkeys',
    'dashboard/security#passkeys',
    (page) => page.getByRole('button', { name: 'Add a passkey' }).click(),
  ],
  ['security-logins', 'dashboard/security#logins', async () => {}],
  ['security-keys', 'dashboard/security#keys', async () => {}],
  [
    'rules',
    'register',
    async (page) => {
      await page.getByLabel('Password').fill('analytical');
      await page.getByLabel('Name').focus();
    },
  ],
  ['menu', 'dashboard', (page) => page.getByRole('button', { name: 'Account menu' }).click()],
];

/** Providers with logos, and one without. */
export const providers = Object.fromEntries(
  ['GOOGLE', 'GITHUB', 'MICROSOFT', 'ACME'].flatMap((name) => [
    [`IDP_${name}_CLIENT_ID`, 'pictures'],
    [`IDP_${name}_CLIENT_SECRET`, 'pictures'],
    ...(name === 'ACME' ? [['IDP_ACME_ISSUER', 'https://login.acme.test']] : []),
  ]),
);

/** Pictures of every page, in both colour schemes and on a phone and a desktop, in `folder`. */
export async function takeEveryPage(browser: Browser, service: Service, { email, password }: Person, folder: string) {
  await mkdir(folder, { recursive: true });
  await promisify(execFile)(process.execPath, [join(root, 'server/cli/user.ts'), 'make-admin', email], {
    env: { ...process.env, ...service.env },
  });
  for (const [size, width] of Object.entries(widths)) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const context = await browser.newContext({
        baseURL: service.appUrl,
        colorScheme,
        locale: 'en-GB',
        viewport: { width, height: 800 },
      });
      const page = await context.newPage();
      await addAuthenticator(page);
      const take = async (name: string) => {
        await page.waitForLoadState('networkidle');
        const path = join(folder, `${name.replaceAll('/', '-')}-${size}-${colorScheme}.png`);
        await page.screenshot({ path, fullPage: true });
      };
      for (const name of before) {
        await page.goto(`/${name}`);
        await take(name);
      }
      await page.goto('/login');
      await page.getByLabel('Email').fill(email);
      await page.getByLabel('Password').fill(password);
      await page.getByRole('button', { name: 'Log in', exact: true }).click();
      await page.waitForURL('**/dashboard');
      for (const name of within) {
        await page.goto(`/${name}`);
        await take(name);
      }
      for (const [name, path, steps] of opened) {
        // Not only another fragment of the same page.
        await page.goto('about:blank');
        await page.goto(`/${path}`);
        await page.waitForLoadState('networkidle');
        await steps(page);
        await take(name);
      }
      await context.close();
    }
  }
}
