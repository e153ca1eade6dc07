import { expect, test } from 'vitest';
import { LANGUAGE_COOKIE } from '../../server/shared/texts/languages.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { heading, inBrowser, press, register } from './browser.ts';

inBrowser(['embedded'], (scenario) => {
  test('without a mail server the page links to the mailbox, and the button in the mail works', async () => {
    const { stack, visit } = scenario();
    const email = freshEmail('mailbox');
    await visit(
      async (page) => {
        await page.context().addCookies([{ name: LANGUAGE_COOKIE, value: 'en', url: stack.appUrl }]);
        await page.goto('/register');
        await register(page, email, '<b>Ada</b>');
        await heading(page, 'Check your inbox');
        await stack.waitForMail({ to: email });
        await page.getByRole('link', { name: 'Read emails in the built-in mailbox' }).click();
        await heading(page, 'Mailbox');
        const row = page.getByRole('row').filter({ hasText: email });
        expect(await row.locator('time').innerText()).toMatch(/^\d\d?\.\d\d?\.\d{4}, \d\d:\d\d:\d\d$/);
        await row.getByRole('link').click();
        const mail = page.frameLocator('iframe');
        await mail.getByText('Hello,').waitFor();
        await mail.getByRole('link', { name: 'Verify email' }).click();
        await heading(page, 'Verify your email');
        await page.goBack();
        await page
          .getByRole('main')
          .getByRole('link', { name: /verify-email\?token=/ })
          .click();
        await press(page, 'Verify email');
        await heading(page, 'Your email is verified');
      },
      { locale: 'de-DE' },
    );
  });
});
