import { Client } from 'minio';
import { expect, test } from 'vitest';
import { freshEmail } from './rig/address.ts';
import { runToItsEnd } from './rig/command.ts';
import type { Environment } from './rig/doctor.ts';
import { type S3, startS3 } from './rig/s3.ts';
import { startService } from './rig/service.ts';

const APP = 'https://accounts.example.com';
const SHOP = 'https://shop.example.com';

const settingsFor = (s3: S3): Environment => ({
  ...s3.env,
  APP_URL: APP,
  ALLOWED_ORIGINS: SHOP,
  SMTP_URL: 'smtp://127.0.0.1:9',
  MAIL_FROM: freshEmail(),
});
const setUp = (env: Environment, ...args: string[]) => runToItsEnd('s3-setup', env, args);

/** What a browser of a page is told, and what everyone can read. */
async function accessOf({ url, bucket }: S3, origin: string, key: string) {
  const headers = { origin, 'access-control-request-method': 'PUT', 'access-control-request-headers': 'content-type' };
  const address = `${url}/${bucket}/${key}`;
  const [send, read] = [await fetch(address, { method: 'OPTIONS', headers }), await fetch(address)];
  return { sends: send.status === 200, reads: read.status === 200 };
}

const clientOf = ({ url, env }: S3) =>
  new Client({
    endPoint: '127.0.0.1',
    port: Number(new URL(url).port),
    useSSL: false,
    accessKey: env['S3_ACCESS_KEY'] ?? '',
    secretKey: env['S3_SECRET_KEY'] ?? '',
    region: 'us-east-1',
  });

test('what is lacking is said and printed, then set, and is as it should be', async () => {
  const s3 = await startS3({ anyoneReads: 'policy' });
  const env = settingsFor(s3);
  const lacking = [
    'it is created',
    'everyone may read uploads/*',
    ...[APP, SHOP].map((page) => `pages of ${page} may send files`),
  ];

  const printed = await setUp(env);
  expect(printed).toMatchObject({ code: 1, stderr: '' });
  for (const line of lacking) expect(printed.stdout).toContain(`  + ${line}\n`);
  expect(printed.stdout).toContain(`"arn:aws:s3:::${s3.bucket}/uploads/*"`);
  expect(printed.stdout).toContain('"CORSRules": [');
  expect(s3.requests().filter((request) => request.startsWith('PUT'))).toEqual([]);

  const applied = await setUp(env, '--apply');
  expect(applied).toMatchObject({ code: 0, stderr: '' });
  for (const line of lacking) expect(applied.stdout).toContain(`  + ${line}\n`);
  await s3.put('uploads/a.png', Buffer.from('a'));
  await s3.put('other/a.png', Buffer.from('a'));
  expect(await accessOf(s3, SHOP, 'uploads/a.png')).toEqual({ sends: true, reads: true });
  expect(await accessOf(s3, 'https://elsewhere.example.com', 'other/a.png')).toEqual({ sends: false, reads: false });

  const changes = s3.requests().length;
  for (const args of [[], ['--apply']]) {
    const again = await setUp(env, ...args);
    expect(again).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/policy: as it should be\nCORS: as it/),
    });
  }
  expect(
    s3
      .requests()
      .slice(changes)
      .filter((request) => request.startsWith('PUT')),
  ).toEqual([]);
  await s3.stop();
});

test('what others have set stays; more than everyone may do, and a front end that is no more, go', async () => {
  const s3 = await startS3({ cors: 'https://elsewhere.example.com', anyoneReads: 'policy' });
  const env = settingsFor(s3);
  const client = clientOf(s3);
  const statement = (change: object) => ({
    Effect: 'Allow',
    Principal: { AWS: ['*'] },
    Action: ['s3:GetObject'],
    Resource: [`arn:aws:s3:::${s3.bucket}/uploads/*`],
    ...change,
  });
  const onlyTls = statement({
    Effect: 'Deny',
    Action: 's3:*',
    Condition: { Bool: { 'aws:SecureTransport': 'false' } },
  });
  const listing = statement({ Action: ['s3:ListBucket'] });
  await client.setBucketPolicy(s3.bucket, JSON.stringify({ Statement: [onlyTls, listing] }));
  expect(await setUp({ ...env, ALLOWED_ORIGINS: 'https://former.example.com' }, '--apply')).toMatchObject({ code: 0 });
  await client.setBucketPolicy(s3.bucket, JSON.stringify({ Statement: [onlyTls, listing, statement({})] }));

  const { code, stdout } = await setUp(env, '--apply');
  expect(code).toBe(0);
  expect(stdout.match(/^ {2}[+-].*$/gm)).toEqual([
    `  - ${JSON.stringify(listing)}`,
    `  + pages of ${SHOP} may send files`,
    '  - pages of https://former.example.com may send files',
  ]);
  expect(JSON.parse(await client.getBucketPolicy(s3.bucket)).Statement).toEqual([onlyTls, statement({})]);
  await s3.put('uploads/a.png', Buffer.from('a'));
  expect(await accessOf(s3, SHOP, 'uploads/a.png')).toEqual({ sends: true, reads: true });
  for (const [origin, sends] of [
    ['https://former.example.com', false],
    ['https://elsewhere.example.com', true],
  ] as const)
    expect(await accessOf(s3, origin, 'uploads/a.png')).toEqual({ sends, reads: true });
  await s3.stop();
});

test('a storage without CORS rules of a bucket: what to do, unless pages may send as it is', async () => {
  const [closed, open] = [
    await startS3({ cors: 'https://elsewhere.example.com', anyoneReads: 'policy', hasCorsRules: false }),
    await startS3({ cors: true, anyoneReads: 'policy', hasCorsRules: false }),
  ];
  const refused = await setUp(settingsFor(closed), '--apply');
  expect(refused).toMatchObject({ code: 1, stderr: '' });
  expect(refused.stdout).toContain(`policy: set\n`);
  expect(refused.stdout).toContain(`CORS: this storage has no CORS rules of a bucket. Let ${APP}, ${SHOP} PUT`);
  expect(refused.stdout).toContain(`MINIO_API_CORS_ALLOW_ORIGIN=${APP},${SHOP}`);
  const satisfied = await setUp(settingsFor(open), '--apply');
  expect(satisfied).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('CORS: pages may send files, by a setting'),
  });
  await Promise.all([closed.stop(), open.stop()]);
});

test('a storage without policies is published by its own means', async () => {
  const s3 = await startS3({ cors: true });
  const { code, stdout } = await setUp(settingsFor(s3), '--apply');
  expect(stdout).toContain('policy: this storage has no policies of a bucket. Let everyone read uploads/*');
  expect(code).toBe(1);
  await s3.stop();
});

test('a bucket that a start creates needs nothing more', async () => {
  const s3 = await startS3({ anyoneReads: 'policy' });
  const service = await startService({ env: s3.env });
  await service.stop();
  const { APP_URL = '', PORT = '' } = service.env;
  expect(await setUp({ ...s3.env, APP_URL, PORT })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('CORS: as it'),
  });
  await s3.stop();
});

test('without S3 there is nothing to set up; a storage that refuses, or is not there, is exit code 2', async () => {
  expect(await setUp({})).toMatchObject({ code: 0, stdout: expect.stringContaining('No S3 is configured') });
  const s3 = await startS3({ cors: true });
  const refused = await setUp({ ...settingsFor(s3), S3_SECRET_KEY: 'wrong-secret' });
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/403/) });
  await s3.stop();
  expect(await setUp(settingsFor(s3))).toMatchObject({ code: 2, stderr: expect.stringContaining('ECONNREFUSED') });
  expect(await setUp({ NODE_ENV: 'production' })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('S3_ENDPOINT'),
  });
});
