import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { isAlive, loggedIn, logIn, PASSWORD } from '../contract/rig/scenario.ts';
import { environmentFor, namedEnvironmentFor, startHostileProvider } from '../provider/hostile.ts';
import { identityClaims } from '../provider/login.ts';
import { until } from '../rig/until.ts';
import { heading, inBrowser, logOut, press, said } from './browser.ts';

/** The stored data of a user: downloaded, deleted, and restored on the log-in page. */
const provider = await startHostileProvider();
afterAll(() => provider.close());

const ANOTHER_USER = 'Another user is logged in.';

const PHONE = { width: 360, height: 740 };

const deleteAccount = async (page: Page, email: string) => {
  await page.getByLabel('Your email, to confirm').fill(email);
  await press(page, 'Delete account');
};

inBrowser(
  ['real'],
  (scenario) => {
    test('after the password the data is downloaded as a file', async () => {
      const { stack, visit } = scenario();
      const { session, id, email } = await loggedIn(scenario());
      await stack.database('update sessions set authenticated_at = 1 where user_id = ?', [id]);
      await visit(
        async (page) => {
          await page.goto('/dashboard');
          await page.getByRole('link', { name: 'Your data' }).click();
          await heading(page, 'Your data');
          await press(page, 'Download your data');
          await page.getByLabel('Your password').fill(PASSWORD);
          const download = page.waitForEvent('download');
          await press(page, 'Confirm');
          const file = await download;
          expect(file.suggestedFilename()).toBe('account.json');
          const document = JSON.parse(await readFile(await file.path(), 'utf8'));
          expect(document.profile).toMatchObject({ id, email });
          await said(page, 'status', 'The file has been saved.');
        },
        { session, acceptDownloads: true },
      );
    });

    test('a failed download is reported: the service is unreachable or refuses', async () => {
      const { call, visit } = scenario();
      const { session } = await loggedIn(scenario());
      await visit(
        async (page) => {
          await page.goto('/dashboard/data');
          // A proxy answers instead.
          await page.route('**/api/account/export', (route) => route.fulfill({ status: 404, body: 'No such host' }));
          await press(page, 'Download your data');
          await said(page, 'alert', 'The service cannot be reached.');
          await page.unroute('**/api/account/export');
          for (let i = 0; i < 10; i++) await call('account.export', undefined, { session });
          await press(page, 'Download your data');
          // With the date if it is tomorrow.
          await said(page, 'alert', /Too many attempts\. Try again at (?:\d{1,2} \w+ \d{4}, )?\d{2}:\d{2}\./);
        },
        { session },
      );
    });

    test('a page that another tab has left to another user deletes nobody, and shows that user as soon as it has the focus', async () => {
      const { call, visit } = scenario();
      const { session, ...before } = await loggedIn(scenario());
      const other = await loggedIn(scenario());
      await visit(
        async (page) => {
          await page.goto('/dashboard/data');
          const confirmation = page.getByLabel('Your email, to confirm');
          await confirmation.fill(before.email);
          // With the cookies of the page.
          await page.request.post('/auth/login', { data: { email: other.email, password: PASSWORD } });
          await press(page, 'Delete account');
          await said(page, 'alert', ANOTHER_USER);
          expect(await isAlive(call, other.session)).toBe(true);
          await press(page, 'Download your data');
          await page.getByRole('alert').filter({ hasText: ANOTHER_USER }).nth(1).waitFor();

          await page.evaluate("dispatchEvent(new Event('focus'))");
          await page.getByText(`Type ${other.email}`).waitFor();
          expect(await confirmation.inputValue()).toBe('');
        },
        { session },
      );
    });

    test('a page changes nothing of the user whom another tab has logged in, also before its check of the focus is answered', async () => {
      const { call, visit } = scenario();
      const { session } = await loggedIn(scenario());
      const other = await loggedIn(scenario(), { name: 'Mary Somerville' });
      const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
      await visit(
        async (page) => {
          await page.goto('/dashboard');
          await page.getByLabel('Name').fill('Grace Hopper');
          await page.request.post('/auth/login', { data: { email: other.email, password: PASSWORD } });
          await page.route('**/trpc/*profile.get*', async (route) => {
            await answered;
            await route.continue();
          });
          const asked = page.waitForRequest('**/trpc/*profile.get*');
          await page.evaluate("dispatchEvent(new Event('focus'))");
          await press(page, 'Save');
          await asked;
          await said(page, 'alert', ANOTHER_USER);
          const { data } = await call('profile.get', undefined, { session: other.session });
          expect(data.user.name).toBe(other.name);

          answer();
          await until(async () => (await page.getByLabel('Name').inputValue()) === other.name, {
            what: 'the other user',
          });
        },
        { session },
      );
    });

    test('a log-out that ended nothing is not confirmed', async () => {
      const { call, visit } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const elsewhere = await logIn(call, person);
      const other = await loggedIn(scenario());
      await visit(
        async (page) => {
          await page.goto('/dashboard/devices');
          await page.getByRole('button', { name: 'Log out everywhere' }).waitFor();
          await call('auth.logout', undefined, { session });
          await press(page, 'Log out everywhere');
          await said(page, 'alert', 'Your session has ended.');
          expect(await isAlive(call, elsewhere)).toBe(true);

          await page.request.post('/auth/login', { data: { email: other.email, password: PASSWORD } });
          await logOut(page);
          await said(page, 'alert', ANOTHER_USER);
          expect((await page.request.get('/api/profile')).status()).toBe(200);
        },
        { session },
      );
    });

    test('a user deletes the account by keyboard on a phone, and restores it on the log-in page', async () => {
      const { stack, visit } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      await stack.database('update sessions set authenticated_at = 1 where user_id = ?', [person.id]);
      await visit(
        async (page) => {
          await page.goto('/dashboard/data');
          await page.getByText('You can restore your account for 14 days.').waitFor();
          const confirmation = page.getByLabel('Your email, to confirm');
          await confirmation.fill('somebody@else.test');
          await confirmation.press('Enter');
          await said(page, 'alert', `This does not match ${person.email}`);
          await confirmation.fill(person.email);
          await confirmation.press('Enter');
          // The question has the focus, and its field is the next Tab stop.
          await page.getByRole('heading', { name: 'Confirm your identity' }).waitFor();
          await page.keyboard.press('Tab');
          await page.keyboard.type(PASSWORD);
          await page.keyboard.press('Enter');
          await heading(page, 'Your account was deleted');
          expect(await page.evaluate('document.activeElement.textContent')).toBe('Your account was deleted');
          const [row] = await stack.database<{ due_at: number }>('select due_at from removals where user_id = ?', [
            person.id,
          ]);
          const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long' }).format(Number(row?.due_at));
          await page.getByText(day).waitFor();
          expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
          await page.goto('/dashboard');
          await page.waitForURL('**/login');

          await page.getByLabel('Email').fill(person.email);
          await page.getByLabel('Password').fill(PASSWORD);
          await press(page, 'Log in');
          await said(page, 'alert', 'This account was deleted');
          await page.getByRole('button', { name: 'Restore my account' }).focus();
          await page.keyboard.press('Enter');
          await page.waitForURL('**/dashboard');
          await heading(page, 'Your profile');
          await said(page, 'status', 'Your account was restored.');
          expect(await page.getByLabel('Name').inputValue()).toBe(person.name);
        },
        { session, viewport: PHONE },
      );
    });

    test('a user of a provider deletes the account, and restores it through the provider', async () => {
      const { visit } = scenario();
      const claims = identityClaims({ picture: undefined });
      const atProvider = async (page: Page) => {
        await page.waitForURL(`${provider.url}/authorize?*`);
        const next = provider.authorize(new URL(page.url()), claims);
        await page.evaluate(`location.href = ${JSON.stringify(next.href)}`);
      };
      await visit(
        async (page) => {
          await page.goto('/login');
          await page.getByRole('link', { name: 'Continue with Acme' }).click();
          await atProvider(page);
          await page.waitForURL('**/dashboard');
          await page.goto('/dashboard/data');
          await deleteAccount(page, claims.email);
          await heading(page, 'Your account was deleted');
          await page.getByRole('link', { name: 'Log in' }).click();
          await page.getByRole('link', { name: 'Continue with Acme' }).click();
          await atProvider(page);
          await said(page, 'alert', 'This account was deleted');
          // The other provider has no account.
          expect(await page.getByRole('link', { name: /^Restore with/ }).allInnerTexts()).toEqual([
            'Restore with Acme',
          ]);
          await page.getByRole('link', { name: 'Restore with Acme' }).click();
          await atProvider(page);
          await said(page, 'status', 'Your account was restored.');
          await heading(page, 'Your profile');
        },
        { elsewhere: [provider.url] },
      );
    });
  },
  { env: { ...environmentFor(provider), ...namedEnvironmentFor(provider, 'before') } },
);
