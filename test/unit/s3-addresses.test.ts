import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { presigner } from '../../server/parts/object-storage/s3-addresses.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const keys = { accessKey: 'AKIAIOSFODNN7EXAMPLE', secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' };

/** The example of sigv4-query-string-auth.html. */
const example = { method: 'GET', path: '/test.txt', headers: {}, expiresInSeconds: 86_400 };
const presignExample = presigner({ ...keys, region: 'us-east-1' }, 'https://examplebucket.s3.amazonaws.com');

test('an address is the one of the example in the documentation of AWS', () => {
  vi.setSystemTime('2013-05-24T00:00:00Z');
  expect(presignExample(example)).toBe(
    'https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256' +
      '&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z' +
      '&X-Amz-Expires=86400&X-Amz-SignedHeaders=host' +
      '&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
  );
});

test('the key of a day is not used on the next', () => {
  vi.setSystemTime('2013-05-25T00:00:00Z');
  const first = presignExample(example);
  vi.setSystemTime('2013-05-24T23:59:59.999Z');
  presignExample(example);
  vi.setSystemTime('2013-05-25T00:00:00Z');
  expect(presignExample(example)).toBe(first);
});

test('headers are signed in the order of their names, and every reserved character of an access key is encoded', () => {
  const presign = presigner({ accessKey: "a!'()*/+ ~", secretKey: 's', region: 'x' }, 'http://127.0.0.1:9000');
  const address = presign({
    method: 'PUT',
    path: '/bucket/key',
    headers: { 'content-type': 'image/png', 'content-length': '3' },
    expiresInSeconds: 300,
  });
  expect(address).toContain('X-Amz-Credential=a%21%27%28%29%2A%2F%2B%20~%2F');
  expect(address).toContain('X-Amz-SignedHeaders=content-length%3Bcontent-type%3Bhost');
});
