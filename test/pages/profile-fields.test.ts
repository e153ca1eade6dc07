import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PASSWORD } from '../contract/rig/scenario.ts';
import { storedUser } from '../contract/rig/stored-user.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { until } from '../rig/until.ts';
import { heading, inBrowser, press, said } from './browser.ts';

/** Forms show the fields of PROFILE_FIELDS by themselves. */

const fields = [
  {
    name: 'username',
    type: 'text',
    labels: { en: 'Username', de: 'Benutzername' },
    read: 'public',
    write: 'owner',
    required: true,
    unique: true,
  },
  { name: 'height', type: 'number', min: 50, max: 250, labels: { en: 'Height' }, read: 'owner', write: 'owner' },
  { name: 'news', type: 'boolean', labels: { en: 'Newsletter' }, read: 'owner', write: 'owner' },
  { name: 'born', type: 'date', labels: { en: 'Born' }, read: 'owner', write: 'owner' },
  {
    name: 'color',
    type: 'choice',
    choices: ['red', 'green'],
    labels: { en: 'Colour' },
    read: 'public',
    write: 'owner',
  },
  {
    name: 'shoes',
    type: 'choice',
    choices: ['other', '40', '38'],
    labels: { en: 'Shoes' },
    read: 'owner',
    write: 'owner',
  },
  { name: 'steps', type: 'number', min: 0.5, labels: { en: 'Steps' }, read: 'owner', write: 'owner' },
  { name: 'about', type: 'longText', labels: { en: 'About' }, read: 'owner', write: 'owner' },
  { name: 'plan', type: 'text', labels: { en: 'Plan' }, read: 'owner', write: 'services' },
  { name: 'score', type: 'number', labels: { en: 'Secret score' }, read: 'services', write: 'services' },
];
const file = join(temporaryDirectory('fields-on-pages'), 'fields.json');
writeFileSync(file, JSON.stringify(fields));

inBrowser(
  ['embedded'],
  (scenario) => {
    test('the registration asks for required fields only, by their labels, and says what is taken', async () => {
      const { stack, visit } = scenario();
      const email = freshEmail();
      const taken = `ada${Date.now()}`;
      const other = { email: freshEmail(), password: PASSWORD, name: 'Eve', fields: { username: taken } };
      expect((await scenario().call('auth.register', other)).code).toBeUndefined();
      await visit(async (page) => {
        await page.goto('/register');
        await heading(page, 'Create your account');
        expect(await page.getByLabel('Height').count()).toBe(0);
        await page.getByLabel('Name', { exact: true }).fill('Ada Lovelace');
        await page.getByLabel('Email').fill(email);
        await page.getByLabel('Password').fill(PASSWORD);
        await press(page, 'Create account');
        await said(page, 'alert', 'Must not be empty');
        await page.getByLabel('Username').fill(taken);
        await press(page, 'Create account');
        await said(page, 'alert', 'Already used by another account');
        await page.reload();
        expect(await page.getByLabel('Username').inputValue()).toBe(taken);
        await page.getByLabel('Password').fill(PASSWORD);
        await page.getByLabel('Username').fill(`${taken}x`);
        await press(page, 'Create account');
        await page.waitForURL('**/verify-email?sent');
        expect(await page.evaluate('JSON.stringify(sessionStorage)')).not.toContain(taken);
      });
      const [user] = await stack.database('select fields from users where email = ?', [email]);
      expect(user).toEqual({ fields: JSON.stringify({ username: `${taken}x` }) });
      await visit(
        async (page) => {
          await page.goto('/register');
          await page.getByLabel('Benutzername').waitFor();
        },
        { locale: 'de' },
      );
    });

    test('the profile has a form of all that its owner writes, and shows the rest', async () => {
      const { call, stack, visit } = scenario();
      const { id, session } = await storedUser(scenario());
      await stack.database('update users set fields = ? where id = ?', [
        JSON.stringify({ plan: 'Gold', score: 7 }),
        id,
      ]);
      const own = async () => (await call('profile.get', undefined, { session })).data.user.fields;
      await visit(
        async (page) => {
          await page.goto('/dashboard');
          const description = await page.getByLabel('Username').getAttribute('aria-describedby');
          expect(await page.locator(`[id="${description}"]`).innerText()).toBe('Required');
          await page.getByLabel('Height').fill('999');
          await press(page, 'Save');
          await said(page, 'alert', 'Must not be empty');
          await page.getByLabel('Username').fill(`u${id.slice(-12)}`);
          await press(page, 'Save');
          await said(page, 'alert', 'Is outside the allowed range');
          await page.getByLabel('Height').fill('170.5');
          await page.getByLabel('Newsletter').check();
          await page.getByLabel('Born').fill('1815-12-10');
          await page.getByLabel('Colour').selectOption('green');
          await page.getByLabel('About').fill('Two\nlines');
          await press(page, 'Save');
          await said(page, 'status', 'saved');
          const saved = {
            username: `u${id.slice(-12)}`,
            height: 170.5,
            news: true,
            born: '1815-12-10',
            color: 'green',
            about: 'Two\nlines',
            plan: 'Gold',
            shoes: null,
            steps: null,
          };
          expect(await own()).toEqual(saved);
          await page.getByRole('definition').getByText('Gold').waitFor();
          expect(await page.content()).not.toContain('Secret score');
          await page.reload();
          expect(await page.getByLabel('Height').inputValue()).toBe('170.5');
          await page.getByLabel('Newsletter').uncheck();
          await page.getByLabel('Colour').selectOption('');
          await press(page, 'Save');
          await until(async () => (await own()).news === false, { what: 'the change' });
          expect(await own()).toEqual({ ...saved, news: false, color: null });
        },
        { session },
      );
    });

    test.each([
      ['en-GB', '0.5', '1,000', 'Must be a number', 'Save', 'At least 0.5'],
      ['de', '0,5', '1.000', 'Muss eine Zahl sein', 'Speichern', 'Mindestens 0,5'],
    ])(
      'in %s a number has the decimal sign of the language, and no other sign',
      async (locale, half, thousand, refusal, save, range) => {
        const { call, stack, visit } = scenario();
        const { id, session } = await storedUser(scenario());
        await stack.database('update users set fields = ? where id = ?', [
          JSON.stringify({ username: `n${id}`, steps: 1.5 }),
          id,
        ]);
        const steps = async () => (await call('profile.get', undefined, { session })).data.user.fields.steps;
        await visit(
          async (page) => {
            await page.goto('/dashboard');
            const field = page.getByLabel('Steps');
            expect(await field.inputValue()).toBe(half.replace('0', '1'));
            await page.getByText(range).waitFor();
            await field.fill(thousand);
            await press(page, save);
            await said(page, 'alert', refusal);
            expect(await steps()).toBe(1.5);
            await field.fill(half);
            await press(page, save);
            await until(async () => (await steps()) === 0.5, { what: 'the change' });
          },
          { session, locale },
        );
      },
    );

    test('the choices of a field are shown in the order of the file', async () => {
      const { session } = await storedUser(scenario());
      await scenario().visit(
        async (page) => {
          await page.goto('/dashboard');
          const options = page.getByLabel('Shoes').locator('option');
          await options.first().waitFor({ state: 'attached' });
          expect(await options.allInnerTexts()).toEqual(['–', 'other', '40', '38']);
        },
        { session },
      );
    });

    test('administrators see every field of a user', async () => {
      const { stack, visit } = scenario();
      const { session } = await storedUser(scenario(), { role: 'admin' });
      const { id } = await storedUser(scenario());
      await stack.database('update users set fields = ? where id = ?', [
        JSON.stringify({ plan: 'Gold', score: 7 }),
        id,
      ]);
      await visit(
        async (page) => {
          await page.goto(`/admin?user=${id}`);
          await page.getByRole('definition').getByText('Gold').waitFor();
          await page.getByRole('term').getByText('score').waitFor();
        },
        { session },
      );
    });
  },
  { env: { PROFILE_FIELDS: file } },
);
