import { afterAll, expect, test } from 'vitest';
import { growOld, isAlive, loggedIn, logIn, PASSWORD } from '../contract/rig/scenario.ts';
import { environmentFor, secondsFromNow, startHostileProvider } from '../provider/hostile.ts';
import { identityClaims, loginsThrough } from '../provider/login.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { focused, heading, inBrowser, mailedLink, openRow, press, said } from './browser.ts';

const NEW_PASSWORD = 'Difference-Engine-2';

const provider = await startHostileProvider();
afterAll(() => provider.close());

inBrowser(
  ['real'],
  (scenario) => {
    test('a user changes the password by keyboard and stays logged in; other devices are logged out', async () => {
      const { stack, call, visit } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const other = await logIn(call, person);
      await visit(
        async (page) => {
          await page.goto('/dashboard/security#password');
          const card = page.getByRole('region', { name: 'Password' });
          await card.getByLabel('Current password').fill('Wrong-Password-1');
          await card.getByLabel('New password').fill('weak');
          await page.keyboard.press('Enter');
          await said(page, 'alert', 'Still missing');
          await card.getByLabel('New password').fill(NEW_PASSWORD);
          await page.keyboard.press('Enter');
          await said(page, 'alert', 'The password is wrong');
          expect(await page.evaluate('document.activeElement.name')).toBe('currentPassword');
          await page.keyboard.press('ControlOrMeta+A');
          await page.keyboard.type(PASSWORD);
          await page.keyboard.press('Enter');
          await said(page, 'status', 'Your password was changed.');
          await focused(page, 'Change');
          await page.keyboard.press('Enter');
          expect(await card.getByLabel('New password').inputValue()).toBe('');
          await page.reload();
          await page.getByRole('region', { name: 'Password' }).waitFor();
          expect(await Promise.all([session, other].map((one) => isAlive(call, one)))).toEqual([false, false]);
          await logIn(call, { ...person, password: NEW_PASSWORD });
          await stack.waitForMail({ to: person.email, subject: 'was changed' });
        },
        { session },
      );
    });

    test('a user confirms the password in place, changes the email, and undoes it from the former inbox', async () => {
      const { stack, call, visit } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const email = freshEmail();
      await growOld(stack, person.id);
      const emailNow = async () =>
        (await stack.database('select email from users where id = ?', [person.id]))[0]?.['email'];
      await visit(
        async (page) => {
          await page.goto('/dashboard/security#email');
          const field = page.getByRole('region', { name: 'Email' }).getByLabel('New email');
          await field.fill(email);
          await press(page, 'Change email');
          const question = page.getByRole('region', { name: 'Confirm your identity' });
          await question.waitFor();
          await press(page, 'Cancel');
          await question.waitFor({ state: 'detached' });
          expect(await page.getByRole('alert').count()).toBe(0);
          expect(await field.inputValue()).toBe(email);
          await page.reload();
          expect(await field.inputValue()).toBe(email);
          await field.press('Enter');
          await question.getByLabel('Your password').fill('Wrong-Password-1');
          await page.keyboard.press('Enter');
          await said(page, 'alert', 'The password is wrong');
          await page.keyboard.press('ControlOrMeta+A');
          await page.keyboard.type(PASSWORD);
          await page.keyboard.press('Enter');
          await said(page, 'status', 'We sent a link to the new email.');
          await question.waitFor({ state: 'detached' });

          const confirmation = await mailedLink(stack, email, 'Confirm your new email');
          await page.goto(confirmation);
          await heading(page, 'Confirm your new email');
          await page.getByText(person.email).waitFor();
          await page.waitForLoadState('networkidle');
          expect(await emailNow()).toBe(person.email);
          await press(page, 'Confirm email');
          await heading(page, 'Your email was changed');
          expect(await emailNow()).toBe(email);
        },
        { session },
      );
      await visit(async (page) => {
        await page.goto(await mailedLink(stack, person.email, 'The email of your account'));
        await heading(page, 'Undo your email change');
        await page.waitForLoadState('networkidle');
        expect(await emailNow()).toBe(email);
        await page.getByRole('button', { name: 'Undo the change' }).focus();
        await page.keyboard.press('Enter');
        await heading(page, 'Your email was restored');
        expect(await emailNow()).toBe(person.email);
        expect(await isAlive(call, session)).toBe(false);
        await page.getByRole('link', { name: 'Set a new password' }).click();
        await page.getByLabel('Email').fill(person.email);
        await press(page, 'Send reset link');
        await page.goto(await mailedLink(stack, person.email, 'Reset your password'));
        await page.getByLabel('New password').fill(NEW_PASSWORD);
        await press(page, 'Set new password');
        await heading(page, 'Your password was changed');
        await logIn(call, { ...person, password: NEW_PASSWORD });
      });
    });

    test('the link to a new email asks for a login; broken links and other browsers get an error', async () => {
      const { stack, call, visit } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const email = freshEmail();
      const browser = 'B'.repeat(43);
      await call('account.changeEmail', { email }, { session, browser });
      const link = await mailedLink(stack, email, 'Confirm your new email');
      await visit(async (page) => {
        await page.goto(link);
        await heading(page, 'Log in first');
        await page.getByRole('link', { name: 'Log in' }).click();
        await page.getByLabel('Email').fill(person.email);
        await page.getByLabel('Password').fill(person.password);
        await press(page, 'Log in');
        await heading(page, 'Confirm your new email');
        expect(new URL(page.url()).search).toBe('');
        await press(page, 'Confirm email');
        await said(page, 'alert', 'Open the link in the browser where you requested it.');
        await page.goto('/undo-email-change?token=AAAA');
        await press(page, 'Undo the change');
        await heading(page, 'This link does not work');
      });
      await visit(
        async (page) => {
          await page.goto('/confirm-email?token=AAAA');
          await press(page, 'Confirm email');
          await heading(page, 'This link does not work');
          await page.goto(link);
          await press(page, 'Confirm email');
          await heading(page, 'Your email was changed');
        },
        { session, browser },
      );
    });

    test('a user who cannot reauthenticate sees the advice to log out and log in again', async () => {
      const { stack, visit } = scenario();
      const { session, id } = await loggedIn(scenario());
      await stack.database('update users set password_hash = null where id = ?', [id]);
      await growOld(stack, id);
      await visit(
        async (page) => {
          await page.goto('/dashboard/data');
          await press(page, 'Download your data');
          const question = page.getByRole('region', { name: 'Confirm your identity' });
          await question.getByText('Log out, log in again').waitFor();
          expect(await question.getByRole('textbox').count()).toBe(0);
          expect(await question.getByRole('link').count()).toBe(0);
          await press(page, 'Cancel');
          await question.waitFor({ state: 'detached' });
        },
        { session },
      );
    });

    test('a user without a password sets one after a login at the provider', async () => {
      const { stack, call, visit } = scenario();
      const { id, ...person } = await loggedIn(scenario());
      const claims = identityClaims({ email: person.email });
      const { session = '' } = await loginsThrough(provider)(stack, claims);
      const [stored] = await stack.database<{ password_hash: string }>('select password_hash from users where id = ?', [
        id,
      ]);
      const setHash = (hash: string | null) =>
        stack.database('update users set password_hash = ? where id = ?', [hash, id]);
      await setHash(null);
      await visit(
        async (page) => {
          await page.goto('/dashboard/security#password');
          const card = page.getByRole('region', { name: 'Password' });
          await card.getByLabel('New password').fill(NEW_PASSWORD);
          expect(await card.getByLabel('Current password').count()).toBe(0);
          // Meanwhile a password was set elsewhere.
          await setHash(stored?.password_hash ?? '');
          await press(page, 'Set password');
          await card.getByLabel('Current password').waitFor();
          await said(page, 'alert', 'Enter your current password');

          await setHash(null);
          await growOld(stack, id);
          await page.reload();
          await card.getByLabel('New password').fill(NEW_PASSWORD);
          await press(page, 'Set password');
          await page.getByText('Log in again at your provider').waitFor();
          expect(await page.getByLabel('Your password').count()).toBe(0);
          expect(await page.getByRole('button', { name: 'Set password' }).getAttribute('aria-disabled')).toBe('true');
          await page.getByRole('link', { name: 'Confirm with Acme' }).click();
          await page.waitForURL(`${provider.url}/authorize?*`);
          const loggedInAgain = { ...claims, auth_time: secondsFromNow(0) };
          const next = provider.authorize(new URL(page.url()), loggedInAgain);
          await page.evaluate(`location.href = ${JSON.stringify(next.href)}`);
          await said(page, 'status', 'Welcome back. Press “Set password” again.');
          await focused(page, 'Set password');
          await card.getByLabel('New password').fill(NEW_PASSWORD);
          await press(page, 'Set password');
          await said(page, 'status', 'Your password was changed.');
          await openRow(page, 'Password');
          await press(page, 'Change password');
          await said(page, 'alert', 'Enter your current password');
          await logIn(call, { ...person, password: NEW_PASSWORD });
        },
        { session, elsewhere: [provider.url] },
      );
    });
  },
  { env: environmentFor(provider) },
);
