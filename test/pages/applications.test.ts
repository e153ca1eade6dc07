import { createServer } from 'node:http';
import * as client from 'openid-client';
import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { LANGUAGE_COOKIE, type Language } from '../../server/shared/texts/languages.ts';
import { readTexts, writer } from '../../server/texts/index.ts';
import { deviceParty, refused, relyingParty } from '../contract/rig/relying-party.ts';
import { loggedIn, PASSWORD, verified } from '../contract/rig/scenario.ts';
import { setUpApp } from '../contract/rig/totp-scenario.ts';
import { freePort } from '../rig/servers/port.ts';
import { findings } from './axe.ts';
import { heading, inBrowser, press, said } from './browser.ts';

/** A login to another application, from its site and back, and the page of the applications with access. */
const port = await freePort();
/** Another site than that of the service, `localhost`. */
const SHOP = `http://127.0.0.1:${port}`;
const CALLBACK = `${SHOP}/callback`;
const elsewhere = [SHOP];
const texts = readTexts(undefined);
const shop = createServer((_request, response) => {
  response
    .setHeader('Content-Type', 'text/html')
    .end('<!doctype html><link rel="icon" href="data:,"><h1>The shop</h1>');
}).listen(port, '127.0.0.1');
afterAll(() => shop.close());

const arrived = async (page: Page) => {
  await page.waitForURL(`${CALLBACK}?*`);
  return new URL(page.url());
};

inBrowser(['real'], (scenario) => {
  const asked = async (given: object = {}) => {
    const party = await relyingParty(scenario(), { redirectUris: [CALLBACK], ...given });
    const verifier = client.randomPKCECodeVerifier();
    const begin = async (page: Page, parameters: Record<string, string> = {}) => {
      const url = client.buildAuthorizationUrl(party.config, await party.parameters(verifier, parameters));
      // As a click there: the Strict cookie stays behind.
      await page.evaluate(`location.href = ${JSON.stringify(url.href)}`);
    };
    return { party, verifier, begin };
  };

  test.each([320, 1280])('a user logs in, allows it and is back, at %i px', async (width) => {
    const { party, verifier, begin } = await asked();
    const { email, id } = await verified(scenario());
    await scenario().visit(
      async (page) => {
        await page.goto(SHOP);
        await begin(page);
        await heading(page, 'Log in');
        await page.getByLabel('Email').fill(email);
        await page.getByLabel('Password').fill(PASSWORD);
        await press(page, 'Log in');
        await heading(page, 'Log in to Shop');
        await page.getByText(email).waitFor();
        await page.getByText('your email address').waitFor();
        expect(await findings(page)).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
        await press(page, 'Allow');
        const tokens = await party.redeem(await arrived(page), verifier);
        expect(tokens.claims()?.sub).toBe(id);
      },
      { viewport: { width, height: 740 }, elsewhere },
    );
  });

  test('a user with a session is sent back without a word, once it was allowed', async () => {
    const { begin } = await asked();
    const { session } = await loggedIn(scenario());
    await scenario().visit(
      async (page) => {
        await page.goto(SHOP);
        await begin(page);
        await heading(page, 'Log in to Shop');
        // The second of two presses does nothing.
        const answers: string[] = [];
        const answer = Promise.withResolvers<void>();
        await page.route('**/trpc/authorizations.proceed*', async (route) => {
          answers.push(route.request().postData() ?? '');
          await answer.promise;
          await route.continue();
        });
        await press(page, 'Do not allow');
        await press(page, 'Allow');
        answer.resolve();
        expect((await arrived(page)).searchParams.get('error')).toBe('access_denied');
        expect(answers).toEqual([expect.stringContaining('"allow":false')]);
        await begin(page);
        await press(page, 'Allow');
        expect((await arrived(page)).searchParams.has('code')).toBe(true);
        await begin(page, { prompt: 'none', state: 'silent' });
        await page.waitForURL((url) => url.searchParams.get('state') === 'silent' && url.searchParams.has('code'));
        await page.goto('/dashboard/applications');
        await heading(page, 'Applications');
        await page.getByText('Shop').waitFor();
        expect(await findings(page)).toEqual([]);
        await press(page, 'End access');
        await page.getByText('No application has access to your account.').waitFor();
        await page.goto(SHOP);
        await begin(page, { prompt: 'none' });
        await page.waitForURL((url) => url.searchParams.get('error') === 'consent_required');
      },
      { session, elsewhere },
    );
  });

  test('an application logs a user out, who is asked without its ID token', async () => {
    const { party, begin, verifier } = await asked({ trusted: true, postLogoutRedirectUris: [`${SHOP}/goodbye`] });
    const user = await loggedIn(scenario());
    const leave = async (page: Page, parameters: Record<string, string> = {}) => {
      await page.goto(SHOP);
      const url = client.buildEndSessionUrl(party.config, parameters);
      await page.evaluate(`location.href = ${JSON.stringify(url.href)}`);
    };
    await scenario().visit(
      async (page) => {
        await leave(page);
        await heading(page, 'Log out?');
        await page.getByText(user.email).waitFor();
        expect(await findings(page)).toEqual([]);
        await page.getByRole('link', { name: 'Stay logged in' }).click();
        await page.waitForURL('**/dashboard');
        await page.goto(SHOP);
        await begin(page);
        const { id_token: hint = '' } = await party.redeem(await arrived(page), verifier);
        await leave(page, {
          id_token_hint: hint,
          post_logout_redirect_uri: `${SHOP}/goodbye`,
          state: 'the-state',
        });
        await page.waitForURL(`${SHOP}/goodbye?state=the-state`);
        await leave(page);
        await page.getByText('You are logged out.').waitFor();
        expect(await page.context().cookies()).not.toContainEqual(expect.objectContaining({ name: 'auth_session' }));
      },
      { session: user.session, elsewhere },
    );
  });

  test('a user who has added a second factor is asked for consent', async () => {
    const { begin } = await asked();
    const user = await loggedIn(scenario());
    await scenario().visit(
      async (page) => {
        await page.goto(SHOP);
        await begin(page, { acr_values: 'mfa' });
        await heading(page, 'Log in to Shop');
        const { session } = await setUpApp(scenario(), user);
        const cookie = { name: 'auth_session', value: session, url: scenario().stack.appUrl };
        await page.context().addCookies([{ ...cookie, httpOnly: true, sameSite: 'Strict' }]);
        await press(page, 'Try again');
        await page.getByText('your email address').waitFor();
        await press(page, 'Allow');
        expect((await arrived(page)).searchParams.has('code')).toBe(true);
      },
      { session: user.session, elsewhere },
    );
  });

  test('an application names the address and the language, which the user may change', async () => {
    const { begin } = await asked();
    const { email, session } = await loggedIn(scenario());
    await scenario().visit(
      async (page) => {
        const write = (language: Language) => writer(texts, language);
        await page.goto(SHOP);
        await begin(page, { login_hint: email, ui_locales: 'ja fr-CA de' });
        await heading(page, write('fr')('entry.logIn.title'));
        expect(await page.getByLabel(write('fr')('common.email')).inputValue()).toBe(email);
        await page.getByLabel(write('fr')('common.password')).fill(PASSWORD);
        await press(page, write('fr')('entry.logIn.action'));
        await heading(page, write('fr')('entry.authorize.title', { application: 'Shop' }));
        expect((await page.context().cookies()).filter(({ name }) => name === LANGUAGE_COOKIE)).toEqual([]);
        expect((await scenario().call('profile.language', undefined, { session })).data).toEqual({ language: null });
        await page.getByRole('combobox').selectOption('de');
        await heading(page, write('de')('entry.authorize.title', { application: 'Shop' }));
        expect((await scenario().call('profile.language', undefined, { session })).data).toEqual({ language: 'de' });
      },
      { elsewhere },
    );
  });

  test('the language that the user chooses at the login stays, whatever the application asked for', async () => {
    const { begin } = await asked();
    const { email } = await verified(scenario());
    await scenario().visit(
      async (page) => {
        await page.goto(SHOP);
        await begin(page, { ui_locales: 'es', prompt: 'login' });
        await heading(page, texts.es['entry.logIn.title'] as string);
        await page.getByRole('combobox').selectOption('de');
        await heading(page, texts.de['entry.logIn.title'] as string);
        await page.getByLabel('E-Mail').fill(email);
        await page.getByLabel('Passwort').fill(PASSWORD);
        await press(page, 'Anmelden');
        await heading(page, writer(texts, 'de')('entry.authorize.title', { application: 'Shop' }));
      },
      { elsewhere },
    );
  });

  test.each([320, 1280])('a user enters the code of a device, logs in and allows it, at %i px', async (width) => {
    const { begin, redeem } = await deviceParty(scenario());
    const { email, id } = await verified(scenario());
    const codes = await begin();
    await scenario().visit(
      async (page) => {
        await page.goto(codes.verification_uri_complete ?? '');
        await heading(page, 'Log in');
        await page.getByLabel('Email').fill(email);
        await page.getByLabel('Password').fill(PASSWORD);
        await press(page, 'Log in');
        await heading(page, 'Connect a device');
        expect(await page.getByLabel('Code').inputValue()).toBe(codes.user_code);
        await page.getByLabel('Code').fill(codes.user_code.toLowerCase().replace('-', ''));
        await page.getByLabel('Code').press('Enter');
        await heading(page, 'Allow Shop on a device?');
        await page.getByText(email).waitFor();
        await page.getByText('your email address').waitFor();
        await page.getByText(codes.user_code).waitFor();
        await said(page, 'alert', 'Continue only if you started this on a device of your own.');
        await press(page, 'Allow');
        await heading(page, 'The device is connected');
        expect((await redeem(codes)).claims()?.sub).toBe(id);
      },
      { viewport: { width, height: 740 } },
    );
  });

  test('the user whom another tab has logged in is asked before a device is connected', async () => {
    const { begin, redeem } = await deviceParty(scenario());
    const { session, email } = await loggedIn(scenario());
    const other = await loggedIn(scenario());
    const codes = await begin();
    await scenario().visit(
      async (page) => {
        await page.goto(codes.verification_uri_complete ?? '');
        await press(page, 'Continue');
        await page.getByText(email).waitFor();
        await page.request.post('/auth/login', { data: { email: other.email, password: PASSWORD } });
        await press(page, 'Allow');
        await heading(page, 'Connect a device');
        expect(await page.getByLabel('Code').inputValue()).toBe(codes.user_code);
        await press(page, 'Continue');
        await page.getByText(other.email).waitFor();
        await press(page, 'Allow');
        await heading(page, 'The device is connected');
        expect((await redeem(codes)).claims()?.sub).toBe(other.id);
      },
      { session },
    );
  });

  test('a wrong code says so, and a device that is not allowed gets nothing', async () => {
    const { begin, redeem } = await deviceParty(scenario());
    const { session } = await loggedIn(scenario());
    const codes = await begin();
    await scenario().visit(
      async (page) => {
        await page.goto('/device');
        await page.getByLabel('Code').fill('BBBB-BBBB');
        await press(page, 'Continue');
        await said(page, 'alert', 'This code is not valid or has expired.');
        await page.getByLabel('Code').fill(codes.user_code);
        await press(page, 'Continue');
        await press(page, 'Do not allow');
        await heading(page, 'Access was denied');
        expect(await refused(redeem(codes))).toBe('access_denied');
      },
      { session },
    );
  });

  test('an expired request says so', async () => {
    await scenario().visit(async (page) => {
      await page.goto('/authorize?id=unknown');
      await heading(page, 'This login has expired');
    });
  });
});
