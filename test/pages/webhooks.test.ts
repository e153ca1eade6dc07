import { expect, test } from 'vitest';
import { administrator, loggedIn } from '../contract/rig/scenario.ts';
import { withWebhooks } from '../contract/rig/webhook-scenario.ts';
import { startReceiver } from '../rig/servers/receiver.ts';
import { until } from '../rig/until.ts';
import { findings } from './axe.ts';
import { heading, inBrowser } from './browser.ts';

/** The webhooks at `/admin/webhooks`. */
inBrowser(
  ['real'],
  (scenario) => {
    test.each([320, 1280])('a webhook is added, tested and read at %i px; its secret is shown once', async (width) => {
      const receiver = await startReceiver();
      const { session } = await administrator(scenario());
      await scenario().visit(
        async (page) => {
          await page.goto('/admin/webhooks');
          await heading(page, 'Webhooks');
          const add = page.getByRole('region', { name: 'Add a webhook' });
          await add.getByLabel('Address').fill(`${receiver.url}/hook`);
          await add.getByLabel('Description').fill('CRM');
          await add.getByLabel('Send all events').uncheck();
          await add.getByRole('button', { name: 'Add webhook' }).click();
          await add.getByText('Choose at least one event type').waitFor();
          expect(await page.evaluate('document.activeElement.id')).toBe('user.created');
          await add.getByLabel('session.created').check();
          await page.reload();
          await add.getByRole('button', { name: 'Add webhook' }).click();
          await add.getByText('The webhook was added.').waitFor();
          expect(await add.locator('code').innerText()).toMatch(/^whsec_/);
          const entry = page.getByRole('listitem').filter({ hasText: receiver.url }).first();
          await entry.getByText('Works').waitFor();
          await entry.getByText('session.created').first().waitFor();
          expect(await findings(page)).toEqual([]);
          expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
          await entry.getByRole('button', { name: 'Send a test event' }).click();
          await entry.getByText('The receiver accepted the test event (204).').waitFor();
          await loggedIn(scenario());
          await until(() => receiver.received.some(({ event }) => event.type === 'session.created'));
          await entry.getByText('Show deliveries').click();
          await entry.getByText('session.created').first().waitFor();
          await page.reload();
          await heading(page, 'Webhooks');
          await entry.getByText('Works').waitFor();
          expect(await page.locator('body').innerText()).not.toContain('whsec_');
          expect(await add.getByLabel('Address').inputValue()).toBe('');
          await entry.getByRole('button', { name: 'Remove' }).click();
          await page.getByText(`The webhook to ${receiver.url}/hook was removed.`).waitFor();
        },
        { session, viewport: { width, height: 740 } },
      );
      await receiver.stop();
    });
  },
  withWebhooks,
);
