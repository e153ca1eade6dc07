import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { createKey, KEY_PATTERN } from '../contract/rig/key-scenario.ts';
import { growOld, loggedIn, PASSWORD } from '../contract/rig/scenario.ts';
import { findings } from './axe.ts';
import { heading, inBrowser, openRow, press, said } from './browser.ts';

/** Access keys on the Security page. */

const card = (page: Page) => page.getByRole('region', { name: 'Access keys' });
const entries = (page: Page) => card(page).getByRole('listitem');

inBrowser(['real'], (scenario) => {
  test.each([
    ['the same user finds', true],
    ['another user of the tab does not find', false],
  ])('after the session has ended, %s what was typed for a key', async (_, isSame) => {
    const { visit } = scenario();
    const { session, ...typing } = await loggedIn(scenario());
    const { email } = isSame ? typing : await loggedIn(scenario());
    await visit(
      async (page) => {
        await page.goto('/dashboard/security#keys');
        await card(page).getByLabel('Name of the key').fill('Backup');
        await page.context().clearCookies();
        await page.reload();
        await page.getByLabel('Email').fill(email);
        await page.getByLabel('Password').fill(PASSWORD);
        await press(page, 'Log in');
        await heading(page, 'Security');
        await openRow(page, 'Access keys');
        expect(await card(page).getByLabel('Name of the key').inputValue()).toBe(isSame ? 'Backup' : '');
      },
      { session },
    );
  });

  test.each([320, 1280])('a key is created at %i px, shown once, used and revoked', async (width) => {
    const { call, stack, visit } = scenario();
    const { session, id } = await loggedIn(scenario());
    await growOld(stack, id);
    await visit(
      async (page) => {
        await page.goto('/dashboard/security#keys');
        await card(page).getByLabel('Name of the key').fill('Backup');
        await press(page, 'Create key');
        await said(page, 'alert', 'Choose what the key may do');
        await card(page).getByLabel('Read the profile').check();
        await card(page).getByLabel('Days until it expires').fill('4000');
        await press(page, 'Create key');
        await said(page, 'alert', 'Enter a number from 1 to 3650');
        await card(page).getByLabel('Days until it expires').fill('30');
        await page.reload();
        await press(page, 'Create key');
        await card(page).getByLabel('Your password').fill(PASSWORD);
        await page.keyboard.press('Enter');
        await said(page, 'status', 'The key was created.');
        const secret = await card(page)
          .locator('code')
          .filter({ hasText: /\w{49}$/ })
          .innerText();
        expect(secret).toMatch(KEY_PATTERN);
        await press(page, 'Copy key');
        expect(await page.evaluate('navigator.clipboard.readText()')).toBe(secret);
        expect(await findings(page)).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
        expect(await entries(page).innerText()).toMatch(
          /Backup[\s\S]*Read the profile[\s\S]*not used yet\. Expires on/,
        );

        expect((await call('profile.get', undefined, { key: secret })).data.user.id).toBe(id);
        await openRow(page, 'Passkeys');
        await page.getByText(secret).waitFor({ state: 'hidden' });
        await openRow(page, 'Access keys');
        await page.getByText(secret).waitFor();
        await page.reload();
        await entries(page).filter({ hasText: 'Backup' }).waitFor();
        expect(await page.locator('body').innerText()).not.toContain(secret);
        await press(page, 'Revoke');
        await said(page, 'status', 'The access key “Backup” was revoked.');
        expect(await entries(page).count()).toBe(0);
        expect(await page.evaluate('document.activeElement.textContent')).toBe('Access keys');
        expect((await call('profile.get', undefined, { key: secret })).code).toBe('UNAUTHENTICATED');
      },
      { session, viewport: { width, height: 740 }, permissions: ['clipboard-read', 'clipboard-write'] },
    );
  });

  test('an expired key and one without an end say so', async () => {
    const { stack, visit } = scenario();
    const { session } = await loggedIn(scenario());
    const { key } = await createKey(scenario(), session, { name: 'Old', expiresInDays: 1 });
    await createKey(scenario(), session, { name: 'Endless' });
    await stack.database('update access_keys set expires_at = 1000 where id = ?', [key.id]);
    await visit(
      async (page) => {
        await page.goto('/dashboard/security#keys');
        await entries(page)
          .filter({ hasText: /Old[\s\S]*Expired on 1 January 1970\./ })
          .waitFor();
        await entries(page)
          .filter({ hasText: /Endless[\s\S]*Does not expire\./ })
          .waitFor();
      },
      { session },
    );
  });
});
