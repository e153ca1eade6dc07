import { randomBytes } from 'node:crypto';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { createConnection } from 'mysql2/promise';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { startOpenIdProvider } from '../provider/openid.ts';
import { slowClock } from '../rig/process/clock.ts';
import { migrate } from '../rig/process/command.ts';
import { type Environment, runDoctor, withChanges } from '../rig/process/doctor.ts';
import { startService } from '../rig/process/service.ts';
import { startClamd } from '../rig/servers/clamd.ts';
import { createDatabase, dropDatabase } from '../rig/servers/mysql.ts';
import { freePort } from '../rig/servers/port.ts';
import type { PrivateServer } from '../rig/servers/private-server.ts';
import { nextDatabase, startRedis } from '../rig/servers/redis.ts';
import { type S3, startS3 } from '../rig/servers/s3.ts';
import { startHttpScanner } from '../rig/servers/scanner.ts';
import { type SmtpSink, startSmtpSink } from '../rig/servers/smtp.ts';
import { until } from '../rig/until.ts';

const SMTP_PASSWORD = 'smtp-password-1843';
const POOR_PASSWORD = 'poor-password-1843';

let databaseUrl: string;
let privateRedis: PrivateServer;
let smtp: SmtpSink;
let s3: S3;
let clamd: PrivateServer;
let openId: Awaited<ReturnType<typeof startOpenIdProvider>>;
let env: Environment;

const diagnose = (changes: Environment) => runDoctor({ ...env, ...changes });

const onServer = async (sql: string) => {
  const connection = await createConnection(inject('mysqlUrl'));
  await connection.query(sql).finally(() => connection.destroy());
};
const inRedis = async (...command: [string, ...string[]]) => {
  const redis = new Redis(privateRedis.url);
  return redis.call(...command).finally(() => redis.disconnect());
};

beforeAll(async () => {
  const port = await freePort();
  const appUrl = `http://localhost:${port}`;
  [databaseUrl, privateRedis, smtp, s3, clamd, openId] = await Promise.all([
    createDatabase(inject('mysqlUrl')),
    startRedis(),
    startSmtpSink(),
    startS3({ cors: appUrl }),
    startClamd(),
    startOpenIdProvider(),
  ]);
  openId.allow(`${appUrl}/auth/acme/callback`);
  env = {
    PORT: String(port),
    HOST: '127.0.0.1',
    APP_URL: appUrl,
    DEV_TOOLS: 'off',
    APP_SECRET: randomBytes(32).toString('base64'),
    DATABASE_URL: databaseUrl,
    REDIS_URL: await nextDatabase(inject('redisUrl')),
    SMTP_URL: withChanges(smtp.url, { username: 'accounts', password: SMTP_PASSWORD }),
    MAIL_FROM: 'no-reply@accounts.test',
    ...s3.env,
    ...environmentFor(openId),
  };
  await migrate(env);
});
afterAll(async () => {
  // Otherwise the frozen process would not end.
  const writesNoFile = async () => String(await inRedis('INFO', 'persistence')).includes('aof_rewrite_in_progress:0');
  await until(writesNoFile, { what: 'the append-only file, which was switched on again' });
  await Promise.all([
    privateRedis.stop(),
    smtp.stop(),
    s3.stop(),
    clamd.stop(),
    openId.close(),
    dropDatabase(databaseUrl),
  ]);
});

test('the doctor reports every part of a right configuration as ok, and leaves nothing behind', async () => {
  const { code, lines } = await diagnose({});
  expect(lines.filter((line) => !line.startsWith('ok '))).toEqual([]);
  expect(code).toBe(0);
  for (const part of ['database', 'key-value store', 'object storage', 'mail', 'provider acme', 'address']) {
    expect(lines.filter((line) => line.startsWith(`ok ${part} `))).not.toEqual([]);
  }
  expect(await s3.keys()).toEqual([]);
  expect(smtp.mails()).toEqual([]);
});

test('the doctor asks the scanner, if there is one', async () => {
  const { code, lines } = await diagnose({ SCAN_URL: clamd.url });
  expect(lines.filter((line) => line.includes(' scanner '))).toEqual([
    'ok scanner it answers',
    expect.stringMatching(/^ok scanner it finds the test file of EICAR \(Eicar-Test-Signature/),
    'ok scanner it refuses no file for its size',
  ]);
  expect(lines).toContain('ok object storage strangers cannot read files that wait for the scanner');
  expect(code).toBe(0);
  expect(await s3.keys()).toEqual([]);
});

test('while the service runs, the doctor finds its address and does not count the proxies', async () => {
  const service = await startService({ env });
  const { code, lines } = await diagnose({}).finally(() => service.stop());
  expect(lines).toContainEqual(expect.stringMatching(/^ok address .* leads to the service\. Proxies are counted only/));
  expect(code).toBe(0);
});

/** A faulty part, and its finding. */
type Mistake = [name: string, plant: () => Promise<Environment> | Environment, line: RegExp];

const userWith = (rights: string) => async () => {
  const name = `doctor_${randomBytes(4).toString('hex')}`;
  await onServer(`CREATE USER ${name}@'127.0.0.1' IDENTIFIED BY '${POOR_PASSWORD}'`);
  await onServer(`GRANT ${rights} ON ${new URL(databaseUrl).pathname.slice(1)}.* TO ${name}@'127.0.0.1'`);
  return { DATABASE_URL: withChanges(databaseUrl, { username: name, password: POOR_PASSWORD }) };
};
const redisWith = (setting: string, value: string) => async () => {
  await inRedis('CONFIG', 'SET', setting, value);
  return { REDIS_URL: privateRedis.url };
};
const hostile = (discovery: (url: string) => object) => async () => {
  const provider = await startHostileProvider();
  provider.setDiscovery({ body: discovery(provider.url) });
  return environmentFor(provider);
};

const production = { NODE_ENV: 'production', APP_URL: 'https://accounts.invalid', DEV_TOOLS: '' };

const mistakes: Mistake[] = [
  [
    'an account that only reads',
    userWith('SELECT'),
    /^problem database its account may not INSERT, UPDATE, DELETE\. GRANT INSERT/,
  ],
  [
    'an account that cannot migrate',
    userWith('SELECT, INSERT, UPDATE, DELETE'),
    /^problem database its account may not CREATE, ALTER, INDEX, REFERENCES, DROP, which migrations need\. GRANT CREATE/,
  ],
  [
    'a wrong database password',
    () => ({ DATABASE_URL: withChanges(databaseUrl, { password: POOR_PASSWORD }) }),
    /^problem database the database refuses the connection .*\. DATABASE_URL must name/,
  ],
  [
    'no such database',
    () => ({ DATABASE_URL: withChanges(databaseUrl, { pathname: '/nowhere' }) }),
    /^problem database .*nowhere.*\. Create it/,
  ],
  [
    'a latin1 database',
    async () => {
      const url = await createDatabase(inject('mysqlUrl'));
      await onServer(`ALTER DATABASE ${new URL(url).pathname.slice(1)} CHARACTER SET latin1`);
      return { DATABASE_URL: url };
    },
    /^problem database its character set is latin1.*\. ALTER DATABASE/,
  ],
  [
    'an empty database',
    async () => ({ DATABASE_URL: await createDatabase(inject('mysqlUrl')) }),
    /^warning database migrations are missing: 0001-accounts, .*\. `npm run migrate` applies/,
  ],
  [
    'a Redis that evicts',
    redisWith('maxmemory-policy', 'allkeys-lru'),
    /^problem key-value store it may evict .*allkeys-lru\)\. Set maxmemory-policy noeviction/,
  ],
  [
    'a Redis without a file',
    redisWith('appendonly', 'no'),
    /^warning key-value store it keeps no append-only file.*\. Set appendonly yes/,
  ],
  [
    'a Redis user with few rights',
    async () => {
      await inRedis(
        'ACL',
        'SETUSER',
        'poor',
        'on',
        `>${POOR_PASSWORD}`,
        '~*',
        '-@all',
        '+info',
        '+time',
        '+set',
        '+mget',
        '+del',
        '+getdel',
      );
      return { REDIS_URL: withChanges(privateRedis.url, { username: 'poor', password: POOR_PASSWORD }) };
    },
    /^problem key-value store it refuses EVAL \(NOPERM.*\)\. Allow the user/,
  ],
  [
    'a wrong Redis password',
    () => ({ REDIS_URL: withChanges(privateRedis.url, { username: 'nobody', password: POOR_PASSWORD }) }),
    /^problem key-value store WRONGPASS.*\. REDIS_URL must name a user/,
  ],
  [
    'a missing bucket in production',
    () => ({ ...production, S3_BUCKET: 'missing' }),
    /^problem object storage the bucket missing does not exist\. Create it.*`npm run s3-setup -- --apply`/,
  ],
  [
    'a missing bucket elsewhere',
    () => ({ S3_BUCKET: 'missing' }),
    /^warning object storage the bucket missing does not exist\. The next start/,
  ],
  [
    'a wrong S3 key',
    () => ({ S3_SECRET_KEY: POOR_PASSWORD }),
    /^problem object storage an upload is answered with 403 SignatureDoesNotMatch\. Check/,
  ],
  [
    'a bucket without a policy',
    async () => (await startS3({ cors: '*', anyoneReads: /^$(?!)/ })).env,
    /^problem object storage GET .* is answered with 403\. Let everyone s3:GetObject.*`npm run s3-setup -- --apply`/,
  ],
  [
    'a bucket that is open',
    async () => (await startS3({ cors: '*', anyoneReads: /^/ })).env,
    /^problem object storage everyone can list the bucket, read objects outside uploads\/\. The policy.*`npm run s3-setup -- --apply`/,
  ],
  [
    'a bucket whose private files are open',
    async () => (await startS3({ cors: '*', anyoneReads: /^(?:uploads|private)\// })).env,
    /^problem object storage strangers can read private files\. No policy may let everyone read private/,
  ],
  [
    'a storage that fails when a stranger reads a private file',
    async () => {
      const failing = await startS3({ cors: '*', anyoneReads: /^(?:uploads|private)\// });
      failing.behave('slow-down', /^GET .*\/private\/probe-/);
      return failing.env;
    },
    /^warning object storage it is unknown whether strangers can read private files: one was answered with 503\. Try again/,
  ],
  [
    'a bucket in which everyone reads files that wait for the scanner',
    async () => ({
      ...(await startS3({ cors: '*', anyoneReads: /^(?:uploads|pending)\// })).env,
      SCAN_URL: clamd.url,
    }),
    /^problem object storage strangers can read files that wait for the scanner\. No policy may let everyone read pending/,
  ],
  [
    'a scanner that is away',
    async () => ({ SCAN_URL: `clamd://127.0.0.1:${await freePort()}` }),
    /^problem scanner .*ECONNREFUSED.*, and files wait\. Start it; SCAN_URL must name it/,
  ],
  [
    'a scanner that is away, with SCAN_DOWN=allow',
    async () => ({ SCAN_URL: `http://127.0.0.1:${await freePort()}/`, SCAN_DOWN: 'allow' }),
    /^problem scanner .*, and files are given out unscanned\. Start it/,
  ],
  [
    'a scanner without signatures',
    async () => {
      const scanner = await startHttpScanner();
      scanner.behave({ status: 200, body: '{"clean":true}' });
      return { SCAN_URL: scanner.url };
    },
    /^problem scanner it does not find the test file of EICAR\. Load its signatures/,
  ],
  [
    'a scanner that takes only small files',
    () => ({ SCAN_URL: clamd.url, UPLOAD_MAX_BYTES: String(200 * 1024 ** 2) }),
    /^warning scanner it refuses files of UPLOAD_MAX_BYTES \(209715200\): .*\. Set StreamMaxLength/,
  ],
  [
    'a front end that may not send',
    () => ({ ALLOWED_ORIGINS: 'https://app.example.com' }),
    /^problem object storage pages of https:\/\/app\.example\.com may not upload files\. Add a CORS rule.*`npm run s3-setup -- --apply`/,
  ],
  [
    'a name for browsers that a proxy changes',
    async () => ({ S3_UPLOAD_ENDPOINT: await startProxy(Number(new URL(s3.url).port)) }),
    /^problem object storage an upload by S3_UPLOAD_ENDPOINT .* with 403 .*\. The proxy in front/,
  ],
  [
    'a name for browsers that leads elsewhere',
    () => ({ S3_UPLOAD_ENDPOINT: openId.url }),
    /^problem object storage an upload by S3_UPLOAD_ENDPOINT .* with 404\. It must lead to the storage of S3_ENDPOINT/,
  ],
  [
    'a name for browsers that cannot be tried here',
    () => ({ S3_UPLOAD_ENDPOINT: 'http://localhost:9' }),
    /^warning object storage http:\/\/localhost:9, which is for browsers, does not answer here\. Try it/,
  ],
  [
    'a wrong SMTP password',
    () => {
      smtp.behave('refuse-credentials');
      return {};
    },
    /^problem mail .*535.*\. SMTP_URL must have the user/,
  ],
  [
    'a provider of another issuer',
    hostile((url) => ({ issuer: 'https://other.example.com', authorization_endpoint: `${url}/authorize` })),
    /^problem provider acme its discovery fails: .*\. The issuer must be/,
  ],
  [
    'a redirect address that the provider does not know',
    () => ({ IDP_NAME: 'other' }),
    /^warning provider other .* with 400\. Register http:\/\/localhost:\d+\/auth\/other\/callback/,
  ],
  [
    'more processes than cores',
    () => ({ WEB_CONCURRENCY: '256' }),
    /^warning settings WEB_CONCURRENCY is 256, .* cores\. Set WEB_CONCURRENCY=\d+/,
  ],
  [
    'more connections than the database takes',
    () => ({ WEB_CONCURRENCY: '256' }),
    /^problem database it accepts 400 connections, .* may need 2560\. Set max_connections/,
  ],
  [
    'a secret that is being rotated',
    () => ({ APP_SECRET: `${randomBytes(32).toString('base64')},${env['APP_SECRET']}` }),
    /^warning settings APP_SECRET has 2 secrets.*\. Remove the old one/,
  ],
  [
    'a page of the operator that is not there',
    () => ({ TERMS_URL: '/terms' }),
    /^warning brand TERMS_URL: http:\/\/localhost:\d+\/terms (?:answers \d+|cannot be read: .*)\. It must answer every browser/,
  ],
  [
    'metrics for everyone',
    () => ({ ...production, METRICS_HOST: '192.0.2.1', METRICS_PORT: '9464' }),
    /^warning settings METRICS_PORT 9464 on METRICS_HOST 192\.0\.2\.1 is open.*\. Restrict it to Prometheus/,
  ],
  [
    'users whom everyone can read, although not everyone is let in',
    () => ({ ...production, REGISTRATION: 'invited' }),
    /^warning settings REGISTRATION is invited, and PUBLIC_USERS is not set: everyone can read .*\. See docs\/configuration\.md/,
  ],
  [
    'a list of users for everyone',
    () => production,
    /^warning settings PUBLIC_USERS is full: everyone can read .*\. Set PUBLIC_USERS=off/,
  ],
  [
    'a limit that locks an office out',
    () => production,
    /^warning settings LIMIT_LOGIN is 5\/900: .*\. Set LIMIT_LOGIN=100\/900/,
  ],
  [
    'more proxies than there are',
    () => ({ TRUST_PROXY: '2' }),
    /^problem address TRUST_PROXY is 2, and 0 proxies.*\. Set TRUST_PROXY=0/,
  ],
  [
    'a proxy that is not counted',
    async () => ({ APP_URL: await startProxy(Number(env['PORT'])) }),
    /^problem address TRUST_PROXY is 0, and 1 proxies.*\. Set TRUST_PROXY=1/,
  ],
  [
    'a proxy that takes the header away',
    async () => ({ APP_URL: await startProxy(Number(env['PORT']), () => undefined) }),
    /^problem address a proxy in front removes X-Forwarded-For.*\. Configure it to append/,
  ],
  ['an address of something else', () => ({ APP_URL: s3.url }), /^problem address .* leads to something else/],
  [
    'TLS to a server without TLS',
    () => ({ APP_URL: `https://localhost:${env['PORT']}` }),
    /^problem address .* has no valid certificate/,
  ],
  [
    'a clock that is five minutes slow',
    () => slowClock(300_000),
    /^problem provider acme its clock is (29\d|300)\.\d s ahead of this machine's.*\. Synchronize/,
  ],
];

test.each(mistakes)('the doctor reports %s, with what to do about it', async (_name, plant, line) => {
  const changes = await plant();
  const { code, lines } = await diagnose(changes).finally(async () => {
    smtp.behave('accept');
    await inRedis('CONFIG', 'SET', 'maxmemory-policy', 'noeviction', 'appendonly', 'yes');
  });
  expect(lines).toContainEqual(expect.stringMatching(line));
  expect(code).toBe(lines.some((text) => text.startsWith('problem ')) ? 1 : 0);
});

/** Configurations with a secret that also occurs in the request, and so in the answer. */
const quoted: [part: string, plant: () => Promise<Environment> | Environment, line: RegExp][] = [
  [
    'the database',
    () => ({ DATABASE_URL: withChanges(databaseUrl, { pathname: new URL(databaseUrl).password }) }),
    /^problem database .*'…'/,
  ],
  [
    'a replica',
    () => ({ DATABASE_REPLICA_URLS: withChanges(databaseUrl, { pathname: new URL(databaseUrl).password }) }),
    /^problem database replica .*'…'/,
  ],
  [
    'a Sentinel',
    () => ({ REDIS_SENTINEL: `:${POOR_PASSWORD}@${new URL(privateRedis.url).host}/${POOR_PASSWORD}` }),
    /^problem key-value store Sentinel .*'…'/,
  ],
  [
    'a provider',
    () => ({ IDP_ISSUER: `http://127.0.0.1:9/${POOR_PASSWORD}`, IDP_CLIENT_SECRET: POOR_PASSWORD }),
    /^problem provider acme .*http:\/\/127\.0\.0\.1:9\/…/,
  ],
];

test.each(quoted)('the doctor removes the secret from an error of %s', async (_part, plant, line) => {
  const { lines } = await diagnose(await plant());
  expect(lines).toContainEqual(expect.stringMatching(line));
});

test('the doctor reports a slow clock for every part that has one', async () => {
  const { lines } = await diagnose(slowClock(300_000));
  for (const part of ['database', 'key-value store', 'object storage']) {
    expect(lines).toContainEqual(expect.stringMatching(`^warning ${part} its clock is .* ahead of`));
  }
});

test('unreachable and hanging parts do not hide one another', async () => {
  const nowhere = '127.0.0.1:9';
  smtp.behave('hang-at-greeting');
  const { code, lines } = await diagnose({
    DATABASE_URL: `mysql://accounts:${POOR_PASSWORD}@${nowhere}/accounts`,
    REDIS_URL: `redis://${nowhere}`,
    S3_ENDPOINT: `http://${nowhere}`,
    IDP_ISSUER: `http://${nowhere}`,
    APP_URL: 'http://localhost:9',
  }).finally(() => smtp.behave('accept'));
  expect(code).toBe(1);
  for (const part of ['database', 'key-value store', 'object storage', 'mail', 'provider acme']) {
    expect(lines).toContainEqual(expect.stringMatching(`^problem ${part} `));
  }
  expect(lines).toContainEqual(expect.stringMatching(/^warning address http:\/\/localhost:9 does not answer/));
});

test('the doctor reports every error of an unusable configuration', async () => {
  const { code, lines } = await diagnose({ DATABASE_URL: 'nonsense', APP_SECRET: 'short' });
  expect(code).toBe(1);
  expect(lines.join('\n')).toMatch(/APP_SECRET must.*\n.*DATABASE_URL must/);
});

const appended = (header: string | undefined) => [header, '203.0.113.7'].filter(Boolean).join(', ');

/**
 * A proxy that rewrites X-Forwarded-For with `forwarded`, in front of a port; ends with the test process. Returns its
 * URL.
 */
async function startProxy(
  target: number,
  forwarded: (header: string | undefined) => string | undefined = appended,
): Promise<string> {
  const proxy = createServer(({ url, headers }, response) => {
    const forwardedFor = forwarded(headers['x-forwarded-for']?.toString());
    const onward = request({
      port: target,
      host: '127.0.0.1',
      path: url,
      headers: forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor },
    });
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502);
      answer.pipe(response);
    });
    onward.on('error', () => response.writeHead(502).end()).end();
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return `http://localhost:${(proxy.address() as AddressInfo).port}`;
}
