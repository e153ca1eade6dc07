import { describe, expect, test } from 'vitest';
import { restProcedures } from '../../../routers/procedures.ts';
import { PASSWORD } from '../../../server/accounts/credentials/login-methods.ts';
import { secondFactorKinds } from '../../../server/accounts/login/second-factors.ts';
import { takenNames } from '../../../server/config/identity-providers.ts';
import { parseConfig } from '../../../server/config/index.ts';
import { ownMethods, ownOrigins } from '../../../server/shared/method-names.ts';
import { problemsOf } from './config-problems.ts';

const named = (name: string) => ({
  [`IDP_${name.toUpperCase()}_CLIENT_ID`]: 'id',
  [`IDP_${name.toUpperCase()}_CLIENT_SECRET`]: 'secret',
});
const credentials = { IDP_CLIENT_ID: 'id', IDP_CLIENT_SECRET: 'secret' };

/** The configured names in order, and the client of the first. */
function configured(environment: Record<string, string>) {
  const { identityProviders, embeddedProvider } = parseConfig(environment);
  const [client] = identityProviders.values();
  return { names: [...identityProviders.keys()], client, embeddedProvider };
}

test('without configuration the embedded provider is used', () => {
  expect(configured({})).toEqual({
    names: [],
    client: undefined,
    embeddedProvider: { name: 'idp', scopes: 'openid email profile', isTrustedForMfa: false },
  });
});

test.each([
  ['google', 'oidc', 'https://accounts.google.com', 'openid email profile', false],
  ['microsoft', 'oidc', 'https://login.microsoftonline.com/common/v2.0', 'openid email profile', true],
  ['gitlab', 'oidc', 'https://gitlab.com', 'openid email profile', true],
  ['github', 'github', 'https://github.com', 'read:user user:email', false],
  ['discord', 'discord', 'https://discord.com', 'identify email', false],
  ['facebook', 'facebook', 'https://www.facebook.com', 'public_profile email', false],
])('%s requires only client id and secret', (name, kind, issuer, scopes, provesLogin) => {
  const client = {
    kind,
    issuer,
    scopes,
    provesLogin,
    isTrustedForMfa: false,
    clientId: 'id',
    clientSecret: 'secret',
  };
  const expected = { names: [name], client, embeddedProvider: undefined };
  expect(configured({ IDP_NAME: name, ...credentials })).toEqual(expected);
  expect(configured(named(name))).toEqual(expected);
});

test('only a provider set as trusted replaces the second factor', () => {
  const isTrusted = (environment: Record<string, string>) => {
    const { client, embeddedProvider } = configured(environment);
    return (client ?? embeddedProvider)?.isTrustedForMfa;
  };
  expect(isTrusted({ IDP_TRUSTED_MFA: 'on' })).toBe(true);
  expect(isTrusted({ ...credentials, IDP_NAME: 'google', IDP_TRUSTED_MFA: 'on' })).toBe(true);
  expect(isTrusted({ ...credentials, IDP_NAME: 'google', IDP_TRUSTED_MFA: 'off' })).toBe(false);
  expect(isTrusted({ ...named('google'), IDP_GOOGLE_TRUSTED_MFA: 'on' })).toBe(true);
  expect(isTrusted(named('google'))).toBe(false);
  expect(problemsOf({ IDP_GOOGLE_TRUSTED_MFA: 'on' })).toContain('IDP_GOOGLE_CLIENT_ID is missing');
});

test('any other requires its issuer, which is kept as written', () => {
  const environment = { ...credentials, IDP_NAME: 'work', IDP_ISSUER: 'https://login.example.com/tenant/' };
  const expected = { kind: 'oidc', issuer: 'https://login.example.com/tenant/', scopes: 'openid email' };
  expect(configured({ ...environment, IDP_SCOPES: 'openid email' }).client).toMatchObject(expected);
  const { IDP_ISSUER } = environment;
  const ownVariables = { ...named('work'), IDP_WORK_ISSUER: IDP_ISSUER, IDP_WORK_SCOPES: 'openid email' };
  expect(configured(ownVariables).client).toMatchObject(expected);
});

test('several are listed with IDP_NAME first, then by name', () => {
  const others = { ...named('microsoft'), ...named('google'), ...named('github') };
  expect(configured({ ...others, IDP_NAME: 'gitlab', ...credentials }).names).toEqual([
    'gitlab',
    'github',
    'google',
    'microsoft',
  ]);
  const ofTwoWords = { ...named('my_client_id'), IDP_MY_CLIENT_ID_ISSUER: 'https://login.example.com' };
  expect(configured({ ...ofTwoWords, IDP_GOOGLE_CLIENT_ID: '', IDP_GOOGLE_ISSUER: '' }).names).toEqual([
    'my_client_id',
  ]);
});

test('all errors of all providers are reported at once', () => {
  const problems = problemsOf({
    ...credentials,
    IDP_NAME: 'google',
    IDP_ISSUER: 'nonsense',
    ...named('google'),
    ...named('login'),
    ...named('work'),
    IDP_WORK_SCOPES: 'email',
    IDP_GITLAB_ISSUER: 'http://gitlab.example.com',
    IDP_GITHUB_CLIENT_ID: 'id',
    IDP_GITHUB_SCOPES: 'user  email',
    IDP_Acme_ISSUER: 'https://acme.example.com',
    IDP__X_ISSUER: 'https://x.example.com',
  }).split('\n');
  for (const start of [
    'IDP_ISSUER must be an address',
    'IDP_NAME must be another name: IDP_GOOGLE_… configures google too',
    'IDP_LOGIN_ISSUER is missing',
    'IDP_LOGIN_… has a name that must be another name',
    'IDP_WORK_ISSUER is missing',
    'IDP_WORK_SCOPES must have openid',
    'IDP_GITLAB_CLIENT_ID is missing',
    'IDP_GITLAB_CLIENT_SECRET is missing',
    'IDP_GITLAB_ISSUER must be an address',
    'IDP_GITHUB_CLIENT_SECRET is missing',
    'IDP_GITHUB_SCOPES must be scopes',
    'IDP_Acme_… must be written in upper case',
    'IDP__X_… has a name that must be at most',
  ]) {
    expect(problems).toContainEqual(expect.stringMatching(`^  ${start}`));
  }
});

test('a name alone renames the embedded provider, where it is available', () => {
  expect(configured({ IDP_NAME: 'google', IDP_SCOPES: 'openid' })).toEqual({
    names: [],
    client: undefined,
    embeddedProvider: { name: 'google', scopes: 'openid', isTrustedForMfa: false },
  });
  const without: Record<string, string>[] = [
    { NODE_ENV: 'production' },
    { APP_URL: 'https://accounts.example.com' },
    named('microsoft'),
  ];
  for (const environment of without) {
    const message = problemsOf({ ...environment, IDP_NAME: 'google' });
    expect(message).toContain('IDP_CLIENT_ID');
    expect(message).toContain('IDP_CLIENT_SECRET');
  }
});

test('all errors are reported at once', () => {
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
    ...[...ownMethods, ...ownOrigins].map((name): [string, string] => ['IDP_NAME', name]),
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
    ['IDP_TRUSTED_MFA', 'yes'],
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

  test('names of methods, second factors and origins are reserved', () => {
    expect(takenNames).toEqual(
      expect.arrayContaining([...secondFactorKinds, PASSWORD, 'email', 'import', 'recovery', 'passkey', 'totp']),
    );
    expect(problemsOf({ ...named('recovery'), IDP_RECOVERY_ISSUER: 'https://login.example.com' })).toContain(
      'IDP_RECOVERY_… has a name that must be another name',
    );
  });

  test('names of paths below /auth are reserved', () => {
    const below = restProcedures
      .map(({ openapi }) => /^\/auth\/([^/{]+)/.exec(openapi.path)?.[1])
      .filter((segment) => segment !== undefined);
    expect(below.length).toBeGreaterThan(5);
    expect(takenNames).toEqual(expect.arrayContaining(below));
  });
});
