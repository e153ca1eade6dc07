import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { type Call, callerOf } from '../contract/rig/callers.ts';
import { PASSWORD } from '../contract/rig/scenario.ts';
import { workersChromium } from '../rig/client/chromium.ts';
import { clientAddress } from '../rig/servers/address.ts';
import { type S3, startS3 } from '../rig/servers/s3.ts';
import { type Stack, type StackName, startStack } from '../rig/stack.ts';
import { until, WAIT_MS } from '../rig/until.ts';

/** The form of a file URL in production. */
const FILES = 'https://files.accounts.test';

interface VisitOptions extends BrowserContextOptions {
  /** The initial session. */
  session?: string;
  /** The initial browser cookie. */
  browser?: string;
  /** Other origins that the user visits. */
  elsewhere?: string[];
}

export interface Scenario {
  stack: Stack;
  call: Call;
  /**
   * Runs in a fresh browser profile with its own client address. Fails if the page logged an error to its console,
   * violated the Content Security Policy, or requested anything outside the service.
   */
  visit(steps: (page: Page) => Promise<void>, options?: VisitOptions): Promise<void>;
}

/** Provides the tests with a browser and a fresh service on these parts; `files` is the origin of S3's. */
export function inBrowser(
  names: StackName[],
  define: (scenario: () => Scenario) => void,
  { env, files = FILES }: { env?: Record<string, string>; files?: string } = {},
): void {
  describe.each(names)('in Chromium, on %s parts', (name) => {
    let s3: S3 | undefined;
    let scenario: Scenario | undefined;
    beforeAll(async () => {
      const browser = await workersChromium();
      if (name === 'real') s3 = await startS3();
      const stack = await startStack(name, { env: { ...s3?.env, ...(s3 && { S3_PUBLIC_URL: files }), ...env } });
      scenario = { stack, call: callerOf('trpc', stack.url), visit: visitor(browser, stack, { s3, files }) };
    }, 120_000);
    afterAll(async () => {
      await scenario?.stack.stop();
      await s3?.stop();
    });
    define(() => {
      if (!scenario) throw new Error('the service or the browser did not start');
      return scenario;
    });
  });
}

const visitor =
  (browser: Browser, { appUrl }: Stack, { s3, files }: { s3: S3 | undefined; files: string }): Scenario['visit'] =>
  async (steps, { session, browser: id, elsewhere = [], ...options } = {}) => {
    const context = await browser.newContext({
      baseURL: appUrl,
      locale: 'en-GB',
      extraHTTPHeaders: { 'x-forwarded-for': clientAddress() },
      ...options,
    });
    context.setDefaultTimeout(WAIT_MS);
    if (session) {
      await context.addCookies([
        { name: 'auth_session', value: session, url: appUrl, httpOnly: true, sameSite: 'Strict' },
      ]);
    }
    if (id)
      await context.addCookies([{ name: 'auth_browser', value: id, url: appUrl, httpOnly: true, sameSite: 'Lax' }]);
    if (s3) {
      await context.route(`${files}/**`, async (route) => {
        const body = await s3.read(new URL(route.request().url()).pathname.slice(1));
        await route.fulfill({ body, contentType: 'image/webp' });
      });
    }
    try {
      const page = await context.newPage();
      const faults = faultsOf(page, [appUrl, files, ...elsewhere]);
      await steps(page);
      expect(faults).toEqual([]);
    } finally {
      await context.close();
    }
  };

/** What a page must not do. Answers with an error status are allowed: refusals are part of the flows. */
function faultsOf(page: Page, origins: string[]): string[] {
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => {
    const isStatus = message.text().startsWith('Failed to load resource: the server responded with a status of 4');
    if (message.type() === 'error' && !isStatus) faults.push(message.text());
  });
  page.on('request', (request) => {
    const url = request.url();
    const known = [...origins.map((origin) => `${origin}/`), 'data:', 'about:'];
    if (!known.some((start) => url.startsWith(start))) faults.push(url);
  });
  return faults;
}

/** The link in the `count`th mail of a kind to an address. */
export async function mailedLink(stack: Stack, to: string, subject: string, count = 1): Promise<string> {
  const { text } = await stack.waitForMail({ to, subject, count });
  return text.match(/https?:\/\/\S+/)?.[0] ?? '';
}

/** Waits for the text of the page's alert or status. */
export const said = (page: Page, role: 'alert' | 'status', text: string | RegExp) =>
  page.getByRole(role).filter({ hasText: text }).waitFor();

/** Resolves once the button or heading with this text has the focus; without a text, a field. */
export const focused = async (page: Page, text: string): Promise<void> => {
  // Not `waitForFunction`, which polls with eval: the policy of the pages forbids it.
  await until(async () => (await page.evaluate('document.activeElement.textContent')) === text, {
    what: `the focus on ${text}`,
  });
};

export const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
export const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor();

const accountMenu = (page: Page) => page.getByRole('button', { name: 'Account menu' });

/** Logs out by the menu in the header. */
export async function logOut(page: Page): Promise<void> {
  await accountMenu(page).click();
  await page.getByRole('menuitem', { name: 'Log out' }).click();
}

/** Resolves once a row of the Security page is open; opens it if it is not. */
export async function openRow(page: Page, name: string): Promise<void> {
  const toggle = page.getByRole('region', { name, exact: true }).locator('[aria-expanded]').first();
  if ((await toggle.getAttribute('aria-expanded')) === 'false') await toggle.click();
  await page.getByRole('region', { name, exact: true }).locator('.row-body').waitFor();
}

/** Moves to a button by keyboard, and presses it. */
export async function reachAndPress(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).first().waitFor();
  for (let steps = 0; steps < 60; steps++) {
    if ((await page.evaluate('document.activeElement.textContent')) === name) return page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
  }
  throw new Error(`no way to ${name} by keyboard`);
}

/** Fills in and submits the form of /register. */
export async function register(page: Page, email: string, name = 'Ada'): Promise<void> {
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Create account');
}
