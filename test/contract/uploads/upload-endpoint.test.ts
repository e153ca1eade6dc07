import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask } from '../../rig/client/raw.ts';
import { type S3, startS3 } from '../../rig/servers/s3.ts';
import { type Stack, startStack } from '../../rig/stack.ts';
import { callerOf } from '../rig/callers.ts';
import { png } from './corpus.ts';
import { sendImage, uploader } from './storage.ts';

/** Browsers reach the storage as `localhost`, the service as 127.0.0.1. */
let s3: S3;
let stack: Stack;
let forBrowsers: string;
beforeAll(async () => {
  s3 = await startS3();
  forBrowsers = s3.url.replace('127.0.0.1', 'localhost');
  stack = await startStack('real', { env: { ...s3.env, S3_UPLOAD_ENDPOINT: forBrowsers } });
});
afterAll(async () => {
  await stack?.stop();
  await s3?.stop();
});

const declared = { filename: 'a.pdf', contentType: 'application/pdf', size: 9 };
const body = '%PDF-1.7 ';

const presigned = async () => {
  const { session } = await uploader({
    stack,
    objects: { ...s3, has: async () => false },
    s3,
    stop: async () => undefined,
  });
  const { data } = await callerOf('rest', stack.url)('upload.presign', declared, { session });
  return { session, ...data } as { session: string; presignedUrl: string; publicUrl: string; key: string };
};

/** A PUT from a client that has resolved the storage's name to this machine. */
const putAs = (host: string, presignedUrl: string) => {
  const { pathname, search } = new URL(presignedUrl);
  const headers = { host, 'content-type': declared.contentType };
  return ask(s3.url + pathname + search, { method: 'PUT', headers, body });
};

test('a presigned URL is signed for the public endpoint, and works at no other', async () => {
  const { session, presignedUrl, publicUrl, key } = await presigned();
  expect(presignedUrl.startsWith(`${forBrowsers}/${s3.bucket}/uploads/`)).toBe(true);
  expect(publicUrl).toBe(`${forBrowsers}/${s3.bucket}/${key}`);

  const refused = await putAs(new URL(s3.url).host, presignedUrl);
  expect(refused).toMatchObject({ status: 403, body: expect.stringContaining('SignatureDoesNotMatch') });
  expect(await s3.keys()).not.toContain(key);

  expect((await putAs(new URL(forBrowsers).host, presignedUrl)).status).toBe(200);
  const confirmed = await callerOf('rest', stack.url)('upload.confirm', { key }, { session });
  expect(confirmed).toMatchObject({ status: 200, data: { contentType: declared.contentType, size: declared.size } });
});

test('the service uses its own endpoint, and answers with the public one', async () => {
  const { session } = await presigned();
  const { body } = await sendImage({ stack }, session, { bytes: await png() });
  expect(body).toMatchObject({ success: true, url: expect.stringMatching(`^${forBrowsers}/${s3.bucket}/uploads/`) });
  const name = String(body.url).slice(body.url.lastIndexOf('/') + 1);
  expect(await s3.keys()).toContain(`uploads/${name}`);
  expect((await callerOf('rest', stack.url)('upload.remove', { name }, { session })).status).toBe(200);
});

test('the CSP lets pages upload to the public endpoint and show its files', async () => {
  const response = await fetch(`${stack.url}/login`);
  const policy = response.headers.get('content-security-policy')?.split('; ');
  expect(policy).toContain(`connect-src 'self' ${forBrowsers}`);
  expect(policy).toContain(`img-src 'self' data: https: ${forBrowsers}`);
});
