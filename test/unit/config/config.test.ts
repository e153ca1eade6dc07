import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { loadConfig, parseConfig, threadsFor, variableNames } from '../../../server/config/index.ts';
import { problemsOf, production } from './config-problems.ts';

describe('.env.example', () => {
  const example = readFileSync(new URL('../../../.env.example', import.meta.url), 'utf8');

  test('lists every variable once, in the order of the schema', () => {
    expect([...example.matchAll(/^([A-Z0-9_]+)=/gm)].map(([, name]) => name)).toEqual(variableNames);
  });

  // Not defaults that name another variable.
  const defaults = [...example.matchAll(/Default: `([^`]*[^A-Z`][^`]*)`(?: \(.*\))?\n([A-Z0-9_]+)=$/gm)].filter(
    ([, value = '']) => !/PORT|S3_/.test(value),
  );

  test.each(defaults.map(([, value = '', name = '']) => [name, value]))(
    'names the default of %s: %s',
    (name, value) => {
      // SCAN_DOWN needs it.
      const others = { SCAN_URL: 'clamd://localhost:3310' };
      expect(parseConfig({ ...others, [name]: value })).toEqual(parseConfig(others));
    },
  );

  test('names the default of each limit, or that there is none', () => {
    const named = [...defaults.map(([, , name]) => name), 'LIMIT_READ'];
    expect(variableNames.filter((name) => name.startsWith('LIMIT_') && !named.includes(name))).toEqual([]);
  });
});

test('an empty environment is valid: embedded parts on a loopback address', () => {
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

describe('UV_THREADPOOL_SIZE', () => {
  afterEach(() => void vi.unstubAllEnvs());

  test.each([1, 2, 8, 16, 64, 128])('with %d cores, leaves threads to files beside all hashes', (cores) => {
    const hashes = cores + 1 + Math.ceil(cores / 2);
    expect(threadsFor(cores) - hashes).toBeGreaterThanOrEqual(8);
  });

  test('is set before the first thread starts, unless the operator has set it', () => {
    vi.stubEnv('UV_THREADPOOL_SIZE', undefined);
    const { cores } = loadConfig();
    expect(process.env['UV_THREADPOOL_SIZE']).toBe(String(threadsFor(cores)));
    vi.stubEnv('UV_THREADPOOL_SIZE', '5');
    loadConfig();
    expect(process.env['UV_THREADPOOL_SIZE']).toBe('5');
  });
});

test('production listens on all addresses, and its APP_URL has no trailing slash', () => {
  expect(parseConfig(production)).toMatchObject({
    production: true,
    host: '0.0.0.0',
    appUrl: 'https://accounts.example.com',
    origins: new Set(['https://accounts.example.com']),
  });
});

test('production reports all missing variables in one message', () => {
  const message = problemsOf({ NODE_ENV: 'production', PORT: 'x' });
  const { NODE_ENV, ...required } = production;
  for (const name of [...Object.keys(required), 'PORT']) expect(message).toContain(name);
});

const mail = { SMTP_URL: 'smtps://mail.example.com', MAIL_FROM: 'no-reply@example.com' };

test.each([
  [{}, true],
  [{ APP_URL: 'http://localhost:3000' }, true],
  [{ APP_URL: 'http://127.8.9.10:3000' }, true],
  [{ APP_URL: 'http://[::1]:3000' }, true],
  [{ APP_URL: 'http://accounts.localhost' }, true],
  [{ APP_URL: 'http://LOCALHOST:3000' }, true],
  [{ APP_URL: 'http://localhost:3000', DEV_TOOLS: 'off', ...mail }, false],
  [{ APP_URL: 'https://localhost:3000', ...mail }, false],
  [{ APP_URL: 'http://accounts.example.com', ...mail }, false],
  [{ APP_URL: 'http://localhost.example.com', ...mail }, false],
  [{ APP_URL: 'http://127.0.0.1.example.com', ...mail }, false],
  [{ APP_URL: 'http://192.168.1.5:3000', ...mail }, false],
  [{ APP_URL: 'http://192.168.1.5:3000', DEV_TOOLS: 'on' }, true],
  [production, false],
])('development tools with %o: %s', (environment: Record<string, string>, expected) => {
  expect(parseConfig(environment).devTools).toBe(expected);
});

test.each([
  [{}, false],
  [{ APP_URL: 'http://192.168.1.5:3000', ...mail }, false],
  [{ APP_URL: 'https://localhost:3000', ...mail }, true],
  [{ ...production, APP_URL: 'http://localhost:3000' }, true],
])('Secure cookies with %o: %s', (environment: Record<string, string>, expected) => {
  expect(parseConfig(environment).secureCookies).toBe(expected);
});

test.each([
  ['APP_URL', 'https://example.com/accounts', 'must have no path'],
  ['ALLOWED_ORIGINS', 'https://app.example.com,https://*.example.com', 'must be origins like'],
])('%s=%s is refused: it would never work', (name, value, problem) => {
  expect(problemsOf({ ...production, [name]: value })).toContain(`${name} ${problem}`);
});

test('a public APP_URL without development tools requires a mail server, and nothing else', () => {
  const message = problemsOf({ APP_URL: 'https://accounts.example.com' });
  expect(message.match(/^ {2}\w+/gm)).toEqual(['  SMTP_URL', '  MAIL_FROM']);
  expect(problemsOf({ DEV_TOOLS: 'off' }).match(/^ {2}\w+/gm)).toEqual(['  SMTP_URL', '  MAIL_FROM']);
  expect(parseConfig({ APP_URL: 'https://accounts.example.com', ...mail }).databaseUrl).toBeUndefined();
});

test.each([
  [{}, 0],
  [{ HOST: '::1' }, 0],
  [{ HOST: '0.0.0.0' }, 1],
  [{ APP_URL: 'http://192.168.1.5:3000', DEV_TOOLS: 'on' }, 2],
  [{ APP_URL: 'https://accounts.example.com', ...mail }, 0],
  [{ APP_URL: 'https://accounts.example.com', ...mail, PASSWORD_ITERATIONS: '1000' }, 1],
  [{ ...production, SMTP_URL: 'smtps://mail.example.com' }, 0],
  [{ ...production, SMTP_URL: 'smtp://mail.example.com' }, 1],
  [{ ...production, SMTP_URL: 'smtp://mail.example.com?requireTLS=true' }, 0],
  [{ ...production, S3_ENDPOINT: 'http://s3.internal:9000' }, 1],
  [{ ...production, S3_PUBLIC_URL: 'http://cdn.example.com' }, 1],
  [{ ...production, SMTP_URL: 'smtps://mail.example.com', REGISTRATION: 'open' }, 0],
  [{ ...production, SMTP_URL: 'smtps://mail.example.com', REGISTRATION: 'invited' }, 1],
  [{ ...production, SMTP_URL: 'smtps://mail.example.com', REGISTRATION: 'closed', PUBLIC_USERS: 'full' }, 0],
  [{ REGISTRATION: 'closed' }, 0],
  [{ ...production, S3_UPLOAD_ENDPOINT: 'http://files.example.com' }, 1],
])('with %o the start warns about %i settings', (environment: Record<string, string>, count) => {
  expect(parseConfig(environment).warnings).toHaveLength(count);
});

test.each([
  [{ S3_ENDPOINT: 'http://s3.internal:9000' }, 'S3_ENDPOINT'],
  [{ S3_PUBLIC_URL: 'http://cdn.example.com' }, 'S3_PUBLIC_URL'],
  [{ S3_ENDPOINT: 'http://s3.internal:9000', S3_PUBLIC_URL: 'https://cdn.example.com' }, undefined],
])('with %o the start warns that pages cannot show pictures: %s', (environment: Record<string, string>, name) => {
  const { warnings } = parseConfig({ ...production, ...environment });
  const named = warnings.filter((warning) => warning.endsWith('our pages show no picture from there'));
  expect(named.map((warning) => warning.split(' ')[0])).toEqual(name ? [name] : []);
});

describe('in production', () => {
  test.each([
    ['PASSWORD_ITERATIONS', '99999'],
    ['COOKIE_DOMAIN', 'com'],
    ['COOKIE_DOMAIN', '.COM'],
    ['COOKIE_DOMAIN', 'other.example'],
    ['COOKIE_DOMAIN', 'ample.com'],
    ['COOKIE_DOMAIN', 'deep.accounts.example.com'],
    ['API_HOST', '*'],
    ['API_HOST', '*:443'],
    ['API_HOST', 'https://*'],
    ['API_HOST', 'https://*:*/'],
    ['API_HOST', '*.com'],
    ['API_HOST', 'https://*.co.uk'],
    ['API_HOST', '*.s3.amazonaws.com'],
    ['APP_URL', 'http://accounts.example.com'],
    ['APP_URL', 'http://10.0.0.1'],
    ['ALLOWED_ORIGINS', 'https://app.example.com,http://admin.example.com'],
    ['DEV_TOOLS', 'on'],
    ['REGISTRATION_DOMAINS', 'example.com, *.com'],
    ['REGISTRATION_DOMAINS', '*.co.uk'],
    ['APP_SECRET', 'x'.repeat(44)],
    ['APP_SECRET', 'changeme'.repeat(5)],
    ['APP_SECRET', 'my-super-secret-key-change-me-please-now'],
    ['APP_SECRET', '0123456789abcdef0123456789abcdef'],
    ['APP_SECRET', 'abcdefghijklmnopqrstuvwxyz0123456789'],
    ['APP_SECRET', 'qwertyuiopasdfghjklzxcvbnmqwertyuiop'],
    ['APP_SECRET', 'insert-your-application-secret-here!'],
    ['APP_SECRET', `${production.APP_SECRET},${'x'.repeat(44)}`],
  ])('%s=%s stops the start', (name, value) => {
    expect(problemsOf({ ...production, [name]: value })).toMatch(new RegExp(`^  ${name} `, 'm'));
  });

  test('a cookie domain shared with strangers stops the start', () => {
    const environment = { ...production, APP_URL: 'https://accounts.github.io', COOKIE_DOMAIN: 'github.io' };
    expect(problemsOf(environment)).toContain('COOKIE_DOMAIN');
  });

  test.each([
    ['APP_URL', 'http://localhost:3000'],
    ['COOKIE_DOMAIN', 'example.com'],
    ['COOKIE_DOMAIN', '.Example.com'],
    ['COOKIE_DOMAIN', 'accounts.example.com'],
    ['API_HOST', '*.example.com'],
    ['API_HOST', 'https://api.example.com:8443/v1'],
    ['ALLOWED_ORIGINS', 'https://app.example.com,http://localhost:5173'],
    ['PASSWORD_ITERATIONS', '100000'],
    ['DEV_TOOLS', 'off'],
    ['PUBLIC_USERS', 'full'],
  ])('%s=%s does not', (name, value) => {
    expect(problemsOf({ ...production, [name]: value })).toBe('');
  });

  test('a random secret in any usual form is accepted', () => {
    const forms = [
      () => randomBytes(32).toString('base64'),
      () => randomBytes(32).toString('base64url'),
      () => randomBytes(24).toString('base64'),
      () => randomBytes(32).toString('hex'),
      () => randomBytes(16).toString('hex'),
      () => randomUUID(),
    ];
    const refused = Array.from({ length: 200 }, () => forms.map((make) => make()))
      .flat()
      .filter((secret) => problemsOf({ ...production, APP_SECRET: secret }) !== '');
    expect(refused).toEqual([]);
  });
});

test('several secrets are kept in order, without spaces around the commas', () => {
  const secretsOf = (APP_SECRET: string) => parseConfig({ APP_SECRET }).appSecrets;
  const [current, former] = ['n'.repeat(32), 'f'.repeat(32)];
  expect(secretsOf(`${current} , ${former}`)).toEqual([current, former]);
  expect(secretsOf(` ${current}`)).toEqual([` ${current}`]);
});

test.each([
  ['PORT', '0'],
  ['PORT', '65536'],
  ['PORT', '80a'],
  ['APP_URL', 'accounts.example.com'],
  ['APP_URL', 'ftp://accounts.example.com'],
  ['APP_URL', 'https://user@accounts.example.com'],
  ['APP_URL', 'https://accounts.example.com/?x=1'],
  ['APP_URL', 'https://accounts.example.com/#x'],
  ['ALLOWED_ORIGINS', 'https://app.example.com/path'],
  ['ALLOWED_ORIGINS', 'app.example.com'],
  ['API_HOST', "api.example.com; script-src 'unsafe-eval'"],
  ['API_HOST', 'https:'],
  ['API_HOST', 'a*.example.com'],
  ['DEV_TOOLS', 'yes'],
  ['APP_SECRET', 'short'],
  ['APP_SECRET', `${'x'.repeat(32)},short`],
  ['APP_SECRET', `${'x'.repeat(32)},`],
  ['APP_SECRET', `,${'x'.repeat(32)}`],
  ['DATABASE_URL', 'postgres://127.0.0.1/x'],
  ['DATABASE_URL', 'mysql://a,,b/x'],
  ['DATABASE_URL', 'mysql://a,b:port/x'],
  ['DATABASE_URL', 'mysql://a,b'],
  ['DATABASE_URL', 'mysql://a/x?ssl-mode=PREFERRED'],
  ['DATABASE_URL', 'mysql://a,[::1]:3307/x?ssl-mode=VERIFY_IDENTITY'],
  ['DATABASE_REPLICA_URLS', 'mysql://a/x,mysql://b'],
  ['REDIS_URL', '127.0.0.1:6379'],
  ['REDIS_URL', 'redis://127.0.0.1/accounts'],
  ['DATABASE_URL', 'mysql://a/x?sslmode=VERIFY_CA'],
  ['DATABASE_URL', 'mysql://u:p%zz@a/x'],
  ['REDIS_URL', 'redis://:p%zz@a'],
  ['REDIS_URL', 'redis://a,b?family=6'],
  ['REDIS_SENTINEL', 'u:a/b@h1:26379/my'],
  ['REDIS_SENTINEL', 'u:p%zz@h1:26379/my'],
  ['REDIS_URL', 'redis://127.0.0.1:6379,'],
  ['REDIS_URL', 'redis://127.0.0.1:6379,b:x'],
  ['REDIS_URL', 'redis://a,b/1'],
  ['REDIS_URL', 'http://a,b'],
  ['REDIS_SENTINEL', 'a:26379,b:26379'],
  ['REDIS_SENTINEL', 'a:26379,/mymaster'],
  ['WEB_CONCURRENCY', '0'],
  ['WEB_CONCURRENCY', 'max'],
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
  ['METRICS_PORT', '3000'],
  ['METRICS_PORT', '65536'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ['OTEL_TRACES_SAMPLER', 'sometimes'],
  ['OTEL_TRACES_SAMPLER_ARG', '1.5'],
  ['PASSWORD_ITERATIONS', '-1'],
  ['LIMIT_LOGIN', '5'],
  ['LIMIT_LOGIN', '0/900'],
  ['LIMIT_READ', '0/900'],
  ['S3_ENDPOINT', 's3.example.com'],
  ['S3_ENDPOINT', 'https://storage.example.com/s3'],
  ['S3_UPLOAD_ENDPOINT', 'https://storage.example.com/s3'],
  ['S3_BUCKET', 'Not_A_Bucket'],
  ['S3_BUCKET', 'a..b'],
  ['S3_BUCKET', '192.168.1.5'],
  ['S3_BUCKET', 'a.b-'],
  ['UPLOAD_TYPES', 'image/png,text/html'],
  ['UPLOAD_MAX_BYTES', '0'],
  ['REGISTRATION', 'none'],
  ['REGISTRATION_DOMAINS', '@example.com'],
  ['REGISTRATION_DOMAINS', 'example'],
  ['REGISTRATION_DOMAINS', 'https://example.com'],
  ['REGISTRATION_DOMAINS', 'a.*.example.com'],
  ['REGISTRATION_DOMAINS', 'bücher.example'],
  ['PUBLIC_USERS', 'on'],
  ['AVATARS', 'none'],
])('%s=%s is refused by name', (name, value) => {
  expect(problemsOf({ [name]: value })).toContain(name);
});

test('an object storage needs all of its variables, and serves its objects unless S3_PUBLIC_URL is set', () => {
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

test('the public endpoint is used for uploads, for the policy and, unless S3_PUBLIC_URL is set, for pictures', () => {
  const S3_UPLOAD_ENDPOINT = 'https://files.example.com/';
  const named = parseConfig({ ...production, S3_UPLOAD_ENDPOINT });
  expect(named).toMatchObject({
    apiHost: 'https://files.example.com',
    s3: {
      endpoint: 'https://s3.example.com',
      uploadEndpoint: 'https://files.example.com',
      publicUrl: 'https://files.example.com/accounts',
    },
  });
  expect(parseConfig({ ...production, S3_UPLOAD_ENDPOINT, API_HOST: 'api.example.com' }).apiHost).toBe(
    'api.example.com',
  );
  expect(parseConfig(production)).toMatchObject({
    apiHost: 'accounts.example.com',
    s3: { uploadEndpoint: 'https://s3.example.com' },
  });
  expect(problemsOf({ S3_UPLOAD_ENDPOINT })).toContain('S3_ENDPOINT is missing');
});

describe('Redis', () => {
  const redisIn = (environment: Record<string, string>) => {
    const { redisUrl, redisCluster, redisSentinel } = parseConfig(environment);
    return { redisUrl, redisCluster, redisSentinel };
  };
  const nobody = { username: '', password: '' };

  test.each([
    [{ REDIS_URL: 'rediss://u:p%40@a:1/2' }, { redisUrl: 'rediss://u:p%40@a:1/2' }],
    [
      { REDIS_URL: 'rediss://u:p@a:1,b,[::1]:3' },
      {
        redisUrl: 'rediss://u:p@a:1',
        redisCluster: [
          { host: 'a', port: 1 },
          { host: 'b', port: 6379 },
          { host: '::1', port: 3 },
        ],
      },
    ],
    [
      { REDIS_URL: 'redis://:pw@any/3', REDIS_SENTINEL: 'a,b:2/main' },
      {
        redisUrl: 'redis://:pw@any/3',
        redisSentinel: {
          nodes: [
            { host: 'a', port: 26379 },
            { host: 'b', port: 2 },
          ],
          master: 'main',
          ...nobody,
        },
      },
    ],
    [
      { REDIS_URL: 'redis://any', REDIS_SENTINEL: 'u:p%40@a/main' },
      {
        redisUrl: 'redis://any',
        redisSentinel: { nodes: [{ host: 'a', port: 26379 }], master: 'main', username: 'u', password: 'p@' },
      },
    ],
  ])('%o', (environment, expected) => {
    expect(redisIn(environment)).toEqual({ redisCluster: undefined, redisSentinel: undefined, ...expected });
  });

  test('Sentinels require the master’s credentials, and exclude a Cluster', () => {
    expect(problemsOf({ REDIS_SENTINEL: 'a/main' })).toContain('REDIS_URL is missing');
    expect(problemsOf({ REDIS_SENTINEL: 'a/main', REDIS_URL: 'redis://a,b' })).toContain('REDIS_SENTINEL');
  });
});

test('REGISTRATION=domains requires domains, only it allows them, and they are compared in lower case', () => {
  const domains = { REGISTRATION: 'domains', REGISTRATION_DOMAINS: ' Example.COM ,*.Example.org,' };
  expect(parseConfig(domains).registration).toEqual({ mode: 'domains', domains: ['example.com', '*.example.org'] });
  expect(parseConfig({}).registration).toEqual({ mode: 'open', domains: [] });
  for (const listed of ['', ' , ']) {
    expect(problemsOf({ REGISTRATION: 'domains', REGISTRATION_DOMAINS: listed })).toContain('REGISTRATION_DOMAINS');
  }
  for (const mode of ['', 'open', 'invited', 'closed']) {
    expect(problemsOf({ ...domains, REGISTRATION: mode })).toContain('REGISTRATION_DOMAINS');
  }
});

test('several processes share the cores, and require parts that they can share', () => {
  const several = parseConfig({ ...production, WEB_CONCURRENCY: '10' });
  expect(several).toMatchObject({ processes: 10 });
  expect(several.cores).toBe(Math.max(1, Math.floor(parseConfig({}).cores / 10)));
  const message = problemsOf({ WEB_CONCURRENCY: '2' });
  for (const name of ['DATABASE_URL', 'REDIS_URL', 'S3_ENDPOINT']) expect(message).toContain(name);
});

test('an URL is normalized as browsers do', () => {
  const { appUrl, s3 } = parseConfig({
    ...production,
    APP_URL: 'HTTPS://Accounts.Example.COM:443/',
    S3_PUBLIC_URL: 'https://CDN.example.com/files/',
  });
  expect(appUrl).toBe('https://accounts.example.com');
  expect(s3?.publicUrl).toBe('https://cdn.example.com/files');
});
