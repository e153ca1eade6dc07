import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { administrator, isAlive, loggedIn } from '../contract/rig/scenario.ts';
import { focused, heading, inBrowser, openRow, press, said } from './browser.ts';

/** The header of the pages of a logged-in user: its menu, and its place. */
const button = (page: Page) => page.getByRole('button', { name: 'Account menu' });
const items = (page: Page) => page.getByRole('menuitem').allInnerTexts();

/** Records every element of the header or the links that moves, until `moved` reads them. */
const observeShifts = (page: Page) =>
  page.addInitScript(`
    globalThis.moved = [];
    new PerformanceObserver((list) => {
      for (const { sources } of list.getEntries()) {
        for (const { node } of sources) {
          if (node?.nodeType === 1 && node.closest('header, nav')) moved.push(node.outerHTML.slice(0, 80));
        }
      }
    }).observe({ type: 'layout-shift', buffered: true });
  `);

inBrowser(['embedded'], (scenario) => {
  test('the menu opens, moves and closes by keyboard, and the focus returns to its button', async () => {
    const { session, name } = await loggedIn(scenario());
    await scenario().visit(
      async (page) => {
        await page.goto('/dashboard');
        await page.getByRole('button', { name: 'Save' }).waitFor();
        await button(page).focus();
        await page.keyboard.press('Enter');
        await focused(page, 'Profile');
        expect(await items(page)).toEqual(['Profile', 'Security', 'Log out']);
        expect(await button(page).getAttribute('aria-expanded')).toBe('true');
        await page.locator('.popover').getByText(name).waitFor();
        await page.keyboard.press('ArrowUp');
        await focused(page, 'Log out');
        await page.keyboard.press('ArrowDown');
        await focused(page, 'Profile');
        await page.keyboard.press('End');
        await focused(page, 'Log out');
        await page.keyboard.press('Home');
        await focused(page, 'Profile');
        await page.keyboard.press('Escape');
        expect(await page.getByRole('menu').count()).toBe(0);
        expect(await page.evaluate('document.activeElement.ariaHasPopup')).toBe('menu');

        await page.keyboard.press('ArrowUp');
        await focused(page, 'Log out');
        await page.keyboard.press('Tab');
        await page.getByRole('menu').waitFor({ state: 'detached' });
        await button(page).click();
        await page.getByRole('heading', { level: 1 }).click();
        await page.getByRole('menu').waitFor({ state: 'detached' });
      },
      { session },
    );
  });

  test('after the end of the session the tab knows nothing of its user', async () => {
    const { session, name } = await loggedIn(scenario());
    await scenario().visit(
      async (page) => {
        const kept = () => page.evaluate("sessionStorage.getItem('shown-user')");
        await page.goto('/dashboard');
        await page.getByRole('button', { name: 'Save' }).waitFor();
        expect(await kept()).toContain(name);
        await page.context().clearCookies();
        await page.goto('/dashboard/devices');
        await page.waitForURL('**/login');
        await heading(page, 'Log in');
        expect(await kept()).toBeNull();
      },
      { session },
    );
  });

  test('its items lead to the security page, and log out', async () => {
    const { call, visit } = scenario();
    const { session } = await loggedIn(scenario());
    await visit(
      async (page) => {
        await page.goto('/dashboard');
        await button(page).click();
        await page.getByRole('menuitem', { name: 'Security' }).click();
        await heading(page, 'Security');
        await button(page).press('ArrowUp');
        await page.keyboard.press('Enter');
        await said(page, 'status', 'You are logged out.');
        expect(await isAlive(call, session)).toBe(false);
        expect(await page.evaluate("sessionStorage.getItem('shown-user')")).toBeNull();
      },
      { session },
    );
  });

  test('only administrators find the administration in it, on its pages too', async () => {
    const { session } = await administrator(scenario());
    await scenario().visit(
      async (page) => {
        for (const path of ['/dashboard', '/admin', '/admin/webhooks']) {
          await page.goto(path);
          await page.waitForLoadState('networkidle');
          await button(page).click();
          expect(await items(page), path).toEqual(['Profile', 'Security', 'Administration', 'Log out']);
        }
        await page.getByRole('menuitem', { name: 'Administration' }).click();
        await page.waitForURL('**/admin');
      },
      { session },
    );
  });

  test.each([390, 1280])('header and links are there at the first paint, and never move, at %i px', async (width) => {
    const { session } = await loggedIn(scenario());
    await scenario().visit(
      async (page) => {
        await observeShifts(page);
        const { promise: released, resolve: release } = Promise.withResolvers<void>();
        await page.route('**/trpc/**', async (route) => {
          await released;
          await route.continue();
        });
        await page.goto('/dashboard/devices');
        await page.getByRole('navigation', { name: 'Your account' }).waitFor();
        const before = await button(page).boundingBox();
        release();
        await page.getByRole('button', { name: 'Log out everywhere' }).waitFor();
        expect(await button(page).boundingBox()).toEqual(before);
        // The next page shows the user at once.
        await page.goto('/dashboard/data');
        await button(page).getByText('A').waitFor();
        await page.getByRole('button', { name: 'Download your data' }).waitFor();
        expect(await page.evaluate('moved')).toEqual([]);
      },
      { session, viewport: { width, height: 800 } },
    );
  });

  test('one row of the Security page is open, and a link or a reload opens it again', async () => {
    const { session } = await loggedIn(scenario());
    await scenario().visit(
      async (page) => {
        await page.goto('/dashboard/security');
        await openRow(page, 'Email');
        await openRow(page, 'Authenticator app');
        expect(await page.getByRole('button', { name: 'Close' }).count()).toBe(1);
        expect(new URL(page.url()).hash).toBe('#app');
        await page.reload();
        await page.getByRole('button', { name: 'Set up an app' }).waitFor();
        await press(page, 'Close');
        await focused(page, 'Set up');
        expect(new URL(page.url()).hash).toBe('');
        expect(await page.getByRole('button', { name: 'Set up an app' }).count()).toBe(0);
      },
      { session },
    );
  });

  test('a message of success leaves after some seconds, an error stays', async () => {
    const { session } = await loggedIn(scenario());
    await scenario().visit(
      async (page) => {
        await page.clock.install();
        await page.goto('/dashboard');
        await press(page, 'Save');
        await said(page, 'status', 'Your profile was saved.');
        await page.clock.fastForward('00:10');
        await page.getByText('Your profile was saved.').waitFor({ state: 'detached' });
        await page.getByLabel('Name').fill('');
        await press(page, 'Save');
        await said(page, 'alert', 'Enter your name');
        await page.clock.fastForward('01:00');
        await said(page, 'alert', 'Enter your name');
      },
      { session },
    );
  });
});
