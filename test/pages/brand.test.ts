import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { loggedIn, logIn, PASSWORD, verified } from '../contract/rig/scenario.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { findings } from './axe.ts';
import { heading, inBrowser, mailedLink, press, reachAndPress, said } from './browser.ts';

/** The operator's name, picture, colour, links and terms on the pages. */

const NAME = '„Ada" & <Söhne>, GmbH & Co. KG für analytische Maschinen 🎉';
const COLOR = '#0f766e';
const VERSION = '2026-11';
const brand = {
  APP_NAME: NAME,
  APP_LOGO_URL: '/brand/logo.svg',
  BRAND_COLOR: COLOR,
  SUPPORT_URL: 'mailto:help@example.test',
  TERMS_URL: '/legal/terms',
  PRIVACY_URL: 'https://example.test/privacy',
  TERMS_VERSION: VERSION,
};
const LOGO = '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="40"><rect width="120" height="40"/></svg>';
const BOX = /^I accept the terms of service .* and the privacy policy .*\.$/;

const looks = [
  { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  { colorScheme: 'dark', viewport: { width: 360, height: 740 } },
] as const;

/** What a server in front serves at the URL of the picture. */
const serveLogo = (page: Page) =>
  page.route('**/brand/logo.svg', (route) => route.fulfill({ body: LOGO, contentType: 'image/svg+xml' }));

const expectClean = async (page: Page) => {
  expect(await findings(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
};

/** The background of the page's first primary button. */
const backgroundOf = async (page: Page) => {
  await page.locator('.primary').first().waitFor();
  return String(await page.evaluate("getComputedStyle(document.querySelector('.primary')).backgroundColor"));
};

const fillIn = async (page: Page, email: string) => {
  await page.getByLabel('Name').fill('Ada');
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
};

inBrowser(
  ['embedded'],
  (scenario) => {
    test.each(looks)(
      'every page shows name, picture, colour and links, without axe findings: $colorScheme',
      async (look) => {
        const { visit } = scenario();
        const ada = { name: 'Ada', email: freshEmail(), password: PASSWORD, acceptTerms: true };
        const { session } = await loggedIn(scenario(), ada);
        await visit(
          async (page) => {
            await serveLogo(page);
            for (const [path, title, hasButton] of [
              ['/register', 'Create your account', true],
              ['/login', 'Log in', true],
              ['/forgot-password', 'Forgot your password?', true],
              ['/dashboard', 'Your profile', true],
              ['/dashboard/data', 'Your data', false],
              ['/nowhere', 'Page not found', false],
            ] as const) {
              await page.goto(path);
              await heading(page, title);
              expect(await page.title()).toBe(`${title} – ${NAME}`);
              expect(await page.getByRole('link', { name: NAME, exact: true }).getAttribute('href')).toBe('/');
              const logo = page.locator('header img');
              await expect.poll(() => page.evaluate("document.querySelector('header img').naturalWidth")).toBe(120);
              expect(await logo.getAttribute('src')).toBe(brand.APP_LOGO_URL);
              const footer = page.getByRole('contentinfo');
              // Hidden until the page has its content.
              await footer.waitFor();
              const links = await footer.getByRole('link').all();
              expect(
                await Promise.all(links.map(async (link) => [await link.innerText(), await link.getAttribute('href')])),
              ).toEqual([
                ['Support', brand.SUPPORT_URL],
                ['Terms of service', brand.TERMS_URL],
                ['Privacy policy', brand.PRIVACY_URL],
              ]);
              if (hasButton && look.colorScheme === 'light') expect(await backgroundOf(page)).toBe('rgb(15, 118, 110)');
              await expectClean(page);
            }
          },
          { ...look, session },
        );
      },
    );

    test('in dark mode buttons have a lighter shade of the colour, with dark labels', async () => {
      await scenario().visit(
        async (page) => {
          await serveLogo(page);
          await page.goto('/login');
          const background = await backgroundOf(page);
          expect(background).toMatch(/^rgb\(\d+, \d+, \d+\)$/);
          expect(background).not.toBe('rgb(15, 118, 110)');
          const [red = 0, green = 0] = background.match(/\d+/g)?.map(Number) ?? [];
          expect(green).toBeGreaterThan(red);
          expect(green).toBeGreaterThan(118);
        },
        { colorScheme: 'dark' },
      );
    });

    test.each(looks)('the box can be ticked by keyboard, and its error is shown at it: $colorScheme', async (look) => {
      const { stack, visit } = scenario();
      const email = freshEmail();
      await visit(async (page) => {
        await serveLogo(page);
        await page.goto('/register');
        await fillIn(page, email);
        const box = page.getByRole('checkbox', { name: BOX });
        expect(await box.getAttribute('required')).not.toBeNull();
        await page.getByLabel('Name').focus();
        await reachAndPress(page, 'Create account');
        await said(page, 'alert', 'Tick this box to create an account');
        expect(await page.evaluate('document.activeElement.id')).toBe(await box.getAttribute('id'));
        expect(await box.getAttribute('aria-invalid')).toBe('true');
        expect(await page.getByLabel('Password', { exact: true }).inputValue()).toBe(PASSWORD);
        await expectClean(page);
        await page.keyboard.press('Space');
        expect(await box.isChecked()).toBe(true);
        expect(await page.getByRole('alert').count()).toBe(0);
        await reachAndPress(page, 'Create account');
        await heading(page, 'Check your inbox');
        await expectClean(page);
      }, look);
      const [user] = await stack.database('select id from users where email = ?', [email]);
      const consents = await stack.database('select version from consents where user_id = ?', [user?.['id'] as string]);
      expect(consents).toEqual([{ version: VERSION }]);
      expect(await mailedLink(stack, email, `Verify your email for ${NAME}`)).toContain('/verify-email?token=');
    });

    test.each([
      ['have changed', `"termsVersion":"${VERSION}"`, '"termsVersion":"2025-01"', 'The terms have changed.'],
      [
        'are new',
        `,"terms":"${brand.TERMS_URL}","privacy":"${brand.PRIVACY_URL}"`,
        '',
        'There are now terms to accept.',
      ],
    ])(
      'terms that %s since the page was loaded are reported, and typed text stays',
      async (_, now, before, sentence) => {
        const { stack, visit } = scenario();
        const email = freshEmail();
        await visit(async (page) => {
          await serveLogo(page);
          await page.route('**/register', async (route) => {
            const response = await route.fetch();
            await route.fulfill({ response, body: (await response.text()).replace(now, before) });
          });
          await page.goto('/register');
          await fillIn(page, email);
          const box = page.getByRole('checkbox', { name: BOX });
          if (await box.isVisible()) await box.check();
          await reachAndPress(page, 'Create account');
          await said(page, 'alert', `${sentence} Reload this page`);
          await expectClean(page);
          expect(await stack.database('select id from users where email = ?', [email])).toEqual([]);
          await page.unroute('**/register');
          await page.reload();
          expect(await page.getByLabel('Name').inputValue()).toBe('Ada');
          expect(await page.getByLabel('Email').inputValue()).toBe(email);
          expect(await box.isChecked()).toBe(false);
          await box.check();
          await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
          await press(page, 'Create account');
          await heading(page, 'Check your inbox');
        });
      },
    );

    test('the terms open in a new tab, and the sentence stands beside the providers', async () => {
      await scenario().visit(async (page) => {
        await serveLogo(page);
        for (const path of ['/register', '/login']) {
          await page.goto(path);
          const sentence = page.getByText('By continuing with a provider, you accept the');
          expect(await sentence.textContent()).toMatch(/terms of service .* and the privacy policy .*\.$/);
          const links = await page
            .getByRole('main')
            .getByRole('link', { name: /opens in a new tab/ })
            .all();
          expect(links).toHaveLength(path === '/register' ? 4 : 2);
          for (const link of links) {
            expect(await link.getAttribute('target')).toBe('_blank');
            expect(await link.getAttribute('rel')).toBe('noopener');
          }
        }
      });
    });

    test.each(looks)(
      'the dashboard asks for a new version, and its last page accepts it: $colorScheme',
      async (look) => {
        const { call, stack, visit } = scenario();
        const ada = { name: 'Ada', email: freshEmail(), password: PASSWORD, acceptTerms: true };
        const { id } = await verified(scenario(), ada);
        const session = await logIn(call, ada);
        await visit(
          async (page) => {
            await serveLogo(page);
            await page.goto('/dashboard/data');
            const card = page.getByRole('region', { name: 'Terms' });
            await card.getByText(VERSION, { exact: true }).waitFor();
            await card.getByText(/^Accepted on /).waitFor();
            expect(await page.getByRole('button', { name: 'Accept the terms' }).count()).toBe(0);
            await stack.database("update consents set version = '2025-01' where user_id = ?", [id]);
            await page.goto('/dashboard');
            await said(page, 'status', 'There are terms that you have not accepted yet.');
            await expectClean(page);
            await page.getByRole('link', { name: 'Read and accept them' }).click();
            await heading(page, 'Your data');
            await reachAndPress(page, 'Accept the terms');
            await said(page, 'status', 'Your consent was saved.');
            expect(await page.evaluate('document.activeElement.textContent')).toBe('Terms');
            for (const version of [VERSION, '2025-01']) await card.getByText(version, { exact: true }).waitFor();
            await expectClean(page);
            await page.goto('/dashboard');
            await heading(page, 'Your profile');
            await page.getByLabel('Name').waitFor();
            expect(await page.getByText('There are terms').count()).toBe(0);
          },
          { ...look, session },
        );
      },
    );
  },
  { env: brand },
);

describe('with nothing set', () => {
  inBrowser(['embedded'], (scenario) => {
    test('pages have the default name and icon, without links or box', async () => {
      const { stack, visit } = scenario();
      const email = freshEmail();
      await visit(async (page) => {
        await page.goto('/register');
        await heading(page, 'Create your account');
        expect(await page.title()).toBe('Create your account – Accounts');
        await page.getByRole('link', { name: 'Accounts', exact: true }).waitFor();
        expect(await page.locator('header img').count()).toBe(0);
        expect(await page.getByRole('contentinfo').getByRole('link').count()).toBe(0);
        expect(await page.getByRole('checkbox').count()).toBe(0);
        expect(await page.getByText('By continuing').count()).toBe(0);
        await fillIn(page, email);
        await press(page, 'Create account');
        await heading(page, 'Check your inbox');
      });
      expect(await stack.database('select id from consents')).toEqual([]);
    });
  });
});

describe('with terms alone', () => {
  inBrowser(
    ['embedded'],
    (scenario) => {
      test('only the terms must be accepted', async () => {
        await scenario().visit(async (page) => {
          await page.goto('/register');
          await page
            .getByRole('checkbox', { name: /^I accept the terms of service \(opens in a new tab\) ?\.$/ })
            .waitFor();
          await page.getByText('By continuing with a provider, you accept the terms of service').waitFor();
          expect(await page.getByText('privacy').count()).toBe(0);
        });
      });
    },
    { env: { TERMS_URL: '/legal/terms' } },
  );
});
