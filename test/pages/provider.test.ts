import type { Page, Request } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { registered, verified } from '../contract/rig/scenario.ts';
import { environmentFor, namedEnvironmentFor, startHostileProvider } from '../provider/hostile.ts';
import { identityClaims } from '../provider/login.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { heading, inBrowser, logOut, press, said } from './browser.ts';

/** On 127.0.0.1, while the service is on localhost: two sites for a browser, as in production. */
const provider = await startHostileProvider();
const second = await startHostileProvider();
afterAll(() => Promise.all([provider.close(), second.close()]));

const PHONE = { width: 360, height: 740 };

/** From the login page through the provider's page to wherever it redirects. */
async function throughProvider(
  page: Page,
  next: (request: URL) => URL,
  { label, url } = { label: 'Acme', url: provider.url },
): Promise<void> {
  await page.goto('/login');
  await page.getByRole('link', { name: `Continue with ${label}` }).click();
  await page.waitForURL(`${url}/authorize?*`);
  await page.evaluate(`location.href = ${JSON.stringify(next(new URL(page.url())).href)}`);
}

function cancel({ searchParams }: URL): URL {
  const url = new URL(searchParams.get('redirect_uri') ?? '');
  url.search = new URLSearchParams({ error: 'access_denied', state: searchParams.get('state') ?? '' }).toString();
  return url;
}

inBrowser(
  ['real'],
  (scenario) => {
    test('after a provider login the dashboard loads, although the navigation carried no cookie', async () => {
      const { visit } = scenario();
      const claims = identityClaims({ picture: undefined });
      await visit(
        async (page) => {
          const navigations: Request[] = [];
          page.on('request', (request) => {
            if (request.isNavigationRequest()) navigations.push(request);
          });
          await throughProvider(page, (request) => provider.authorize(request, claims));
          await page.waitForURL('**/dashboard');
          expect(await page.getByLabel('Name').inputValue()).toBe('Grace Hopper');
          const last = navigations.at(-1);
          expect(new URL(last?.url() ?? '').pathname).toBe('/dashboard');
          expect((await last?.allHeaders())?.['cookie'] ?? '').not.toContain('auth_session');
          await page.getByRole('link', { name: 'Security' }).click();
          await page.getByRole('region', { name: 'Linked logins' }).getByText('Acme', { exact: true }).waitFor();
          await logOut(page);
          await said(page, 'status', 'You are logged out.');
        },
        { elsewhere: [provider.url] },
      );
    });

    test('a login returns to the requesting page, by password and through a provider, and to no other', async () => {
      const { stack, visit } = scenario();
      const person = await verified({ stack, call: callerOf('trpc', stack.url) });
      await visit(
        async (page) => {
          await page.goto('/dashboard/security');
          await page.waitForURL('**/login');
          await page.getByRole('link', { name: 'Continue with Acme' }).click();
          await page.waitForURL(`${provider.url}/authorize?*`);
          const next = provider.authorize(new URL(page.url()), identityClaims({ picture: undefined }));
          await page.evaluate(`location.href = ${JSON.stringify(next.href)}`);
          await heading(page, 'Security');
          await page.getByRole('link', { name: 'Profile' }).click();
          await heading(page, 'Your profile');

          await page.getByLabel('Bio').fill('kept');
          await page.context().clearCookies();
          await press(page, 'Save');
          await page.getByRole('link', { name: 'Log in again' }).click();
          await page.waitForURL('**/login');
          await page.goto('/dashboard/devices');
          for (const target of ['https://evil.test/', '//evil.test', '/\\evil.test', '/auth/acme?link=1', '']) {
            await page.waitForURL('**/login');
            if (target) {
              const stored = JSON.stringify({ returnTo: target });
              await page.evaluate(`sessionStorage.setItem('way-back', ${JSON.stringify(stored)})`);
            }
            await page.getByLabel('Email').fill(person.email);
            await page.getByLabel('Password').fill(person.password);
            await press(page, 'Log in');
            await heading(page, target ? 'Your profile' : 'Devices');
            // Rendered once the page has its user.
            await page.getByRole('button', { name: /^(?:Save|Log out everywhere)$/ }).waitFor();
            await page.context().clearCookies();
            await page.goto('/dashboard/devices');
          }
        },
        { elsewhere: [provider.url] },
      );
    });

    test('a cancelled provider login or an unverified email is explained', async () => {
      const { stack, visit } = scenario();
      const { email } = await registered({ stack, call: callerOf('trpc', stack.url) });
      const claims = identityClaims({ email, email_verified: false });
      const outcomes: [(request: URL) => URL, string][] = [
        [cancel, 'You cancelled the login.'],
        [(request) => provider.authorize(request, claims), 'An account with your email exists'],
      ];
      for (const [next, sentence] of outcomes) {
        await visit(
          async (page) => {
            await throughProvider(page, next);
            await said(page, 'alert', sentence);
          },
          { elsewhere: [provider.url] },
        );
      }
    });
  },
  { env: environmentFor(provider) },
);

inBrowser(
  ['embedded'],
  (scenario) => {
    test.each(['/login', '/register'])('of two providers %s has a button, also on a phone', async (path) => {
      await scenario().visit(
        async (page) => {
          for (const [label, { url }] of [
            ['Acme', provider],
            ['My Company', second],
          ] as const) {
            await page.goto(path);
            await page
              .getByRole('link', { name: /^Continue with/ })
              .nth(1)
              .waitFor();
            const boxes = await Promise.all(
              (await page.getByRole('link', { name: /^Continue with/ }).all()).map((link) => link.boundingBox()),
            );
            expect(boxes).toHaveLength(2);
            // A logo each, in the card of the email.
            expect(await page.locator('main:has(#email) a.button > svg').count()).toBe(2);
            const [upper, lower] = boxes;
            // Stacked with a gap, equally wide, and within the screen.
            expect((lower?.y ?? 0) - (upper?.y ?? 0) - (upper?.height ?? 0)).toBeGreaterThan(4);
            expect(lower?.width).toBe(upper?.width);
            expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width);
            await page.getByRole('link', { name: `Continue with ${label}` }).click();
            await page.waitForURL(`${url}/authorize?*`);
          }
        },
        { elsewhere: [provider.url, second.url], viewport: PHONE },
      );
    });

    test('after a login through the second provider the dashboard names it', async () => {
      await scenario().visit(
        async (page) => {
          await throughProvider(page, (request) => second.authorize(request, identityClaims({ picture: undefined })), {
            label: 'My Company',
            url: second.url,
          });
          await page.waitForURL('**/dashboard');
          await page.getByRole('link', { name: 'Security' }).click();
          await page.getByRole('region', { name: 'Linked logins' }).getByText('My Company', { exact: true }).waitFor();
        },
        { elsewhere: [second.url] },
      );
    });
  },
  { env: { ...environmentFor(provider), ...namedEnvironmentFor(second, 'my_company') } },
);

inBrowser(['embedded'], (scenario) => {
  test('without configuration, the embedded provider logs in anyone typed', async () => {
    await scenario().visit(async (page) => {
      await page.goto('/login');
      await page.getByRole('link', { name: 'Continue with Test provider' }).click();
      await page.getByLabel('Email', { exact: true }).fill(freshEmail());
      await page.getByLabel('Name', { exact: true }).fill('Joan Clarke');
      await press(page, 'Log in');
      await heading(page, 'Your profile');
      expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Joan Clarke');
    });
  });
});
