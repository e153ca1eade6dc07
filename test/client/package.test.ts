import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { loggedIn, onBothStacks, verified } from '../contract/rig/scenario.ts';
import { startChromium } from '../rig/client/chromium.ts';
import { newProject, type Project, packClient } from '../rig/process/project.ts';
import { clientAddress } from '../rig/servers/address.ts';
import { freePort } from '../rig/servers/port.ts';
import { bundle, startFrontEnd } from './front-end.ts';
import { startStrangeServer } from './strange-server.ts';

const consumer = join(import.meta.dirname, 'consumer');
const frontEndPort = await freePort();
const token = 'a-token-of-another-service';
const sha256 = createHash('sha256').update(token).digest('hex');

let packed: Awaited<ReturnType<typeof packClient>>;
let project: Project;
let browser: Browser;
const stops: (() => unknown)[] = [];
let strange: string;

beforeAll(async () => {
  packed = await packClient();
  project = await newProject(consumer, [packed.tarball]);
  writeExamples(project, 'ts', 22);
  await project.compile();
  const server = await startStrangeServer();
  const frontEnd = await startFrontEnd(project.directory, 'dist/browser.js', frontEndPort);
  browser = await startChromium();
  stops.push(server.stop, frontEnd.stop, () => browser.close());
  strange = server.url;
});
afterAll(() => Promise.all(stops.map((stop) => stop())));

const readme = readFileSync(join(import.meta.dirname, '../../client/README.md'), 'utf8');

/** Adds the README's examples in one language to the project, compiled as strictly as its files. */
function writeExamples({ directory }: Project, language: 'ts' | 'tsx', expected: number): void {
  const examples = [...readme.matchAll(/```(\w+)\n(.*?)```/gs)].filter(([, name]) => name === language);
  expect(examples).toHaveLength(expected);
  for (const [i, [, , code = '']] of examples.entries())
    writeFileSync(join(directory, `example-${i}.${language}`), code);
}

test('the tarball is small and contains only what was built from src/', () => {
  expect(packed.size).toBeLessThan(80 * 1024);
  for (const file of packed.files)
    expect(file).toMatch(
      /^(dist\/([\w-]+\/)?[\w-]+\.(js|js\.map|d\.ts)|README\.md|SKILL\.md|llms\.txt|LICENSE|package\.json)$/,
    );
  const lock = JSON.parse(readFileSync(join(project.directory, 'package-lock.json'), 'utf8'));
  const installed = Object.keys(lock.packages).filter((path) => !/typescript/.test(path));
  expect(installed.sort()).toEqual([
    '',
    'node_modules/@simplewebauthn/browser',
    'node_modules/@trpc/client',
    'node_modules/@trpc/server',
    'node_modules/account-client',
    'node_modules/thumbhash',
  ]);
});

test('its types compile without other packages', () => {
  const types = join(project.directory, 'node_modules/account-client/dist');
  for (const file of [
    'index',
    'api',
    'client',
    'errors',
    'uploads/upload',
    'image',
    'pictures',
    'session-checker',
    'cookie-jar',
    'tokens',
    'editor/index',
    'editor/cropper',
    'editor/picture',
    'kit/session',
    'kit/server',
    'kit/testing',
  ]) {
    expect(readFileSync(join(types, `${file}.d.ts`), 'utf8')).not.toMatch(/from '[^.]/);
  }
});

/** The packages that a module of the client loads, directly or through imports. */
function loadedBy(module: string): Set<string> {
  const code = readFileSync(join(project.directory, 'node_modules/account-client/dist', module), 'utf8');
  const folder = dirname(module);
  const imported = [...code.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*['"]([^'"]+)['"]/g)].map(([, name = '']) => name);
  return new Set(imported.flatMap((name) => (name.startsWith('.') ? [...loadedBy(join(folder, name))] : name)));
}

test('an entry loads only the packages of its purpose', () => {
  const { exports } = JSON.parse(
    readFileSync(join(project.directory, 'node_modules/account-client/package.json'), 'utf8'),
  ) as { exports: Record<string, string | { default: string }> };
  const loaded = Object.entries(exports).flatMap(([entry, target]) =>
    typeof target === 'string' ? [] : [[entry, [...loadedBy(target.default.replace('./dist/', './'))]]],
  );
  expect(Object.fromEntries(loaded)).toEqual({
    '.': ['@trpc/client', '@trpc/server/observable', 'thumbhash'],
    './trpc': [],
    './passkeys': ['@simplewebauthn/browser', '@trpc/client'],
    './editor': [],
    './tokens': ['jose'],
    './session': ['@trpc/client', '@trpc/server/observable'],
    './react': ['react/jsx-runtime', 'react', 'thumbhash', '@trpc/client', '@trpc/server/observable'],
    './vue': ['vue', 'thumbhash', '@trpc/client', '@trpc/server/observable'],
    './server': ['@trpc/client', '@trpc/server/observable'],
    './testing': ['@trpc/client', '@trpc/server/observable'],
  });
});

test('its examples for React and TanStack Query compile with the packages that npm installs', async () => {
  const packages = ['@tanstack/react-query', '@trpc/tanstack-react-query', 'react', '@types/react'];
  const other = await newProject(join(import.meta.dirname, 'tanstack'), [packed.tarball, ...packages]);
  writeExamples(other, 'tsx', 2);
  await other.compile();
});

const everyStep = {
  wrongPassword: 'INVALID_CREDENTIALS',
  name: 'Ada Lovelace',
  id: true,
  listed: 1,
  requestsForTwo: 1,
  requestsForEleven: 2,
  bio: 'Writes about engines.',
  website: '',
  refused: { status: 400, rule: 'too_short', rules: ['too_short'] },
  image: [512, 512],
  imageProgress: { starts: 0, ends: true, rises: true },
  reportsBetween: true,
  notAnImage: 'VALIDATION_FAILED',
  leftImage: 'aborted',
  weak: ['uppercase', 'digit'],
  stored: { contentType: 'application/pdf', size: 2 * 1024 * 1024, readBack: true },
  progress: { starts: 0, ends: true, rises: true },
  notTaken: 'VALIDATION_FAILED',
  logout: 'answered',
  afterLogout: 'UNAUTHENTICATED',
  noService: 'UNAUTHENTICATED',
  nowhere: 'network',
  hint: true,
  proxy: 'network',
  silent: 'timeout',
  half: 'timeout',
  aborted: 'aborted',
};

describe('the packed client', () => {
  onBothStacks(
    (stack) => {
      const start = async () => {
        const { email, password } = await verified({ stack: stack(), call: callerOf('rest', stack().url) });
        const nowhere = `http://localhost:${await freePort()}`;
        return { url: stack().appUrl, person: { email, password }, strange, nowhere };
      };

      test('runs the whole account flow in Node', async () => {
        expect(await project.run('dist/node.js', { START: JSON.stringify(await start()) })).toEqual(everyStep);
      });

      test('runs the whole account flow in a browser, from another origin', async () => {
        const page = await browser.newPage();
        await page.goto(`http://localhost:${frontEndPort}`);
        await page.waitForFunction('window.walk');
        const outcome = await page.evaluate(`window.walk(${JSON.stringify(await start())})`);
        await page.close();
        expect(outcome).toEqual(everyStep);
      });

      test('creates, uses and removes passkeys on a page of the service', async () => {
        const { email, password } = await verified({ stack: stack(), call: callerOf('rest', stack().url) });
        const context = await browser.newContext({
          bypassCSP: true,
          extraHTTPHeaders: { 'x-forwarded-for': clientAddress() },
        });
        const page = await context.newPage();
        await page.goto(`${stack().appUrl}/livez`);
        await page.addScriptTag({ type: 'module', content: await bundle(project.directory, 'dist/passkeys.js') });
        await page.waitForFunction('window.passkeys');
        await page.evaluate(`document.body.innerHTML = '<input autocomplete="username webauthn">'`);
        const devtools = await context.newCDPSession(page);
        await devtools.send('WebAuthn.enable');
        const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
          options: {
            protocol: 'ctap2',
            transport: 'internal',
            hasResidentKey: true,
            hasUserVerification: true,
            isUserVerified: true,
          },
        });
        const does = (step: string) => page.evaluate(`window.passkeys.${step}`);
        expect(await does(`register(${JSON.stringify({ email, password })})`)).toEqual({
          added: 'My laptop',
          again: 'InvalidStateError',
          listed: ['My laptop'],
          supported: true,
        });
        expect(await does('logIn(false)')).toBe(email);
        expect(await does('logIn(true)')).toBe(email);
        expect(await does('abortAtOnce()')).toBe('over');
        await devtools.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled: false });
        expect(await does('abort()')).toBe('left the page');
        await context.close();
      });

      test('tells another service who the user of a session is', async () => {
        const { session, id } = await loggedIn({ stack: stack(), call: callerOf('rest', stack().url) });
        const env = { ACCOUNTS_URL: stack().appUrl, ACCOUNTS_TOKEN: token, SESSION: session };
        expect(await project.run('dist/service.js', env)).toMatchObject({
          found: { user: { id, emailVerified: true }, fresh: false },
          stranger: null,
          impostor: 'UNAUTHENTICATED',
          checked: [id, id, id, null],
          callsForThree: 1,
          callsInAll: 3,
        });
      });
    },
    { env: { ALLOWED_ORIGINS: `http://localhost:${frontEndPort}`, SERVICE_TOKENS: `other:${sha256}` } },
  );
});
