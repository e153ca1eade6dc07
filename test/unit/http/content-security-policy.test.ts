import { expect, test } from 'vitest';
import { parseConfig } from '../../../server/config/index.ts';
import { securityHeaders } from '../../../server/http/security.ts';

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
])('pictures are allowed from https, and from %s', (_, env, sources) => {
  const policy = securityHeaders(parseConfig(env))['Content-Security-Policy'];
  expect(policy?.split('; ')).toContain(`img-src ${sources}`);
});

const production = {
  ...s3,
  NODE_ENV: 'production',
  APP_URL: 'https://accounts.example.com',
  APP_SECRET: 'q7Jm2Xw9Lr4Tz8Vb1Nc6Kd3Hf5Gs0PyA',
  DATABASE_URL: 'mysql://root@127.0.0.1/accounts',
  REDIS_URL: 'redis://127.0.0.1',
  SMTP_URL: 'smtp://127.0.0.1',
  MAIL_FROM: 'no-reply@example.com',
};

test.each([
  ['over http', { S3_ENDPOINT: 'http://s3.example.test:9000' }],
  ['on this machine', { S3_ENDPOINT: 'http://127.0.0.1:9000' }],
  ['with a public address over http', { S3_ENDPOINT: 'https://s3.test', S3_PUBLIC_URL: 'http://files.test/files' }],
])('in production the policy is the documented one with a storage %s', (_, storage) => {
  expect(securityHeaders(parseConfig({ ...production, ...storage }))['Content-Security-Policy']).toBe(
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data: https:; font-src 'self'; connect-src 'self' accounts.example.com; frame-ancestors 'none'; base-uri 'self'; form-action 'self'",
  );
});
