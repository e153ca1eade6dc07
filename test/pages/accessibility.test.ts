import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { readTexts, writer } from '../../server/texts/index.ts';
import { administrator, growOld, loggedIn, logIn, PASSWORD, registered } from '../contract/rig/scenario.ts';
import { setUpApp, withApp } from '../contract/rig/totp-scenario.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { applicationPages, expectClean } from './application-pages.ts';
import { findings } from './axe.ts';
import { inBrowser, mailedLink, press, said } from './browser.ts';
import { addAuthenticator } from './virtual-authenticator.ts';

const failed = (button: string) => async (page: Page) => {
  await press(page, button);
  await page.getByRole('alert').first().waitFor();
};

/** Every page, in its visually different states. */
const states: { path: string; steps?: (page: Page) => Promise<void>; title: string }[] = [
  { path: '/register', title: 'Create your account' },
  { path: '/register', steps: failed('Create account'), title: 'Create your account' },
  { path: '/register?token=AAAA&email=ada@example.test', title: 'Create your account' },
  { path: '/login', title: 'Log in' },
  { path: '/login?error=oauth_failed', title: 'Log in' },
  { path: '/login', steps: failed('Log in'), title: 'Log in' },
  { path: '/login?error=second_factor_ended', title: 'Log in' },
  { path: '/second-factor', title: 'One more step' },
  { path: '/second-factor', steps: failed('Log in'), title: 'One more step' },
  {
    path: '/second-factor',
    title: 'One more step',
    async steps(page) {
      await press(page, 'Use a recovery code');
      await failed('Log in')(page);
    },
  },
  { path: '/verify-email', title: 'Check your inbox' },
  { path: '/verify-email?token=AAAA', title: 'Verify your email' },
  { path: '/dashboard/security#password', steps: failed('Change password'), title: 'Security' },
  { path: '/confirm-email', title: 'This link does not work' },
  { path: '/confirm-email?token=AAAA', title: 'Confirm your new email' },
  { path: '/undo-email-change?token=AAAA', title: 'Undo your email change' },
  { path: '/forgot-password', title: 'Forgot your password?' },
  { path: '/reset-password', title: 'This link does not work' },
  { path: '/reset-password?token=AAAA&email=ada@example.test', title: 'Set a new password' },
  { path: '/not-me', title: 'This link does not work' },
  { path: '/not-me?token=AAAA', title: 'Was this not you?' },
  { path: '/dashboard', title: 'Your profile' },
  {
    path: '/dashboard',
    title: 'Your profile',
    async steps(page) {
      await page.getByLabel('Name').fill('');
      await failed('Save')(page);
    },
  },
  { path: '/dashboard/security', title: 'Security' },
  { path: '/dashboard/security#email', title: 'Security' },
  { path: '/dashboard/security#logins', title: 'Security' },
  { path: '/dashboard/security#keys', title: 'Security', steps: failed('Create key') },
  {
    path: '/dashboard',
    title: 'Your profile',
    async steps(page) {
      await page.getByRole('button', { name: 'Account menu' }).click();
      await page.getByRole('menu').waitFor();
    },
  },
  {
    path: '/dashboard/security#app',
    title: 'Security',
    async steps(page) {
      await press(page, 'Set up an app');
      await page.getByRole('img', { name: 'QR code' }).waitFor();
      expect(await findings(page)).toEqual([]);
      await press(page, 'Continue');
      await failed('Turn on')(page);
    },
  },
  {
    path: '/dashboard/devices',
    title: 'Devices',
    async steps(page) {
      await page.getByRole('button', { name: 'End session' }).first().click();
      await said(page, 'status', 'The session has ended.');
    },
  },
  {
    path: '/dashboard/security?error=identity_taken',
    title: 'Security',
    async steps(page) {
      await page.getByRole('heading', { name: 'Linked logins' }).waitFor();
      await page.getByText('That login belongs to another account.').waitFor();
    },
  },
  {
    path: '/dashboard/activity',
    title: 'Activity',
    async steps(page) {
      await press(page, 'Show more');
      await page.getByRole('listitem').nth(20).waitFor();
    },
  },
  { path: '/dashboard/data', title: 'Your data' },
  { path: '/dashboard/data', steps: failed('Delete account'), title: 'Your data' },
  { path: '/login?error=account_deleted', title: 'Log in' },
  { path: '/nowhere', title: 'Page not found' },
  { path: '/dev/mail', title: 'Mailbox' },
  // Last, because from then on /login would log in by the passkey.
  {
    path: '/dashboard/security#passkeys',
    title: 'Security',
    async steps(page) {
      await addAuthenticator(page);
      await press(page, 'Add a passkey');
      await said(page, 'status', 'The passkey was added.');
      await press(page, 'Add a passkey');
      await said(page, 'alert', 'This device already has a passkey');
    },
  },
  {
    path: '/dashboard/security#passkeys',
    title: 'Security',
    async steps(page) {
      await press(page, 'Rename');
      await page.getByLabel('Name of this passkey').fill('');
      await failed('Save name')(page);
    },
  },
];

const looks = [
  { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  { colorScheme: 'dark', viewport: { width: 360, height: 740 } },
] as const;

/** An address of 70 characters without a place to break it. */
const longEmail = () => freshEmail('a'.repeat(44));

inBrowser(['embedded'], (scenario) => {
  test.each(looks)('no page has axe-core findings or overflows the screen: $colorScheme, $viewport', async (look) => {
    const { visit } = scenario();
    const { session, ...person } = await loggedIn(scenario(), { email: longEmail() });
    // More devices; one of them is ended.
    for (let i = 0; i < 3; i++) await logIn(scenario().call, person);
    // More events than fit on a page.
    for (let i = 0; i < 20; i++) await scenario().call('profile.update', { bio: `${i}` }, { session });
    await visit(
      async (page) => {
        // So that the page that waits for the mail names it.
        await page.goto('/register');
        await page.getByLabel('Email').fill(person.email);
        for (const { path, steps, title } of states) {
          await page.goto(path);
          const heading = page.getByRole('heading', { level: 1 });
          await heading.filter({ hasText: title }).waitFor();
          await steps?.(page);
          expect(await heading.count(), path).toBe(1);
          expect(await page.title(), path).toContain(title);
          expect(await findings(page), path).toEqual([]);
          expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), path).toBeLessThanOrEqual(0);
        }
      },
      { ...look, session },
    );
  });

  test.each(looks)(
    'no page that applications lead to has axe-core findings or overflows the screen: $colorScheme, $viewport',
    async (look) => {
      const user = await loggedIn(scenario(), { email: longEmail() });
      const states = await applicationPages(scenario(), user);
      const write = writer(readTexts(undefined), 'en');
      await scenario().visit(
        async (page) => {
          await expectClean(page, states, write, async () => [
            ...(await findings(page)),
            ...(await page.evaluate<string[]>(
              "document.documentElement.scrollWidth > innerWidth ? ['the page is too wide'] : []",
            )),
          ]);
        },
        { ...look, session: user.session },
      );
    },
  );

  test.each(looks)(
    'a confirmation in another browser has no axe-core findings: $colorScheme, $viewport',
    async (look) => {
      const { stack, visit } = scenario();
      const { email } = await registered(scenario());
      await visit(async (page) => {
        await page.goto(await mailedLink(stack, email, 'Verify your email'));
        await press(page, 'Verify email');
        await page.getByRole('heading', { name: 'Was this you?' }).waitFor();
        expect(await findings(page)).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
        await press(page, 'This was not me');
        await page.getByRole('heading', { level: 1, name: 'Thank you' }).waitFor();
        expect(await findings(page)).toEqual([]);
      }, look);
    },
  );

  test.each(looks)('the identity confirmation has no axe-core findings: $colorScheme, $viewport', async (look) => {
    const { stack, visit } = scenario();
    const { session, id } = await loggedIn(scenario());
    await stack.database('update sessions set authenticated_at = 0 where user_id = ?', [id]);
    await visit(
      async (page) => {
        await page.goto('/dashboard/security#email');
        await page.getByLabel('New email').fill('ada@example.test');
        await press(page, 'Change email');
        await page.getByRole('heading', { name: 'Confirm your identity' }).waitFor();
        await failed('Confirm')(page);
        expect(await findings(page)).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
      },
      { ...look, session },
    );
  });

  test.each(looks)(
    'the pages of app, recovery codes and second step have no axe-core findings: $colorScheme, $viewport',
    async (look) => {
      const { stack, visit } = scenario();
      const { session, id } = await withApp(scenario());
      const expectClean = async (page: Page) => {
        expect(await findings(page)).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
      };
      await visit(
        async (page) => {
          await page.goto('/dashboard/security#app');
          await press(page, 'Create new recovery codes');
          await page.getByRole('heading', { name: 'Save your recovery codes' }).waitFor();
          await press(page, 'Copy codes');
          await page.getByText('Copied.').waitFor();
          await expectClean(page);
          await stack.database('update recovery_codes set used_at = 1 where user_id = ?', [id]);
          await growOld(stack, id);
          await page.reload();
          await page.getByText('0 recovery codes are left.').waitFor();
          await press(page, 'Turn off');
          await failed('Confirm')(page);
          await expectClean(page);
        },
        { ...look, session, permissions: ['clipboard-write'] },
      );
    },
  );

  test.each(looks)('the administration has no axe-core findings: $colorScheme, $viewport', async (look) => {
    const { stack, visit } = scenario();
    const { session, ...admin } = await administrator(scenario());
    const person = await loggedIn(scenario(), { email: longEmail(), name: 'A'.repeat(100) });
    const target = { ...person, ...(await setUpApp(scenario(), person)) };
    for (let i = 0; i < 20; i++) await registered(scenario());
    const invited = longEmail();
    for (const email of [freshEmail(), invited]) await scenario().call('users.invite', { email }, { session });
    await scenario().call('profile.update', { bio: 'B'.repeat(500) }, { session: target.session });
    const expectClean = async (page: Page) => {
      expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
      expect(await findings(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    };
    await visit(
      async (page) => {
        await page.goto('/admin');
        await press(page, 'Show more');
        await page.getByRole('table').locator('tbody').getByRole('row').nth(20).waitFor();
        await expectClean(page);
        await page.getByRole('link', { name: 'Invitations' }).click();
        await page.getByText(invited).waitFor();
        await expectClean(page);
        await page.getByRole('button', { name: 'Revoke' }).first().click();
        await said(page, 'status', `The invitation for ${invited} was revoked`);
        await expectClean(page);
        await page.goto('/admin');
        await page.getByLabel('Name or email').fill('\u0301');
        await failed('Search')(page);
        await expectClean(page);
        await page.goto(`/admin?user=${target.id}`);
        await page.getByText('Account created with a password').waitFor();
        await expectClean(page);
        await press(page, 'Block');
        await failed('Block')(page);
        await press(page, 'Unlock');
        await page.getByLabel('Client address').waitFor();
        await expectClean(page);
        await page.getByLabel('Email of the user').fill(target.email);
        await growOld(stack, admin.id);
        await press(page, 'Block');
        await failed('Confirm')(page);
        await expectClean(page);
        await page.getByLabel('Your password').fill(PASSWORD);
        await press(page, 'Confirm');
        await said(page, 'status', 'The user is blocked');
        await expectClean(page);
      },
      { ...look, session },
    );
  });

  test('fields have autocomplete and input types', async () => {
    const { visit } = scenario();
    const { session } = await loggedIn(scenario());
    const expected = {
      '/register': { Name: 'name', Email: 'username', Password: 'new-password' },
      '/login': { Email: 'username webauthn', Password: 'current-password' },
      '/second-factor': { Code: 'one-time-code' },
      '/verify-email': { 'Or enter the code from the email': 'one-time-code' },
      '/forgot-password': { Email: 'username' },
      '/reset-password?token=AAAA&email=ada@example.test': { Email: 'username', 'New password': 'new-password' },
      '/dashboard/security#email': { 'New email': 'email' },
      '/dashboard/security#password': { 'Current password': 'current-password', 'New password': 'new-password' },
      '/dashboard': { Name: 'name', Location: 'address-level2', Website: 'url' },
    };
    await visit(
      async (page) => {
        for (const [path, fields] of Object.entries(expected)) {
          await page.goto(path);
          for (const [label, autocomplete] of Object.entries(fields)) {
            const field = page.getByLabel(label, { exact: true });
            expect(await field.getAttribute('autocomplete'), `${label} on ${path}`).toBe(autocomplete);
            if (label === 'Email') expect(await field.getAttribute('type')).toBe('email');
          }
        }
      },
      { session },
    );
  });

  test('dates follow the reader’s locale', async () => {
    const { visit } = scenario();
    const { session } = await loggedIn(scenario());
    const dates: string[] = [];
    for (const locale of ['de-DE', 'fr-FR']) {
      await visit(
        async (page) => {
          await page.goto('/dashboard');
          dates.push(await page.locator('time').innerText());
        },
        { session, locale },
      );
    }
    const now = Date.now();
    const written = (locale: string) => new Intl.DateTimeFormat(locale, { dateStyle: 'long' }).format(now);
    expect(dates).toEqual([written('de-DE'), written('fr-FR')]);
  });
});
