import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { globSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, inject, test } from 'vitest';
import { spawnGroup, whenGone, whenReady } from '../rig/process/process-group.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { createDatabase, dropDatabase } from '../rig/servers/mysql.ts';
import { freePort } from '../rig/servers/port.ts';
import { nextDatabase } from '../rig/servers/redis.ts';
import { startS3 } from '../rig/servers/s3.ts';
import { startSmtpSink } from '../rig/servers/smtp.ts';
import { buildImage, containerCommand, type Image } from './chroot.ts';

const MAX_MEGABYTES = 300;

let image: Image;
beforeAll(async () => {
  image = await buildImage(temporaryDirectory('image'));
});

const filesIn = (pattern: string) => globSync(pattern, { cwd: image.root });

test(`the image is smaller than ${MAX_MEGABYTES} MB`, () => {
  const kilobytes = Number.parseInt(execFileSync('du', ['-sk', image.root], { encoding: 'utf8' }), 10);
  console.log(`The image has ${Math.round(kilobytes / 1024)} MB`);
  expect(kilobytes / 1024).toBeLessThan(MAX_MEGABYTES);
});

test('the image contains one Node and no npm', () => {
  const programs = filesIn('**/{node,nodejs,npm,npx}').filter((path) =>
    statSync(join(image.root, path), { throwIfNoEntry: false })?.isFile(),
  );
  const found = new Set(programs.filter((path) => !path.includes('/.bin/')));
  expect([...found]).toEqual([expect.stringMatching(/^app\/node_modules\/node-linux-[^/]+\/bin\/node$/)]);
});

test('the image contains no development dependency, tests or secrets', () => {
  const packages = readdirSync(join(image.root, 'app/node_modules'));
  for (const name of ['vitest', 'typescript', 'vite', 'mysql2'])
    expect({ name, has: packages.includes(name) }).toEqual({ name, has: name === 'mysql2' });
  expect(readdirSync(join(image.root, 'app')).sort()).toEqual([
    '.commit',
    '.compiled',
    'LICENSE',
    'client',
    'entities',
    'node_modules',
    'package.json',
    'routers',
    'server',
  ]);
  expect(filesIn('app/**/.env')).toEqual([]);
});

test('as an unprivileged user on a read-only root file system it serves, is healthy and stops at SIGTERM', async () => {
  const databaseUrl = await createDatabase(inject('mysqlUrl'));
  const smtp = await startSmtpSink();
  const s3 = await startS3({ cors: true });
  const port = await freePort();
  const env = {
    PORT: String(port),
    HOST: '127.0.0.1',
    APP_URL: 'https://accounts.example.com',
    APP_SECRET: randomBytes(32).toString('base64'),
    DATABASE_URL: databaseUrl,
    REDIS_URL: await nextDatabase(inject('redisUrl')),
    SMTP_URL: smtp.url,
    MAIL_FROM: 'no-reply@accounts.test',
    ...s3.env,
  };
  const run = (args: string[]) => spawnGroup(containerCommand(image, args, { readOnly: true, env }));
  try {
    const service = run(image.command);
    const answers = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200;
    await whenReady(service, answers, { what: 'the image', within: 20_000 });

    expect(await run(image.healthcheck).exited).toBe(0);
    expect(await run(['/bin/sh', '-c', 'test "$(id -u)" = 10001']).exited).toBe(0);
    for (const directory of ['/app', '/data', '/tmp', '/']) {
      expect(await run(['/usr/bin/touch', `${directory}/file`]).exited).toBe(1);
    }
    expect((await fetch(`http://127.0.0.1:${port}/login`)).status).toBe(200);

    service.signal('SIGTERM');
    expect(await whenGone(service, { what: 'the end of the image', within: 15_000 })).toBe(0);
    expect(await run(image.healthcheck).exited).toBe(1);
  } finally {
    await Promise.all([smtp.stop(), s3.stop(), dropDatabase(databaseUrl)]);
  }
});
