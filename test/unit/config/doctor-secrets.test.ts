import { expect, test } from 'vitest';
import { withoutSecrets } from '../../../server/cli/doctor/secrets.ts';
import { parseConfig, variableNames } from '../../../server/config/index.ts';

/** A value for each variable with a secret in it, and the secrets. */
const secret = (name: string) => `of ${name} `.padEnd(40, 'x');
const inAddress = (name: string) => encodeURIComponent(secret(name));
const environment = {
  APP_SECRET: `${secret('APP_SECRET')},${secret('APP_SECRET_OLD')}`,
  DATABASE_URL: `mysql://user:${inAddress('DATABASE_URL')}@one,two:3307/accounts`,
  DATABASE_REPLICA_URLS: `mysql://user:${inAddress('DATABASE_REPLICA_URLS')}@three/accounts`,
  REDIS_URL: `redis://user:${inAddress('REDIS_URL')}@four`,
  REDIS_SENTINEL: `user:${inAddress('REDIS_SENTINEL')}@five/mymaster`,
  SMTP_URL: `smtps://user:${inAddress('SMTP_URL')}@six`,
  SCAN_URL: `https://user:${inAddress('SCAN_URL')}@seven/`,
  S3_SECRET_KEY: secret('S3_SECRET_KEY'),
  S3_SESSION_TOKEN: secret('S3_SESSION_TOKEN'),
  IDP_CLIENT_SECRET: secret('IDP_CLIENT_SECRET'),
};
/** No secrets, despite their names: identifiers and addresses of provider or storage. */
const without = ['S3_ACCESS_KEY', 'S3_PUBLIC_URL', 'APP_URL'];
/** Operator URLs that every user can read; one with a password is refused. */
const shown = ['APP_HOME_URL', 'APP_LOGO_URL', 'SUPPORT_URL', 'TERMS_URL', 'PRIVACY_URL'];
/** Read only by the OpenTelemetry SDK; the doctor calls no collector. */
const elsewhere = ['OTEL_EXPORTER_OTLP_HEADERS'];
/** Hashes, which reveal no token. */
const hashes = ['SERVICE_TOKENS'];

const config = parseConfig({
  ...environment,
  IDP_ISSUER: 'https://login.example.com',
  IDP_CLIENT_ID: 'id',
  S3_ENDPOINT: 'https://s3.example.com',
  S3_BUCKET: 'bucket',
  S3_ACCESS_KEY: 'key',
});

test('this test covers every variable that may hold a secret', () => {
  const suspicious = variableNames.filter((name) =>
    /SECRET|_KEY$|TOKENS|SESSION_TOKEN|PASSWORD$|URLS?$|SENTINEL|HEADERS/.test(name),
  );
  const known = [...Object.keys(environment), ...without, ...shown, ...elsewhere, ...hashes];
  expect(suspicious.filter((name) => !known.includes(name))).toEqual([]);
});

test.each(Object.keys(environment))('the secret of %s is removed from messages, in any spelling', (name) => {
  const said = withoutSecrets(`wrong: ${secret(name)}, ${inAddress(name)}`, config);
  expect(said).toBe('wrong: …, …');
});

test('both secrets of a rotation are removed', () => {
  expect(withoutSecrets(secret('APP_SECRET_OLD'), config)).toBe('…');
});

test('a secret that is a part of another one leaves nothing of it', () => {
  const nested = parseConfig({ REDIS_URL: 'redis://:abc@host', SMTP_URL: 'smtp://user:abcdef@host' });
  expect(withoutSecrets('abcdef', nested)).toBe('…');
});

test('a password that is not percent-encoded is removed', () => {
  expect(withoutSecrets('100%pure', parseConfig({ SMTP_URL: 'smtp://user:100%pure@host' }))).toBe('…');
});
