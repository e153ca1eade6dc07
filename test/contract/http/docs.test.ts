import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startChromium } from '../../rig/client/chromium.ts';
import { callerOf } from '../rig/callers.ts';
import { onStack, verified } from '../rig/scenario.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startChromium();
});
afterAll(() => browser?.close());

/** Opens an operation, fills its body if any, sends it, and returns the response that the page shows. */
async function tryOut(page: Page, method: string, path: string, body?: object) {
  const operation = page.locator(`.opblock-${method}`, { has: page.locator(`[data-path="${path}"]`) });
  await operation.locator('.opblock-summary-control').click();
  if (body) await operation.locator('textarea.body-param__text').fill(JSON.stringify(body));
  await operation.getByRole('button', { name: 'Execute' }).click();
  const live = operation.locator('.live-responses-table tbody tr').first();
  const status = await live.locator('.response-col_status').innerText();
  return { status: Number.parseInt(status, 10), text: await live.locator('.response-col_description').innerText() };
}

describe('the page at /docs', () => {
  onStack('embedded', (stack) => {
    test('can log in and send requests under the documented CSP, and loads nothing from other hosts', async () => {
      const { email, password, id } = await verified({ stack: stack(), call: callerOf('rest', stack().url) });
      const page = await browser.newPage();
      const complaints: string[] = [];
      const requested: string[] = [];
      page.on('console', (message) => ['error', 'warning'].includes(message.type()) && complaints.push(message.text()));
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('request', (request) => requested.push(request.url()));
      await page.addInitScript(
        "addEventListener('securitypolicyviolation', (event) => console.error('CSP', event.violatedDirective, event.blockedURI))",
      );

      const response = await page.goto(`${stack().appUrl}/docs`);
      expect(response?.headers()['content-security-policy']).toContain("script-src 'self' 'unsafe-inline'; ");
      const login = await tryOut(page, 'post', '/auth/login', { email, password });
      expect(login).toEqual({ status: 200, text: expect.stringContaining(id) });
      const profile = await tryOut(page, 'get', '/api/profile');
      expect(profile).toEqual({ status: 200, text: expect.stringContaining(email) });

      const { origin } = new URL(stack().appUrl);
      expect(requested.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith('data:'))).toEqual([]);
      expect(complaints).toEqual([]);
      await page.close();
    });

    test('shows every operation of the document', async () => {
      const document = (await (await fetch(`${stack().url}/openapi.json`)).json()) as {
        paths: Record<string, object>;
        webhooks: object;
      };
      const operations = Object.values(document.paths).flatMap((methods) => Object.keys(methods));
      const webhooks = Object.keys(document.webhooks);
      const page = await browser.newPage();
      await page.goto(`${stack().appUrl}/docs`);
      await page.locator('.opblock').first().waitFor();
      expect(await page.locator('.opblock').count()).toBe(operations.length + webhooks.length);
      await page.close();
    });
  });
});
