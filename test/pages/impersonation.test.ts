import { expect, test } from 'vitest';
import { administrator, sessionIn, verified } from '../contract/rig/scenario.ts';
import { setUpApp } from '../contract/rig/totp-scenario.ts';
import { heading, inBrowser, press, said } from './browser.ts';
import { shifts } from './layout-shifts.ts';

/** An administrator acts for a user, and every page says so. */
inBrowser(
  ['real'],
  (scenario) => {
    /** A user, and the session of an administrator who acts for the user. */
    const acting = async () => {
      const admin = await administrator(scenario());
      const { session } = await setUpApp(scenario(), admin);
      const user = await verified(scenario());
      const reply = await scenario().call('users.impersonate', { id: user.id }, { session });
      return { user, session: sessionIn(reply) ?? '' };
    };

    test('an administrator acts for a user from /admin, sees the bar on every page, and ends it there', async () => {
      const { visit } = scenario();
      const admin = await administrator(scenario());
      const { session } = await setUpApp(scenario(), admin);
      const user = await verified(scenario(), { name: 'Grace Hopper' });
      await visit(
        async (page) => {
          await page.goto(`/admin?user=${user.id}`);
          await press(page, 'Act as this user');
          await page.getByLabel('Email of the user').fill(user.email);
          await press(page, 'Act as this user');
          await page.waitForURL('**/dashboard');
          const bar = page
            .getByRole('region', { name: 'Acting as a user' })
            .filter({ hasText: `You are acting as ${user.email}` });
          for (const path of [
            '/device',
            '/nowhere',
            '/dashboard',
            '/dashboard/security',
            '/dashboard/devices',
            '/dashboard/activity',
          ]) {
            await page.goto(path);
            await bar.waitFor();
          }
          await page.getByText('Session opened on your behalf').first().waitFor();

          // Until the profile is known there is neither the menu nor the bar.
          const answer = Promise.withResolvers<void>();
          await page.route('**/trpc/*profile.get*', async (route) => {
            await answer.promise;
            await route.continue();
          });
          await page.goto('/dashboard');
          await heading(page, 'Your profile');
          expect(await page.getByRole('button', { name: 'Account menu' }).count()).toBe(0);
          answer.resolve();
          await bar.waitFor();
          expect(await shifts(page)).toEqual({ value: 0, moved: [] });
          await page.unroute('**/trpc/*profile.get*');

          await page.goto('/admin');
          await heading(page, 'Page not found');
          await bar.waitFor();
          expect(await page.getByRole('button', { name: 'Account menu' }).count()).toBe(0);
          await press(page, 'Stop acting');
          await heading(page, 'Log in');
          await page.goto('/dashboard');
          await page.waitForURL('**/login');
        },
        { session },
      );
    });

    test('an administrator who acts for a user is told why an act is refused, and is asked for no password', async () => {
      const { visit } = scenario();
      const { session } = await acting();
      await visit(
        async (page) => {
          await page.goto('/dashboard/data');
          await press(page, 'Daten herunterladen');
          await said(page, 'alert', 'Das ist nicht möglich, während ein Administrator für den Benutzer handelt');
          expect(await page.getByRole('textbox', { name: 'Ihr Passwort' }).count()).toBe(0);
        },
        { session, locale: 'de' },
      );
    });

    test('a tab that has not read the profile yet shows the bar', async () => {
      const { visit } = scenario();
      const { user, session } = await acting();
      for (const path of ['/login', '/register', '/confirm-email', '/device', '/nowhere'])
        await visit(
          async (page) => {
            await page.goto(path);
            await page.getByText(`You are acting as ${user.email}`).waitFor();
          },
          { session },
        );
    });

    test('a page whose profile could not be read asks for it again, and shows the bar', async () => {
      const { visit } = scenario();
      const { user, session } = await acting();
      await visit(
        async (page) => {
          await page.route('**/trpc/*profile.get*', (route) => route.fulfill({ status: 404, body: 'No such host' }), {
            times: 1,
          });
          await page.goto('/dashboard');
          await page.getByText(`You are acting as ${user.email}`).waitFor();
        },
        { session },
      );
    });

    test('no bar is shown in the sessions of the user', async () => {
      const { visit } = scenario();
      const admin = await administrator(scenario());
      await visit(
        async (page) => {
          await page.goto('/dashboard');
          await heading(page, 'Your profile');
          expect(await page.locator('.impersonation').count()).toBe(0);
        },
        { session: admin.session },
      );
    });
  },
  { env: { IMPERSONATION: 'on' } },
);
