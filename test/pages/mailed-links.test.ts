import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { isAlive, loggedIn, logIn, registered, verified } from '../contract/scenario.ts';
import { usersWith } from '../provider/login.ts';
import { freshEmail } from '../rig/address.ts';
import { heading, inBrowser, mailedLink, press, register } from './browser.ts';

/** Every request that the page makes from now on, with the Referer it carries. */
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

inBrowser(['embedded', 'real'], (scenario) => {
  test('a mailed token leaves the address before anything loads, goes out with no request but its own, and survives a reload', async () => {
    const { stack, call, visit } = scenario();
    const waiting = await registered(scenario());
    const forgetful = await verified(scenario());
    await call('auth.forgotPassword', { email: forgetful.email });
    const frightened = await loggedIn(scenario());
    await logIn(call, frightened);
    const links = [
      [await mailedLink(stack, waiting.email, 'Verify your email'), 'Verify your email'],
      [await mailedLink(stack, forgetful.email, 'Reset your password'), 'Set a new password'],
      [await mailedLink(stack, frightened.email, 'New login'), 'Was it not you?'],
    ] as const;
    const ends = {
      'Verify your email': 'Your email is verified',
      'Set a new password': 'Your password is changed',
      'Was it not you?': 'Your account is safe',
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
        else if (title === 'Was it not you?') await press(page, 'This was not me');
        else {
          await page.getByLabel('New password').fill('Difference-Engine-2');
          await press(page, 'Set new password');
        }
        await heading(page, ends[title]);
      });
    }
  });

  test('confirmed in the browser that registered, the page asks nothing more', async () => {
    const { stack, visit } = scenario();
    const email = freshEmail();
    await visit(async (page) => {
      await page.goto('/register');
      await register(page, email);
      await heading(page, 'Check your inbox');
      await page.goto(await mailedLink(stack, email, 'Verify your email'));
      await press(page, 'Verify email');
      await heading(page, 'Your email is verified');
      expect(await page.getByRole('heading', { name: 'Was it you?' }).count()).toBe(0);
      expect(await stack.database('select password_proven from users where email = ?', [email])).toEqual([
        { password_proven: 1 },
      ]);
    });
  });

  test('confirmed elsewhere, it says by what the account was asked for and when, and “This was not me” removes it', async () => {
    const { stack, visit } = scenario();
    const person = await registered(scenario(), { name: 'Mallory Evil' });
    await visit(async (page) => {
      await page.goto(await mailedLink(stack, person.email, 'Verify your email'));
      // By keyboard alone.
      await page.getByRole('button', { name: 'Verify email' }).press('Enter');
      await heading(page, 'Your email is verified');
      await page.getByRole('heading', { name: 'Was it you?' }).waitFor();
      const [row] = await stack.database<{ created_at: number }>('select created_at from users where id = ?', [
        person.id,
      ]);
      const asked = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short' }).format(
        Number(row?.created_at),
      );
      expect(await page.getByRole('listitem').allInnerTexts()).toEqual([`with a password, ${asked}`]);
      expect(await page.content()).not.toContain('Mallory');
      await page.getByRole('button', { name: 'This was not me' }).press('Enter');
      await heading(page, 'Thank you');
      expect(await usersWith(stack, person.email)).toEqual([]);
    });
  });

  test('a login from a device not seen before can be disowned by keyboard, and the way back is the inbox', async () => {
    const { stack, call, visit } = scenario();
    const { session, ...person } = await loggedIn(scenario());
    const thief = await logIn(call, person);
    const link = await mailedLink(stack, person.email, 'New login');
    await visit(async (page) => {
      await page.goto(link);
      await heading(page, 'Was it not you?');
      await page.waitForLoadState('networkidle');
      expect(await isAlive(call, thief)).toBe(true);
      await page.getByRole('button', { name: 'This was not me' }).press('Enter');
      await heading(page, 'Your account is safe');
      for (const ended of [session, thief]) expect(await isAlive(call, ended)).toBe(false);

      await page.goto(await mailedLink(stack, person.email, 'Reset your password'));
      await page.getByLabel('New password').fill('Difference-Engine-2');
      await page.getByLabel('New password').press('Enter');
      await heading(page, 'Your password is changed');
      await page.goto(link);
      await press(page, 'This was not me');
      await heading(page, 'This link does not work');
      await page.getByRole('link', { name: 'Set a new password' }).click();
      await heading(page, 'Forgot your password?');
    });
  });
});
