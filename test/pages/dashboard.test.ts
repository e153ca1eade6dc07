import { expect, test } from 'vitest';
import { loggedIn, logIn } from '../contract/rig/scenario.ts';
import { focused, heading, inBrowser, press, said } from './browser.ts';

/** The pages of the dashboard, and the activity. */
inBrowser(['real'], (scenario) => {
  test('each part is a page with a title, reachable by one Tab from the others', async () => {
    const { visit } = scenario();
    const { session, email } = await loggedIn(scenario());
    await visit(
      async (page) => {
        await page.goto('/dashboard');
        const parts = page.getByRole('navigation', { name: 'Your account' });
        for (const [label, title, text] of [
          ['Security', 'Security', email],
          ['Devices', 'Devices', 'This device'],
          ['Activity', 'Activity', 'Logged in with a password'],
          ['Profile', 'Your profile', 'Choose, drop or paste a JPEG'],
        ] as const) {
          await parts.getByRole('link', { name: label }).press('Enter');
          await heading(page, title);
          await page.getByText(text).first().waitFor();
          expect(await parts.locator('[aria-current=page]').allInnerTexts()).toEqual([label]);
        }
      },
      { session },
    );
    await visit(async (page) => {
      for (const part of ['security', 'devices', 'activity']) {
        await page.goto(`/dashboard/${part}`);
        await page.waitForURL('**/login');
      }
    });
  });

  test('a page asks once for the profile', async () => {
    const { session } = await loggedIn(scenario());
    await scenario().visit(
      async (page) => {
        const asked: string[] = [];
        page.on('request', (request) => asked.push(...(request.url().match(/profile\.get/g) ?? [])));
        await page.goto('/dashboard', { waitUntil: 'networkidle' });
        await heading(page, 'Your profile');
        expect(asked).toHaveLength(1);
      },
      { session },
    );
  });

  test('lists the activity in pages, newest first, by keyboard', async () => {
    const { call, visit } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const changes = 41;
    for (let i = 0; i < changes; i++) await call('profile.update', { bio: `${i}` }, { session });
    await call('auth.login', { email: person.email, password: 'Wrong-1' });
    await logIn(call, person, { headers: { 'user-agent': 'curl/8.5.0' } });
    await visit(
      async (page) => {
        await page.goto('/dashboard/activity');
        const entries = page.getByRole('region', { name: 'Events' }).getByRole('listitem');
        const more = page.getByRole('button', { name: 'Show more' });
        await entries.nth(19).waitFor();
        expect(await entries.count()).toBe(20);
        const [newest = '', refused = '', changed = ''] = await entries.allInnerTexts();
        expect(newest).toMatch(/^Logged in with a password, on a new device\n+.*, from [\d.]+, curl/);
        expect(refused).toContain('Login refused: wrong password');
        expect(changed).toContain('Profile changed: bio');
        await more.press('Enter');
        await entries.nth(39).waitFor();
        await more.press(' ');
        // Registered, verified, logged in; the changes; the refused login and the one after it.
        await entries.nth(changes + 4).waitFor();
        expect(await entries.count()).toBe(changes + 5);
        expect((await entries.allInnerTexts()).slice(-3).map((text) => text.split('\n')[0])).toEqual([
          'Logged in with a password',
          'Email verified',
          'Account created with a password',
        ]);
        expect(await more.count()).toBe(0);
        await focused(page, 'All entries are shown.');
      },
      { session },
    );
  });

  test('a failed page of events is requested again; an ended session is reported', async () => {
    const { call, visit } = scenario();
    const { session } = await loggedIn(scenario());
    for (let i = 0; i < 20; i++) await call('profile.update', { bio: `${i}` }, { session });
    await visit(
      async (page) => {
        await page.goto('/dashboard/activity');
        const entries = page.getByRole('region', { name: 'Events' }).getByRole('listitem');
        await entries.nth(19).waitFor();
        await page.route('**/trpc/activity.list**', (route) =>
          route.fulfill({ status: 408, body: 'a proxy has waited too long' }),
        );
        await press(page, 'Show more');
        await page.getByRole('alert').waitFor();
        expect(await entries.count()).toBe(20);
        await page.unroute('**/trpc/activity.list**');
        await press(page, 'Show more');
        await entries.nth(22).waitFor();
        expect(await page.getByRole('alert').count()).toBe(0);
      },
      { session },
    );
    await visit(
      async (page) => {
        await page.goto('/dashboard/activity');
        await page.getByRole('button', { name: 'Show more' }).waitFor();
        await call('auth.logoutAll', undefined, { session });
        await press(page, 'Show more');
        await said(page, 'alert', /log in/i);
      },
      { session },
    );
  });
});
