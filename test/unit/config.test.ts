import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ConfigError, parseConfig, variableNames } from '../../server/config.ts';

const production = {
  NODE_ENV: 'production',
  APP_URL: 'https://accounts.example.com/',
  APP_SECRET: 'x'.repeat(32),
  DATABASE_URL: 'mysql://root@127.0.0.1/accounts',
  REDIS_URL: 'redis://127.0.0.1',
  SMTP_URL: 'smtp://127.0.0.1',
  MAIL_FROM: 'Accounts <no-reply@example.com>',
  S3_ENDPOINT: 'https://s3.example.com/',
  S3_BUCKET: 'accounts',
  S3_ACCESS_KEY: 'key',
  S3_SECRET_KEY: 'secret',
};

const problemsOf = (environment: Record<string, string>): string => {
  try {
    parseConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
};

test('.env.example lists every variable once, in the order of the schema', () => {
  const example = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');
  expect([...example.matchAll(/^([A-Z0-9_]+)=/gm)].map(([, name]) => name)).toEqual(variableNames);
});

test('nothing set is a configuration: embedded parts on a loopback address', () => {
  expect(parseConfig({})).toMatchObject({
    production: false,
    port: 3000,
    host: '127.0.0.1',
    appUrl: 'http://localhost:3000',
    databaseUrl: undefined,
    redisUrl: undefined,
    smtpUrl: undefined,
    trustedProxies: 0,
    passwordIterations: 100_000,
    rates: { login: { points: 5, seconds: 900 }, read: { points: 0 } },
  });
  expect(parseConfig({ PORT: '', APP_URL: '' })).toEqual(parseConfig({}));
});

test('production listens everywhere, and its address has no slash at the end', () => {
  expect(parseConfig(production)).toMatchObject({
    production: true,
    host: '0.0.0.0',
    appUrl: 'https://accounts.example.com',
    origins: new Set(['https://accounts.example.com']),
  });
});

test('production names everything that is missing in one message', () => {
  const message = problemsOf({ NODE_ENV: 'production', PORT: 'x' });
  const { NODE_ENV, ...required } = production;
  for (const name of [...Object.keys(required), 'PORT']) expect(message).toContain(name);
});

test.each([
  ['PORT', '0'],
  ['PORT', '65536'],
  ['PORT', '80a'],
  ['APP_URL', 'accounts.example.com'],
  ['APP_URL', 'ftp://accounts.example.com'],
  ['ALLOWED_ORIGINS', 'https://app.example.com/path'],
  ['ALLOWED_ORIGINS', 'app.example.com'],
  ['API_HOST', "api.example.com; script-src 'unsafe-eval'"],
  ['APP_SECRET', 'short'],
  ['DATABASE_URL', 'postgres://127.0.0.1/x'],
  ['REDIS_URL', '127.0.0.1:6379'],
  ['SMTP_URL', 'http://127.0.0.1'],
  ['MAIL_FROM', 'nobody'],
  ['MAIL_FROM', 'a@b.test\r\nBcc: c@d.test'],
  ['COOKIE_DOMAIN', 'example.com; Secure'],
  ['TRUST_PROXY', 'true'],
  ['SERVICE_TOKENS', 'billing'],
  ['SERVICE_TOKENS', `billing:${'0'.repeat(63)}`],
  ['SERVICE_TOKENS', `bill ing:${'0'.repeat(64)}`],
  ['PAGES', 'maybe'],
  ['LOG_LEVEL', 'loud'],
  ['PASSWORD_ITERATIONS', '-1'],
  ['LIMIT_LOGIN', '5'],
  ['LIMIT_LOGIN', '0/900'],
  ['LIMIT_READ', '0/900'],
  ['S3_ENDPOINT', 's3.example.com'],
  ['S3_BUCKET', 'Not_A_Bucket'],
  ['UPLOAD_TYPES', 'image/png,text/html'],
  ['UPLOAD_MAX_BYTES', '0'],
])('%s=%s is refused by name', (name, value) => {
  expect(problemsOf({ [name]: value })).toContain(name);
});

test('an object storage is configured as a whole, and shows its objects itself unless something stands in front', () => {
  const { NODE_ENV, S3_BUCKET, ...partly } = production;
  expect(problemsOf(partly)).toContain('S3_BUCKET');
  expect(problemsOf({ S3_BUCKET })).toContain('S3_ENDPOINT');
  expect(parseConfig(production).s3).toMatchObject({
    endpoint: 'https://s3.example.com',
    region: 'us-east-1',
    publicUrl: 'https://s3.example.com/accounts',
  });
  expect(parseConfig({ ...production, S3_PUBLIC_URL: 'https://cdn.example.com/' }).s3?.publicUrl).toBe(
    'https://cdn.example.com',
  );
});
