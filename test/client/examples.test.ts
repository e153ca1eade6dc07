import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { deviceParty, relyingParty, Visitor } from '../contract/rig/relying-party.ts';
import { loggedIn, onStack, PASSWORD, verified } from '../contract/rig/scenario.ts';
import { withWebhooks } from '../contract/rig/webhook-scenario.ts';
import { heading, inBrowser, logOut, mailedLink, press } from '../pages/browser.ts';
import { ageSession } from '../rig/observe/key-value-view.ts';
import { spawnGroup } from '../rig/process/process-group.ts';
import { newProject, packClient } from '../rig/process/project.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { freePort } from '../rig/servers/port.ts';
import { until } from '../rig/until.ts';
import { paintsOf, recordPaints } from './painted.ts';

/** Each of client/examples in its own directory with the packed client, as a reader tries it. */
const examples = join(import.meta.dirname, '../../client/examples');
const stops: (() => unknown)[] = [];
afterAll(() => Promise.all(stops.map((stop) => stop())));

async function example(name: string, { build }: { build?: Record<string, string> } = {}) {
  const { tarball } = await packClient();
  const project = await newProject(name === 'SKILL.md' ? projectOfSkill() : join(examples, name), [tarball]);
  // Frameworks generate types when they build.
  if (build) await project.script('build', build);
  await project.compile();
  return project;
}

let react: ReturnType<typeof example> | undefined;

/** One installation of react-vite for two services; each builds it with its own URL. */
async function reactProject(accountsUrl: string) {
  react ??= example('react-vite');
  const project = await react;
  await project.script('build', { VITE_ACCOUNTS_URL: accountsUrl });
  return project;
}

/** The files that SKILL.md of the package lists for a front end. */
function projectOfSkill(): string {
  const directory = temporaryDirectory('skill');
  const skill = readFileSync(join(examples, '../SKILL.md'), 'utf8');
  for (const [, file = '', content = ''] of skill.matchAll(/^```\w+ (\S+)\n(.*?)^```$/gms)) {
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    writeFileSync(join(directory, file), content);
  }
  return directory;
}

const [reactPort, providerPort, renderingPort, fastifyPort, sitePort] = (await Promise.all(
  Array.from({ length: 5 }, freePort),
)) as [number, number, number, number, number];

/** A page of another site with a link: for a browser, 127.0.0.1 is another site than localhost. */
async function otherSite(target: string): Promise<string> {
  const server = createServer((_, response) => {
    response.setHeader('Content-Type', 'text/html').end(`<!doctype html><a href="${target}">There</a>`);
  }).listen(0, '127.0.0.1');
  stops.push(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Fills in the form of the log-in page. */
async function logInThere(page: Page, email: string): Promise<void> {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Log in');
}

inBrowser(['real'], (scenario) => {
  describe('react-vite', () => {
    const url = `http://localhost:${reactPort}`;
    beforeAll(async () => {
      const project = await reactProject(scenario().stack.appUrl);
      const args = ['--port', String(reactPort), '--host', '127.0.0.1', '--strictPort'];
      stops.push(await project.serve('preview', { port: reactPort, args }));
    });
    afterAll(() => stops.pop()?.());

    test('registers, logs in, uploads a picture and logs out', async () => {
      const { stack, visit } = scenario();
      const email = freshEmail();
      await visit(
        async (page) => {
          await page.goto(url);
          await press(page, 'I am new here');
          await heading(page, 'Create your account');
          await page.getByLabel('Name').fill('Ada Lovelace');
          await page.getByLabel('Email').fill(email);
          await page.getByLabel('Password').fill('analytical');
          await press(page, 'Create account');
          await page.getByRole('alert').getByText('Validation failed').waitFor();
          await page.getByText('✓ a lowercase letter').waitFor();
          await page.getByText('· a digit').waitFor();
          await page.getByLabel('Password').fill(PASSWORD);
          await press(page, 'Create account');
          await page
            .getByRole('status')
            .getByText(/check your (?:email|inbox)/i)
            .waitFor();

          await page.goto(await mailedLink(stack, email, 'Verify your email'));
          await press(page, 'Verify email');
          await heading(page, 'Your email is verified');

          await page.goto(url);
          await page.getByLabel('Email').fill(email);
          await page.getByLabel('Password').fill('Wrong-Password-1');
          await press(page, 'Log in');
          await page.getByRole('alert').getByText('Invalid email or password').waitFor();
          await page.getByLabel('Password').fill(PASSWORD);
          await press(page, 'Log in');
          await heading(page, 'Your profile');
          await page.getByLabel('Bio').fill('Writes about engines.');
          await press(page, 'Save');
          await page
            .getByLabel('Picture')
            .setInputFiles({ name: 'x.png', mimeType: 'image/png', buffer: Buffer.from('x') });
          await page.getByRole('alert').waitFor();
          await page
            .getByLabel('Picture')
            .setInputFiles(join(import.meta.dirname, '../../client/pages/screenshots/register.png'));
          await page.getByRole('img', { name: 'You' }).waitFor();
          await page
            .getByLabel('Add one')
            .setInputFiles(join(import.meta.dirname, '../../client/pages/screenshots/register.png'));
          const picture = page.getByRole('img', { name: 'A post' });
          await picture.waitFor();
          // Faded in over its placeholder, from the smallest file that fills 300 pixels.
          await picture.scrollIntoViewIfNeeded();
          await until(async () => {
            const opacity = await picture.evaluate(
              (image) => Reflect.get(globalThis, 'getComputedStyle')(image).opacity,
            );
            return opacity === '1';
          });
          expect(await picture.evaluate((image) => Reflect.get(image, 'currentSrc'))).toMatch(/_320\.webp$/);
          expect(await picture.evaluate((image) => image.parentElement?.style.background)).toContain('data:image/png');
          const you = page.getByRole('img', { name: 'You' });
          expect(await you.evaluate((image) => Reflect.get(image, 'currentSrc'))).toMatch(/_256\.webp$/);
          await page.reload();
          await page.getByRole('img', { name: 'You' }).waitFor();
          expect(await page.getByLabel('Bio').inputValue()).toBe('Writes about engines.');
          await press(page, 'Log out');
          await heading(page, 'Log in');
          await page.reload();
          await heading(page, 'Log in');
        },
        { elsewhere: [url] },
      );
    });

    test('receives users back from the log-in page of the service', async () => {
      const { stack, visit } = scenario();
      const { email } = await verified({ stack, call: callerOf('rest', stack.url) });
      await visit(
        async (page) => {
          await page.goto(`${url}/?basket=1#pay`);
          await page.getByRole('link', { name: 'Other ways to log in' }).click();
          await page.waitForURL(`${stack.appUrl}/login?*`);
          await page.getByRole('link', { name: 'Create an account' }).click();
          await page.getByRole('link', { name: 'Log in' }).click();
          await logInThere(page, email);
          await page.waitForURL(`${url}/?basket=1#pay`);
          await heading(page, 'Your profile');
          await page.goto(`${stack.appUrl}/dashboard`);
          await heading(page, 'Your profile');
          expect(new URL(page.url()).pathname).toBe('/dashboard');
        },
        { elsewhere: [url] },
      );
    });
  });
});

inBrowser(['embedded'], (scenario) => {
  describe('react-vite and the embedded provider', () => {
    const url = `http://localhost:${providerPort}`;
    beforeAll(async () => {
      const project = await reactProject(scenario().stack.appUrl);
      const args = ['--port', String(providerPort), '--host', '127.0.0.1', '--strictPort'];
      stops.push(await project.serve('preview', { port: providerPort, args }));
    });
    afterAll(() => stops.pop()?.());

    test('a login through the provider returns to the front end', async () => {
      const { stack, visit } = scenario();
      await visit(
        async (page) => {
          await page.goto(`${url}/?basket=1#pay`);
          await page.getByRole('link', { name: 'Other ways to log in' }).click();
          await page.waitForURL(`${stack.appUrl}/login?*`);
          await page.getByRole('link', { name: /^Continue with/ }).click();
          await page.getByLabel('Email', { exact: true }).fill(freshEmail());
          await page.getByLabel('Name').fill('Grace Hopper');
          await press(page, 'Log in');
          await page.waitForURL(`${url}/?basket=1#pay`);
          await heading(page, 'Your profile');

          // Without the pages of the service in between.
          await press(page, 'Log out');
          await page.goto(`${stack.appUrl}/auth/idp?${new URLSearchParams({ returnTo: url })}`);
          await page.getByLabel('Email', { exact: true }).fill(freshEmail());
          await page.getByLabel('Name').fill('Grace Hopper');
          await press(page, 'Log in');
          await page.waitForURL(`${url}/`);
          await heading(page, 'Your profile');
        },
        { elsewhere: [url] },
      );
    });
  });

  describe('server-rendering', () => {
    const url = `http://localhost:${renderingPort}`;
    let elsewhere = '';
    beforeAll(async () => {
      const project = await example('server-rendering');
      const env = { ACCOUNTS_URL: scenario().stack.appUrl };
      stops.push(await project.serve('start', { port: renderingPort, env }));
      elsewhere = await otherSite(`${url}/`);
    });

    test('shows who is logged in, even after a link from another site, and logs out', async () => {
      const { stack, visit } = scenario();
      const { email } = await verified({ stack, call: callerOf('rest', stack.url) });
      await visit(
        async (page) => {
          await page.goto(url);
          await page.getByRole('link', { name: 'Log in' }).click();
          await page.waitForURL(`${stack.appUrl}/login?*`);
          await logInThere(page, email);
          await page.waitForURL(`${url}/`);
          await heading(page, 'Welcome, Ada Lovelace');
          await page.goto(elsewhere);
          await page.getByRole('link', { name: 'There' }).click();
          await heading(page, 'Welcome, Ada Lovelace');
          await press(page, 'Log out');
          await page.getByRole('link', { name: 'Log in' }).waitFor();
        },
        { elsewhere: [url, elsewhere] },
      );
    });

    test('refuses a logout from a page of another site', async () => {
      const { stack } = scenario();
      const { session } = await loggedIn({ stack, call: callerOf('rest', stack.url) });
      const headers = { cookie: `auth_session=${session}`, origin: 'https://evil.test' };
      expect((await fetch(`${url}/log-out`, { method: 'POST', headers })).status).toBe(403);
      expect(await (await fetch(url, { headers })).text()).toContain('Welcome, Ada');
    });
  });
});

describe('device-login', () => {
  onStack('embedded', (stack) => {
    test('logs in once the user has entered its code', async () => {
      const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
      const { id, answer } = await deviceParty(scenario);
      const user = await loggedIn(scenario);
      const { directory } = await example('device-login');
      const env = { ACCOUNTS_URL: stack().appUrl, CLIENT_ID: id };
      const { exited, output } = spawnGroup({ file: process.execPath, args: ['log-in.ts'], cwd: directory, env });
      const code = () => /\/device and enter (\w{4}-\w{4})\n/.exec(output())?.[1];
      await expect.poll(code).toBeDefined();
      await answer({ user_code: code() ?? '' }, user);
      expect(await exited).toBe(0);
      expect(output()).toContain(`Logged in as ${user.email}\n`);
    });
  });
});

describe('second-site', () => {
  const url = `http://localhost:${sitePort}`;
  inBrowser(
    ['embedded'],
    (scenario) => {
      test('its users log in and out at the account service, and a logout there ends their login here', async () => {
        const { stack, visit } = scenario();
        const given = { stack, call: callerOf('rest', stack.url) };
        const { id, secret = '' } = await relyingParty(given, {
          redirectUris: [`${url}/callback`],
          postLogoutRedirectUris: [`${url}/`],
          backchannelLogoutUri: `http://127.0.0.1:${sitePort}/logged-out`,
          trusted: true,
        });
        const project = await example('second-site');
        const env = { ACCOUNTS_URL: stack.appUrl, CLIENT_ID: id, CLIENT_SECRET: secret };
        stops.push(await project.serve('start', { port: sitePort, env }));
        const user = await verified(given);
        await visit(
          async (page) => {
            await page.goto(url);
            await page.getByRole('link', { name: 'Log in' }).click();
            await heading(page, 'Log in');
            await logInThere(page, user.email);
            await heading(page, `Welcome, ${user.name}`);
            await press(page, 'Log out');
            await page.waitForURL(`${url}/`);
            await page.getByRole('link', { name: 'Log in' }).click();
            await heading(page, 'Log in');
            await logInThere(page, user.email);
            await heading(page, `Welcome, ${user.name}`);
            await page.goto(`${stack.appUrl}/dashboard`);
            await logOut(page);
            await heading(page, 'Log in');
            await page.goto(url);
            await expect
              .poll(async () => {
                await page.reload();
                return page.getByRole('link', { name: 'Log in' }).count();
              })
              .toBe(1);
          },
          { elsewhere: [url] },
        );
        const planted = { method: 'POST', body: new URLSearchParams({ logout_token: 'x' }) };
        expect((await fetch(`${url}/logged-out`, planted)).status).toBe(400);
      });
    },
    withWebhooks,
  );
});

const token = 'a-token-of-the-orders';
const sha256 = createHash('sha256').update(token).digest('hex');
const withToken = { env: { SERVICE_TOKENS: `orders:${sha256}` } };

const DAY_MS = 24 * 60 * 60_000;

/** Examples of the kit; `menu` must be opened before the button to log out; a static one has no server that knows the user. */
const kits = [
  { name: 'next', script: 'start', args: ['-H', '127.0.0.1'], menu: true, hasScripts: true, isStatic: false },
  { name: 'sveltekit', script: 'start', args: [], menu: false, hasScripts: true, isStatic: false },
  { name: 'hono', script: 'start', args: [], menu: false, hasScripts: false, isStatic: false },
  {
    name: 'SKILL.md',
    script: 'preview',
    args: ['--host', '127.0.0.1', '--strictPort'],
    menu: true,
    hasScripts: true,
    isStatic: true,
  },
];

inBrowser(
  ['embedded'],
  (scenario) => {
    describe.each(kits)('$name', ({ name, script, args, menu, hasScripts, isStatic }) => {
      let url = '';
      let elsewhere = '';
      beforeAll(async () => {
        const port = await freePort();
        url = `http://localhost:${port}`;
        const { appUrl } = scenario().stack;
        const build = { VITE_ACCOUNTS_URL: appUrl, NEXT_TELEMETRY_DISABLED: '1' };
        const project = await example(name, hasScripts ? { build } : {});
        const env = { ACCOUNTS_URL: appUrl, ACCOUNTS_TOKEN: token, HOST: '127.0.0.1', ORIGIN: url };
        stops.push(
          await project.serve(script, {
            port,
            args: [...args, ...(script === 'preview' ? ['--port', `${port}`] : [])],
            env,
          }),
        );
        elsewhere = await otherSite(`${url}/`);
      });

      if (!isStatic)
        test('keeps the cookie of an active user: the service renews the session, the server its cookie', async () => {
          const { stack } = scenario();
          const { session } = await loggedIn({ stack, call: callerOf('rest', stack.url) });
          const cookiesOnUse = async () => {
            const response = await fetch(url, { headers: { cookie: `auth_session=${session}` } });
            expect((await response.text()).replaceAll('<!-- -->', '')).toContain('Welcome, Ada Lovelace');
            return response.headers.getSetCookie();
          };
          expect(await cookiesOnUse()).toEqual([]);
          await ageSession(stack, session, 4 * DAY_MS);
          const [line = '', ...more] = await cookiesOnUse();
          expect(more).toEqual([]);
          expect(line).toMatch(new RegExp(`^auth_session=${session};.* Max-Age=604\\d{3};`));
        });

      test('logs in, comes back, changes the profile, logs out, and never shows another state than the true one', async () => {
        const { stack, visit } = scenario();
        const { email } = await verified({ stack, call: callerOf('rest', stack.url) });
        await visit(
          async (page) => {
            await page.addInitScript(recordPaints);
            // Until its scripts have run, a page that a server rendered does nothing.
            await page.goto(url, { waitUntil: 'networkidle' });
            await page.getByText('Log in', { exact: true }).click();
            await page.waitForURL(`${stack.appUrl}/login?*`);
            await logInThere(page, email);
            await page.waitForURL(`${url}/`, { waitUntil: 'networkidle' });
            await heading(page, 'Welcome, Ada Lovelace');

            await page.getByLabel('Name').fill('A');
            await press(page, 'Save');
            await page.getByText('Must have at least 2 characters').waitFor();
            if (hasScripts) expect(await page.getByLabel('Name').inputValue()).toBe('A');
            await page.getByLabel('Name').fill('Grace Hopper');
            await page
              .getByLabel('Picture')
              .setInputFiles(join(import.meta.dirname, '../../client/pages/screenshots/register.png'));
            await page.getByLabel('Name').press('Enter');
            await heading(page, 'Welcome, Grace Hopper');
            if (hasScripts)
              expect(await page.getByLabel('Name').evaluate((field) => field.matches(':focus'))).toBe(true);
            await page.locator('img[src$=".webp"]').waitFor();

            const first = await page.reload({ waitUntil: 'networkidle' });
            // React separates texts by comments.
            if (!isStatic) expect((await first?.text())?.replaceAll('<!-- -->', '')).toContain('Welcome, Grace Hopper');
            const known = await paintsOf(page);
            expect(
              known.painted.filter((text) => !text.includes('Welcome, Grace Hopper') || /Log in/.test(text)),
            ).toEqual([]);
            expect(known.jumped).toBe(0);

            await page.goto(elsewhere);
            await page.getByRole('link', { name: 'There' }).click();
            await heading(page, 'Welcome, Grace Hopper');

            const other = await page.context().newPage();
            await other.goto(url, { waitUntil: 'networkidle' });
            if (menu) await press(other, 'Grace Hopper');
            await press(other, 'Log out');
            await other.getByText('Log in', { exact: true }).waitFor();
            if (hasScripts) await page.getByText('Log in', { exact: true }).waitFor();
            await page.reload({ waitUntil: 'networkidle' });
            const unknown = await paintsOf(page);
            expect(unknown.painted.length).toBeGreaterThan(0);
            expect(unknown.painted.filter((text) => text.includes('Grace'))).toEqual([]);
            expect(unknown.jumped).toBe(0);
          },
          { elsewhere: [url, elsewhere] },
        );
      });
    });
  },
  withToken,
);

describe('fastify-service', () => {
  onStack(
    'embedded',
    (stack) => {
      const orders = (headers: Record<string, string> = {}) =>
        fetch(`http://localhost:${fastifyPort}/orders`, { headers });
      beforeAll(async () => {
        const project = await example('fastify-service');
        const env = { ACCOUNTS_URL: stack().appUrl, ACCOUNTS_TOKEN: token, CACHE_SECONDS: '2' };
        stops.push(await project.serve('start', { port: fastifyPort, env }));
      });

      test('caches the user of a session for the stated time, and answers 503 when it cannot know', async () => {
        const call = callerOf('rest', stack().url);
        const { session } = await loggedIn({ stack: stack(), call });
        const cookie = `auth_session=${session}`;
        expect((await orders()).status).toBe(401);
        expect((await orders({ cookie: `auth_session=${'x'.repeat(43)}` })).status).toBe(401);
        const answer = await orders({ cookie });
        expect([answer.status, await answer.json()]).toEqual([200, { of: 'Ada Lovelace', orders: [] }]);
        await call('auth.logout', undefined, { session });
        expect((await orders({ cookie })).status).toBe(200);
        await expect.poll(async () => (await orders({ cookie })).status, { timeout: 10_000 }).toBe(401);
        await stack().stop();
        expect((await orders({ cookie })).status).toBe(503);
      });
    },
    withToken,
  );
});

describe('native-app', () => {
  onStack('embedded', (stack) => {
    test('logs the user of a browser in, by the answer to its own request only', async () => {
      const scenario = { stack: stack(), call: callerOf('rest', stack().url) };
      const party = await relyingParty(scenario, { kind: 'native', redirectUris: ['http://127.0.0.1/callback'] });
      const user = await loggedIn(scenario);
      const { directory } = await example('native-app');
      const program = spawn(process.execPath, [join(directory, 'login.ts')], {
        env: { ACCOUNTS_URL: stack().appUrl, CLIENT_ID: party.id },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      stops.push(() => program.kill());
      const lines = createInterface(program.stdout)[Symbol.asyncIterator]();
      const nextLine = async () => String((await lines.next()).value);
      expect(await nextLine()).toBe('Open this address in your browser:');
      const visitor = new Visitor();
      const { id } = await party.visit(visitor, await nextLine());
      const { callback } = await party.answer(user.session, id ?? '', visitor);
      const planted = new URL(callback as URL);
      planted.searchParams.set('state', 'planted');
      expect((await fetch(planted)).status).toBe(404);
      expect((await fetch(callback as URL)).status).toBe(200);
      expect(await nextLine()).toBe(`Logged in as ${user.name}`);
    });
  });
});
