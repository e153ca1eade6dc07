import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { readTexts, writer } from '../../server/texts/index.ts';
import { administrator, growOld, PASSWORD, registered } from '../contract/rig/scenario.ts';
import { withApp } from '../contract/rig/totp-scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { sendImage } from '../contract/uploads/storage.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { heading, inBrowser, press } from './browser.ts';
import { faultsIn, phone } from './page-texts.ts';

/** The administration in each language, on a small phone. */
const texts = readTexts(undefined);

inBrowser(['embedded'], (scenario) => {
  test.each([
    ['de', 'de-AT'],
    ['fr', 'fr-FR'],
    ['es', 'es-MX'],
  ] as const)('%s: every text is translated and fits', async (language, locale) => {
    const { stack, call, visit } = scenario();
    const write = writer(texts, language);
    const admin = await administrator(scenario());
    const target = await withApp(scenario());
    await sendImage(scenario(), target.session, { bytes: await png() });
    const unverified = await registered(scenario());
    await call('users.block', { id: unverified.id }, { session: admin.session });
    const invited = freshEmail();
    for (const email of [freshEmail(), invited]) await call('users.invite', { email }, { session: admin.session });
    await stack.database('update invitations set invited_by = null where email = ?', [invited]);

    const expectReadable = async (page: Page) => expect(await faultsIn(page, language)).toEqual([]);

    await visit(
      async (page) => {
        await page.goto('/admin');
        await heading(page, write('admin.nav.users'));
        await expectReadable(page);
        const query = unverified.email.slice(0, 15);
        await page.getByLabel(write('admin.users.query')).fill(query);
        await press(page, write('admin.users.find'));
        const found = write('admin.users.found', { count: 1 });
        await page.getByText(write('admin.users.foundBy', { query, found })).waitFor();
        await expectReadable(page);
        for (const standing of ['administrator', 'unverified', 'blocked', 'deleted']) {
          await page.goto(`/admin?standing=${standing}`);
          await page
            .getByRole('searchbox')
            .or(page.getByLabel(write('admin.users.query')))
            .waitFor();
          await expectReadable(page);
        }
        await page.goto('/admin?tab=invitations');
        await press(page, write('admin.invite.send'));
        await expectReadable(page);
        await growOld(stack, admin.id);
        await page
          .getByRole('button', { name: write('admin.invitations.revoke') })
          .first()
          .click();
        await page.getByRole('listitem').getByRole('region').waitFor();
        await expectReadable(page);

        await call('auth.reauthenticate', { password: PASSWORD }, { session: admin.session });
        for (const { id, email } of [target, unverified]) {
          await page.goto(`/admin?user=${id}`);
          await page.getByRole('heading', { name: write('admin.activity.title') }).waitFor();
          await page
            .getByRole('region', { name: write('admin.activity.title') })
            .getByRole('listitem')
            .first()
            .waitFor();
          await press(page, write('admin.acts.unlock.button'));
          await page.getByLabel(write('admin.acts.address.label')).fill('nowhere');
          await press(page, write('admin.acts.unlock.button'));
          await page.getByText(write('admin.acts.address.wrong')).waitFor();
          await press(page, write('admin.acts.role.give.button'));
          await press(page, write('admin.acts.deletion.button'));
          await press(page, write('admin.acts.deletion.button'));
          await page.getByText(write('admin.acts.confirmation.wrong', { email })).waitFor();
          await expectReadable(page);
        }
      },
      { session: admin.session, locale, viewport: phone },
    );
  });
});
