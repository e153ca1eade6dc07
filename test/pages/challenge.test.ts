import { describe, expect, test } from 'vitest';
import { PASSWORD } from '../contract/rig/scenario.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { heading, inBrowser, reachAndPress, said } from './browser.ts';

const PROGRESS = 'Making sure this is not an automated request';

describe('CHALLENGE=always', () => {
  inBrowser(
    ['embedded'],
    (scenario) => {
      test('a user registers by keyboard; a worker of our origin solves, and a slow one is announced', async () => {
        await scenario().visit(async (page) => {
          const workers: string[] = [];
          page.on('worker', (worker) => workers.push(worker.url()));
          // As slow as the line needs to appear.
          await page.route('**/assets/worker-*.js', async (route) => {
            await said(page, 'status', PROGRESS);
            await route.continue();
          });
          await page.goto('/register');
          for (const [label, value] of [
            ['Name', 'Ada Lovelace'],
            ['Email', freshEmail()],
            ['Password', PASSWORD],
          ] as const) {
            await page.getByLabel(label, { exact: true }).focus();
            await page.keyboard.type(value);
          }
          await reachAndPress(page, 'Create account');
          await page.waitForURL('**/verify-email?sent');
          expect(workers).toHaveLength(1);
          expect(new URL(workers[0] ?? '').origin).toBe(new URL(page.url()).origin);
        });
      });

      test('without workers the page solves by itself, and the line is gone afterwards', async () => {
        await scenario().visit(async (page) => {
          await page.addInitScript('delete window.Worker');
          await page.goto('/login');
          await page.getByLabel('Email', { exact: true }).fill(freshEmail());
          await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
          await page.keyboard.press('Enter');
          await said(page, 'alert', 'Invalid email or password');
          expect(await page.getByText(PROGRESS).count()).toBe(0);
        });
      });

      test('the solver is loaded only for a challenge', async () => {
        await scenario().visit(async (page) => {
          const loaded: string[] = [];
          page.on('request', (request) => loaded.push(request.url()));
          await page.goto('/login');
          await heading(page, 'Log in');
          expect(loaded.filter((url) => /solve|worker/.test(url))).toEqual([]);
        });
      });
    },
    { env: { CHALLENGE: 'always' } },
  );
});
