import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { pagePaths } from '../../server/page-paths.ts';
import { readTexts, writer } from '../../server/texts/index.ts';
import type { Text, TextKey, Write } from '../../server/texts/template.ts';
import { addPasskey, authenticatorFor, logInByPasskey } from '../contract/passkey-scenario.ts';
import { growOld, logIn, PASSWORD, verified } from '../contract/scenario.ts';
import { setUpApp } from '../contract/totp-scenario.ts';
import { freshEmail } from '../rig/address.ts';
import { heading, inBrowser, press, type Scenario } from './browser.ts';

/** The dashboard in the languages beside English, on a narrow phone. */

const terms = { TERMS_URL: 'https://example.test/terms', PRIVACY_URL: '/privacy', TERMS_VERSION: '2026-11' };
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

const languages = [
  { language: 'de', locale: 'de-DE' },
  { language: 'fr', locale: 'fr-FR' },
  { language: 'es', locale: 'es-ES' },
] as const;

const texts = readTexts(undefined);
const formsOf = (text: Text): string[] => (typeof text === 'string' ? [text] : Object.values(text));

interface State {
  path: string;
  title: TextKey;
  /** By texts of the language. */
  steps?: (page: Page, write: Write) => Promise<void>;
}

const failed = (button: TextKey) => async (page: Page, write: Write) => {
  await press(page, write(button));
  await page.getByRole('alert').first().waitFor();
};

/** Every page of the dashboard, in the states that have texts of their own. */
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
      await press(page, write('dashboard.passkeys.rename'));
      await page.getByLabel(write('dashboard.passkeys.name')).fill('');
      await failed('dashboard.passkeys.saveName')(page, write);
      await failed('dashboard.password.change')(page, write);
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

/** A user with an app, a passkey, a long address, several devices, and terms to accept. */
async function userWithAll({ stack, call }: Scenario) {
  const person = { name: 'Ada Lovelace', email: freshEmail('a'.repeat(44)), password: PASSWORD, acceptTerms: true };
  const { id } = await verified({ stack, call }, person);
  const session = await logIn(call, person, { headers: { 'user-agent': FIREFOX } });
  const app = await setUpApp({ stack, call }, { id, session });
  const authenticator = authenticatorFor(stack);
  await addPasskey(call, app.session, authenticator);
  for (let i = 0; i < 2; i++) await logInByPasskey(call, authenticator);
  await call('auth.login', { email: person.email, password: 'Wrong-1' });
  await call('profile.update', { bio: 'Notes', location: 'London' }, { session: app.session });
  await stack.database('update consents set version = ? where user_id = ?', ['2025-01', id]);
  await growOld(stack, id);
  return { session: app.session };
}

/** What is written on a page, and what screen readers say. */
const wordsOn = async (page: Page): Promise<string[]> =>
  page.evaluate(`[...document.querySelectorAll('body, body :not(script)')]
    .flatMap((element) => [
      ...[...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data),
      element.ariaLabel ?? '',
      element.alt ?? '',
    ])
    .map((words) => words.trim())
    .filter((words) => words !== '')`);

/** The buttons whose labels do not fit into them. */
const cutLabelsOn = async (page: Page): Promise<string[]> =>
  page.evaluate(`[...document.querySelectorAll('button, .button')]
    .filter((button) => button.scrollWidth > button.clientWidth)
    .map((button) => button.textContent)`);

inBrowser(
  ['embedded'],
  (scenario) => {
    test.each(languages)(
      'every page is in $language, and nothing is wider than the screen',
      async ({ language, locale }) => {
        const { session } = await userWithAll(scenario());
        const write = writer(texts, language);
        const own = new Set(Object.values(texts[language]).flatMap(formsOf));
        const english = new Set(
          Object.values(texts.en)
            .flatMap(formsOf)
            .filter((form) => !own.has(form)),
        );
        await scenario().visit(
          async (page) => {
            for (const { path, title, steps } of states) {
              await page.goto(path, { waitUntil: 'networkidle' });
              await heading(page, write(title));
              await steps?.(page, write);
              expect(await page.locator('html').getAttribute('lang')).toBe(language);
              const words = [await page.title(), ...(await wordsOn(page))];
              expect(words.filter((one) => /\{\w+\}|\b(common|dashboard)\.\w/.test(one) || english.has(one))).toEqual(
                [],
              );
              expect(await cutLabelsOn(page)).toEqual([]);
              expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
            }
          },
          { session, locale, viewport: { width: 320, height: 640 } },
        );
      },
      120_000,
    );
  },
  { env: terms },
);
