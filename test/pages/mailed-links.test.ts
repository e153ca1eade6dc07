import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { isAlive, loggedIn, logIn, registered, verified } from '../contract/rig/scenario.ts';
import { usersWith } from '../provider/login.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { heading, inBrowser, mailedLink, press, register } from './browser.ts';

/** Records every further request of the page, with its Referer. */
function requestsOf(page: Page): Promise<{ url: string; referrer: string }>[] {
  const requests: Promise<{ url: string; referrer: string }>[] = [];
  page.on('request', (request) => {
    const url = request.url() + (request.postData() ?? '');
    requests.push(
      request.allHeaders().then(({ referer = '' }) => ({ url: url.startsWith('data:') ? '' : url, referrer: referer })),
    );
  });
  return requests;
}

const tokenIn = (link: string) => new URL(link).searchParams.get('token') ?? '';

inBrowser(['real'], (scenario) => {
  // checks: 39
  test('a mailed token leaves the URL before anything loads, is sent only in its own request, and survives a reload', async () => {
    const { stack, call, visit } = scenario();
    const waiting = await registered(scenario());
    const forgetful = await verified(scenario());
    await call('auth.forgotPassword', { email: forgetful.email });
    const frightened = await loggedIn(scenario());
    await logIn(call, frightened);
    const links = [
      [await mailedLink(stack, waiting.email, 'Verify your email'), 'Verify your email'],
      [await mailedLink(stack, forgetful.email, 'Reset your password'), 'Set a new password'],
      [await mailedLink(stack, frightened.email, 'New login'), 'Was this not you?'],
    ] as const;
    const ends = {
      'Verify your email': 'Your email is verified',
      'Set a new password': 'Your password was changed',
      'Was this not you?': 'Your account is safe',
    };
    for (const [link, title] of links) {
      await visit(async (page) => {
        const requests = requestsOf(page);
        for (const open of [() => page.goto(link), () => page.reload()]) {
          await open();
          await heading(page, title);
          expect(page.url()).toBe(link.slice(0, link.indexOf('?')));
        }
        await page.getByRole('link', { name: 'Accounts' }).click();
        await page.waitForURL('**/login');
        const sent = await Promise.all(requests);
        expect(sent.length).toBeGreaterThan(4);
        expect(sent.filter(({ referrer }) => referrer.includes(tokenIn(link)))).toEqual([]);
        expect(sent.filter(({ url }) => url.includes(tokenIn(link))).map(({ url }) => url)).toEqual([link]);
        await page.goBack();
        await heading(page, title);
        if (title === 'Verify your email') await press(page, 'Verify email');
        else if (title === 'Was this not you?') await press(page, 'This was not me');
        else {
          await page.getByLabel('New password').fill('Difference-Engine-2');
          await press(page, 'Set new password');
        }
        await heading(page, ends[title]);
      });
    }
  });

  test('a confirmation in the browser of the registration asks nothing more', async () => {
    const { stack, visit } = scenario();
    const email = freshEmail();
    await visit(async (page) => {
      await page.goto('/register');
      await register(page, email);
      await heading(page, 'Check your inbox');
      await page.goto(await mailedLink(stack, email, 'Verify your email'));
      await press(page, 'Verify email');
      await heading(page, 'Your email is verified');
      expect(await page.getByRole('heading', { name: 'Was this you?' }).count()).toBe(0);
      expect(await stack.database('select password_proven from users where email = ?', [email])).toEqual([
        { password_proven: 1 },
      ]);
    });
  });

  test('a confirmation elsewhere lists the login methods with dates, and “This was not me” removes them', async () => {
    const { stack, visit } = scenario();
    const person = await registered(scenario(), { name: 'Mallory Evil' });
    await visit(async (page) => {
      await page.goto(await mailedLink(stack, person.email, 'Verify your email'));
      // By keyboard.
      await page.getByRole('button', { name: 'Verify email' }).press('Enter');
      await heading(page, 'Your email is verified');
      await page.getByRole('heading', { name: 'Was this you?' }).waitFor();
      const [row] = await stack.database<{ created_at: number }>('select created_at from users where id = ?', [
        person.id,
      ]);
      const time = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short' }).format(
        Number(row?.created_at),
      );
      expect(await page.getByRole('listitem').allInnerTexts()).toEqual([`with a password, ${time}`]);
      expect(await page.content()).not.toContain('Mallory');
      await page.getByRole('button', { name: 'This was not me' }).press('Enter');
      await heading(page, 'Thank you');
      expect(await usersWith(stack, person.email)).toEqual([]);
    });
  });

  test('a login from a new device can be disowned by keyboard, and the owner gets back in by mail', async () => {
    const { stack, call, visit } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const thief = await logIn(call, person);
    const link = await mailedLink(stack, person.email, 'New login');
    const addedAt = Date.now() - 30 * 24 * 60 * 60_000;
    await stack.database(
      `insert into identities (id, user_id, issuer, subject, provider, proven, browser, created_at)
       values (?, ?, 'https://idp.test', ?, 'acme', 1, null, ?)`,
      [crypto.randomUUID(), person.id, crypto.randomUUID(), addedAt],
    );
    await visit(async (page) => {
      await page.goto(link);
      await heading(page, 'Was this not you?');
      await page.waitForLoadState('networkidle');
      expect(await isAlive(call, thief)).toBe(true);
      await page.getByRole('button', { name: 'This was not me' }).press('Enter');
      await heading(page, 'Your account is safe');
      // Methods older than the login stay, and are shown.
      const added = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short' }).format(addedAt);
      expect(await page.getByRole('listitem').allInnerTexts()).toEqual([`with Acme, added ${added}`]);
      for (const ended of [session, thief]) expect(await isAlive(call, ended)).toBe(false);

      await page.goto(await mailedLink(stack, person.email, 'Reset your password'));
      await page.getByLabel('New password').fill('Difference-Engine-2');
      await page.getByLabel('New password').press('Enter');
      await heading(page, 'Your password was changed');
      await page.goto(link);
      await press(page, 'This was not me');
      await heading(page, 'This link does not work');
      await page.getByRole('link', { name: 'Set a new password' }).click();
      await heading(page, 'Forgot your password?');
    });
  });
});
