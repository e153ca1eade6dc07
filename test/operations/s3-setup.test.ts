import { text } from 'node:stream/consumers';
import { Client } from 'minio';
import { expect, test } from 'vitest';
import { runToItsEnd } from '../rig/process/command.ts';
import type { Environment } from '../rig/process/doctor.ts';
import { startService } from '../rig/process/service.ts';
import { freshEmail } from '../rig/servers/address.ts';
import { type S3, startS3 } from '../rig/servers/s3.ts';

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

/** What a browser page can do, and what everyone can read. */
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

test('prints what is missing, and sets it', async () => {
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
  expect(applied.stdout).toContain('private files: strangers cannot read them\n');
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
      .filter((request) => request.startsWith('PUT') && !request.includes('/private/probe-')),
  ).toEqual([]);
  expect((await s3.keys()).filter((key) => key.startsWith('private/'))).toEqual([]);
  await s3.stop();
});

test('says that strangers can read private files, by whatever setting of the storage', async () => {
  const s3 = await startS3({ cors: true, anyoneReads: /^(?:uploads|private)\// });
  const { code, stdout } = await setUp(settingsFor(s3), '--apply');
  expect([code, stdout]).toEqual([1, expect.stringContaining('private files: STRANGERS CAN READ THEM')]);
  await s3.stop();
});

test('a storage that fails does not count as closed to strangers', async () => {
  const s3 = await startS3({ cors: true, anyoneReads: /^(?:uploads|private)\// });
  s3.behave('slow-down', /^GET .*\/private\/probe-/);
  const { code, stdout } = await setUp(settingsFor(s3), '--apply');
  const unknown = 'private files: unknown whether strangers can read them, because one was answered with 503';
  expect([code, stdout]).toEqual([1, expect.stringContaining(unknown)]);
  await s3.stop();
});

test('a storage that refuses strangers as Cloudflare R2 does counts as closed', async () => {
  const s3 = await startS3({ cors: true, anyoneReads: 'policy' });
  s3.behave('refuse-as-r2', /^GET .*\/private\/probe-/);
  const { code, stdout } = await setUp(settingsFor(s3), '--apply');
  expect([code, stdout]).toEqual([0, expect.stringContaining('private files: strangers cannot read them')]);
  await s3.stop();
});

test('with a scanner, says whether strangers can read files that wait for it', async () => {
  for (const [anyoneReads, expected] of [
    ['policy', [0, 'files that wait for the scanner: strangers cannot read them\n']],
    [/^(?:uploads|pending)\//, [1, 'files that wait for the scanner: STRANGERS CAN READ THEM. Remove the setting']],
  ] as const) {
    const s3 = await startS3({ cors: true, anyoneReads });
    const { code, stdout } = await setUp({ ...settingsFor(s3), SCAN_URL: 'clamd://127.0.0.1' }, '--apply');
    expect([code, stdout]).toEqual([expected[0], expect.stringContaining(expected[1])]);
    expect(await s3.keys()).toEqual([]);
    await s3.stop();
  }
});

test('keeps settings of others; removes excessive permissions and former front ends', async () => {
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

test('prints settings with XML special characters as they are, and writes them back unchanged', async () => {
  const s3 = await startS3({ cors: 'https://elsewhere.example.com', anyoneReads: 'policy' });
  const client = clientOf(s3);
  const cors = { bucketName: s3.bucket, query: 'cors' };
  const rule =
    '<CORSRule><AllowedOrigin>https://elsewhere.example.com</AllowedOrigin><AllowedMethod>GET</AllowedMethod><AllowedHeader>x-&lt;a&amp;b&gt;</AllowedHeader></CORSRule>';
  await client.makeRequestAsyncOmit({ ...cors, method: 'PUT' }, `<CORSConfiguration>${rule}</CORSConfiguration>`);
  const { stdout } = await setUp(settingsFor(s3));
  expect(stdout).toContain('"x-<a&b>"');
  expect(await setUp(settingsFor(s3), '--apply')).toMatchObject({ code: 0, stderr: '' });
  const xml = await text(await client.makeRequestAsync({ ...cors, method: 'GET' }));
  expect(xml).toMatch(/<AllowedHeader>x-&lt;a&amp;b(?:&gt;|>)<\/AllowedHeader>/);
  await s3.stop();
});

test('for a storage without CORS rules, says what to do unless pages may upload already', async () => {
  const [closed, open] = [
    await startS3({ cors: 'https://elsewhere.example.com', anyoneReads: 'policy', hasCorsRules: false }),
    await startS3({ cors: true, anyoneReads: 'policy', hasCorsRules: false }),
  ];
  const refused = await setUp(settingsFor(closed), '--apply');
  expect(refused).toMatchObject({ code: 1, stderr: '' });
  expect(refused.stdout).toContain(`policy: set\n`);
  expect(refused.stdout).toContain(`CORS: this storage has no bucket CORS rules. Let ${APP}, ${SHOP} PUT`);
  expect(refused.stdout).toContain(`MINIO_API_CORS_ALLOW_ORIGIN=${APP},${SHOP}`);
  const satisfied = await setUp(settingsFor(open), '--apply');
  expect(satisfied).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('CORS: pages may send files, by a setting'),
  });
  await Promise.all([closed.stop(), open.stop()]);
});

test('for a storage without policies, says to publish by its own means', async () => {
  const s3 = await startS3({ cors: true });
  const { code, stdout } = await setUp(settingsFor(s3), '--apply');
  expect(stdout).toContain(
    'policy: this storage has no bucket policies. By its own means, let everyone read uploads/*',
  );
  expect(code).toBe(1);
  await s3.stop();
});

test('a bucket created at a start needs nothing more', async () => {
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

test('reports errors in sentences, without error names and stacks', async () => {
  const s3 = await startS3({ cors: true });
  const env = settingsFor(s3);
  const said = async (changes: Environment, ...args: string[]) => {
    const { code, stderr } = await setUp({ ...env, ...changes }, ...args);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^[^\n]+(?:\nUsage: [^\n]+)?\n$/)]);
    expect(stderr).not.toMatch(/\w*Error\b| {4}at /);
    return stderr;
  };
  s3.behave('hang');
  expect(await said({})).toBe(
    'The storage at S3_ENDPOINT does not respond in time. Check that it runs, and that this machine can reach it.\n',
  );
  s3.behave('reset');
  expect(await said({})).toContain('The storage at S3_ENDPOINT cannot be reached: ');
  s3.behave('slow-down');
  expect(await said({})).toContain('the storage answered 503 to a request for its bucket: check');
  s3.behave('work');
  expect(await said({ S3_SECRET_KEY: 'wrong-secret' })).toContain('the storage answered 403');
  expect(await said({ S3_ENDPOINT: s3.url.replace('http:', 'https:') })).toContain('does not speak TLS');
  expect(await said({ S3_ENDPOINT: 'http://storage.invalid' })).toContain('cannot be reached: getaddrinfo');
  expect(await said({}, '--aply')).toContain('Usage: npm run s3-setup [-- --apply]');
  await s3.stop();
  expect(await said({})).toContain('cannot be reached: connect ECONNREFUSED');
});

test('without S3 there is nothing to set up; a failing storage is exit code 2', async () => {
  expect(await setUp({})).toMatchObject({ code: 0, stdout: expect.stringContaining('S3 is not configured') });
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
