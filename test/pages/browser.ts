import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { Call } from '../contract/callers.ts';
import { callerOf } from '../contract/callers.ts';
import { clientAddress } from '../rig/address.ts';
import { startChromium } from '../rig/chromium.ts';
import { type S3, startS3 } from '../rig/s3.ts';
import { type Stack, type StackName, startStack } from '../rig/stack.ts';

/** An address of the kind that files have in production: the content security policy lets no http: picture in. */
const FILES = 'https://files.accounts.test';
const TIMEOUT_MS = 10_000;

interface VisitOptions extends BrowserContextOptions {
  /** A session to come with. */
  session?: string;
  /** Origins where the user goes meanwhile. */
  elsewhere?: string[];
}

export interface Scenario {
  stack: Stack;
  call: Call;
  /**
   * Runs in a fresh browser profile with a client address of its own. Fails if the page wrote an error to its console, met
   * the content security policy, or asked for anything that is not the service's.
   */
  visit(steps: (page: Page) => Promise<void>, options?: VisitOptions): Promise<void>;
}

/** The tests have a browser and a fresh service on these parts. */
export function inBrowser(
  names: StackName[],
  define: (scenario: () => Scenario) => void,
  { env }: { env?: Record<string, string> } = {},
): void {
  describe.each(names)('in Chromium, on %s parts', (name) => {
    let browser: Browser | undefined;
    let s3: S3 | undefined;
    let scenario: Scenario | undefined;
    beforeAll(async () => {
      browser = await startChromium();
      if (name === 'real') s3 = await startS3();
      const stack = await startStack(name, { env: { ...s3?.env, ...(s3 && { S3_PUBLIC_URL: FILES }), ...env } });
      scenario = { stack, call: callerOf('trpc', stack.url), visit: visitor(browser, stack, s3) };
    }, 120_000);
    afterAll(async () => {
      await Promise.all([browser?.close(), scenario?.stack.stop()]);
      await s3?.stop();
    });
    define(() => {
      if (!scenario) throw new Error('the service or the browser did not start');
      return scenario;
    });
  });
}

const visitor =
  (browser: Browser, { appUrl }: Stack, s3: S3 | undefined): Scenario['visit'] =>
  async (steps, { session, elsewhere = [], ...options } = {}) => {
    const context = await browser.newContext({
      baseURL: appUrl,
      locale: 'en-GB',
      extraHTTPHeaders: { 'x-forwarded-for': clientAddress() },
      ...options,
    });
    context.setDefaultTimeout(TIMEOUT_MS);
    if (session) {
      await context.addCookies([
        { name: 'auth_session', value: session, url: appUrl, httpOnly: true, sameSite: 'Strict' },
      ]);
    }
    if (s3) {
      await context.route(`${FILES}/**`, async (route) => {
        const body = await s3.read(new URL(route.request().url()).pathname.slice(1));
        await route.fulfill({ body, contentType: 'image/webp' });
      });
    }
    try {
      const page = await context.newPage();
      const faults = faultsOf(page, [appUrl, FILES, ...elsewhere]);
      await steps(page);
      expect(faults).toEqual([]);
    } finally {
      await context.close();
    }
  };

/** What a page must not do. An answer with an error status is none of that: refusals are part of the flows. */
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

/** What stands in the page's own alert or status, once it does. */
export const said = (page: Page, role: 'alert' | 'status', text: string | RegExp) =>
  page.getByRole(role).filter({ hasText: text }).waitFor();

export const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
export const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor();
