import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { LANGUAGE_COOKIE, type Language, languageNames, languages } from '../../server/shared/texts/languages.ts';
import type { TextKey, Write } from '../../server/shared/texts/template.ts';
import { readTexts, writer } from '../../server/texts/index.ts';
import { loggedIn, PASSWORD, registered } from '../contract/rig/scenario.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { applicationPages, expectClean } from './application-pages.ts';
import { findings } from './axe.ts';
import { heading, inBrowser, mailedLink, press, said } from './browser.ts';
import { faultsIn, phone } from './page-texts.ts';

const texts = readTexts(undefined);
const locales: Record<Language, string> = { en: 'en-GB', de: 'de-AT', fr: 'fr-CA', es: 'es-MX' };
const picker = (page: Page) => page.getByRole('combobox');

/** Types the values by the keys of their labels, and submits. */
const sent =
  (button: TextKey, typed: Partial<Record<TextKey, string>> = {}) =>
  async (page: Page, write: Write) => {
    for (const [label, value] of Object.entries(typed)) {
      await page.getByLabel(write(label as TextKey), { exact: true }).fill(value);
    }
    await press(page, write(button));
  };

/** The same, with a refusal. */
const refused =
  (...form: Parameters<typeof sent>) =>
  async (page: Page, write: Write) => {
    await sent(...form)(page, write);
    await page.getByRole('alert').first().waitFor();
  };

interface State {
  path: string;
  title: TextKey;
  steps?: (page: Page, write: Write) => Promise<void>;
  /** The title after the steps, if it changes. */
  next?: TextKey;
}

const login = { path: '/login', title: 'entry.logIn.title' } as const;
const register = { path: '/register', title: 'entry.register.title' } as const;
const link = '?token=AAAA&email=ada@example.test';

/** The pages before the login, in the states with texts of their own; the states without a token first, because a reload keeps it. */
const states: State[] = [
  login,
  ...[
    'cancelled',
    'email_unverified',
    'identity_not_linked',
    'second_factor_ended',
    'session_ended',
    'account_blocked',
    'account_deleted',
    'account_removed',
    'registration_closed',
    'oauth_failed',
  ].map((error) => ({ ...login, path: `/login?error=${error}` })),
  { ...login, path: '/login?notice=logged-out' },
  { ...login, path: '/login?notice=logged-out-everywhere' },
  { ...login, steps: refused('entry.logIn.action') },
  {
    ...login,
    steps: refused('entry.logIn.action', { 'common.email': 'nobody@example.test', 'common.password': 'x' }),
  },
  register,
  { ...register, steps: refused('entry.register.submit') },
  {
    ...register,
    steps: refused('entry.register.submit', {
      'entry.register.name': 'A',
      'common.email': 'nobody',
      'common.password': 'short',
    }),
  },
  { ...register, path: `/register${link}` },
  { path: '/register?token=AAAA', title: 'entry.linkRefused' },
  { path: '/second-factor', title: 'entry.secondFactor.title', steps: refused('entry.logIn.action') },
  {
    path: '/second-factor',
    title: 'entry.secondFactor.title',
    async steps(page, write) {
      await press(page, write('entry.secondFactor.recoveryCode.choose'));
      await refused('entry.logIn.action')(page, write);
    },
  },
  { path: '/verify-email', title: 'entry.checkInbox', steps: refused('entry.verifyEmail.resend.submit') },
  { path: '/verify-email', title: 'entry.checkInbox', steps: refused('entry.verifyEmail.submit') },
  { path: '/email-code', title: 'entry.emailCode.title', steps: refused('entry.emailCode.send') },
  {
    path: '/verify-email',
    title: 'entry.checkInbox',
    async steps(page, write) {
      await sent('entry.verifyEmail.resend.submit', { 'common.email': 'nobody@example.test' })(page, write);
      await said(page, 'status', write('entry.verifyEmail.resend.sent'));
      await page.reload();
      await page.getByText('nobody@example.test').first().waitFor();
    },
  },
  { path: '/verify-email?token=AAAA', title: 'entry.verifyEmail.title' },
  {
    path: '/verify-email?token=AAAA',
    title: 'entry.verifyEmail.title',
    steps: sent('entry.verifyEmail.submit'),
    next: 'entry.linkRefused',
  },
  { path: '/confirm-email', title: 'entry.linkRefused' },
  { path: '/confirm-email?token=AAAA', title: 'entry.confirmEmail.logInFirst.title' },
  { path: '/undo-email-change', title: 'entry.linkRefused' },
  { path: '/undo-email-change?token=AAAA', title: 'entry.undoEmailChange.title' },
  {
    path: '/forgot-password',
    title: 'entry.forgotPassword.title',
    steps: refused('entry.forgotPassword.submit', { 'common.email': '' }),
  },
  {
    path: '/forgot-password',
    title: 'entry.forgotPassword.title',
    steps: sent('entry.forgotPassword.submit', { 'common.email': 'nobody@example.test' }),
    next: 'entry.checkInbox',
  },
  { path: '/reset-password', title: 'entry.linkRefused' },
  {
    path: `/reset-password${link}`,
    title: 'entry.resetPassword.title',
    steps: refused('entry.resetPassword.submit', { 'entry.resetPassword.newPassword': 'short' }),
  },
  { path: '/not-me', title: 'entry.linkRefused' },
  { path: '/not-me?token=AAAA', title: 'entry.notMe.title' },
  { path: '/nowhere', title: 'common.notFound.title' },
];

describe('every page before a login', () => {
  inBrowser(
    ['embedded'],
    (scenario) => {
      test.each(languages)('is in %s only, and fits on a phone', async (language) => {
        const write = writer(texts, language);
        await scenario().visit(
          async (page) => {
            for (const { path, title, steps, next } of states) {
              await page.goto(path);
              await heading(page, write(title));
              await steps?.(page, write);
              if (next) await heading(page, write(next));
              expect(await faultsIn(page, language), path).toEqual([]);
            }
          },
          { locale: locales[language], viewport: phone },
        );
      });
    },
    {
      env: {
        SUPPORT_URL: 'mailto:help@example.test',
        TERMS_URL: 'https://example.test/terms',
        PRIVACY_URL: '/privacy',
        EMAIL_CODES: 'on',
      },
    },
  );
});

describe('every page that applications lead to', () => {
  inBrowser(['embedded'], (scenario) => {
    test.each(languages)('is in %s only, and fits on a phone', async (language) => {
      const user = await loggedIn(scenario());
      const states = await applicationPages(scenario(), user);
      await scenario().visit(
        (page) => expectClean(page, states, writer(texts, language), () => faultsIn(page, language)),
        { session: user.session, locale: locales[language], viewport: phone },
      );
    });
  });
});

describe('the language of a page', () => {
  inBrowser(['embedded'], (scenario) => {
    test.each([
      ['de-AT', 'de'],
      ['fr-CA', 'fr'],
      ['es-MX', 'es'],
      ['en-US', 'en'],
      ['pt-BR', 'en'],
    ] as const)('for a browser in %s is %s', async (locale, language) => {
      await scenario().visit(
        async (page) => {
          await page.goto('/login');
          await heading(page, texts[language]['entry.logIn.title'] as string);
          expect(await page.getAttribute('html', 'lang')).toBe(language);
          expect(await picker(page).inputValue()).toBe(language);
        },
        { locale },
      );
    });

    test.each([
      { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
      { colorScheme: 'dark', viewport: phone },
    ] as const)('can be chosen at the foot, even by keyboard, and is remembered: $colorScheme', async (look) => {
      await scenario().visit(async (page) => {
        await page.goto('/register');
        await page.getByLabel('Name').fill('Ada');
        await page.getByLabel('Language').focus();
        expect(await picker(page).getByRole('option').allInnerTexts()).toEqual(Object.values(languageNames));
        // Another language is on the way, and is not chosen.
        await page.keyboard.press('End');
        await page.keyboard.press('Home');
        await page.keyboard.press('ArrowDown');
        await page.keyboard.press('Tab');
        await heading(page, 'Konto erstellen');
        expect(await page.getByLabel('Name').inputValue()).toBe('Ada');
        expect(await findings(page)).toEqual([]);
        await picker(page).selectOption('Français');
        await heading(page, 'Créez votre compte');
        expect(await page.getByLabel('Nom').inputValue()).toBe('Ada');
        await page.goto('/login');
        await heading(page, 'Connexion');
        const [cookie] = (await page.context().cookies()).filter(({ name }) => name === LANGUAGE_COOKIE);
        expect(cookie).toMatchObject({ value: 'fr', path: '/', sameSite: 'Lax', httpOnly: false });
        const days = ((cookie?.expires ?? 0) - Date.now() / 1000) / 86_400;
        expect(Math.round(days)).toBe(365);
      }, look);
    });

    test.each(['Space', 'Alt+ArrowDown'])('a choice in the list that %s has opened applies at Enter', async (key) => {
      await scenario().visit(async (page) => {
        await page.goto('/register');
        await picker(page).focus();
        await page.keyboard.press('ArrowDown');
        await page.keyboard.press(key);
        await page.locator('select:open').waitFor();
        for (const each of ['ArrowDown', 'Enter']) await page.keyboard.press(each);
        await heading(page, 'Créez votre compte');
      });
    });

    test('a choice by pointer applies at once, also after one by keyboard that has not', async () => {
      await scenario().visit(async (page) => {
        await page.goto('/register');
        await picker(page).focus();
        await page.keyboard.press('End');
        await picker(page).click();
        await picker(page).selectOption('Deutsch');
        await heading(page, 'Konto erstellen');
      });
    });

    test.each(languages)('is used for the account that is confirmed or disowned: %s', async (language) => {
      const { stack, visit } = scenario();
      const write = writer(texts, language);
      const { email } = await registered(scenario());
      await visit(
        async (page) => {
          const clean = async (title: TextKey) => {
            await heading(page, write(title));
            expect(await faultsIn(page, language), title).toEqual([]);
          };
          await page.goto(await mailedLink(stack, email, 'Verify your email'));
          await press(page, write('entry.verifyEmail.submit'));
          await clean('entry.verifyEmail.verified');
          await page.getByRole('heading', { name: write('entry.verifyEmail.notMe.title') }).waitFor();
          await press(page, write('entry.notMe.action'));
          await clean('entry.verifyEmail.removed.title');
        },
        { locale: locales[language], viewport: phone },
      );
    });

    test('chosen by a user is stored in the profile, and the next browser uses it', async () => {
      const { call, visit } = scenario();
      const { session } = await loggedIn(scenario());
      await visit(
        async (page) => {
          await page.goto('/dashboard');
          await heading(page, texts.en['dashboard.profile.title'] as string);
          await picker(page).selectOption('de');
          await heading(page, texts.de['dashboard.profile.title'] as string);
        },
        { session },
      );
      expect((await call('profile.language', undefined, { session })).data).toEqual({ language: 'de' });
      await visit(
        async (page) => {
          await page.goto('/dashboard');
          await heading(page, texts.de['dashboard.profile.title'] as string);
          await page.goto('/login');
          await heading(page, texts.de['entry.logIn.title'] as string);
        },
        { session, locale: 'fr-FR' },
      );
    });

    test('of the profile keeps return paths and notices', async () => {
      const { call, visit } = scenario();
      const { email, session } = await loggedIn(scenario());
      await call('profile.update', { language: 'de' }, { session });
      await visit(async (page) => {
        await page.goto('/login?returnTo=%2Fdashboard%2Fsecurity');
        await page.getByLabel('Email').fill(email);
        await page.getByLabel('Password').fill(PASSWORD);
        await press(page, 'Log in');
        await page.getByRole('heading', { name: texts.de['dashboard.passkeys.title'] as string }).waitFor();
        expect(new URL(page.url()).pathname).toBe('/dashboard/security');
      });
      for (const [path, role, key] of [
        ['/dashboard?notice=restored', 'status', 'dashboard.arrival.restored'],
        ['/dashboard/security?error=identity_taken', 'alert', 'dashboard.arrival.taken'],
      ] as const) {
        await visit(
          async (page) => {
            await page.goto(path);
            await said(page, role, texts.de[key] as string);
          },
          { session },
        );
      }
    });

    test('keeps a mailed link when changed', async () => {
      await scenario().visit(async (page) => {
        await page.goto('/not-me?token=AAAA');
        await heading(page, 'Was this not you?');
        await picker(page).selectOption('es');
        await heading(page, '¿No fue usted?');
        await page.getByRole('button', { name: 'No fui yo' }).waitFor();
      });
    });

    test('is used for errors', async () => {
      await scenario().visit(
        async (page) => {
          await page.goto('/login');
          await page.getByLabel('E-Mail').fill(freshEmail());
          await page.getByLabel('Passwort').fill(PASSWORD);
          await press(page, 'Anmelden');
          await said(page, 'alert', 'E-Mail oder Passwort ist falsch');
          for (let i = 0; i < 5; i++) await press(page, 'Anmelden');
          await said(
            page,
            'alert',
            /^Zu viele Versuche\. Nächster Versuch möglich: (?:\d{2}\.\d{2}\.\d{4}, )?\d{2}:\d{2}\.$/,
          );
          await page.goto('/register');
          await page.getByLabel('Name').fill('A');
          await page.getByLabel('E-Mail').fill('nobody');
          await page.getByLabel('Passwort').fill('short-1');
          await press(page, 'Konto erstellen');
          await said(page, 'alert', 'Noch erforderlich: 8 bis 128 Zeichen, ein Großbuchstabe');
          await page.getByLabel('Passwort').fill(PASSWORD);
          await press(page, 'Konto erstellen');
          await said(page, 'alert', 'Mindestens 2 Zeichen');
          await said(page, 'alert', 'Muss eine gültige E-Mail-Adresse sein');
        },
        { locale: 'de-DE' },
      );
    });
  });
});
