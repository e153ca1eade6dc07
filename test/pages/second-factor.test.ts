import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { eventsOf, growOld, loggedIn, PASSWORD } from '../contract/rig/scenario.ts';
import { codeOf, firstStep, forgetLastCode, setUpApp, withApp, wrongCode } from '../contract/rig/totp-scenario.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { identityClaims, loginsThrough, usersWith } from '../provider/login.ts';
import { until } from '../rig/until.ts';
import { heading, inBrowser, openRow, press, reachAndPress, said } from './browser.ts';
import { addAuthenticator } from './virtual-authenticator.ts';

/** The authenticator app on the Security page, and the second step of a login. */
const acme = await startHostileProvider();
afterAll(() => acme.close());

const PHONE = { width: 360, height: 740 };

const app = (page: Page) => page.getByRole('region', { name: 'Authenticator app' });
const expectNoOverflow = async (page: Page) =>
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);

/** The first step, by password. */
async function logInAs(page: Page, { email }: { email: string }): Promise<void> {
  await page.context().clearCookies({ name: 'auth_session' });
  await page.goto('/login');
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Log in');
  await heading(page, 'One more step');
}

const codesShown = (page: Page) => page.locator('.codes li').allInnerTexts();

inBrowser(
  ['real'],
  (scenario) => {
    test('a user turns an app on by keyboard on a phone, with a code for the shown secret, and needs it from then on', async () => {
      const { stack, visit } = scenario();
      const user = await loggedIn(scenario());
      await visit(
        async (page) => {
          await page.goto('/dashboard/security');
          await app(page).getByText('Off').waitFor();
          await openRow(page, 'Authenticator app');
          await reachAndPress(page, 'Set up an app');
          const qr = app(page).getByRole('img', { name: 'QR code' });
          await qr.waitFor();
          expect(
            await page.evaluate(
              "document.querySelector('.qr').decode().then(() => document.querySelector('.qr').naturalWidth)",
            ),
          ).toBeGreaterThan(0);
          const secret = (await app(page).locator('code').innerText()).replaceAll(' ', '');
          await expectNoOverflow(page);

          await reachAndPress(page, 'Continue');
          const field = app(page).getByLabel('Six-digit code from the app');
          await field.fill(wrongCode(secret));
          await said(page, 'alert', 'This code is wrong.');
          expect(await field.inputValue()).toBe('');
          // The page asks anew what is on, and shows the codes meanwhile.
          const answer = Promise.withResolvers<void>();
          await page.route('**/trpc/*totp.status*', async (route) => {
            await answer.promise;
            await route.continue();
          });
          await field.fill(codeOf(secret));
          await page.getByRole('heading', { name: 'Save your recovery codes' }).waitFor();
          expect(await app(page).getByRole('button', { name: 'Set up an app' }).count()).toBe(0);
          answer.resolve();
          expect(await codesShown(page)).toHaveLength(10);
          await expectNoOverflow(page);
          await app(page).getByText('10 recovery codes are left.').waitFor();
          await reachAndPress(page, 'I have saved them');
          expect(await codesShown(page)).toEqual([]);
          expect(await page.evaluate('document.activeElement.textContent')).toBe('Authenticator app');

          await forgetLastCode(stack, user.id);
          await logInAs(page, user);
          await expectNoOverflow(page);
          expect(await page.getByRole('button', { name: 'Use a passkey' }).count()).toBe(0);
          await page.keyboard.type(wrongCode(secret));
          await said(page, 'alert', 'set your phone’s clock to automatic');
          expect(await page.getByLabel('Code').inputValue()).toBe('');
          await page.keyboard.type(codeOf(secret));
          await heading(page, 'Your profile');
          expect((await eventsOf(stack, user.id, 'logged-in')).at(-1)).toMatchObject({ secondFactor: 'totp' });
        },
        { session: user.session, viewport: PHONE },
      );
    });

    test('new recovery codes are copied, saved and printed', async () => {
      const { visit } = scenario();
      const user = await withApp(scenario());
      await visit(
        async (page) => {
          await page.goto('/dashboard/security#app');
          await press(page, 'Create new recovery codes');
          await page.getByRole('heading', { name: 'Save your recovery codes' }).waitFor();
          const codes = await codesShown(page);

          await press(page, 'Copy codes');
          await app(page).getByText('Copied.').waitFor();
          expect(await page.evaluate('navigator.clipboard.readText()')).toBe(codes.join('\n'));
          const saving = page.waitForEvent('download');
          await press(page, 'Download');
          const file = await readFile(await (await saving).path(), 'utf8');
          expect(file).toBe(`Recovery codes for ${user.email}\n\n${codes.join('\n')}\n`);
          await page.evaluate("addEventListener('beforeprint', () => { globalThis.isPrinted = true; })");
          await press(page, 'Print');
          await until(() => page.evaluate('globalThis.isPrinted'));
          await page.emulateMedia({ media: 'print' });
          expect(await page.getByText(codes[0] ?? '').isVisible()).toBe(true);
          expect(await page.getByRole('heading', { level: 1 }).isVisible()).toBe(false);
          await page.emulateMedia({ media: null });
        },
        { session: user.session, permissions: ['clipboard-read', 'clipboard-write'] },
      );
    });

    test('a recovery code completes a login once; a low number is reported; the app is turned off', async () => {
      const { stack, visit } = scenario();
      const user = await withApp(scenario());
      const [first = '', ...rest] = user.recoveryCodes;
      await visit(async (page) => {
        await logInAs(page, user);
        await reachAndPress(page, 'Use a recovery code');
        const field = page.getByLabel('Recovery code');
        await field.and(page.locator(':focus')).waitFor();
        await page.keyboard.type('nonsense');
        await page.keyboard.press('Enter');
        await said(page, 'alert', 'This is not one of your recovery codes');
        await page.keyboard.type(first.toUpperCase());
        await page.keyboard.press('Enter');
        await heading(page, 'Your profile');

        for (const code of rest.slice(0, 6)) {
          await scenario().call(
            'auth.secondFactor',
            { recoveryCode: code },
            { pending: await firstStep(scenario().call, user) },
          );
        }
        await page.goto('/dashboard/security#app');
        await app(page).getByText('3 recovery codes are left. Create new ones').waitFor();
        await press(page, 'Create new recovery codes');
        await app(page).getByText('10 recovery codes are left.').waitFor();
        await press(page, 'I have saved them');
        await press(page, 'Turn off');
        await said(page, 'status', 'The app was turned off.');
        expect(await codesShown(page)).toEqual([]);
        expect((await eventsOf(stack, user.id, 'totp-disabled')).length).toBe(1);
      });
    });

    test('a step of a login that has succeeded is not sent again while the next page is on its way', async () => {
      const { visit } = scenario();
      const user = await withApp(scenario());
      await visit(async (page) => {
        const sent: string[] = [];
        page.on('request', (request) => sent.push(new URL(request.url()).pathname));
        /** Presses Enter again and again until the next page comes. */
        const pressOn = async (next: string) => {
          const pressed = Promise.withResolvers<void>();
          await page.route(next, async (route) => {
            await pressed.promise;
            await route.continue();
          });
          const isComing = page.waitForRequest(next);
          await page.keyboard.press('Enter');
          await isComing;
          for (let i = 0; i < 10; i++) await page.keyboard.press('Enter');
          pressed.resolve();
        };

        await page.goto('/login');
        await page.getByLabel('Email').fill(user.email);
        await page.getByLabel('Password').fill(PASSWORD);
        await pressOn('**/second-factor?*');
        await heading(page, 'One more step');
        await page.getByRole('button', { name: 'Use a recovery code' }).click();
        await page.getByLabel('Recovery code').fill(user.recoveryCodes[0] ?? '');
        await pressOn('**/dashboard');
        await heading(page, 'Your profile');
        expect(sent.filter((path) => /auth\.(?:login|secondFactor)/.test(path))).toEqual([
          '/trpc/auth.login',
          '/trpc/auth.secondFactor',
        ]);
      });
    });

    test('five wrong codes or ten minutes end the login, and the page says so', async () => {
      const { visit } = scenario();
      const user = await withApp(scenario());
      await visit(async (page) => {
        await logInAs(page, user);
        for (let i = 0; i < 5; i++) {
          const answered = page.waitForResponse(/auth\.secondFactor/);
          await page.getByLabel('Code').fill(wrongCode(user.secret));
          await answered;
          await said(page, 'alert', 'This code is wrong');
        }
        await page.getByLabel('Code').fill(codeOf(user.secret));
        await heading(page, 'Log in');
        await said(page, 'alert', 'This login has expired');

        await logInAs(page, user);
        await page.context().clearCookies({ name: 'auth_pending' });
        await page.getByLabel('Code').fill(codeOf(user.secret));
        await said(page, 'alert', 'This login has expired');
      });
    });

    test('a passkey completes a login, and a code confirms a sensitive change', async () => {
      const { stack, visit } = scenario();
      const user = await withApp(scenario());
      await visit(
        async (page) => {
          // With suggestions, the authenticator logs in before anything can be typed.
          await page.addInitScript('PublicKeyCredential.isConditionalMediationAvailable = async () => false');
          const authenticator = await addAuthenticator(page);
          await page.goto('/dashboard/security#passkeys');
          await press(page, 'Add a passkey');
          await said(page, 'status', 'The passkey was added.');
          const own = await authenticator.credentials();

          await logInAs(page, user);
          await authenticator.keep([]);
          await press(page, 'Use a passkey');
          await said(page, 'alert', 'No passkey was used');
          await authenticator.keep(own.map((credential) => ({ ...credential, signCount: 0 })));
          await press(page, 'Use a passkey');
          await said(page, 'alert', 'This passkey was not accepted.');
          await authenticator.keep(own);
          await press(page, 'Use a passkey');
          await heading(page, 'Your profile');
          expect((await eventsOf(stack, user.id, 'logged-in')).at(-1)).toMatchObject({ secondFactor: 'passkey' });

          await growOld(stack, user.id);
          await page.goto('/dashboard/security#passkeys');
          await press(page, 'Remove');
          const field = page.getByLabel('Code from your app');
          await field.fill(wrongCode(user.secret));
          await said(page, 'alert', 'This code is wrong');
          expect(await field.inputValue()).toBe('');
          await field.fill(codeOf(user.secret));
          await said(page, 'status', 'was removed.');
          expect((await eventsOf(stack, user.id, 'reauthenticated')).at(-1)).toEqual({ method: 'totp' });
        },
        { session: user.session },
      );
    });

    test('a provider login leads to the second step, which offers every factor', async () => {
      const { stack, visit } = scenario();
      const claims = identityClaims({ picture: undefined });
      const { session = '' } = await loginsThrough(acme)(stack, claims);
      const [user] = await usersWith(stack, claims.email);
      const { secret } = await setUpApp(scenario(), { id: user?.id ?? '', session });
      await visit(
        async (page) => {
          await page.goto('/auth/acme');
          await page.waitForURL(`${acme.url}/authorize?*`);
          const next = acme.authorize(new URL(page.url()), claims);
          await page.evaluate(`location.href = ${JSON.stringify(next.href)}`);
          await heading(page, 'One more step');
          await page.getByRole('button', { name: 'Use a passkey' }).waitFor();
          await page.getByRole('button', { name: 'Use a recovery code' }).waitFor();
          await page.getByLabel('Code').fill(codeOf(secret));
          await heading(page, 'Your profile');
        },
        { elsewhere: [acme.url] },
      );
    });
  },
  { env: environmentFor(acme) },
);
