import { describe, expect, test } from 'vitest';
import { PASSWORD, registered } from '../contract/rig/scenario.ts';
import { storedUser } from '../contract/rig/stored-user.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { heading, inBrowser, mailedLink, press, register, said } from './browser.ts';

/** What the pages say about registration, and the way of an invited user. */

describe('by invitation', () => {
  inBrowser(
    ['real'],
    (scenario) => {
      test('an invited user creates an account with the invited email, and logs in', async () => {
        const { call, stack, visit } = scenario();
        const { session } = await storedUser(scenario(), { role: 'admin' });
        const email = freshEmail('grace');
        expect((await call('users.invite', { email }, { session })).code).toBeUndefined();
        const link = await mailedLink(stack, email, 'You are invited');
        await visit(async (page) => {
          await page.goto(link);
          await heading(page, 'Create your account');
          expect(page.url()).toBe(link.slice(0, link.indexOf('?')));
          const address = page.getByLabel('Email');
          expect([await address.inputValue(), await address.getAttribute('readonly')]).toEqual([email, '']);
          await press(page, 'Create account');
          await said(page, 'alert', 'Enter your name');
          await page.getByLabel('Name').fill('Grace Hopper');
          await page.reload();
          expect(await page.getByLabel('Name').inputValue()).toBe('Grace Hopper');
          await page.getByLabel('Password').fill(PASSWORD);
          await press(page, 'Create account');
          await heading(page, 'Your account is ready');
          await page.getByRole('link', { name: 'Log in' }).click();
          expect(await page.getByLabel('Email').inputValue()).toBe(email);
          await page.getByLabel('Password').fill(PASSWORD);
          await press(page, 'Log in');
          await page.waitForURL('**/dashboard');
        });
        await visit(async (page) => {
          await page.goto(link);
          await page.getByLabel('Name').fill('Grace Hopper');
          await page.getByLabel('Password').fill(PASSWORD);
          await press(page, 'Create account');
          await heading(page, 'This link does not work');
        });
      });

      test('everyone else reads that they need an invitation', async () => {
        await scenario().visit(async (page) => {
          await page.goto('/login');
          await page.getByRole('link', { name: 'Forgot your password?' }).waitFor();
          expect(await page.getByRole('link', { name: 'Create an account' }).count()).toBe(0);
          await page.goto('/login?error=registration_closed');
          await said(page, 'alert', 'Accounts are only available by invitation');
          await page.goto('/register');
          await heading(page, 'Registration is closed');
          await page.getByText('Accounts are only available by invitation').waitFor();
          expect(await page.getByRole('textbox').count()).toBe(0);
          await page.getByRole('link', { name: 'Log in' }).click();
          await page.waitForURL('**/login');
        });
      });
    },
    { env: { REGISTRATION: 'invited' } },
  );
});

describe('closed', () => {
  inBrowser(
    ['embedded'],
    (scenario) => {
      test('no page offers a registration, even with an earlier link', async () => {
        await scenario().visit(async (page) => {
          for (const path of ['/register', `/register?token=${'x'.repeat(43)}&email=ada@example.test`]) {
            await page.goto(path);
            await heading(page, 'Registration is closed');
            await page.getByText('No new accounts can be created.').waitFor();
          }
          await page.goto('/login?error=registration_closed');
          await said(page, 'alert', 'No new accounts can be created.');
          expect(await page.getByRole('link', { name: 'Create an account' }).count()).toBe(0);
        });
      });
    },
    { env: { REGISTRATION: 'closed' } },
  );
});

describe('domains', () => {
  inBrowser(
    ['embedded'],
    (scenario) => {
      test('the form and its error list the admitted domains', async () => {
        const { call, stack, visit } = scenario();
        const hint = 'Accounts are only available for addresses at example.test or at subdomains of example.org.';
        await visit(async (page) => {
          await page.goto('/login');
          await page.getByRole('link', { name: 'Create an account' }).click();
          await page.getByText(hint).waitFor();
          await register(page, 'ada@elsewhere.test');
          await said(page, 'alert', `${hint} Others need an invitation.`);
          const { email } = await registered({ call, stack });
          await register(page, email);
          await said(page, 'alert', 'An account with this email already exists.');
          await register(page, freshEmail());
          await heading(page, 'Check your inbox');
        });
      });
    },
    { env: { REGISTRATION: 'domains', REGISTRATION_DOMAINS: 'example.test,*.example.org' } },
  );
});
