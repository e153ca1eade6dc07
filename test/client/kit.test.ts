import { join } from 'node:path';
import { linkIn, loginAs, mailsTo, newUser, waitForMail } from 'account-client/testing';
import type { Page, Route } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loggedIn } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { sendImage } from '../contract/uploads/storage.ts';
import { heading, inBrowser, press } from '../pages/browser.ts';
import { newProject, type Project, packClient } from '../rig/process/project.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { freePort } from '../rig/servers/port.ts';
import { until } from '../rig/until.ts';
import { sizeOf, startFrontEnd } from './front-end.ts';
import { paintsOf, recordPaints } from './painted.ts';

let project: Project;
const stops: (() => unknown)[] = [];
beforeAll(async () => {
  const { tarball } = await packClient();
  const packages = ['react', 'react-dom', '@types/react', '@types/react-dom', 'vue'];
  project = await newProject(join(import.meta.dirname, 'kit'), [tarball, ...packages]);
  await project.compile();
});
afterAll(() => Promise.all(stops.map((stop) => stop())));

/** Without what a page shows while it waits for the session. */
async function decidedPaintsOf(page: Page) {
  const { painted, jumped } = await paintsOf(page);
  return { painted: painted.filter((text) => text !== 'Shop'), jumped };
}

test.each(['react', 'vue'])('%s adds less than 4 kB to a page with the client', async (name) => {
  const plain = await sizeOf(project.directory, 'dist/plain.js');
  expect((await sizeOf(project.directory, `dist/with-${name}.js`)) - plain).toBeLessThan(4000);
});

inBrowser(['embedded'], (scenario) => {
  describe.each(['react', 'vue'])('%s', (name) => {
    let origin = '';
    /** A proxy answers for a service that is away: no error of the page. */
    const answerForNothing = (route: Route) =>
      route.fulfill({
        status: 404,
        body: 'Nothing here',
        headers: { 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' },
      });
    const address = () => `${origin}/?${new URLSearchParams({ service: scenario().stack.appUrl })}`;
    beforeAll(async () => {
      const frontEnd = await startFrontEnd(project.directory, `dist/${name}.js`, await freePort());
      stops.push(frontEnd.stop);
      origin = frontEnd.url;
    });

    test('asks once for all its readers, and paints no other state than the true one', async () => {
      const { stack, visit } = scenario();
      await visit(
        async (page) => {
          await page.addInitScript(recordPaints);
          await page.goto(address(), { waitUntil: 'networkidle' });
          expect(await decidedPaintsOf(page)).toMatchObject({ painted: ['Shop Welcome Log in'] });

          await loginAs(page, stack.appUrl, await newUser(stack.appUrl));
          const asked: string[] = [];
          page.on('request', (request) => asked.push(new URL(request.url()).pathname));
          await page.goto(address(), { waitUntil: 'networkidle' });
          expect(await decidedPaintsOf(page)).toEqual({ painted: ['A Shop Welcome, Ada Lovelace Devices'], jumped: 0 });
          expect(asked.filter((path) => path.startsWith('/trpc'))).toEqual(['/trpc/profile.get']);
        },
        { elsewhere: [origin] },
      );
    });

    test('logs in on the page of the service, and out by the menu, in every tab', async () => {
      const { stack, visit } = scenario();
      const user = await newUser(stack.appUrl, { name: 'Grace Hopper' });
      await visit(
        async (page) => {
          await page.goto(`${address()}#basket`);
          await press(page, 'Log in');
          await page.waitForURL(`${stack.appUrl}/login?*`);
          await page.getByLabel('Email').fill(user.email);
          await page.getByLabel('Password').fill(user.password);
          await press(page, 'Log in');
          await page.waitForURL(`${address()}#basket`);
          await heading(page, 'Welcome, Grace Hopper');

          const other = await page.context().newPage();
          await other.goto(address());
          const entry = other.getByRole('link', { name: 'My account' });
          await other.getByRole('button', { name: 'Grace Hopper' }).focus();
          await other.keyboard.press('Enter');
          await entry.waitFor();
          expect(await entry.getAttribute('href')).toBe(`${stack.appUrl}/dashboard`);
          expect(await other.getByRole('link', { name: 'Orders' }).isVisible()).toBe(true);
          await other.keyboard.press('Escape');
          await entry.waitFor({ state: 'hidden' });
          await other.keyboard.press('Enter');
          await press(other, 'Log out');
          await heading(other, 'Welcome');
          await page.getByRole('button', { name: 'Log in' }).waitFor();
        },
        { elsewhere: [origin] },
      );
    });

    test('the menu follows its labels, and says that a logout has failed', async () => {
      const { stack, visit } = scenario();
      await visit(
        async (page) => {
          await loginAs(page, stack.appUrl, await newUser(stack.appUrl));
          await page.goto(address());
          await press(page, 'Ada Lovelace');
          await press(page, 'Deutsch');
          await page.getByRole('link', { name: 'Mein Konto' }).waitFor();
          await page.route('**/trpc/auth.logout*', answerForNothing);
          await press(page, 'Log out');
          await page.getByRole('alert').getByText('You are still logged in. Please try again.').waitFor();
          await page.unroute('**/trpc/auth.logout*');
          await press(page, 'Log out');
          await heading(page, 'Welcome');
        },
        { elsewhere: [origin] },
      );
    });

    test('logs the user out when any call is answered that there is no session', async () => {
      const { stack, visit } = scenario();
      await visit(
        async (page) => {
          await loginAs(page, stack.appUrl, await newUser(stack.appUrl));
          await page.goto(address());
          await heading(page, 'Welcome, Ada Lovelace');
          const other = await page.context().newPage();
          await other.goto(address());
          await heading(other, 'Welcome, Ada Lovelace');
          expect((await page.request.post(`${stack.appUrl}/auth/logout`)).ok()).toBe(true);
          await press(page, 'Devices');
          await page.getByRole('button', { name: 'Log in' }).waitFor();
          await other.getByRole('button', { name: 'Log in' }).waitFor();
        },
        { elsewhere: [origin] },
      );
    });

    test('shows the initial of the name until the first picture is loaded, and then only the picture', async () => {
      const { call, visit } = scenario();
      const { session } = await loggedIn(scenario(), { name: 'Grace Hopper' });
      const { url } = (await sendImage(scenario(), session, { bytes: await png() })).body as { url: string };
      await call('profile.update', { avatar: url }, { session });
      await visit(
        async (page) => {
          const pictures: Route[] = [];
          await page.route(/\.webp$/, (route) => void pictures.push(route));
          await page.goto(address());
          const button = page.getByRole('button', { name: 'Grace Hopper' });
          await button.waitFor();
          await until(() => pictures.length === 1);
          expect(await button.innerText()).toBe('G');
          const before = await button.boundingBox();
          await pictures[0]?.continue();
          await expect.poll(() => button.innerText()).toBe('');
          expect(await button.boundingBox()).toEqual(before);
        },
        { session, elsewhere: [origin] },
      );
    });

    test('says in the console that a page at 127.0.0.1 has no session of a service at localhost', async () => {
      const { visit } = scenario();
      const warnings: string[] = [];
      await visit(
        async (page) => {
          page.on('console', (message) => message.type() === 'warning' && warnings.push(message.text()));
          await page.goto(address());
          await page.getByRole('button', { name: 'Log in' }).waitFor();
          expect(warnings).toEqual([]);
          await page.goto(address().replace('localhost', '127.0.0.1'));
          await page.getByRole('button', { name: 'Log in' }).waitFor();
          expect(warnings).toEqual([expect.stringContaining(`Open the page at ${origin}`)]);
        },
        { elsewhere: [origin, origin.replace('localhost', '127.0.0.1')] },
      );
    });

    test('says that the service cannot be reached, and knows the user once it can', async () => {
      const { stack, visit } = scenario();
      await visit(
        async (page) => {
          await loginAs(page, stack.appUrl, await newUser(stack.appUrl));
          await page.route('**/trpc/**', answerForNothing);
          await page.goto(address());
          await page.getByRole('alert').getByText('Offline').waitFor();
          expect(await page.getByRole('heading').count()).toBe(0);
          await page.unroute('**/trpc/**');
          await page.evaluate(`dispatchEvent(new Event('online'))`);
          await heading(page, 'Welcome, Ada Lovelace');
          expect(await page.getByRole('alert').count()).toBe(0);
        },
        { elsewhere: [origin] },
      );
    });
  });

  test('a page of React asks who is logged in when its server renders another user than it shows', async () => {
    const { stack, visit } = scenario();
    const frontEnd = await startFrontEnd(project.directory, 'dist/react-again.js', await freePort());
    stops.push(frontEnd.stop);
    await visit(
      async (page) => {
        await page.goto(`${frontEnd.url}/?${new URLSearchParams({ service: stack.appUrl })}`);
        await heading(page, 'Nobody');
        const user = await newUser(stack.appUrl, { name: 'Grace Hopper' });
        // The server renders nobody, as at first.
        await loginAs(page, stack.appUrl, user);
        await press(page, 'Check');
        await heading(page, 'Grace Hopper');
        await page.request.post(`${stack.appUrl}/auth/logout`);
        await press(page, 'Render nobody');
        await heading(page, 'Nobody');
        // The second time the server renders the same as before.
        for (const _ of ['first', 'second']) {
          await loginAs(page, stack.appUrl, user);
          await press(page, 'Render again');
          await heading(page, 'Grace Hopper');
          // The check has answered that the name is an old one: it stays.
          const checks: string[] = [];
          page.on('request', (request) => request.url().includes('profile.get') && checks.push(request.url()));
          await press(page, 'Render again');
          await press(page, 'Log out');
          await heading(page, 'Nobody');
          expect(checks).toEqual([]);
        }
      },
      { elsewhere: [frontEnd.url] },
    );
  });

  test('a component of Vue that is hydrated late starts with what the server has rendered', async () => {
    const { stack, visit } = scenario();
    const frontEnd = await startFrontEnd(project.directory, 'dist/vue-late.js', await freePort());
    stops.push(frontEnd.stop);
    await visit(
      async (page) => {
        await loginAs(page, stack.appUrl, await newUser(stack.appUrl));
        // A mismatch is an error in the console.
        await page.goto(`${frontEnd.url}/?${new URLSearchParams({ service: stack.appUrl })}`);
        await heading(page, 'Welcome');
        expect(await page.title()).toBe('hydrated logged-in');
      },
      { elsewhere: [frontEnd.url] },
    );
  });

  test('the mailbox reader finds the newest mail by its recipient and subject', async () => {
    const { appUrl } = scenario().stack;
    const user = await newUser(appUrl, { email: freshEmail() });
    const mail = await waitForMail(appUrl, { to: user.email, subject: 'Verify' });
    expect(linkIn(mail)).toMatch(/\/verify-email\?token=/);
    expect((await mailsTo(appUrl, user.email)).map(({ id }) => id)).toEqual([mail.id]);
    await expect(waitForMail(appUrl, { to: freshEmail(), within: 1 })).rejects.toThrow('No mail');
    await expect(mailsTo(`${appUrl}/nowhere`, user.email)).rejects.toThrow('no development mailbox');
  });

  test('a test that reaches the limit of logins is told which setting raises it', async () => {
    const { stack, visit } = scenario();
    await visit(async (page) => {
      const attempt = () => loginAs(page, stack.appUrl, { email: freshEmail(), password: 'Wrong-Password-1' });
      for (let i = 0; i < 5; i++) await expect(attempt()).rejects.toThrow('INVALID_CREDENTIALS');
      await expect(attempt()).rejects.toThrow('LIMIT_LOGIN=');
    });
  });

  test('a refused login of a test says why', async () => {
    const { stack, visit } = scenario();
    await visit(async (page) => {
      const attempt = loginAs(page, stack.appUrl, { email: freshEmail(), password: 'Wrong-Password-1' });
      await expect(attempt).rejects.toThrow('INVALID_CREDENTIALS');
    });
  });
});
