import { describe, expect, test } from 'vitest';
import { restProcedures } from '../../routers/index.ts';
import { takenNames } from '../../server/config/identity-providers.ts';
import { ConfigError, parseConfig } from '../../server/config/index.ts';

const problemsOf = (environment: Record<string, string>): string => {
  try {
    parseConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
};

const credentials = { IDP_CLIENT_ID: 'id', IDP_CLIENT_SECRET: 'secret' };

test('nothing set names no provider', () => {
  expect(parseConfig({}).identityProvider).toMatchObject({ name: 'idp', client: undefined });
});

test.each([
  ['google', 'https://accounts.google.com', 'openid email profile'],
  ['microsoft', 'https://login.microsoftonline.com/common/v2.0', 'openid email profile'],
  ['gitlab', 'https://gitlab.com', 'openid email profile'],
  ['github', 'https://github.com', 'read:user user:email'],
])('%s needs no more than client id and secret', (name, issuer, scopes) => {
  expect(parseConfig({ IDP_NAME: name, ...credentials }).identityProvider.client).toEqual({
    kind: name === 'github' ? 'github' : 'oidc',
    issuer,
    scopes,
    clientId: 'id',
    clientSecret: 'secret',
  });
});

test('any other needs its issuer, which is taken as it is written', () => {
  const environment = { ...credentials, IDP_NAME: 'work', IDP_ISSUER: 'https://login.example.com/tenant/' };
  expect(parseConfig({ ...environment, IDP_SCOPES: 'openid email' }).identityProvider.client).toMatchObject({
    kind: 'oidc',
    issuer: 'https://login.example.com/tenant/',
    scopes: 'openid email',
  });
});

test('a name alone names the embedded provider, where there is one', () => {
  expect(parseConfig({ IDP_NAME: 'google' }).identityProvider).toMatchObject({ name: 'google', client: undefined });
  for (const environment of [{ NODE_ENV: 'production' }, { APP_URL: 'https://accounts.example.com' }]) {
    const message = problemsOf({ ...environment, IDP_NAME: 'google' });
    expect(message).toContain('IDP_CLIENT_ID');
    expect(message).toContain('IDP_CLIENT_SECRET');
  }
});

test('everything that is wrong is told at once', () => {
  const message = problemsOf({ IDP_NAME: 'login', IDP_SCOPES: 'email', IDP_CLIENT_ID: 'id', PORT: 'x' });
  for (const name of ['IDP_NAME', 'IDP_SCOPES', 'IDP_CLIENT_SECRET', 'IDP_ISSUER', 'PORT']) {
    expect(message).toContain(name);
  }
});

describe('refused by name', () => {
  test.each([
    ['IDP_NAME', 'Google'],
    ['IDP_NAME', 'a/b'],
    ['IDP_NAME', '..'],
    ['IDP_NAME', '-a'],
    ['IDP_NAME', 'a b'],
    ['IDP_NAME', 'a%2f'],
    ['IDP_NAME', 'a'.repeat(33)],
    ['IDP_NAME', 'email'],
    ['IDP_NAME', 'password'],
    ['IDP_ISSUER', 'login.example.com'],
    ['IDP_ISSUER', 'http://login.example.com'],
    ['IDP_ISSUER', 'http://localhost.example.com'],
    ['IDP_ISSUER', 'http://127.0.0.1.example.com'],
    ['IDP_ISSUER', 'http://10.0.0.1'],
    ['IDP_ISSUER', 'ftp://localhost'],
    ['IDP_ISSUER', 'https://user:password@login.example.com'],
    ['IDP_ISSUER', 'https://login.example.com/?tenant=1'],
    ['IDP_SCOPES', 'openid  email'],
    ['IDP_SCOPES', 'openid "email"'],
    ['IDP_CLIENT_SECRET', ''],
    ['IDP_CLIENT_ID', ''],
  ])('%s=%s', (name, value) => {
    const environment = { ...credentials, IDP_NAME: 'work', IDP_ISSUER: 'https://login.example.com', [name]: value };
    expect(problemsOf(environment)).toMatch(new RegExp(`^  ${name} `, 'm'));
  });

  test.each(['http://localhost:4000', 'http://127.0.0.1:4000/tenant', 'http://[::1]:4000', 'https://x.test'])(
    'but not IDP_ISSUER=%s',
    (issuer) => expect(problemsOf({ ...credentials, IDP_ISSUER: issuer })).toBe(''),
  );

  test('what stands below /auth already', () => {
    const below = restProcedures
      .map(({ openapi }) => /^\/auth\/([^/:]+)/.exec(openapi.path)?.[1])
      .filter((segment) => segment !== undefined);
    expect(below.length).toBeGreaterThan(5);
    expect(takenNames).toEqual(expect.arrayContaining(below));
  });
});
