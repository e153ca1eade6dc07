import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { loggedIn, PASSWORD, verified } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { heading, inBrowser, mailedLink, press, register, said } from './browser.ts';

interface Wrong {
  path: string;
  typed: Record<string, string>;
  button: string;
  /** The error of each wrong field; the first one gets the focus. */
  errors: Record<string, string>;
}

/** What a screen reader reads about a field besides its label. */
async function descriptionOf(page: Page, label: string): Promise<string> {
  const field = page.getByLabel(label, { exact: true });
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  const ids = (await field.getAttribute('aria-describedby')) ?? '';
  return (await Promise.all(ids.split(' ').map((id) => page.locator(`#${id}`).innerText()))).join(' ');
}

inBrowser(['embedded'], (scenario) => {
  describe('errors are shown at their fields, the first is focused, and input stays', () => {
    const wrongs: Wrong[] = [
      {
        path: '/register',
        typed: {},
        button: 'Create account',
        errors: {
          Name: 'Enter your name',
          Email: 'Enter your email',
          Password: 'Choose a password',
        },
      },
      {
        path: '/register',
        typed: { Name: 'Ada', Email: 'ada@example', Password: PASSWORD },
        button: 'Create account',
        errors: { Email: 'Must be a valid email address' },
      },
      {
        path: '/forgot-password',
        typed: { Email: '\u00a0ada@example.com' },
        button: 'Send reset link',
        errors: { Email: 'Must be a valid email address' },
      },
      {
        path: '/register',
        typed: { Name: 'A', Email: 'nobody', Password: PASSWORD },
        button: 'Create account',
        errors: { Name: 'Must have at least 2 characters', Email: 'Must be a valid email address' },
      },
      {
        path: '/register',
        typed: { Name: 'A', Email: 'ada@example', Password: 'analytical-1843' },
        button: 'Create account',
        errors: {
          Name: 'Must have at least 2 characters',
          Email: 'Must be a valid email address',
          Password: 'Still missing: an uppercase letter',
        },
      },
      {
        path: '/register',
        typed: { Name: 'Ada', Email: 'ada@example.test', Password: 'analytical-1843' },
        button: 'Create account',
        errors: { Password: 'Still missing: an uppercase letter' },
      },
      {
        path: '/login',
        typed: { Email: 'nobody@example.test', Password: 'Wrong-Password-1' },
        button: 'Log in',
        errors: { Password: 'Invalid email or password' },
      },
      {
        path: '/forgot-password',
        typed: { Email: 'ada lovelace@example.test' },
        button: 'Send reset link',
        errors: { Email: 'Must be a valid email address' },
      },
      {
        path: '/reset-password?token=AAAA&email=ada@example.test',
        typed: { 'New password': 'short' },
        button: 'Set new password',
        errors: { 'New password': 'Still missing: 8 to 128 characters' },
      },
      {
        path: '/dashboard',
        typed: { Name: 'A', Website: 'example.com' },
        button: 'Save',
        errors: { Name: 'Must have at least 2 characters', Website: 'Must be an http or https URL' },
      },
      {
        path: '/dashboard',
        typed: { Bio: 'x'.repeat(501) },
        button: 'Save',
        errors: { Bio: 'Must have at most 500 characters' },
      },
    ];
    test.each(wrongs)('$path with $typed', async ({ path, typed, button, errors }) => {
      const { visit } = scenario();
      const session = path === '/dashboard' ? (await loggedIn(scenario())).session : undefined;
      await visit(
        async (page) => {
          await page.goto(path);
          for (const [label, text] of Object.entries(typed)) await page.getByLabel(label, { exact: true }).fill(text);
          await press(page, button);
          for (const [label, message] of Object.entries(errors)) {
            await page.getByRole('alert').filter({ hasText: message }).waitFor();
            expect(await descriptionOf(page, label)).toContain(message);
          }
          expect(await page.getByRole('alert').count()).toBe(Object.keys(errors).length);
          const [first = ''] = Object.keys(errors);
          expect(await page.evaluate('document.activeElement.id')).toBe(
            await page.getByLabel(first, { exact: true }).getAttribute('id'),
          );
          for (const [label, text] of Object.entries(typed)) {
            expect(await page.getByLabel(label, { exact: true }).inputValue()).toBe(text);
          }
        },
        session ? { session } : {},
      );
    });
  });

  test('a taken email is reported at its field, with a link to the login', async () => {
    const { visit } = scenario();
    const { email } = await verified(scenario());
    await visit(async (page) => {
      await page.goto('/register');
      await register(page, email);
      await said(page, 'alert', 'An account with this email already exists.');
      await page.getByRole('link', { name: 'Log in instead' }).click();
      expect(await page.getByLabel('Email').inputValue()).toBe(email);
    });
  });

  test('each rule of a password is ticked off when met', async () => {
    await scenario().visit(async (page) => {
      await page.goto('/register');
      const met = page.locator('.rules [data-met=true]');
      const steps = { a: 1, aA: 2, aA1: 3, 'aA1-': 4, 'aA1-aA1-': 5, 'aA1-aA1': 4 };
      for (const [password, count] of Object.entries(steps)) {
        await page.getByLabel('Password').fill(password);
        expect(await met.count(), password).toBe(count);
      }
      await said(page, 'status', 'Still missing: 8 to 128 characters.');
      await page.getByRole('button', { name: 'Show' }).click();
      expect(await page.getByLabel('Password').getAttribute('type')).toBe('text');
    });
  });

  test('the rules of a password are shown while it has the focus; unmet ones are marked on leaving, and said once', async () => {
    await scenario().visit(async (page) => {
      await page.goto('/register');
      const field = page.getByLabel('Password');
      const unseen = page.locator('.unseen .rules');
      const marked = page.locator('.rules.marked');
      await unseen.waitFor({ state: 'attached' });
      await field.focus();
      await unseen.waitFor({ state: 'detached' });
      await page.getByLabel('Name').focus();
      await unseen.waitFor({ state: 'attached' });
      await field.fill('analytical');
      expect(await marked.count()).toBe(0);
      await page.getByLabel('Name').focus();
      await marked.waitFor();
      expect(await marked.locator('[data-met=false]').count()).toBe(3);
      await press(page, 'Create account');
      await said(page, 'alert', 'Still missing');
      expect(await page.locator('.error').filter({ hasText: 'Still missing' }).count()).toBe(0);
      await field.fill(PASSWORD);
      await marked.waitFor({ state: 'detached' });
    });
  });

  test('a busy button says so, keeps the focus and does not submit twice', async () => {
    await scenario().visit(async (page) => {
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      let sent = 0;
      await page.route('**/trpc/auth.forgotPassword?*', async (route) => {
        sent++;
        await released;
        await route.continue();
      });
      await page.goto('/forgot-password');
      await page.getByLabel('Email').fill(freshEmail());
      await press(page, 'Send reset link');
      const busy = page.getByRole('button', { name: 'Sending…' });
      await busy.waitFor();
      expect(await busy.getAttribute('aria-disabled')).toBe('true');
      await busy.focus();
      await page.keyboard.press('Enter');
      await page.getByLabel('Email').press('Enter');
      release();
      await heading(page, 'Check your inbox');
      expect(sent).toBe(1);
    });
  });

  test('an unreachable service is reported, and input stays', async () => {
    await scenario().visit(async (page) => {
      await page.goto('/login');
      await page.getByLabel('Email').fill('ada@example.test');
      await page.getByLabel('Password').fill(PASSWORD);
      // A proxy answers instead.
      await page.route('**/trpc/**', (route) => route.fulfill({ status: 404, body: 'No such host' }));
      await press(page, 'Log in');
      await said(page, 'alert', 'The service cannot be reached.');
      expect(await page.getByLabel('Password').inputValue()).toBe(PASSWORD);
    });
  });

  test('the login page shows the reason in its query', async () => {
    await scenario().visit(async (page) => {
      const sentences = {
        'error=cancelled': 'You cancelled the login.',
        'error=email_unverified': 'An account with your email exists',
        'error=oauth_failed': 'The login through the provider failed.',
        'error=account_blocked': 'This account is blocked.',
      };
      for (const [query, sentence] of Object.entries(sentences)) {
        await page.goto(`/login?${query}`);
        await said(page, 'alert', sentence);
      }
      await page.goto('/login?error=%3Cimg%20src=x%3E');
      await heading(page, 'Log in');
      expect(await page.getByRole('alert').count()).toBe(0);
    });
  });

  test('the whole flow works by keyboard', async () => {
    const { stack, visit } = scenario();
    const email = freshEmail('keyboard');
    await visit(async (page) => {
      /** Presses Tab until the expected element has the focus. */
      const tabTo = async (name: string) => {
        const isThere = `(() => {
          const element = document.activeElement;
          const label = element?.labels?.[0]?.textContent ?? element?.textContent;
          return label?.trim() === ${JSON.stringify(name)};
        })()`;
        for (let presses = 0; presses < 20; presses++) {
          await page.keyboard.press('Tab');
          if (await page.evaluate(isThere)) return;
        }
        throw new Error(`${name} is out of reach of the Tab key`);
      };
      const type = async (label: string, text: string) => {
        await tabTo(label);
        await page.keyboard.press('ControlOrMeta+A');
        await page.keyboard.type(text);
      };

      await page.goto('/register');
      await type('Name', 'Ada Lovelace');
      await type('Email', email);
      await type('Password', PASSWORD);
      await page.keyboard.press('Enter');
      await heading(page, 'Check your inbox');
      await page.goto(await mailedLink(stack, email, 'Verify your email'));
      await tabTo('Verify email');
      await page.keyboard.press('Space');
      await heading(page, 'Your email is verified');
      await tabTo('Log in');
      await page.keyboard.press('Enter');
      await heading(page, 'Log in');
      await type('Password', PASSWORD);
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Save' }).waitFor();
      await type('Name', 'Countess of Lovelace');
      await tabTo('Save');
      await page.keyboard.press('Enter');
      await said(page, 'status', 'Your profile was saved.');
      await page.goto('/dashboard');
      await tabTo('Devices');
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Log out everywhere' }).waitFor();
      await tabTo('Log out everywhere');
      await page.keyboard.press('Enter');
      await said(page, 'status', 'You are logged out on all devices.');
    });
  });

  test('a profile that is saved keeps what another tab has changed meanwhile', async () => {
    const { call, visit } = scenario();
    const { session } = await loggedIn(scenario());
    await visit(
      async (page) => {
        await page.goto('/dashboard');
        await page.getByLabel('Location').fill('London');
        await call('profile.update', { bio: 'Wrote the first program' }, { session });
        await press(page, 'Save');
        await said(page, 'status', 'Your profile was saved.');
        expect(await page.getByLabel('Bio').inputValue()).toBe('Wrote the first program');
        const { data } = await call('profile.get', undefined, { session });
        expect(data.user).toMatchObject({ location: 'London', bio: 'Wrote the first program' });
      },
      { session },
    );
  });

  test('a registration is not sent again while the next page is on its way', async () => {
    const { visit } = scenario();
    await visit(async (page) => {
      const sent: string[] = [];
      page.on('request', (request) => sent.push(new URL(request.url()).pathname));
      const pressed = Promise.withResolvers<void>();
      await page.route('**/verify-email?sent', async (route) => {
        await pressed.promise;
        await route.continue();
      });
      await page.goto('/register');
      const isComing = page.waitForRequest('**/verify-email?sent');
      await register(page, freshEmail());
      await isComing;
      for (let i = 0; i < 10; i++) await page.keyboard.press('Enter');
      pressed.resolve();
      await page.waitForURL('**/verify-email?sent');
      expect(sent.filter((path) => path === '/trpc/auth.register')).toHaveLength(1);
    });
  });

  test('a saved picture does not make the next save undo what another tab has changed', async () => {
    const { call, visit } = scenario();
    const { session } = await loggedIn(scenario());
    await visit(
      async (page) => {
        await page.addInitScript('delete globalThis.createImageBitmap');
        await page.goto('/dashboard');
        await page.getByLabel('Location').fill('London');
        await call('profile.update', { bio: 'Wrote the first program' }, { session });
        await page.getByLabel('Avatar').setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: await png() });
        await said(page, 'status', 'Your new picture was saved.');
        await press(page, 'Save');
        await said(page, 'status', 'Your profile was saved.');
        const { data } = await call('profile.get', undefined, { session });
        expect(data.user).toMatchObject({ location: 'London', bio: 'Wrote the first program' });
        expect(await page.getByLabel('Bio').inputValue()).toBe('Wrote the first program');
      },
      { session },
    );
  });

  test('what is typed while the profile is saved stays, also after a reload', async () => {
    const { call, visit } = scenario();
    const { session } = await loggedIn(scenario());
    await visit(
      async (page) => {
        await page.goto('/dashboard');
        const answer = Promise.withResolvers<void>();
        await page.route('**/profile.update', async (route) => {
          await answer.promise;
          await route.continue();
        });
        await page.getByLabel('Bio').fill('Wrote');
        await page.getByLabel('Location').fill(' London ');
        await press(page, 'Save');
        await page.getByRole('button', { name: 'Saving…' }).waitFor();
        await page.getByLabel('Bio').fill('Wrote the first program');
        answer.resolve();
        await said(page, 'status', 'Your profile was saved.');
        expect(await page.getByLabel('Bio').inputValue()).toBe('Wrote the first program');
        expect(await page.getByLabel('Location').inputValue()).toBe('London');
        await page.reload();
        expect(await page.getByLabel('Bio').inputValue()).toBe('Wrote the first program');
        await press(page, 'Save');
        await said(page, 'status', 'Your profile was saved.');
        const { data } = await call('profile.get', undefined, { session });
        expect(data.user).toMatchObject({ location: 'London', bio: 'Wrote the first program' });
      },
      { session },
    );
  });

  test('going back after the logout does not show the profile', async () => {
    const { call, visit } = scenario();
    const { session } = await loggedIn(scenario());
    await visit(
      async (page) => {
        await page.goto('/dashboard');
        await page.getByLabel('Name').waitFor();
        await page.goto('/nowhere');
        await call('auth.logout', undefined, { session });
        await page.goBack();
        await page.waitForURL('**/login');
      },
      { session },
    );
  });

  test('a file that is not a picture is refused at its field, by the page or by the service', async () => {
    const { visit } = scenario();
    const { session } = await loggedIn(scenario());
    await visit(
      async (page) => {
        await page.goto('/dashboard');
        const avatar = page.getByLabel('Avatar');
        const cases = [
          { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('words') },
          { name: 'large.png', mimeType: 'image/png', buffer: Buffer.alloc(5 * 1024 ** 2 + 1) },
          { name: 'false.png', mimeType: 'image/png', buffer: Buffer.from('no picture') },
        ];
        const said = [];
        for (const file of cases) {
          await avatar.setInputFiles(file);
          await page.locator('[aria-invalid=true]#avatar').waitFor();
          const alert = page.getByRole('alert');
          await alert.waitFor();
          said.push(await alert.innerText());
        }
        expect(said.slice(0, 2)).toEqual([
          'Choose a JPEG or PNG picture',
          'This picture is 5 MB. Choose one of at most 5 MB',
        ]);
        expect(said[2]).not.toBe(said[1]);
      },
      { session },
    );
  });

  test('input survives an ended session and a reload', async () => {
    const { call, visit } = scenario();
    const person = await loggedIn(scenario());
    await visit(
      async (page) => {
        await page.goto('/dashboard');
        await page.getByLabel('Bio').fill('A long and careful text.');
        await call('auth.logoutAll', undefined, { session: person.session });
        await press(page, 'Save');
        await said(page, 'alert', 'Your session has ended.');
        await page.getByRole('link', { name: 'Log in again' }).click();
        await page.getByLabel('Email').fill(person.email);
        await page.getByLabel('Password').fill(person.password);
        await press(page, 'Log in');
        await page.waitForURL('**/dashboard');
        expect(await page.getByLabel('Bio').inputValue()).toBe('A long and careful text.');
        await press(page, 'Save');
        await said(page, 'status', 'Your profile was saved.');
        await page.goto('/register');
        await page.getByLabel('Name').fill('Somebody');
        await page.reload();
        expect(await page.getByLabel('Name').inputValue()).toBe('Somebody');
      },
      { session: person.session },
    );
  });
});
