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

/** What is done on a page before its picture. */
type Opened = [name: string, path: string, steps: (page: Page) => Promise<unknown>];

/** Of nobody: the pages answer the same for every address. */
const STRANGER = 'grace@example.com';

const openedBefore: Opened[] = [
  [
    'rules',
    'register',
    async (page) => {
      await page.getByLabel('Password').fill('analytical');
      await page.getByLabel('Name').focus();
    },
  ],
  ['register-refused', 'register', (page) => page.getByRole('button', { name: 'Create account' }).click()],
  [
    'login-refused',
    'login',
    async (page) => {
      await page.getByLabel('Email').fill(STRANGER);
      await page.getByLabel('Password').fill('Analytical-1843');
      await page.getByRole('button', { name: 'Log in', exact: true }).click();
      await page.getByRole('alert').waitFor();
    },
  ],
  [
    'forgot-password-sent',
    'forgot-password',
    async (page) => {
      await page.getByLabel('Email').fill(STRANGER);
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByRole('heading', { name: 'Check your inbox' }).waitFor();
    },
  ],
  [
    'reset-password-form',
    `reset-password?token=AAAA&email=${STRANGER}`,
    (page) => page.getByLabel('New password').fill('short'),
  ],
];

const opened: Opened[] = [
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
    'profile-saved',
    'dashboard',
    async (page) => {
      await page.getByLabel('Location').fill('London');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Your profile was saved.').waitFor();
    },
  ],
  [
    'webhook-types',
    'admin/webhooks',
    async (page) => {
      await page.getByLabel('Send all events').uncheck();
      await page.getByRole('button', { name: 'Add webhook' }).click();
    },
  ],
  ['menu', 'dashboard', (page) => page.getByRole('button', { name: 'Account menu' }).click()],
];

/** Limits that the pictures do not reach; providers with logos, and one without. */
export const everyPageEnv = {
  LIMIT_LOGIN: '100/900',
  LIMIT_MAIL: '100/3600',
  ...Object.fromEntries(
    ['GOOGLE', 'GITHUB', 'MICROSOFT', 'ACME'].flatMap((name) => [
      [`IDP_${name}_CLIENT_ID`, 'pictures'],
      [`IDP_${name}_CLIENT_SECRET`, 'pictures'],
      ...(name === 'ACME' ? [['IDP_ACME_ISSUER', 'https://login.acme.test']] : []),
    ]),
  ),
};

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
      const open = async (steps: Opened[]) => {
        for (const [name, path, act] of steps) {
          // Not only another fragment of the same page.
          await page.goto('about:blank');
          await page.goto(`/${path}`);
          await page.waitForLoadState('networkidle');
          await act(page);
          await take(name);
        }
      };
      for (const name of before) {
        await page.goto(`/${name}`);
        await take(name);
      }
      await open(openedBefore);
      await page.goto('/login');
      await page.getByLabel('Email').fill(email);
      await page.getByLabel('Password').fill(password);
      await page.getByRole('button', { name: 'Log in', exact: true }).click();
      await page.waitForURL('**/dashboard');
      for (const name of within) {
        await page.goto(`/${name}`);
        await take(name);
      }
      await open(opened);
      await context.close();
    }
  }
}
