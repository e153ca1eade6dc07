import { execFile } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { root, startService } from '../rig/process/service.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';

const run = promisify(execFile);

/** Without the packages of this tree, and without npm's script environment. */
const env = {
  PATH: (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((path) => !path.includes('node_modules'))
    .join(delimiter),
  HOME: process.env['HOME'],
  npm_config_update_notifier: 'false',
  DATA_DIR: temporaryDirectory('pruned-data'),
};

/** The result of `npm ci && npm prune --omit=dev`, as docs/operations.md describes it for production without a container. */
const directory = join(temporaryDirectory('pruned'), 'accounts');

beforeAll(async () => {
  const left = ['.git', '.data', 'test', 'node_modules', 'client/node_modules'];
  cpSync(root, directory, { recursive: true, filter: (path) => !left.includes(relative(root, path)) });
  // Hard links, which take no time; copies on another file system. npm removes files, but writes into one of them.
  const link = `mkdir "$1" && cd "$0" && for entry in $(ls -A | grep -vx .cache); do
    cp -al "$entry" "$1" 2>/dev/null || cp -a "$entry" "$1"
  done && rm "$1/.package-lock.json" && cp .package-lock.json "$1"`;
  await run('sh', ['-c', link, join(root, 'node_modules'), join(directory, 'node_modules')]);
  await run('npm', ['prune', '--omit=dev', '--offline', '--no-audit', '--no-fund'], { cwd: directory, env });
});

/** The commands that docs/operations.md names for operators, each with exit code and a part of the output. */
const commands: [name: string, args: string[], code: number, output: string | RegExp][] = [
  ['migrate', ['--check'], 1, 'To apply: 0001-accounts'],
  ['migrate', [], 0, 'Applied 0001-accounts'],
  ['mikro-orm', ['migration:list'], 0, '0001-accounts'],
  ['doctor', [], 0, /^ok +database /m],
  ['service-token', ['billing'], 0, 'SERVICE_TOKENS=billing:'],
  ['s3-setup', [], 0, 'S3 is not configured'],
  ['user', ['find'], 0, 'No account'],
  ['webhook', ['list', '--json'], 0, '[]'],
  ['application', ['list', '--json'], 0, '[]'],
  ['keys', ['rotate'], 0, 'signs from '],
  ['users:export', [], 0, '0 users exported'],
  ['images', ['variants'], 0, ''],
  ['breached-passwords', [], 2, 'Usage: npm run breached-passwords'],
  ['users:import', ['package.json', '--dry-run'], 1, 'Must be a JSON object'],
];

test('contains no development package', () => {
  for (const name of ['vitest', 'vite', 'preact', '@20minutes/s3rver'])
    expect(() => readFileSync(join(directory, 'node_modules', name, 'package.json'))).toThrow();
});

test('runs each command for operators', async () => {
  for (const [name, args, code, output] of commands) {
    const ended = await run('npm', ['run', '--silent', name, '--', ...args], { cwd: directory, env }).then(
      (said) => ({ code: 0, ...said }),
      (error: { code: number; stdout: string; stderr: string }) => error,
    );
    expect([name, ended.code, ended.stdout + ended.stderr]).toEqual([
      name,
      code,
      typeof output === 'string' ? expect.stringContaining(output) : expect.stringMatching(output),
    ]);
  }
});

test('`npm start` serves the built pages, the document and its page', async () => {
  const service = await startService({ npm: true, tree: directory, env: { PATH: env.PATH } });
  for (const path of ['/login', '/openapi.json', '/docs']) expect((await fetch(service.url + path)).status).toBe(200);
  expect(await service.stop()).toBe(0);
});

test('docs/operations.md lists the commands that need no development packages', () => {
  const operations = readFileSync(join(root, 'docs/operations.md'), 'utf8');
  const [, sentence = ''] = /^`npm start`, (.*) work after `npm prune --omit=dev`/m.exec(operations) ?? [];
  expect(sentence.match(/(?<=`)[a-z0-9:-]+(?=`)/g)?.sort()).toEqual(
    [...new Set(commands.map(([name]) => name))].sort(),
  );
});
