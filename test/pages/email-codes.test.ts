import { expect, test } from 'vitest';
import { mailedCode, otherThan } from '../contract/rig/mailed-codes.ts';
import { loggedIn, PASSWORD, verified } from '../contract/rig/scenario.ts';
import { setUpApp } from '../contract/rig/totp-scenario.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { focused, heading, inBrowser, press, said } from './browser.ts';

/** Codes by mail, typed in the browser that asked for them. */
inBrowser(
  ['real'],
  (scenario) => {
    test('a code logs in a user, after a reload, and without pressing a button', async () => {
      const { stack, visit } = scenario();
      const { email } = await verified(scenario());
      await visit(async (page) => {
        await page.goto('/login');
        await page.getByRole('link', { name: 'Email me a code' }).click();
        await heading(page, 'Log in with an email code');
        await press(page, 'Email me a code');
        await said(page, 'alert', 'Enter your email');
        await page.getByLabel('Email').fill(email);
        await press(page, 'Email me a code');
        await heading(page, 'Check your inbox');
        const code = await mailedCode(stack, email);
        await page.reload();
        const field = page.getByLabel('Code from the email');
        expect(await field.getAttribute('autocomplete')).toBe('one-time-code');
        expect(await field.getAttribute('inputmode')).toBe('numeric');
        await field.pressSequentially(otherThan(code));
        await said(page, 'alert', 'This code is wrong');
        expect(await field.inputValue()).toBe('');
        await field.pressSequentially(code);
        await page.waitForURL('**/dashboard');
      });
    });

    test('a code makes an account; one that is over leads back to the first step', async () => {
      const { stack, visit } = scenario();
      const email = freshEmail();
      await visit(async (page) => {
        await page.goto('/email-code');
        await page.getByLabel('Email').fill(email);
        await press(page, 'Email me a code');
        const code = await mailedCode(stack, email);
        const cookies = await page.context().cookies();
        await page.context().clearCookies({ name: /auth_pending/ });
        await page.getByLabel('Code from the email').pressSequentially(code);
        await said(page, 'alert', 'This code is no longer valid');
        await focused(page, 'Log in with an email code');
        await page.context().addCookies(cookies);
        await press(page, 'Email me a code');
        await page.getByLabel('Code from the email').pressSequentially(await mailedCode(stack, email, 'login', 2));
        await page.waitForURL('**/dashboard');
        await heading(page, 'Your profile');
        expect(await stack.database('select email_verified from users where email = ?', [email])).toEqual([
          { email_verified: 1 },
        ]);
      });
    });

    test('a code that was right is not asked for again when a second factor is required', async () => {
      const { stack, visit } = scenario();
      const user = await loggedIn(scenario());
      await setUpApp(scenario(), user);
      await visit(async (page) => {
        await page.goto('/email-code');
        await page.getByLabel('Email').fill(user.email);
        await press(page, 'Email me a code');
        await page.getByLabel('Code from the email').pressSequentially(await mailedCode(stack, user.email));
        await heading(page, 'One more step');
        await page.goto('/email-code');
        await heading(page, 'Log in with an email code');
      });
    });

    test('the code of the verification mail verifies in the tab that registered', async () => {
      const { stack, visit } = scenario();
      const email = freshEmail();
      await visit(async (page) => {
        await page.goto('/register');
        await page.getByLabel('Name').fill('Grace Hopper');
        await page.getByLabel('Email').fill(email);
        await page.getByLabel('Password').fill(PASSWORD);
        await press(page, 'Create account');
        await heading(page, 'Check your inbox');
        const code = await mailedCode(stack, email, 'verification');
        const field = page.getByLabel('Or enter the code from the email');
        await field.pressSequentially(otherThan(code));
        await said(page, 'alert', 'This code is wrong');
        await field.pressSequentially(code);
        await heading(page, 'Your email is verified');
        await page.getByRole('link', { name: 'Log in' }).click();
        await page.getByLabel('Password').fill(PASSWORD);
        await press(page, 'Log in');
        await page.waitForURL('**/dashboard');
      });
    });
  },
  { env: { EMAIL_CODES: 'on' } },
);
