import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseConfig } from '../../server/config/index.ts';
import { callerOf } from '../contract/rig/callers.ts';
import { loggedIn } from '../contract/rig/scenario.ts';
import { runToItsEnd } from '../rig/process/command.ts';
import { startService } from '../rig/process/service.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { freePort } from '../rig/servers/port.ts';
import { type Stack, startStack } from '../rig/stack.ts';

/** UPLOADS=disk: in production, one instance keeps the files in DATA_DIR. */

const folder = temporaryDirectory('files');
let stack: Stack;
beforeAll(async () => {
  stack = await startStack('real', { env: { UPLOADS: 'disk', DATA_DIR: folder } });
});
afterAll(() => stack?.stop());
const service = () => {
  const [only] = stack.services;
  if (!only) throw new Error('the service did not start');
  return only;
};

/** A start on the same database, with files elsewhere. */
const startAnother = async () => {
  const PORT = String(await freePort());
  return startService({ env: { ...service().env, PORT, DATA_DIR: temporaryDirectory('other-files') } });
};
const REFUSAL = /UPLOADS=disk supports one instance, and another one runs on this database: stop it first/;

describe('on disk', () => {
  test('a picture is stored, and served with headers that keep it from the accounts', async () => {
    const { call, session } = await (async () => {
      const call = callerOf('rest', stack.url);
      return { call, ...(await loggedIn({ stack, call })) };
    })();
    const bytes = await sharp({ create: { width: 8, height: 8, channels: 3, background: 'red' } })
      .png()
      .toBuffer();
    const form = new FormData();
    form.set('type', 'avatar');
    form.set('file', new Blob([new Uint8Array(bytes)], { type: 'image/png' }), 'x.png');
    const uploaded = await fetch(`${stack.url}/api/upload/image`, {
      method: 'POST',
      body: form,
      headers: { cookie: `auth_session=${session}` },
    });
    const { url } = (await uploaded.json()) as { url: string };
    expect(url.startsWith(`${stack.appUrl}/uploads/`)).toBe(true);
    const shown = await fetch(stack.url + new URL(url).pathname);
    expect(shown.headers.get('content-type')).toBe('image/webp');
    expect(shown.headers.get('x-content-type-options')).toBe('nosniff');
    expect(shown.headers.get('content-security-policy')?.split(', ').at(-1)).toBe('sandbox');
    expect(shown.headers.get('content-disposition')).toBeNull();

    const pdf = Buffer.from('%PDF-1.7 <script>alert(1)</script>');
    const input = { filename: 'x.pdf', contentType: 'application/pdf', size: pdf.length };
    const { presignedUrl, publicUrl } = (await call('upload.presign', input, { session })).data;
    const { pathname, search } = new URL(presignedUrl);
    const put = await fetch(stack.url + pathname + search, {
      method: 'PUT',
      body: pdf,
      headers: { 'content-type': 'application/pdf' },
    });
    expect(put.status).toBe(200);
    const download = await fetch(stack.url + new URL(publicUrl).pathname);
    expect(download.headers.get('content-disposition')).toMatch(/^attachment/);
    expect(await download.text()).toBe(pdf.toString());
    expect(readdirSync(join(folder, 'objects/uploads'))).toHaveLength(4);
  });

  test('a second instance on the same database does not start', async () => {
    await expect(startAnother()).rejects.toThrow(REFUSAL);
    // The first goes on.
    expect((await fetch(`${stack.url}/readyz`)).status).toBe(200);
    expect(service().output()).not.toMatch(/has taken over/);
  });

  test('after a stop the next starts at once, after a crash when the lease has ended', async () => {
    await service().restart();
    await service().kill();
    await service().restart();
    expect(service().output()).not.toMatch(REFUSAL);
    await expect(startAnother()).rejects.toThrow(REFUSAL);
  });

  test('a command removes no file that is being received, and the doctor names the folder', async () => {
    const draft = join(folder, 'objects/.unfinished/draft.png');
    writeFileSync(draft, 'half');
    expect((await runToItsEnd('user', service().env, ['find'])).code).toBe(0);
    expect(readFileSync(draft, 'utf8')).toBe('half');
    const { stdout } = await runToItsEnd('doctor', service().env, []);
    expect(stdout).toMatch(
      /^ok +object storage +UPLOADS=disk keeps files in .* free\): back it up with the database$/m,
    );
  });
});

describe('the configuration', () => {
  const production = {
    NODE_ENV: 'production',
    APP_URL: 'https://accounts.example.com',
    APP_SECRET: '6vR2cX1p9Yk3mB8qT4wZ7nL5hJ0dF2sG1aK9eU3iO6o=',
    DATABASE_URL: 'mysql://u:p@db:3306/accounts',
    REDIS_URL: 'redis://cache:6379',
    SMTP_URL: 'smtps://mail.example.com',
    MAIL_FROM: 'a@example.com',
  };

  test('needs no S3, but a folder that outlives a release', () => {
    expect(() => parseConfig(production)).toThrow(/S3_ENDPOINT is missing/);
    const onDisk = { ...production, UPLOADS: 'disk', DATA_DIR: '/var/lib/accounts' };
    expect(parseConfig(onDisk)).toMatchObject({ s3: undefined, uploads: { areOnDisk: true } });
    expect(() => parseConfig({ ...onDisk, DATA_DIR: '' })).toThrow(/DATA_DIR is missing: with UPLOADS=disk/);
    expect(() => parseConfig({ ...onDisk, S3_ENDPOINT: 'https://s3.example.com' })).toThrow(
      /S3_ENDPOINT must not be set with UPLOADS=disk/,
    );
    expect(() => parseConfig({ ...onDisk, WEB_CONCURRENCY: '2' })).toThrow(/WEB_CONCURRENCY requires S3_ENDPOINT/);
  });
});
