import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { loggedIn, logIn, registered } from '../contract/scenario.ts';
import { inBrowser, mailedLink, press, said } from './browser.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Every finding of axe-core, serious or not. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults;
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} ${target}: ${failureSummary}`),
  );
}

const failed = (button: string) => async (page: Page) => {
  await press(page, button);
  await page.getByRole('alert').first().waitFor();
};

/** Every page, in the states that look different. */
const states: { path: string; steps?: (page: Page) => Promise<void>; title: string }[] = [
  { path: '/register', title: 'Create your account' },
  { path: '/register', steps: failed('Create account'), title: 'Create your account' },
  { path: '/login', title: 'Log in' },
  { path: '/login?error=oauth_failed', title: 'Log in' },
  { path: '/login', steps: failed('Log in'), title: 'Log in' },
  { path: '/verify-email', title: 'Check your inbox' },
  { path: '/verify-email?token=AAAA', title: 'Verify your email' },
  { path: '/forgot-password', title: 'Forgot your password?' },
  { path: '/reset-password', title: 'This link does not work' },
  { path: '/reset-password?token=AAAA&email=ada@example.test', title: 'Set a new password' },
  { path: '/dashboard', title: 'Your profile' },
  {
    path: '/dashboard',
    title: 'Your profile',
    async steps(page) {
      await page.getByLabel('Name').fill('');
      await failed('Save')(page);
    },
  },
  {
    path: '/dashboard',
    title: 'Your profile',
    async steps(page) {
      await page.getByRole('button', { name: 'End session' }).first().click();
      await said(page, 'status', 'The session has ended.');
    },
  },
  { path: '/nowhere', title: 'Page not found' },
  { path: '/dev/mail', title: 'Mailbox' },
];

const looks = [
  { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  { colorScheme: 'dark', viewport: { width: 375, height: 667 } },
] as const;

inBrowser(['embedded'], (scenario) => {
  test.each(looks)(
    'axe-core finds nothing on any page, and nothing is wider than the screen: $colorScheme, $viewport',
    async (look) => {
      const { visit } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      // Further devices, one of which is ended.
      for (let i = 0; i < 3; i++) await logIn(scenario().call, person);
      await visit(
        async (page) => {
          for (const { path, steps, title } of states) {
            await page.goto(path);
            const heading = page.getByRole('heading', { level: 1 });
            await heading.filter({ hasText: title }).waitFor();
            await steps?.(page);
            expect(await heading.count(), path).toBe(1);
            expect(await page.title(), path).toContain(title);
            expect(await findings(page), path).toEqual([]);
            expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), path).toBeLessThanOrEqual(
              0,
            );
          }
        },
        { ...look, session },
      );
    },
  );

  test.each(looks)(
    'axe-core finds nothing after a confirmation in another browser: $colorScheme, $viewport',
    async (look) => {
      const { stack, visit } = scenario();
      const { email } = await registered(scenario());
      await visit(async (page) => {
        await page.goto(await mailedLink(stack, email, 'Verify your email'));
        await press(page, 'Verify email');
        await page.getByRole('heading', { name: 'Was it you?' }).waitFor();
        expect(await findings(page)).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
        await press(page, 'This was not me');
        await page.getByRole('heading', { level: 1, name: 'Thank you' }).waitFor();
        expect(await findings(page)).toEqual([]);
      }, look);
    },
  );

  test('password managers and phones know what each field is', async () => {
    const { visit } = scenario();
    const { session } = await loggedIn(scenario());
    const expected = {
      '/register': { Name: 'name', Email: 'username', Password: 'new-password' },
      '/login': { Email: 'username', Password: 'current-password' },
      '/forgot-password': { Email: 'username' },
      '/reset-password?token=AAAA&email=ada@example.test': { Email: 'username', 'New password': 'new-password' },
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

  test('dates are in the reader’s language', async () => {
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
