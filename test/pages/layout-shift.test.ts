import { describe, expect, test } from 'vitest';
import { storedUser } from '../contract/rig/stored-user.ts';
import { inBrowser } from './browser.ts';
import { shifts } from './layout-shifts.ts';

const withSession = [
  '/dashboard',
  '/dashboard/security',
  '/dashboard/devices',
  '/dashboard/activity',
  '/dashboard/applications',
  '/dashboard/data',
  '/admin',
  '/admin?tab=invitations',
  '/admin?standing=administrator',
  '/admin/webhooks',
  '/admin/applications',
];

inBrowser(
  ['embedded'],
  (scenario) => {
    describe.each([1280, 390])('at %i pixels', (width) => {
      test.each([...withSession, '/login', '/register'])('nothing moves while %s is loaded', async (path) => {
        const { visit } = scenario();
        const session = withSession.includes(path)
          ? (await storedUser(scenario(), { role: 'admin' })).session
          : undefined;
        await visit(
          async (page) => {
            // Each answer takes its time, so that what is shown meanwhile is painted.
            await page.route('**/trpc/**', async (route) => {
              const response = await route.fetch();
              await page.evaluate(
                'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))',
              );
              await route.fulfill({ response });
            });
            await page.goto(path, { waitUntil: 'networkidle' });
            await page.locator('h1').waitFor();
            expect(await page.locator('.skeleton').count()).toBe(0);
            expect(await shifts(page)).toEqual({ value: 0, moved: [] });
          },
          { ...(session && { session }), viewport: { width, height: 800 } },
        );
      });
    });

    test('the page of a user that moves is noticed', async () => {
      const { visit } = scenario();
      await visit(async (page) => {
        await page.goto('/login', { waitUntil: 'networkidle' });
        await page.evaluate(`document.querySelector('main').style.marginTop = '200px'`);
        expect((await shifts(page)).value).toBeGreaterThan(0);
      });
    });
  },
  // Users have not accepted them yet: a notice leads to them.
  { env: { TERMS_URL: 'https://example.com/terms', TERMS_VERSION: '2' } },
);
