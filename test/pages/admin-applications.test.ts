import { expect, test } from 'vitest';
import { administrator } from '../contract/rig/scenario.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { findings } from './axe.ts';
import { heading, inBrowser } from './browser.ts';

/** The applications at `/admin/applications`. */
inBrowser(['real'], (scenario) => {
  test.each([320, 1280])(
    'an application is added, disabled and removed at %i px; its secret is shown once',
    async (width) => {
      const { session } = await administrator(scenario());
      const name = freshEmail('shop').split('@')[0] ?? '';
      await scenario().visit(
        async (page) => {
          await page.goto('/admin/applications');
          await heading(page, 'Applications');
          const add = page.getByRole('region', { name: 'Add an application' });
          const submit = add.getByRole('button', { name: 'Add application' });
          await add.getByLabel('Name').fill(name);
          await add.getByLabel('Redirect addresses', { exact: true }).fill('http://shop.example.com/callback');
          await submit.click();
          await add.getByText('One of these addresses cannot be used for this kind').waitFor();
          await add
            .getByLabel('Redirect addresses', { exact: true })
            .fill('https://shop.example.com/callback\nhttps://shop.example.com/b');
          await add.getByText('Advanced').click();
          await add.getByLabel('Back-channel logout address').fill('https://10.0.0.1/logged-out');
          await submit.click();
          await add.getByText('This address cannot be used: it must be a public https:// address').waitFor();
          await add.getByLabel('Back-channel logout address').fill('https://shop.example.com/logged-out');
          await page.reload();
          await submit.click();
          await add.getByText(`${name} was added.`).waitFor();
          const secret = await add.locator('code').innerText();
          expect(secret).toMatch(/^[\w-]{43}$/);
          const [row] = await scenario().stack.database<Record<string, unknown>>(
            'select kind, redirect_uris as uris, scopes, backchannel_logout_uri as told from applications where name = ?',
            [name],
          );
          expect(row).toEqual({
            kind: 'web',
            uris: 'https://shop.example.com/callback https://shop.example.com/b',
            scopes: 'openid profile email',
            told: 'https://shop.example.com/logged-out',
          });
          expect(await findings(page)).toEqual([]);
          expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);

          const entry = page.getByRole('listitem').filter({ hasText: name });
          await entry.getByRole('button', { name: 'Disable' }).click();
          await entry.getByText('Site with a server, Disabled').waitFor();
          await entry.getByRole('button', { name: 'New secret' }).click();
          await entry.getByText('The former secret is valid until').waitFor();
          expect(await entry.locator('code').innerText()).not.toBe(secret);
          await page.reload();
          await entry.getByText('Site with a server, Disabled').waitFor();
          expect(await page.locator('code').count()).toBe(0);
          await entry.getByRole('button', { name: 'Remove' }).click();
          await page.getByText(`${name} and all access granted to it were removed.`).waitFor();
          expect(await scenario().stack.database('select id from applications where name = ?', [name])).toEqual([]);
        },
        { session, viewport: { width, height: 740 } },
      );
    },
  );
});
