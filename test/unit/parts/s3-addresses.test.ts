import { createHmac, hash } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { presigner } from '../../../server/parts/object-storage/s3-addresses.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const keys = { accessKey: 'AKIAIOSFODNN7EXAMPLE', secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' };

const endpoint = 'https://s3.example.com:9000';
const upload = {
  method: 'PUT',
  path: '/bucket/uploads/photo%20%2B1.png',
  headers: { 'content-type': 'image/png', 'content-length': '3' },
  expiresInSeconds: 300,
};
const presignUpload = presigner({ ...keys, region: 'us-east-1' }, endpoint);

test('a URL has the given path, its host, its expiry and the names of the signed headers', async () => {
  vi.setSystemTime('2013-05-24T00:00:00Z');
  const { origin, pathname, searchParams } = new URL(await presignUpload(upload));
  expect(origin + pathname).toBe('https://s3.example.com:9000/bucket/uploads/photo%20%2B1.png');
  expect(Object.fromEntries(searchParams)).toEqual({
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Content-Sha256': 'UNSIGNED-PAYLOAD',
    'X-Amz-Credential': 'AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request',
    'X-Amz-Date': '20130524T000000Z',
    'X-Amz-Expires': '300',
    'X-Amz-SignedHeaders': 'content-length;content-type;host',
    'X-Amz-Signature': expect.stringMatching(/^[0-9a-f]{64}$/),
  });
});

const rfc3986 = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

const download = {
  method: 'GET',
  path: '/bucket/private/photo.png',
  headers: {},
  query: { 'response-content-disposition': "attachment; filename*=UTF-8''it%27s%20%281%29!*.pdf" },
  expiresInSeconds: 300,
};

test.each([
  ['an upload', upload],
  ['a download with a name', download],
])('the signature of %s is that of AWS for its headers, its path, its query and its host', async (_what, signed) => {
  vi.setSystemTime('2013-05-24T00:00:00Z');
  const url = new URL(await presignUpload(signed));
  const signature = url.searchParams.get('X-Amz-Signature');
  url.searchParams.delete('X-Amz-Signature');
  const query = [...url.searchParams].map((pair) => pair.map(rfc3986).join('=')).sort();
  const headers = Object.entries({ host: url.host, ...signed.headers }).sort(([one], [other]) =>
    one < other ? -1 : 1,
  );
  const request = [
    signed.method,
    signed.path,
    query.join('&'),
    ...headers.map((header) => header.join(':')),
    '',
    headers.map(([name]) => name).join(';'),
    'UNSIGNED-PAYLOAD',
  ];
  const scope = ['20130524', 'us-east-1', 's3', 'aws4_request'];
  const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${keys.secretKey}`);
  const text = ['AWS4-HMAC-SHA256', '20130524T000000Z', scope.join('/'), hash('sha256', request.join('\n'))].join('\n');
  expect(signature).toBe(hmac(key, text).toString('hex'));
});

test('the token of temporary keys is part of the address and of its signature', async () => {
  vi.setSystemTime('2013-05-24T00:00:00Z');
  const presign = async (sessionToken: string) =>
    new URL(await presigner({ ...keys, region: 'us-east-1', sessionToken }, endpoint)(upload)).searchParams;
  const [address, other] = [await presign('a/b+c='), await presign('another')];
  expect(address.get('X-Amz-Security-Token')).toBe('a/b+c=');
  expect(address.get('X-Amz-Signature')).not.toBe(other.get('X-Amz-Signature'));
});

test('the signing key of a day is not used the next day', async () => {
  vi.setSystemTime('2013-05-25T00:00:00Z');
  const first = await presignUpload(upload);
  vi.setSystemTime('2013-05-24T23:59:59.999Z');
  await presignUpload(upload);
  vi.setSystemTime('2013-05-25T00:00:00Z');
  expect(await presignUpload(upload)).toBe(first);
});

test('reserved characters of the access key are encoded', async () => {
  const presign = presigner({ accessKey: "a!'()*/+ ~", secretKey: 's', region: 'x' }, 'http://127.0.0.1:9000');
  expect(await presign(upload)).toContain('X-Amz-Credential=a%21%27%28%29%2A%2F%2B%20~%2F');
});
