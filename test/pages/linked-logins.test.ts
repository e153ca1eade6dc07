import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { growOld, loggedIn } from '../contract/rig/scenario.ts';
import {
  type Claims,
  environmentFor,
  namedEnvironmentFor,
  secondsFromNow,
  startHostileProvider,
} from '../provider/hostile.ts';
import { identityClaims, loginsThrough, usersWith } from '../provider/login.ts';
import { focused, inBrowser, press, reachAndPress, said } from './browser.ts';
import { addAuthenticator } from './virtual-authenticator.ts';

/** The card “Linked logins” of the Security page, with two providers. */
const acme = await startHostileProvider();
const work = await startHostileProvider();
afterAll(() => Promise.all([acme.close(), work.close()]));

const elsewhere = [acme.url, work.url];
const PHONE = { width: 360, height: 740 };

/** What the user does on a provider's page, once the browser is there. */
async function atProvider(page: Page, provider: typeof acme, claims: Claims): Promise<void> {
  await page.waitForURL(`${provider.url}/authorize?*`);
  const next = provider.authorize(new URL(page.url()), { ...claims, auth_time: secondsFromNow(0) });
  await page.evaluate(`location.href = ${JSON.stringify(next.href)}`);
  await page.waitForURL('**/dashboard/**');
}

/** The linked ones. */
const entries = (page: Page) =>
  page
    .getByRole('region', { name: 'Linked logins' })
    .getByRole('listitem')
    .filter({ has: page.getByRole('button', { name: /^Unlink/ }) });

inBrowser(
  ['real'],
  (scenario) => {
    test('a user links two logins and unlinks one, by keyboard, after confirming the password in place', async () => {
      const { stack, visit } = scenario();
      const { session, password, id } = await loggedIn(scenario());
      const [first, second] = [identityClaims({ picture: undefined }), identityClaims({ picture: undefined })];
      await visit(
        async (page) => {
          await page.goto('/dashboard/security#logins');
          await page.getByRole('region', { name: 'Linked logins' }).getByText('None').waitFor();
          await reachAndPress(page, 'Link Acme');
          await atProvider(page, acme, first);
          await said(page, 'status', 'The login with Acme is linked.');
          expect(new URL(page.url()).search).toBe('');
          await reachAndPress(page, 'Link another login with Acme');
          await atProvider(page, acme, first);
          await said(page, 'status', 'The login with Acme was already linked. Nothing has changed.');
          await page.reload();
          await entries(page).first().waitFor();
          expect(await page.getByRole('status').filter({ hasText: 'linked' }).count()).toBe(0);
          await reachAndPress(page, 'Link Work');
          await atProvider(page, work, second);
          await entries(page).nth(1).waitFor();
          expect(await entries(page).allInnerTexts()).toEqual([
            expect.stringContaining(`Acme – ${first.email}`),
            expect.stringContaining(`Work – ${second.email}`),
          ]);

          await growOld(stack, id);
          await reachAndPress(page, 'Unlink');
          await page.getByRole('heading', { name: 'Confirm your identity' }).waitFor();
          await page.getByLabel('Your password').fill(password);
          await page.keyboard.press('Enter');
          await said(page, 'status', 'Acme was unlinked.');
          await page.getByText('The login with Work is linked.').waitFor({ state: 'detached' });
          expect(await entries(page).count()).toBe(1);
          expect(await page.evaluate('document.activeElement.textContent')).toBe('Linked logins');
          await page.reload();
          await entries(page).filter({ hasText: 'Work' }).waitFor();
          expect(await entries(page).count()).toBe(1);
        },
        { session, elsewhere },
      );
    });

    test('on a phone: the only login cannot be unlinked, another user’s is refused, and a provider login confirms', async () => {
      const { stack, visit } = scenario();
      const [mine, theirs] = [identityClaims({ picture: undefined }), identityClaims({ picture: undefined })];
      await loginsThrough(acme)(stack, theirs);
      const { session } = await loginsThrough(acme)(stack, mine);
      const [user] = await usersWith(stack, mine.email);
      await visit(
        async (page) => {
          await page.goto('/dashboard/security#logins');
          await entries(page).first().waitFor();
          expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width);
          await press(page, 'Unlink');
          await said(page, 'alert', 'This is your only login method.');

          await press(page, 'Link another login with Acme');
          await atProvider(page, acme, theirs);
          await said(page, 'alert', 'That login belongs to another account.');
          await entries(page).first().waitFor();
          expect(await entries(page).count()).toBe(1);

          await press(page, 'Link Work');
          await atProvider(page, work, identityClaims({ picture: undefined }));
          await entries(page).nth(1).waitFor();

          await growOld(stack, user?.id ?? '');
          await entries(page).nth(1).getByRole('button', { name: 'Unlink' }).click();
          await page.getByRole('link', { name: 'Confirm with Acme' }).click();
          await atProvider(page, acme, theirs);
          await said(page, 'alert', 'with a different account');
          await entries(page).nth(1).getByRole('button', { name: 'Unlink' }).click();
          await page.getByRole('link', { name: 'Confirm with Acme' }).click();
          await atProvider(page, acme, mine);
          // The second of two buttons with this label.
          await said(page, 'status', 'Welcome back. Press “Unlink” again.');
          await focused(page, 'Unlink');
          await page.keyboard.press('Enter');
          await said(page, 'status', 'Work was unlinked.');
        },
        { session: session ?? '', elsewhere, viewport: PHONE },
      );
    });

    test('a user who confirms at a provider is led back to the button that was pressed, in a card or beside others', async () => {
      const { stack, visit } = scenario();
      const claims = identityClaims({ picture: undefined });
      const { session } = await loginsThrough(acme)(stack, claims);
      const [user] = await usersWith(stack, claims.email);
      await visit(
        async (page) => {
          await addAuthenticator(page);
          await page.goto('/dashboard/security#passkeys');
          await press(page, 'Add a passkey');
          await said(page, 'status', 'The passkey was added.');
          for (const [row, label] of [
            ['passkeys', 'Add a passkey'],
            ['passkeys', 'Remove'],
            ['app', 'Set up an app'],
          ] as const) {
            await growOld(stack, user?.id ?? '');
            await page.goto(`/dashboard/security#${row}`);
            await press(page, label);
            await page.getByRole('link', { name: 'Confirm with Acme' }).click();
            await atProvider(page, acme, claims);
            await said(page, 'status', `Welcome back. Press “${label}” again.`);
            await focused(page, label);
          }
        },
        { session: session ?? '', elsewhere },
      );
    });

    // checks: 24
    test('a link from another site starts nothing', async () => {
      const { stack, visit } = scenario();
      const { session, id } = await loggedIn(scenario());
      await visit(
        async (page) => {
          await page.goto(`${acme.url}/page`);
          await page.evaluate(`location.href = ${JSON.stringify(`${stack.appUrl}/auth/acme?link=1`)}`);
          // The request carries no Strict cookie.
          await page.waitForURL('**/login**');
          expect((await page.context().cookies()).map(({ name }) => name)).not.toContain('acme_oauth_state');
          await growOld(stack, id);
          await page.goto('/auth/acme?link=1');
          await said(page, 'alert', 'Start here');
        },
        { session, elsewhere },
      );
    });
  },
  { env: { ...environmentFor(acme), ...namedEnvironmentFor(work, 'work') } },
);
