import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { refusalsOf } from '../contract/rig/passkey-scenario.ts';
import { eventsOf, growOld, kindsOf, loggedIn } from '../contract/rig/scenario.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { identityClaims, loginsThrough } from '../provider/login.ts';
import { until } from '../rig/until.ts';
import { focused, heading, inBrowser, openRow, press, reachAndPress, said } from './browser.ts';
import { addAuthenticator } from './virtual-authenticator.ts';

/** Passkeys on the log-in and Security pages, with Chromium's virtual authenticators. */
const acme = await startHostileProvider();
afterAll(() => acme.close());

const PHONE = { width: 360, height: 740 };

const entries = (page: Page) => page.getByRole('region', { name: 'Passkeys' }).getByRole('listitem');
const expectNoOverflow = async (page: Page) =>
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);

async function add(page: Page): Promise<void> {
  await page.goto('/dashboard/security#passkeys');
  await press(page, 'Add a passkey');
  await said(page, 'status', 'The passkey was added.');
}

/** Opens the log-in page in a browser without its session. */
async function openLogIn(page: Page): Promise<void> {
  await page.context().clearCookies({ name: 'auth_session' });
  // A suggested passkey may log in before everything has loaded.
  await page.goto('/login', { waitUntil: 'commit' });
}

/** Passkeys by button only: a virtual authenticator answers a suggestion immediately. */
const suggestNone = (page: Page) =>
  page.addInitScript('PublicKeyCredential.isConditionalMediationAvailable = async () => false');

/** Makes the page record in `asked` how each passkey request ended. */
const observeRequests = (page: Page) =>
  page.addInitScript(`
    const get = navigator.credentials.get.bind(navigator.credentials);
    globalThis.asked = [];
    navigator.credentials.get = (options) => {
      const request = { mediation: options.mediation ?? 'modal', end: undefined };
      asked.push(request);
      const answer = get(options);
      answer.catch((error) => { request.end = error.name; });
      return answer;
    };
  `);

const NOT_USED = 'No passkey was used';

inBrowser(
  ['real'],
  (scenario) => {
    test('a user adds and names a passkey by keyboard, logs in by autofill and by button, and removes it', async () => {
      const { stack, visit } = scenario();
      const { session, id } = await loggedIn(scenario());
      await visit(
        async (page) => {
          const authenticator = await addAuthenticator(page);
          await page.goto('/dashboard/security#passkeys');
          await reachAndPress(page, 'Add a passkey');
          await said(page, 'status', 'The passkey was added.');
          await reachAndPress(page, 'Rename');
          await reachAndPress(page, 'Cancel');
          await focused(page, 'Passkeys');
          await reachAndPress(page, 'Rename');
          await page.getByLabel('Name of this passkey').and(page.locator(':focus')).waitFor();
          await page.keyboard.type('My laptop');
          await page.keyboard.press('Enter');
          await entries(page).filter({ hasText: 'My laptop' }).waitFor();
          await focused(page, 'Passkeys');
          expect(await entries(page).first().innerText()).toMatch(/Added on .*, not used yet\./);

          await press(page, 'Add a passkey');
          await said(page, 'alert', 'This device already has a passkey for your account.');
          await expectNoOverflow(page);

          await openLogIn(page);
          await heading(page, 'Your profile');
          expect((await eventsOf(stack, id, 'logged-in')).at(-1)).toMatchObject({ method: 'passkey' });

          await page.goto('/dashboard/security#passkeys');
          expect(await entries(page).first().innerText()).toContain('last used on');
          await reachAndPress(page, 'Remove');
          await said(page, 'status', 'The passkey “My laptop” was removed.');
          expect(await entries(page).count()).toBe(0);
          expect(await page.evaluate('document.activeElement.textContent')).toBe('Passkeys');
          expect(await kindsOf(stack, id)).toEqual(expect.arrayContaining(['passkey-added', 'passkey-removed']));

          // The page has told the browser.
          await until(async () => (await authenticator.credentials()).length === 0, { what: 'no passkey' });
        },
        { session, viewport: PHONE },
      );
    });

    test('a failed user verification, a cancellation or a copied passkey shows a clear error', async () => {
      const { stack, visit } = scenario();
      const { session, id } = await loggedIn(scenario());
      await visit(
        async (page) => {
          await suggestNone(page);
          const authenticator = await addAuthenticator(page, { isUserVerified: false });
          await page.goto('/dashboard/security#passkeys');
          await press(page, 'Add a passkey');
          await said(page, 'alert', 'No passkey was created');
          await authenticator.setUserVerified(true);
          await add(page);

          await openLogIn(page);
          await authenticator.setUserVerified(false);
          await press(page, 'Log in with a passkey');
          await said(page, 'alert', NOT_USED);

          await authenticator.setUserVerified(true);
          const credentials = await authenticator.credentials();
          await press(page, 'Log in with a passkey');
          await heading(page, 'Your profile');
          await openLogIn(page);
          await authenticator.keep(credentials.map((credential) => ({ ...credential, signCount: 0 })));
          await press(page, 'Log in with a passkey');
          await said(page, 'alert', 'This passkey was not accepted.');
          expect(await refusalsOf(stack, id, 1)).toEqual([{ reason: 'cloned-passkey' }]);

          await authenticator.keep([]);
          await press(page, 'Log in with a passkey');
          await said(page, 'alert', NOT_USED);
        },
        { session },
      );
    });

    test('a sensitive change is confirmed by the user’s own passkey only', async () => {
      const { stack, visit } = scenario();
      const [mine, theirs] = [await loggedIn(scenario()), await loggedIn(scenario())];
      await visit(
        async (page) => {
          const authenticator = await addAuthenticator(page);
          await add(page);
          const others = await authenticator.credentials();
          await page.context().clearCookies();
          await page
            .context()
            .addCookies([{ name: 'auth_session', value: mine.session, url: stack.appUrl, httpOnly: true }]);
          await page.reload();
          await authenticator.keep([]);
          await add(page);
          const own = await authenticator.credentials();

          await growOld(stack, mine.id);
          await authenticator.keep(others);
          await press(page, 'Remove');
          await press(page, 'Confirm with a passkey');
          await said(page, 'alert', NOT_USED);
          await authenticator.keep(own);
          await press(page, 'Confirm with a passkey');
          await said(page, 'status', 'was removed.');
          expect((await eventsOf(stack, mine.id, 'reauthenticated')).at(-1)).toEqual({ method: 'passkey' });
        },
        { session: theirs.session },
      );
    });

    test('a user of a provider adds a passkey, unlinks the provider, and needs no password', async () => {
      const { stack, visit } = scenario();
      const { session } = await loginsThrough(acme)(stack, identityClaims({ picture: undefined }));
      await visit(
        async (page) => {
          await addAuthenticator(page);
          await add(page);
          await openRow(page, 'Linked logins');
          await press(page, 'Unlink');
          await said(page, 'status', 'Acme was unlinked.');
          await openRow(page, 'Passkeys');
          await press(page, 'Remove');
          await said(page, 'alert', 'This is your only login method.');
          await openLogIn(page);
          await heading(page, 'Your profile');

          await page.goto('/dashboard/security#passkeys');
          const { id } = (await scenario().call('profile.get', undefined, { session: await sessionOf(page) })).data
            .user;
          await growOld(stack, id);
          await openRow(page, 'Authenticator app');
          await press(page, 'Set up an app');
          await heading2(page, 'Confirm your identity');
          expect(await page.getByLabel('Your password').count()).toBe(0);
          await press(page, 'Confirm with a passkey');
          await page.getByRole('heading', { name: 'Scan the QR code' }).waitFor();
        },
        { session: session ?? '', elsewhere: [acme.url] },
      );
    });

    test('autofill is cancelled when the button is pressed', async () => {
      await scenario().visit(async (page) => {
        await observeRequests(page);
        await addAuthenticator(page, { isPresent: false });
        await page.goto('/login');
        await until(() => page.evaluate('asked.length === 1'));
        await press(page, 'Log in with a passkey');
        await until(() => page.evaluate('asked.length === 2 && asked[0].end'));
        expect(await page.evaluate('asked')).toEqual([
          { mediation: 'conditional', end: 'AbortError' },
          { mediation: 'modal' },
        ]);
        expect(await page.getByRole('alert').count()).toBe(0);
      });
    });

    test('autofill is renewed before its challenge expires', async () => {
      await scenario().visit(async (page) => {
        await addAuthenticator(page, { isPresent: false });
        await page.clock.install();
        const begun = () => page.waitForResponse(/auth\.beginPasskey/);
        const first = begun();
        await page.goto('/login');
        await first;
        await page.clock.fastForward('04:30');
        const second = begun();
        await page.getByLabel('Email').focus();
        expect((await second).status()).toBe(200);
      });
    });

    test('browsers without WebAuthn, and non-public hosts, show no passkeys', async () => {
      const { stack, visit } = scenario();
      const { session } = await loggedIn(scenario());
      const expectNothing = async (page: Page) => {
        await page.goto('/login');
        await heading(page, 'Log in');
        expect(await page.getByLabel('Email').getAttribute('autocomplete')).toBe('username');
        expect(await page.getByText('passkey').count()).toBe(0);
      };
      await visit(
        async (page) => {
          await page.addInitScript('delete window.PublicKeyCredential');
          await expectNothing(page);
          await page.goto('/second-factor');
          await page.getByRole('button', { name: 'Use a recovery code' }).waitFor();
          expect(await page.getByText('passkey').count()).toBe(0);
          await page.goto('/dashboard/security#passkeys');
          await page.getByRole('heading', { name: 'Authenticator app' }).waitFor();
          expect(await page.getByText('passkey').count()).toBe(0);
        },
        { session },
      );
      await visit(expectNothing, { baseURL: stack.url, elsewhere: [stack.url] });
    });
  },
  { env: environmentFor(acme) },
);

const heading2 = (page: Page, name: string) => page.getByRole('heading', { name }).waitFor();
const sessionOf = async (page: Page) =>
  (await page.context().cookies()).find(({ name }) => name === 'auth_session')?.value ?? '';
