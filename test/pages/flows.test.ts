import type { Locator } from 'playwright-core';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { isAlive, loggedIn, logIn, PASSWORD, registered, verified } from '../contract/rig/scenario.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { heading, inBrowser, logOut, mailedLink, press, register, said } from './browser.ts';

const NEW_PASSWORD = 'Difference-Engine-2';

const picture = async (side = 600) => ({
  name: 'portrait.png',
  mimeType: 'image/png',
  buffer: await sharp({ create: { width: side, height: side, channels: 3, background: '#7c3aed' } })
    .png()
    .toBuffer(),
});

/** The size of a picture that has loaded. */
const widthOf = (picture: Locator): Promise<number> =>
  picture.evaluate((image: { decode(): Promise<void>; naturalWidth: number }) =>
    image.decode().then(() => image.naturalWidth),
  );

inBrowser(['embedded', 'real'], (scenario) => {
  test('a user registers, verifies, logs in, changes name and picture, resets the password and logs out everywhere', async () => {
    const { stack, visit } = scenario();
    const email = freshEmail('ada');
    await visit(async (page) => {
      await page.goto('/');
      await page.waitForURL('**/login');
      await page.getByRole('link', { name: 'Create an account' }).click();
      await register(page, email, 'Ada Byron');
      await heading(page, 'Check your inbox');
      expect(await page.getByText(email).count()).toBe(1);

      await page.goto(await mailedLink(stack, email, 'Verify your email'));
      await press(page, 'Verify email');
      await heading(page, 'Your email is verified');
      await page.getByRole('link', { name: 'Log in' }).click();
      // The address was typed once, at the registration.
      expect(await page.getByLabel('Email').inputValue()).toBe(email);
      await page.getByLabel('Password').fill(PASSWORD);
      await press(page, 'Log in');
      await page.waitForURL('**/dashboard');

      await page.getByLabel('Name').fill('Ada Lovelace');
      await page.getByLabel('Bio').fill('Writes about engines.');
      await page.getByLabel('Location').fill('London');
      await page.getByLabel('Website').fill('https://example.com/ada');
      await press(page, 'Save');
      await said(page, 'status', 'Your profile was saved.');
      await page.getByLabel('Avatar').setInputFiles(await picture());
      await press(page, 'Save picture');
      await said(page, 'status', 'Your new picture was saved.');

      await page.reload();
      expect(await page.getByLabel('Name').inputValue()).toBe('Ada Lovelace');
      expect(await page.getByLabel('Website').inputValue()).toBe('https://example.com/ada');
      expect(await widthOf(page.locator('img.avatar'))).toBe(512);
      await logOut(page);
      await said(page, 'status', 'You are logged out.');

      await page.getByRole('link', { name: 'Forgot your password?' }).click();
      await page.getByLabel('Email').fill(email);
      await press(page, 'Send reset link');
      await heading(page, 'Check your inbox');
      await page.goto(await mailedLink(stack, email, 'Reset your password'));
      await page.getByLabel('New password').fill(NEW_PASSWORD);
      await press(page, 'Set new password');
      await heading(page, 'Your password was changed');
      await page.getByRole('link', { name: 'Log in' }).click();
      await page.getByLabel('Email').fill(email);
      await page.getByLabel('Password').fill(NEW_PASSWORD);
      await press(page, 'Log in');
      await page.waitForURL('**/dashboard');
      await page.getByRole('link', { name: 'Devices' }).click();
      await press(page, 'Log out everywhere');
      await said(page, 'status', 'You are logged out on all devices.');
      await page.goto('/dashboard');
      await page.waitForURL('**/login');
    });
  });

  test('a user sees other devices, ends one by keyboard, then all others, and stays logged in', async () => {
    const { stack, call, visit } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const [phone, ...others] = await Promise.all(
      ['curl/8.5.0', 'wget/1.24', 'okhttp/4.12'].map((agent) =>
        logIn(call, person, { headers: { 'user-agent': agent } }),
      ),
    );
    // A login at 13 past, last used in the hour before: only the hour of the last use is stored.
    for (const [device, minutes] of [
      ['curl', 13],
      ['wget', -47],
    ] as const) {
      const set = 'update sessions set created_at = last_used_at + ? where user_id = ? and device like ?';
      await stack.database(set, [minutes * 60_000, person.id, `%${device}%`]);
    }
    await visit(
      async (page) => {
        await page.goto('/dashboard/devices');
        const devices = page.getByRole('region', { name: 'Where you are logged in' }).getByRole('listitem');
        await devices.nth(3).waitFor();
        expect(await devices.filter({ hasText: 'this device' }).count()).toBe(1);
        const other = devices.filter({ hasText: 'curl' });
        expect(await other.innerText()).toMatch(/Logged in with a password on .* \d{2}:13 from [\d.]+$/m);
        const used = devices.filter({ hasText: 'wget' });
        expect(await used.innerText()).toMatch(/:13 from [\d.]+\s+Last used about .*:00$/m);
        await other.getByRole('button', { name: 'End session' }).focus();
        await page.keyboard.press('Enter');
        await said(page, 'status', 'The session has ended.');
        await devices.nth(3).waitFor({ state: 'detached' });
        expect(await other.count()).toBe(0);
        expect(await isAlive(call, phone ?? '')).toBe(false);
        await press(page, 'End all other sessions');
        await said(page, 'status', 'The other sessions in this list have ended.');
        expect(await devices.count()).toBe(1);
        expect(await Promise.all(others.map((each) => isAlive(call, each)))).toEqual([false, false]);
        expect(await isAlive(call, session)).toBe(true);
      },
      { session },
    );
  });

  test('opening a mailed link changes nothing, its button does, and a used link says so', async () => {
    const { stack, call, visit } = scenario();
    const person = await registered(scenario());
    const login = () => call('auth.login', person);
    await visit(async (page) => {
      const verification = await mailedLink(stack, person.email, 'Verify your email');
      await page.goto(verification);
      await heading(page, 'Verify your email');
      await page.waitForLoadState('networkidle');
      expect((await login()).code).toBe('EMAIL_NOT_VERIFIED');
      await press(page, 'Verify email');
      await heading(page, 'Your email is verified');
      expect((await login()).status).toBe(200);

      await call('auth.forgotPassword', { email: person.email });
      const reset = await mailedLink(stack, person.email, 'Reset your password');
      for (const attempt of [1, 2]) {
        await page.goto(reset);
        await heading(page, 'Set a new password');
        await page.waitForLoadState('networkidle');
        expect((await login()).status, `opening ${attempt}`).toBe(200);
      }
      await page.getByLabel('New password').fill(NEW_PASSWORD);
      await press(page, 'Set new password');
      await heading(page, 'Your password was changed');
      expect((await login()).code).toBe('INVALID_CREDENTIALS');

      await page.goto(reset);
      await page.getByLabel('New password').fill(PASSWORD);
      await press(page, 'Set new password');
      await heading(page, 'This link does not work');
      await page.getByRole('link', { name: 'Request a new link' }).click();
      await heading(page, 'Forgot your password?');
      await page.goto(verification.replace(/token=.*/, 'token=AAAA'));
      await press(page, 'Verify email');
      await heading(page, 'This link does not work');
      await page.getByLabel('Email').fill(person.email);
      await press(page, 'Send a new link');
      await said(page, 'status', 'a new link is on its way');
    });
  });

  test('an unverified user can have the mail sent again', async () => {
    const { stack, visit } = scenario();
    const person = await registered(scenario());
    await visit(async (page) => {
      await page.goto('/login');
      await page.getByLabel('Email').fill(person.email);
      await page.getByLabel('Password').fill(person.password);
      await press(page, 'Log in');
      await said(page, 'alert', 'Verify your email before logging in');
      await page.getByRole('link', { name: 'Send it again' }).click();
      expect(await page.getByLabel('Email', { exact: true }).inputValue()).toBe(person.email);
      await press(page, 'Send a new link');
      await page.goto(await mailedLink(stack, person.email, 'Verify your email', 2));
      await press(page, 'Verify email');
      await heading(page, 'Your email is verified');
    });
  });

  test('logging out ends this session, logging out everywhere ends all', async () => {
    const { call, visit } = scenario();
    const person = await loggedIn(scenario());
    const other = await logIn(call, person);
    await visit(
      async (page) => {
        await page.goto('/');
        await page.waitForURL('**/dashboard');
        await logOut(page);
        await said(page, 'status', 'You are logged out.');
        expect(await isAlive(call, person.session)).toBe(false);
        expect(await isAlive(call, other)).toBe(true);
      },
      { session: person.session },
    );
    await visit(
      async (page) => {
        await page.goto('/dashboard/devices');
        await press(page, 'Log out everywhere');
        await said(page, 'status', 'You are logged out on all devices.');
        expect(await isAlive(call, other)).toBe(false);
      },
      { session: other },
    );
  });

  test('a browser that cannot decode the picture sends it as it is, with progress', async () => {
    const { call, visit } = scenario();
    const { session } = await loggedIn(scenario());
    await visit(
      async (page) => {
        await page.addInitScript('delete globalThis.createImageBitmap');
        await page.goto('/dashboard');
        const { promise: released, resolve: release } = Promise.withResolvers<void>();
        await page.route('**/trpc/upload.image', async (route) => {
          await released;
          await route.continue();
        });
        await page.getByLabel('Avatar').setInputFiles(await picture(100));
        await page.getByRole('progressbar', { name: 'Upload' }).waitFor();
        // Saving during the upload waits for the picture.
        await page.getByLabel('Name').fill('Augusta Ada King');
        await press(page, 'Save');
        await page.getByRole('button', { name: 'Saving…' }).waitFor();
        release();
        await said(page, 'status', 'Your profile was saved.');
        const { data } = await call('profile.get', undefined, { session });
        expect(data.user).toMatchObject({ name: 'Augusta Ada King', avatar: expect.stringMatching(/\.webp$/) });
        await press(page, 'Remove picture');
        await said(page, 'status', 'Your picture was removed.');
        expect(await page.locator('span.avatar').innerText()).toBe('A');
      },
      { session },
    );
  });

  test('a limited login shows when to try again, in the reader’s locale', async () => {
    const { visit } = scenario();
    const person = await verified(scenario());
    await visit(
      async (page) => {
        await page.goto('/login');
        await page.getByLabel('Email').fill(person.email);
        for (let attempt = 0; attempt < 5; attempt++) {
          await page.getByLabel('Password').fill(`Wrong-${attempt}`);
          await press(page, 'Log in');
          await said(page, 'alert', 'Invalid email or password');
        }
        await press(page, 'Log in');
        await said(page, 'alert', /Too many attempts\. Try again at (?:\w+ \d{1,2}, \d{4}, )?\d{1,2}:\d{2}\s[AP]M\./);
      },
      { locale: 'en-US', timezoneId: 'America/New_York' },
    );
  });
});

inBrowser(
  ['real'],
  (scenario) => {
    test('a picture from a storage over plain http is shown', async () => {
      const { session } = await loggedIn(scenario());
      await scenario().visit(
        async (page) => {
          await page.goto('/dashboard');
          await page.getByLabel('Avatar').setInputFiles(await picture());
          await press(page, 'Save picture');
          await said(page, 'status', 'Your new picture was saved.');
          await page.reload();
          expect(await widthOf(page.locator('img.avatar'))).toBe(512);
        },
        { session },
      );
    });
  },
  { files: 'http://files.accounts.test' },
);
