import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { pagePaths } from '../../server/shared/page-paths.ts';
import type { Language } from '../../server/shared/texts/languages.ts';
import type { TextKey, Write } from '../../server/shared/texts/template.ts';
import { readTexts, writer } from '../../server/texts/index.ts';
import { addPasskey, authenticatorFor, logInByPasskey } from '../contract/rig/passkey-scenario.ts';
import { growOld, logIn, PASSWORD, verified } from '../contract/rig/scenario.ts';
import { codeOf, setUpApp } from '../contract/rig/totp-scenario.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { heading, inBrowser, openRow, press, type Scenario } from './browser.ts';
import { faultsIn, phone } from './page-texts.ts';

/** The dashboard in all languages except English, on a narrow phone. */

const terms = { TERMS_URL: 'https://example.test/terms', PRIVACY_URL: '/privacy', TERMS_VERSION: '2026-11' };
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

const languages = [
  { language: 'de', locale: 'de-DE' },
  { language: 'fr', locale: 'fr-FR' },
  { language: 'es', locale: 'es-ES' },
] as const;

const texts = readTexts(undefined);

interface State {
  path: string;
  title: TextKey;
  /** Finds elements by texts of the language. */
  steps?: (page: Page, write: Write) => Promise<void>;
}

const failed = (button: TextKey) => async (page: Page, write: Write) => {
  await press(page, write(button));
  await page.getByRole('alert').first().waitFor();
};

/** Every page of the dashboard, in the states with texts of their own. */
const states: State[] = [
  { path: pagePaths.dashboard, title: 'dashboard.profile.title' },
  {
    path: pagePaths.dashboard,
    title: 'dashboard.profile.title',
    async steps(page, write) {
      await page.getByLabel(write('dashboard.profile.name'), { exact: true }).fill('');
      await failed('dashboard.profile.save')(page, write);
    },
  },
  { path: `${pagePaths.dashboard}?notice=already-linked`, title: 'dashboard.profile.title' },
  { path: pagePaths.security, title: 'dashboard.parts.security' },
  {
    path: `${pagePaths.security}?error=login_not_fresh`,
    title: 'dashboard.parts.security',
    async steps(page, write) {
      await openRow(page, write('dashboard.passkeys.title'));
      await press(page, write('dashboard.passkeys.rename'));
      await page.getByLabel(write('dashboard.passkeys.name')).fill('');
      await failed('dashboard.passkeys.saveName')(page, write);
      await openRow(page, write('common.password'));
      await failed('dashboard.password.change')(page, write);
      await openRow(page, write('dashboard.app.title'));
      await press(page, write('dashboard.app.renewCodes'));
      await page.getByRole('heading', { name: write('dashboard.confirm.title') }).waitFor();
      await failed('dashboard.confirm.submit')(page, write);
    },
  },
  { path: pagePaths.devices, title: 'dashboard.parts.devices' },
  {
    path: pagePaths.devices,
    title: 'dashboard.parts.devices',
    async steps(page, write) {
      await press(page, write('dashboard.devices.endOthers'));
      await page.getByText(write('dashboard.devices.othersEnded')).waitFor();
    },
  },
  { path: pagePaths.activity, title: 'dashboard.parts.activity' },
  { path: pagePaths.data, title: 'dashboard.parts.data' },
  { path: pagePaths.data, title: 'dashboard.parts.data', steps: failed('dashboard.deletion.delete') },
];

/** A user with a long address and a session, who has accepted the terms. */
async function userWithTerms(scenario: Scenario) {
  const person = { name: 'Ada Lovelace', email: freshEmail('a'.repeat(44)), password: PASSWORD, acceptTerms: true };
  const { id } = await verified(scenario, person);
  return { ...person, id, session: await logIn(scenario.call, person, { headers: { 'user-agent': FIREFOX } }) };
}

/** A user with an app, a passkey and several devices, and with terms to accept. */
async function userWithAll(scenario: Scenario) {
  const { stack, call } = scenario;
  const { id, email, session: first } = await userWithTerms(scenario);
  const { session } = await setUpApp(scenario, { id, session: first });
  const authenticator = authenticatorFor(stack);
  await addPasskey(call, session, authenticator);
  for (let i = 0; i < 2; i++) await logInByPasskey(call, authenticator);
  await call('auth.login', { email, password: 'Wrong-1' });
  await call('profile.update', { bio: 'Notes', location: 'London' }, { session });
  await stack.database('update consents set version = ? where user_id = ?', ['2025-01', id]);
  await growOld(stack, id);
  return { session };
}

const expectIn = async (language: Language, page: Page) => expect(await faultsIn(page, language)).toEqual([]);

inBrowser(
  ['embedded'],
  (scenario) => {
    test.each(languages)('every page is in $language and fits the screen', async ({ language, locale }) => {
      const { session } = await userWithAll(scenario());
      const write = writer(texts, language);
      await scenario().visit(
        async (page) => {
          for (const { path, title, steps } of states) {
            await page.goto(path, { waitUntil: 'networkidle' });
            await heading(page, write(title));
            await steps?.(page, write);
            await expectIn(language, page);
          }
        },
        { session, locale, viewport: phone },
      );
    });

    test.each(languages)(
      'setting up an app and deleting the account are in $language',
      async ({ language, locale }) => {
        const { session, email } = await userWithTerms(scenario());
        const write = writer(texts, language);
        await scenario().visit(
          async (page) => {
            await page.goto(`${pagePaths.security}#app`, { waitUntil: 'networkidle' });
            await expectIn(language, page);
            await press(page, write('dashboard.app.setUp'));
            const secret = await page.locator('#app-secret code').innerText();
            await expectIn(language, page);
            await press(page, write('dashboard.appSetup.next'));
            await failed('dashboard.appSetup.turnOn')(page, write);
            await expectIn(language, page);
            await page.getByLabel(write('dashboard.appSetup.code')).fill(codeOf(secret.replaceAll(' ', '')));
            await page.getByRole('heading', { name: write('dashboard.recoveryCodes.title') }).waitFor();
            await expectIn(language, page);
            await press(page, write('dashboard.recoveryCodes.close'));
            await press(page, write('dashboard.app.turnOff'));
            await page.getByText(write('dashboard.app.turnedOff')).waitFor();
            await expectIn(language, page);

            await page.goto(pagePaths.data);
            await page.getByLabel(write('dashboard.deletion.confirmation')).fill(email);
            await press(page, write('dashboard.deletion.delete'));
            await heading(page, write('dashboard.farewell.title'));
            await expectIn(language, page);
          },
          { session, locale, viewport: phone },
        );
      },
    );
  },
  { env: terms },
);
