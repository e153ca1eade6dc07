import { expect, test } from 'vitest';
import { parseConfig } from '../../server/config/index.ts';
import { securityHeaders } from '../../server/http/security.ts';

const s3 = { S3_BUCKET: 'files', S3_ACCESS_KEY: 'key', S3_SECRET_KEY: 'secret' };

test.each([
  ['the embedded storage', {}, "'self' data: https:"],
  ['a storage over https', { ...s3, S3_ENDPOINT: 'https://s3.example.test' }, "'self' data: https:"],
  ['a storage over http', { ...s3, S3_ENDPOINT: 'http://127.0.0.1:9000' }, "'self' data: https: http://127.0.0.1:9000"],
  [
    'a storage over http behind an https address',
    { ...s3, S3_ENDPOINT: 'http://127.0.0.1:9000', S3_PUBLIC_URL: 'https://files.example.test/files' },
    "'self' data: https:",
  ],
  [
    'a storage that browsers know by another name',
    { ...s3, S3_ENDPOINT: 'http://minio:9000', S3_UPLOAD_ENDPOINT: 'http://localhost:9000' },
    "'self' data: https: http://localhost:9000",
  ],
  [
    'a public address over http',
    { ...s3, S3_ENDPOINT: 'https://s3.example.test', S3_PUBLIC_URL: 'http://files.localhost/files' },
    "'self' data: https: http://files.localhost",
  ],
])('pictures are let in from https, and from %s', (_, env, sources) => {
  const policy = securityHeaders(parseConfig(env))['Content-Security-Policy'];
  expect(policy?.split('; ')).toContain(`img-src ${sources}`);
});
