import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { searchKey } from '../../entities/index.ts';
import {
  administrator,
  expectRefusal,
  growOld,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  PASSWORD,
  registered,
  verified,
} from '../contract/rig/scenario.ts';
import { storedUser } from '../contract/rig/stored-user.ts';
import { withApp } from '../contract/rig/totp-scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { sendImage } from '../contract/uploads/storage.ts';
import { environmentFor, secondsFromNow, startHostileProvider } from '../provider/hostile.ts';
import { identityClaims, loginsThrough } from '../provider/login.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { findings } from './axe.ts';
import { focused, heading, inBrowser, press, reachAndPress, type Scenario, said } from './browser.ts';

/** The administration at `/admin`: the users, and one user with the actions. */
const provider = await startHostileProvider();
afterAll(() => provider.close());

const PHONE = { width: 360, height: 740 };

/** The row of an action. */
const row = (page: Page, title: string) =>
  page
    .getByRole('region', { name: 'Actions' })
    .getByRole('listitem')
    .filter({ has: page.getByRole('heading', { name: title, exact: true }) });

const card = (page: Page, name: string) => page.getByRole('region', { name, exact: true });

/** Types the user's email into the row of the pressed button, and submits it. */
async function confirm(page: Page, title: string, email: string) {
  await row(page, title).getByLabel('Email of the user, to confirm').fill(email);
  await page.keyboard.press('Enter');
}

/** The events of a user with their actors, oldest first. */
const actsOn = async ({ database }: Scenario['stack'], userId: string) =>
  (
    await database<{ kind: string; actor_id: string }>(
      "select kind, actor_id from activity where user_id = ? and actor = 'administrator' order by id",
      [userId],
    )
  ).map(({ kind, actor_id: by }) => [kind, by]);

inBrowser(
  ['real'],
  (scenario) => {
    test('users without the role see “Page not found”, and get no data', async () => {
      const { visit } = scenario();
      const { session } = await loggedIn(scenario());
      const target = await loggedIn(scenario(), { name: 'Charles Babbage' });
      await visit(
        async (page) => {
          const answers: Promise<string>[] = [];
          page.on('response', (response) => {
            if (response.url().includes('users.')) answers.push(response.text());
          });
          for (const address of ['/admin', '/admin?q=charles', `/admin?user=${target.id}`]) {
            await page.goto(address);
            await heading(page, 'Page not found');
            await page.getByText('This page does not exist.').waitFor();
            expect(await page.locator('body').innerText(), address).not.toContain('Babbage');
          }
          expect(answers).toHaveLength(3);
          for (const answer of await Promise.all(answers)) {
            expect(answer).toContain('"code":"FORBIDDEN"');
            expect(answer).not.toContain('Babbage');
          }
        },
        { session },
      );
    });

    test('without a session the page asks for a login, and returns to the same user', async () => {
      const { visit } = scenario();
      const admin = await administrator(scenario());
      const { id } = await registered(scenario(), { name: 'Charles Babbage' });
      await visit(async (page) => {
        await page.goto(`/admin?user=${id}`);
        await page.waitForURL('**/login');
        await page.getByLabel('Email').fill(admin.email);
        await page.getByLabel('Password').fill(PASSWORD);
        await press(page, 'Log in');
        await heading(page, 'Charles Babbage');
        expect(page.url()).toMatch(new RegExp(`/admin\\?user=${id}$`));
        await page.goto('/admin?user=user_00000000-0000-7000-8000-000000000000');
        await heading(page, 'Page not found');
      });
    });

    test('if the script or the list fails to load, the page says so and offers a retry', async () => {
      const { visit } = scenario();
      const { session } = await administrator(scenario());
      await visit(
        async (page) => {
          for (const lost of ['**/assets/view-*.js', '**/trpc/*users.find*']) {
            await page.route(lost, (route) => route.fulfill({ status: 404, body: 'not here' }));
            await page.goto('/admin');
            await heading(page, 'Something went wrong');
            await said(page, 'alert', 'The service cannot be reached.');
            await page.unroute(lost);
            await press(page, 'Try again');
            await heading(page, 'Users');
          }
        },
        { session },
      );
    });

    test('lists users newest first, and searches by name or email, in pages, by keyboard', async () => {
      const { visit } = scenario();
      const { session } = await administrator(scenario());
      const prefix = freshEmail('zuse').slice(0, 12);
      for (let i = 10; i < 32; i++) await registered(scenario(), { name: `${prefix.toUpperCase()} ${i}` });
      const newest = await loggedIn(scenario(), { name: 'Konrad', email: freshEmail(prefix) });
      await visit(
        async (page) => {
          await page.goto('/admin');
          await heading(page, 'Users');
          const rows = page.getByRole('table').locator('tbody').getByRole('row');
          await rows.first().waitFor();
          expect(await rows.count()).toBe(20);
          const today = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' }).format(Date.now());
          expect(await rows.first().innerText()).toMatch(
            new RegExp(`^Konrad\\s+${newest.email}\\s+${today}\\s+${today}$`),
          );
          expect(await rows.nth(1).innerText()).toMatch(new RegExp(` 31\\s+\\S+\\s+Unverified\\s+${today}\\s+–$`));

          const field = page.getByLabel('Name or email');
          await field.fill(`  ${prefix}`);
          await field.press('Enter');
          await said(page, 'status', `Matches for “${prefix}”: The first 20 users.`);
          expect(await rows.first().innerText()).toContain(`${prefix.toUpperCase()} 10`);
          await reachAndPress(page, 'Show more');
          await rows.nth(22).waitFor();
          expect(await rows.count()).toBe(23);
          expect(await rows.nth(22).innerText()).toContain(newest.email);
          expect(await page.getByRole('button', { name: 'Show more' }).count()).toBe(0);

          await page.getByRole('link', { name: `${prefix.toUpperCase()} 11` }).press('Enter');
          await heading(page, `${prefix.toUpperCase()} 11`);
          await page.goBack();
          await said(page, 'status', 'The first 20 users.');
          expect(await field.inputValue()).toBe(prefix);
          await field.fill('\u0301');
          await field.press('Enter');
          await said(page, 'alert', 'Must contain a searchable character');
          await field.fill(`${prefix} 12`);
          await field.press('Enter');
          await said(page, 'status', '1 user.');
          await field.fill(`${prefix} 9`);
          await field.press('Enter');
          await said(page, 'status', 'No users found.');
          await field.fill('');
          await field.press('Enter');
          await said(page, 'status', 'The first 20 users.');
          expect(new URL(page.url()).search).toBe('');
        },
        { session },
      );
    });

    test('sorts by the columns that have an index, and filters by standing, with the badges of each', async () => {
      const { call, visit } = scenario();
      const { session, email } = await administrator(scenario());
      const [blocked, deleted] = [
        await verified(scenario(), { name: 'Mallory' }),
        await loggedIn(scenario(), { name: 'Trent' }),
      ];
      await registered(scenario(), { name: '\u00c5sa Unverified' });
      await call('users.block', { id: blocked.id }, { session });
      await call('users.delete', { id: deleted.id }, { session });
      await visit(
        async (page) => {
          await page.goto('/admin');
          const rows = page.getByRole('table').locator('tbody').getByRole('row');
          const column = (name: string) => page.getByRole('columnheader', { name, exact: true });
          await column('Created').waitFor();
          expect(await column('Created').getAttribute('aria-sort')).toBe('descending');
          for (const name of ['Status', 'Last login']) expect(await column(name).getByRole('link').count()).toBe(0);
          for (const [name, sorts] of [
            ['Name', ['ascending', 'descending']],
            ['Email', ['ascending', 'descending']],
            ['Created', ['descending', 'ascending']],
          ] as const)
            for (const sort of sorts) {
              await column(name).getByRole('link').click();
              await page.locator(`[aria-sort=${sort}]`).filter({ hasText: name }).waitFor();
              const texts = await rows.locator(name === 'Email' ? 'td:nth-child(2)' : 'th').allInnerTexts();
              expect(texts.length).toBeGreaterThan(2);
              const inOrder = [...texts].sort((a, b) => (searchKey(a) < searchKey(b) ? -1 : 1));
              if (name !== 'Created') expect(texts).toEqual(sort === 'ascending' ? inOrder : inOrder.reverse());
            }

          for (const [filter, badge, shown] of [
            ['Administrators', 'Administrator', email],
            ['Unverified', 'Unverified', '\u00c5sa Unverified'],
            ['Blocked', 'Blocked', 'Mallory'],
            ['Being deleted', 'Being deleted', 'Trent'],
          ] as const) {
            await page.getByRole('link', { name: filter, exact: true }).click();
            await page.locator('[aria-current=true]').filter({ hasText: filter }).waitFor();
            await rows.filter({ hasText: shown }).filter({ hasText: badge }).first().waitFor();
            expect(await rows.count()).toBe(await rows.locator('.badge').getByText(badge, { exact: true }).count());
            expect(await page.locator('thead').getByRole('link').count()).toBe(0);
          }
          await page.getByRole('link', { name: 'Everyone' }).click();
          await column('Created').getByRole('link').waitFor();
        },
        { session },
      );
    });

    test.each([320, 390])('at %i pixels each row is a card, and nothing is wider than the page', async (width) => {
      const { visit } = scenario();
      const { session } = await administrator(scenario());
      await registered(scenario(), { name: 'Maximiliane Freifrau von Hohenstein-Wittgenstein' });
      await visit(
        async (page) => {
          await page.goto('/admin');
          const cells = page.getByRole('table').locator('tbody tr').first().locator('th, td:not(:empty)');
          await cells.first().waitFor();
          const boxes = await cells.evaluateAll((found) => found.map((cell) => cell.getBoundingClientRect().toJSON()));
          for (const [above, below] of boxes.slice(1).map((box, i) => [boxes[i], box]))
            expect(below.top).toBeGreaterThanOrEqual(above.bottom - 1);
          expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
          expect(await findings(page)).toEqual([]);
        },
        { session, viewport: { width, height: 800 } },
      );
    });

    test('invites an email after a reauthentication', async () => {
      const { stack, visit } = scenario();
      const admin = await administrator(scenario());
      const email = freshEmail();
      await growOld(stack, admin.id);
      await visit(
        async (page) => {
          await page.goto('/admin?tab=invitations');
          const invite = card(page, 'Invite');
          await press(page, 'Send invitation');
          await said(page, 'alert', 'Enter an email');
          await invite.getByLabel('Email').fill(admin.email);
          await page.keyboard.press('Enter');
          await page.getByLabel('Your password').fill(PASSWORD);
          await page.keyboard.press('Enter');
          await said(page, 'alert', 'Email already registered');
          await invite.getByLabel('Email').fill(email);
          await page.keyboard.press('Enter');
          await said(page, 'status', `${email} was invited.`);
          expect(await invite.getByLabel('Email').inputValue()).toBe('');
          await stack.waitForMail({ to: email, subject: 'invited' });
        },
        { session: admin.session },
      );
    });

    test('lists open invitations in pages, and revokes one by keyboard', async () => {
      const { stack, call, visit } = scenario();
      const admin = await administrator(scenario());
      await stack.database('delete from invitations');
      const [email, sent] = [freshEmail('last'), freshEmail('sent')];
      for (const invited of [email, ...Array.from({ length: 20 }, () => freshEmail())]) {
        await call('users.invite', { email: invited }, { session: admin.session });
      }
      const invitation = await mailedToken(stack, email, 'register');
      await stack.database('update invitations set invited_by = null where email = ?', [email]);
      await growOld(stack, admin.id);
      await visit(
        async (page) => {
          await page.goto('/admin');
          await page.getByRole('link', { name: 'Invitations' }).click();
          const invitations = card(page, 'Invitations');
          const entries = invitations.getByRole('listitem');
          await entries.nth(19).waitFor();
          const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long' }).format(Date.now() + 7 * 86_400_000);
          await entries.first().getByText(`Invited by an administrator, works until ${day}.`).waitFor();
          const inviter = entries.first().getByRole('link', { name: 'an administrator' });
          expect(await inviter.getAttribute('href')).toBe(`/admin?user=${admin.id}`);
          await invitations.getByRole('button', { name: 'Show more' }).click();
          await entries.nth(20).getByText(`Invited by the operator, works until ${day}.`).waitFor();
          expect(await entries.count()).toBe(21);

          const entry = entries.filter({ hasText: email });
          await entry.getByRole('button', { name: 'Revoke' }).press('Enter');
          await entry.getByRole('heading', { name: 'Confirm your identity' }).waitFor();
          await entry.getByRole('region').getByRole('button', { name: 'Cancel' }).press('Enter');
          await focused(page, 'Revoke');
          expect(await entry.count()).toBe(1);
          await page.keyboard.press('Enter');
          await page.getByLabel('Your password').fill(PASSWORD);
          await page.keyboard.press('Enter');
          await said(page, 'status', `The invitation for ${email} was revoked. Its link no longer works.`);
          await focused(page, 'Invitations');
          expect(await entries.count()).toBe(20);
          const registration = { email, invitation, name: 'Ada', password: PASSWORD };
          expectRefusal(await call('auth.register', registration), 400, 'INVALID_TOKEN');

          await card(page, 'Invite').getByLabel('Email').fill(sent);
          await page.keyboard.press('Enter');
          await said(page, 'status', `${sent} was invited.`);
          await entries.first().getByText(sent).waitFor();
          await call('auth.register', {
            ...registration,
            email: sent,
            invitation: await mailedToken(stack, sent, 'register'),
          });
          await entries.first().getByRole('button', { name: 'Revoke' }).click();
          await said(page, 'status', `The invitation for ${sent} was no longer open`);

          await stack.database('delete from invitations');
          await page.reload();
          await invitations.getByText('There are no open invitations.').waitFor();
          expect(await entries.count()).toBe(0);
        },
        { session: admin.session, viewport: PHONE },
      );
    });

    test('the header and the focus stay while the users are loaded', async () => {
      const { session } = await administrator(scenario());
      await scenario().visit(
        async (page) => {
          const answer = Promise.withResolvers<void>();
          await page.route('**/trpc/*users.find*', async (route) => {
            await answer.promise;
            await route.continue();
          });
          await page.goto('/admin');
          const link = page.getByRole('link', { name: 'Webhooks' });
          await link.focus();
          answer.resolve();
          await page.getByRole('table').waitFor();
          await focused(page, await link.innerText());
        },
        { session },
      );
    });

    test('shows a user: account, login methods, sessions, uploads and activity', async () => {
      const { stack, call, visit } = scenario();
      const { session } = await administrator(scenario());
      const target = await loggedIn(scenario(), { name: 'Charles Babbage' });
      await loginsThrough(provider)(stack, identityClaims({ email: target.email }));
      await logIn(call, target, { headers: { 'user-agent': 'curl/8.5.0' } });
      await call('profile.update', { bio: 'Engines', website: 'https://engine.test/' }, { session: target.session });
      const { body } = await sendImage(scenario(), target.session, { bytes: await png() });
      await visit(
        async (page) => {
          await page.goto(`/admin?user=${target.id}`);
          await heading(page, 'Charles Babbage');
          const facts = await card(page, 'Account').innerText();
          for (const text of [target.email, target.id, 'User', 'Engines', 'https://engine.test/']) {
            expect(facts).toContain(text);
          }
          expect(facts).not.toMatch(/not verified|Blocked|Deleted|Location/);
          expect(await card(page, 'Login methods').innerText()).toMatch(
            new RegExp(`Password\\s+Yes\\s+Passkeys\\s+None\\s+Second factor\\s+None\\s+Acme – ${target.email}`),
          );
          const sessions = card(page, 'Sessions').getByRole('listitem');
          expect(await sessions.count()).toBe(3);
          expect(await sessions.locator('.mark').count()).toBe(3);
          expect(await card(page, 'Login methods').getByRole('listitem').locator('.mark').count()).toBe(1);
          expect(await sessions.first().innerText()).toMatch(/^curl\s+Logged in with a password on .* from [\d.]+/);
          const uploads = card(page, 'Uploads');
          await uploads.getByText('One file').waitFor();
          expect(await uploads.getByRole('link').getAttribute('href')).toBe(body.url);
          const events = card(page, 'Activity').getByRole('listitem');
          await events.first().waitFor();
          expect(await events.first().innerText()).toContain('File uploaded');
          expect(await events.last().innerText()).toContain('Account created with a password');
        },
        { session },
      );
    });

    test('blocks a user after the email is typed, and unblocks, by keyboard on a phone', async () => {
      const { stack, call, visit } = scenario();
      const admin = await administrator(scenario());
      const target = await loggedIn(scenario(), { name: 'Charles Babbage' });
      await visit(
        async (page) => {
          await page.goto(`/admin?user=${target.id}`);
          await reachAndPress(page, 'Block');
          await focused(page, '');
          await page.keyboard.type('somebody@else.test');
          await page.keyboard.press('Enter');
          await said(page, 'alert', `This does not match ${target.email}`);
          await reachAndPress(page, 'Cancel');
          await focused(page, 'Block');
          expect(await isAlive(call, target.session)).toBe(true);

          await page.keyboard.press('Tab');
          await page.keyboard.press('Enter');
          await focused(page, '');
          await page.keyboard.press('ControlOrMeta+A');
          await page.keyboard.type(target.email.toUpperCase());
          await page.keyboard.press('Enter');
          await said(page, 'status', 'The user is blocked, and all sessions were ended.');
          await focused(page, 'Block');
          await card(page, 'Account').getByText('Blocked').waitFor();
          await card(page, 'Sessions').getByText('Not logged in anywhere.').waitFor();
          await card(page, 'Activity').getByText('Account blocked, and logged out everywhere, by an admin').waitFor();
          expect(await isAlive(call, target.session)).toBe(false);
          expectRefusal(await call('auth.login', target), 403, 'ACCOUNT_BLOCKED');
          await stack.waitForMail({ to: target.email, subject: 'is blocked' });
          expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);

          await page.keyboard.press('Tab');
          await page.keyboard.press('Enter');
          await said(page, 'status', 'The user can log in again.');
          await logIn(call, target);
          await stack.waitForMail({ to: target.email, subject: 'is no longer blocked' });
          expect(await actsOn(stack, target.id)).toEqual([
            ['blocked', admin.id],
            ['unblocked', admin.id],
          ]);
        },
        { session: admin.session, viewport: PHONE },
      );
    });

    test('mails a reset, resets login limits, and ends all sessions', async () => {
      const { stack, call, visit } = scenario();
      const admin = await administrator(scenario());
      const target = await loggedIn(scenario());
      const address = '198.51.100.7';
      const attempt = () => call('auth.login', target, { address });
      for (let i = 0; i < 5; i++) await call('auth.login', { ...target, password: 'Wrong-1' }, { address });
      expectRefusal(await attempt(), 429, 'RATE_LIMITED');
      await visit(
        async (page) => {
          await page.goto(`/admin?user=${target.id}`);
          await press(page, 'Send reset link');
          await said(page, 'status', 'A link to set a new password is on its way to the user.');
          const { text } = await stack.waitForMail({ to: target.email, subject: 'Reset your password' });
          const { searchParams } = new URL(text.match(/https?:\/\/\S+/)?.[0] ?? '');
          expect(searchParams.get('token')).toMatch(/^[\w-]{43,}$/);
          expect(await page.locator('body').innerText()).not.toContain(searchParams.get('token'));

          await press(page, 'Unlock');
          await focused(page, '');
          await page.keyboard.type('nowhere');
          await page.keyboard.press('Enter');
          await said(page, 'alert', /invalid/i);
          expectRefusal(await attempt(), 429, 'RATE_LIMITED');
          await page.keyboard.press('ControlOrMeta+A');
          await page.keyboard.type(address);
          await page.keyboard.press('Enter');
          await said(page, 'status', 'The user’s login limits were reset.');
          expect((await attempt()).status).toBe(200);

          await press(page, 'End all sessions');
          await said(page, 'status', 'All sessions of the user were ended.');
          await row(page, 'Sessions').getByText('The user has no sessions.').waitFor();
          expect(await row(page, 'Sessions').getByRole('button').count()).toBe(0);
          await focused(page, 'Sessions');
          expect(await isAlive(call, target.session)).toBe(false);
          expect(await actsOn(stack, target.id)).toEqual([
            ['reset-sent', admin.id],
            ['unlocked', admin.id],
            ['sessions-ended', admin.id],
          ]);
        },
        { session: admin.session },
      );
    });

    test('removes a lost second factor, and changes the role', async () => {
      const { stack, call, visit } = scenario();
      const admin = await administrator(scenario());
      const target = await withApp(scenario());
      const roleNow = async () =>
        (await stack.database('select role from users where id = ?', [target.id]))[0]?.['role'];
      await visit(
        async (page) => {
          await page.goto(`/admin?user=${target.id}`);
          await card(page, 'Login methods').getByText('Authenticator app').waitFor();
          await press(page, 'Remove second factor');
          await confirm(page, 'Second factor', target.email);
          await said(page, 'status', 'The user can log in without a second factor.');
          await row(page, 'Second factor').getByText('The user has no second factor.').waitFor();
          expect(await stack.database('select user_id from totps where user_id = ?', [target.id])).toEqual([]);
          await stack.waitForMail({ to: target.email, subject: 'no longer requires a code' });

          await press(page, 'Make an administrator');
          expect(await roleNow()).toBe('user');
          await confirm(page, 'Role', target.email);
          await said(page, 'status', 'The user is an administrator.');
          expect(await roleNow()).toBe('admin');
          expect(await isAlive(call, target.session)).toBe(false);
          await stack.waitForMail({ to: target.email, subject: 'You are now an administrator' });
          await press(page, 'Make a regular user');
          await confirm(page, 'Role', target.email);
          await said(page, 'status', 'The user is no longer an administrator.');
          expect(await roleNow()).toBe('user');
          expect(await actsOn(stack, target.id)).toEqual([
            ['second-factors-removed', admin.id],
            ['role-changed', admin.id],
            ['role-changed', admin.id],
          ]);
        },
        { session: admin.session },
      );
    });

    test('deletes an account, and says when it is removed permanently', async () => {
      const { stack, call, visit } = scenario();
      const admin = await administrator(scenario());
      const target = await loggedIn(scenario());
      await visit(
        async (page) => {
          await page.goto(`/admin?user=${target.id}`);
          await press(page, 'Delete account');
          await confirm(page, 'Delete', 'somebody@else.test');
          await said(page, 'alert', `This does not match ${target.email}`);
          await confirm(page, 'Delete', target.email);
          await said(page, 'status', 'The account was deleted.');
          const [removal] = await stack.database<{ due_at: number }>('select due_at from removals where user_id = ?', [
            target.id,
          ]);
          const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long' }).format(Number(removal?.due_at));
          await said(page, 'status', day);
          expect(await row(page, 'Delete').getByRole('button').count()).toBe(0);
          await stack.waitForMail({ to: target.email, subject: 'is being deleted' });
          expect(await isAlive(call, target.session)).toBe(false);
          expectRefusal(await call('users.get', { id: target.id }), 404, 'NOT_FOUND');
          await page.goto(`/admin?q=${target.email}`);
          await page.locator('.badge').getByText('Being deleted').waitFor();
          expect(await actsOn(stack, target.id)).toEqual([['deletion-requested', admin.id]]);
        },
        { session: admin.session },
      );
    });

    test('each action asks for a credential if none is recent', async () => {
      const { stack, call, visit } = scenario();
      const admin = await administrator(scenario());
      const target = await withApp(scenario());
      const acts: [title: string, button: string, isConfirmed: boolean][] = [
        ['Password', 'Send reset link', false],
        ['Failed logins', 'Unlock', false],
        ['Sessions', 'End all sessions', false],
        ['Second factor', 'Remove second factor', true],
        ['Role', 'Make an administrator', true],
        ['Block', 'Block', true],
        ['Delete', 'Delete account', true],
      ];
      await growOld(stack, admin.id);
      await visit(
        async (page) => {
          await page.goto(`/admin?user=${target.id}`);
          for (const [title, button, isConfirmed] of acts) {
            const act = row(page, title);
            await act.getByRole('button', { name: button }).click();
            if (isConfirmed) await confirm(page, title, target.email);
            else if (title === 'Failed logins') await act.getByRole('button', { name: button }).click();
            await act.getByRole('heading', { name: 'Confirm your identity' }).waitFor();
            await act.getByRole('region').getByRole('button', { name: 'Cancel' }).click();
            await act.getByRole('region').waitFor({ state: 'detached' });
            expect(await act.getByRole('status').count()).toBe(0);
          }
          expect(await actsOn(stack, target.id)).toEqual([]);
          expect(await isAlive(call, target.session)).toBe(true);

          await press(page, 'Send reset link');
          await page.getByLabel('Your password').fill('Wrong-Password-1');
          await page.keyboard.press('Enter');
          await said(page, 'alert', 'The password is wrong');
          await page.getByLabel('Your password').fill(PASSWORD);
          await page.keyboard.press('Enter');
          await said(page, 'status', 'A link to set a new password is on its way to the user.');
          // From now on the session is recent.
          await press(page, 'End all sessions');
          await said(page, 'status', 'All sessions of the user were ended.');
        },
        { session: admin.session },
      );
    });

    test('reauthentication at a provider returns to the same user, with typed input', async () => {
      const { stack, call, visit } = scenario();
      const admin = await administrator(scenario());
      const claims = identityClaims({ email: admin.email });
      const { session = '' } = await loginsThrough(provider)(stack, claims);
      await stack.database('update users set password_hash = null where id = ?', [admin.id]);
      await growOld(stack, admin.id);
      const target = await loggedIn(scenario(), { name: 'Charles Babbage' });
      await visit(
        async (page) => {
          await page.goto(`/admin?user=${target.id}`);
          await press(page, 'Block');
          await confirm(page, 'Block', target.email);
          await page.getByRole('link', { name: 'Confirm with Acme' }).click();
          await page.waitForURL(`${provider.url}/authorize?*`);
          const next = provider.authorize(new URL(page.url()), { ...claims, auth_time: secondsFromNow(0) });
          await page.evaluate(`location.href = ${JSON.stringify(next.href)}`);
          await heading(page, 'Charles Babbage');
          expect(new URL(page.url()).search).toBe(`?user=${target.id}`);
          await said(page, 'status', 'Welcome back. Press “Block” again.');
          await focused(page, 'Block');
          expect(await isAlive(call, target.session)).toBe(true);
          await page.keyboard.press('Enter');
          await said(page, 'status', 'The user is blocked, and all sessions were ended.');
          expect(await isAlive(call, target.session)).toBe(false);
        },
        { session, elsewhere: [provider.url] },
      );
    });

    test('the last administrator cannot be blocked, deleted or demoted', async () => {
      const { stack, call, visit } = scenario();
      const admin = await administrator(scenario());
      await stack.database("update users set role = 'user' where id <> ?", [admin.id]);
      await visit(
        async (page) => {
          await page.goto(`/admin?user=${admin.id}`);
          for (const [title, button] of [
            ['Role', 'Make a regular user'],
            ['Block', 'Block'],
            ['Delete', 'Delete account'],
          ] as const) {
            await press(page, button);
            await confirm(page, title, admin.email);
            await row(page, title)
              .getByRole('alert')
              .filter({ hasText: 'This is the last administrator who can log in' })
              .waitFor();
          }
          expect(await actsOn(stack, admin.id)).toEqual([]);
          expect(await isAlive(call, admin.session)).toBe(true);
        },
        { session: admin.session },
      );
    });

    test('an administrator who ends the own session or role leaves the page', async () => {
      const { stack, visit } = scenario();
      const [admin, other] = [await administrator(scenario()), await administrator(scenario())];
      await visit(
        async (page) => {
          await page.goto(`/admin?user=${admin.id}`);
          await press(page, 'Make a regular user');
          await confirm(page, 'Role', admin.email);
          await heading(page, 'Page not found');
        },
        { session: admin.session },
      );
      await visit(
        async (page) => {
          await page.goto(`/admin?user=${other.id}`);
          await press(page, 'End all sessions');
          await page.waitForURL('**/login');
          expect(await actsOn(stack, other.id)).toEqual([['sessions-ended', other.id]]);
        },
        { session: other.session },
      );
    });
  },
  { env: environmentFor(provider) },
);

inBrowser(
  ['embedded'],
  (scenario) => {
    test('when registration is closed, invitations are listed and revoked, but not sent', async () => {
      const { stack, visit } = scenario();
      const { session } = await storedUser(scenario(), { role: 'admin' });
      await visit(
        async (page) => {
          await page.goto('/admin?tab=invitations');
          await card(page, 'Invitations').getByText('There are no open invitations.').waitFor();
          expect(await page.getByRole('heading', { level: 2 }).allInnerTexts()).toEqual(['Invitations']);
          await stack.database(
            'insert into invitations (id, email, token_hash, invited_by, created_at, expires_at) values (?, ?, ?, null, ?, ?)',
            [randomUUID(), 'charles@example.test', 'x'.repeat(43), Date.now(), Date.now() + 60_000],
          );
          await page.reload();
          await press(page, 'Revoke');
          await said(page, 'status', 'The invitation for charles@example.test was revoked');
          await card(page, 'Invitations').getByText('There are no open invitations.').waitFor();
        },
        { session },
      );
    });
  },
  { env: { REGISTRATION: 'closed' } },
);
