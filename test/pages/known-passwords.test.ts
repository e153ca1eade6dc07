import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildHashList } from '../../server/cli/breached-passwords/build.ts';
import { PASSWORD } from '../contract/rig/scenario.ts';
import { storedUser } from '../contract/rig/stored-user.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { inBrowser, press, said } from './browser.ts';

describe('PASSWORD_STRENGTH=3', () => {
  inBrowser(
    ['embedded'],
    (scenario) => {
      test('the meter follows the password and knows the name; what is refused is explained at the field', async () => {
        await scenario().visit(async (page) => {
          await page.goto('/register');
          await page.getByLabel('Name', { exact: true }).fill('Grace Zyxalor');
          await page.getByLabel('Email', { exact: true }).fill(freshEmail());
          const password = page.getByLabel('Password', { exact: true });
          await password.fill(PASSWORD);
          await said(page, 'status', 'Strong');
          await password.fill('Zyxalor-1');
          await said(page, 'status', 'Easy to guess');
          await page.evaluate(`
            globalThis.emptied = 0;
            const line = document.querySelector('.strength [role=status]');
            new MutationObserver(() => { emptied += line.textContent === '' ? 1 : 0; })
              .observe(line, { childList: true, characterData: true, subtree: true });
          `);
          await password.pressSequentially('234');
          await page.locator('.strength meter').waitFor();
          expect(await page.evaluate('emptied')).toBe(0);
          await password.fill('Zyxalor-1');
          await press(page, 'Create account');
          await said(page, 'alert', 'This password is easy to guess');
          expect(await password.getAttribute('aria-invalid')).toBe('true');

          // Another name, another estimate.
          await page.getByLabel('Name', { exact: true }).fill('Ada Lovelace');
          await page.getByText('Easy to guess', { exact: true }).waitFor({ state: 'detached' });
        });
      });

      test('the meter is loaded with the focus of its field, and not before', async () => {
        await scenario().visit(async (page) => {
          const loaded = page.waitForEvent('worker');
          await page.goto('/register');
          await page.getByLabel('Name', { exact: true }).fill('Grace');
          expect(page.workers()).toHaveLength(0);
          await page.getByLabel('Password', { exact: true }).focus();
          await loaded;
        });
      });

      test('the meter of a new password on the Security page knows the name', async () => {
        const { session } = await storedUser(scenario());
        await scenario().call('profile.update', { name: 'Grace Zyxalor' }, { session });
        await scenario().visit(
          async (page) => {
            await page.goto('/dashboard/security#password');
            await page.getByLabel('New password', { exact: true }).fill('Zyxalor-1');
            await said(page, 'status', 'Easy to guess');
          },
          { session },
        );
      });

      test('the meter of a German page knows German words', async () => {
        await scenario().visit(
          async (page) => {
            await page.goto('/register');
            const password = page.locator('input[type=password]');
            await password.fill(PASSWORD);
            const enough = page.locator('.strength[data-enough=true]');
            await enough.waitFor();
            await password.fill('Schmetterling7!');
            await enough.waitFor({ state: 'detached' });
            await page.locator('.strength meter[value="2"]').waitFor();
          },
          { locale: 'de-DE' },
        );
      });
    },
    { env: { PASSWORD_STRENGTH: '3' } },
  );
});

describe('BREACHED_PASSWORDS_FILE', async () => {
  const path = join(temporaryDirectory('breached'), 'list');
  await buildHashList([Buffer.from(createHash('sha1').update(PASSWORD).digest('hex'))], path);
  const changed = `${PASSWORD}-new`;

  inBrowser(
    ['embedded'],
    (scenario) => {
      test('every page of the dashboard asks for another password, until it is changed', async () => {
        const { session } = await storedUser(scenario());
        await scenario().visit(
          async (page) => {
            for (const url of ['/dashboard', '/dashboard/security#password']) {
              await page.goto(url);
              await said(page, 'alert', 'list of stolen passwords');
            }
            await page.getByLabel('Current password', { exact: true }).fill(PASSWORD);
            await page.getByLabel('New password', { exact: true }).fill(changed);
            await press(page, 'Change password');
            await said(page, 'status', 'changed');
            await page.getByText('list of stolen passwords').waitFor({ state: 'detached' });
            await page.goto('/dashboard');
            await page.getByLabel('Name').waitFor();
            expect(await page.getByText('list of stolen passwords').count()).toBe(0);
          },
          { session },
        );
      });
    },
    { env: { BREACHED_PASSWORDS_FILE: path } },
  );
});
