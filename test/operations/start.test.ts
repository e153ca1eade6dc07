import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, inject, test } from 'vitest';
import { migrationNames } from '../../entities/migrations/index.ts';
import { callerOf } from '../contract/rig/callers.ts';
import { expectRefusal, isAlive, loggedIn, logIn, onStack, PASSWORD, sessionIn } from '../contract/rig/scenario.ts';
import { viewMysql } from '../rig/observe/database-view.ts';
import { startService } from '../rig/process/service.ts';
import { clientAddress, freshEmail } from '../rig/servers/address.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';
import { createDatabase } from '../rig/servers/mysql.ts';
import { noS3 } from '../rig/servers/s3.ts';
import { startSmtpSink } from '../rig/servers/smtp.ts';
import { until } from '../rig/until.ts';

const folder = temporaryDirectory('start');

const main = join(import.meta.dirname, '../../server/main.ts');

/** The output of a failing start, without npm's own lines; with `cwd` not through npm, which changes it. */
async function failureOf(env: Record<string, string>, cwd?: string): Promise<string> {
  const { PATH, HOME } = process.env;
  const [file, args] = cwd ? [process.execPath, [main]] : ['npm', ['start', '--silent']];
  const start = promisify(execFile)(file, args, { env: { PATH, HOME, ...env }, cwd, timeout: 15_000 });
  const failure = await start.then(
    () => ({ code: 0, stderr: '' }),
    (error: { code: number; stderr: string }) => error,
  );
  expect(failure.code).toBe(1);
  return failure.stderr;
}

test('a taken port is reported in one line', async () => {
  const service = await startService();
  const message = await failureOf({ PORT: String(service.port), APP_URL: service.appUrl }).finally(() =>
    service.stop(),
  );
  expect(message).toContain(`Port ${service.port} is taken`);
  expect(message).not.toMatch(/\bat \S+:\d+/);
});

test('an unusable DATA_DIR is reported in one line', async () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const message = await failureOf({ DATA_DIR: join(file, 'data') });
  expect(message).toContain('DATA_DIR cannot be used');
  expect(message).not.toMatch(/\bat \S+:\d+/);
});

test('a read-only DATA_DIR is reported in one line', async () => {
  expect(await failureOf({ DATA_DIR: '/proc/nothing' })).toContain('DATA_DIR cannot be used');
});

test('a damaged file of the embedded store is reported in one line', async () => {
  const dataDir = temporaryDirectory('damaged');
  const file = join(dataDir, 'key-value.sqlite');
  writeFileSync(file, 'no database '.repeat(1000));
  const message = await failureOf({ DATA_DIR: dataDir });
  expect(message).toContain(`DATA_DIR cannot be used: ${file} is damaged (file is not a database)`);
  expect(message.trim().split('\n')).toHaveLength(1);
});

test('a damaged embedded database is reported without a stack, and the start waits for another one', async () => {
  const dataDir = temporaryDirectory('damaged');
  writeFileSync(join(dataDir, 'database.sqlite'), 'no database '.repeat(1000));
  const service = await startService({ env: { DATA_DIR: dataDir }, ready: false });
  const line = () => service.output().match(/.*waiting for it.*/)?.[0];
  await until(line);
  await service.stop();
  expect(line()).toContain(`${join(dataDir, 'database.sqlite')} is damaged`);
  expect(service.output()).not.toMatch(/\bat \S+:\d+/);
});

test('a .env that cannot be read is reported in one sentence', async () => {
  const cwd = temporaryDirectory('env');
  mkdirSync(join(cwd, '.env'));
  expect(await failureOf({}, cwd)).toMatch(/^The configuration cannot be used:\n {2}\.env cannot be read: .+\n$/);
});

// checks: F10
test('a hanging mail server does not delay a start', async () => {
  const smtp = await startSmtpSink();
  smtp.behave({ slow: 30_000 });
  const service = await startService({ env: { SMTP_URL: smtp.url, MAIL_FROM: 'no-reply@accounts.test' } });
  const call = callerOf('rest', service.url);
  const reply = await call('auth.register', { name: 'Ada', email: freshEmail(), password: PASSWORD });
  expect(reply.status).toBe(201);
  expect(await service.stop({ within: 10_000 })).toBe(0);
  await smtp.stop();
});

test('production reports everything missing, and does not start', async () => {
  const message = await failureOf({ NODE_ENV: 'production', APP_URL: 'nonsense' });
  for (const name of ['APP_URL', 'APP_SECRET', 'DATABASE_URL', 'REDIS_URL', 'SMTP_URL', 'MAIL_FROM']) {
    expect(message).toContain(name);
  }
});

test('the banner lists addresses and embedded parts', async () => {
  const service = await startService();
  await service.stop();
  const output = service.output();
  for (const line of [service.appUrl, '/openapi.json', '/docs', '/dev/mail', 'database, key-value store, mail']) {
    expect(output).toContain(line);
  }
});

test('npm run migrate updates an empty database, changes nothing the second time, and never with --check', async () => {
  const env = { ...process.env, DATABASE_URL: await createDatabase(inject('mysqlUrl')) };
  const migrate = (...args: string[]) =>
    promisify(execFile)('npm', ['run', 'migrate', '--', ...args], { env }).then(
      ({ stdout }) => ({ code: 0, stdout }),
      ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout }),
    );
  const answer = (code: number, text: string) => ({ code, stdout: expect.stringContaining(text) });
  const view = viewMysql(env.DATABASE_URL);
  const tables = () => view.query('select 1 from information_schema.tables where table_schema = database()');
  expect(await migrate('--check')).toEqual(answer(1, `To apply: ${migrationNames.join(', ')}\n`));
  expect(await tables()).toEqual([]);
  expect(await migrate()).toEqual(answer(0, 'Applied 0001-accounts'));
  expect(await migrate()).toEqual(answer(0, 'up to date'));
  expect(await migrate('--check')).toEqual(answer(0, 'up to date'));
  env.DATABASE_URL = env.DATABASE_URL.replace(/:[^:@]*@/, ':wrong@');
  expect(await migrate('--check')).toMatchObject({ code: 2 });
  await view.close();
});

describe('after a restart', () => {
  onStack('embedded', (stack) => {
    test('users, sessions and counted attempts persist', async () => {
      const call = callerOf('rest', stack().url);
      const { session, ...person } = await loggedIn({ stack: stack(), call });
      const address = clientAddress();
      for (let i = 0; i < 5; i++) await call('auth.login', { email: freshEmail(), password: PASSWORD }, { address });
      await stack().services[0]?.restart();
      expect(await isAlive(call, session)).toBe(true);
      expectRefusal(await call('auth.login', person, { address }), 429, 'RATE_LIMITED');
      await logIn(call, person);
    });
  });
});

describe('a hash with another number of iterations', () => {
  onStack(
    'embedded',
    (stack) => {
      test('is replaced at login by one with the configured number', async () => {
        const call = callerOf('rest', stack().url);
        const { session, ...person } = await loggedIn({ stack: stack(), call });
        const read = async () => {
          const [row] = await stack().database('select password_hash as hash from users where id = ?', [person.id]);
          return String(row?.['hash']);
        };
        const current = await read();
        expect(current).toMatch(/^20000:/);
        // PBKDF2-SHA256 of the password with the salt "saltsaltsaltsalt" and one round.
        const outdated = `1:${Buffer.from('saltsaltsaltsalt').toString('base64')}:${await oneRound(person.password)}`;
        await stack().database('update users set password_hash = ? where id = ?', [outdated, person.id]);
        expectRefusal(
          await call('auth.login', { ...person, password: 'Wrong-Password-1' }),
          401,
          'INVALID_CREDENTIALS',
        );
        expect(await read()).toBe(outdated);
        await logIn(call, person);
        const renewed = await read();
        expect(renewed).toMatch(/^20000:/);
        await logIn(call, person);
        expect(await read()).toBe(renewed);
        expect(await isAlive(call, session)).toBe(true);
      });
    },
    { env: { PASSWORD_ITERATIONS: '20000' } },
  );
});

async function oneRound(password: string): Promise<string> {
  const key = await crypto.subtle.importKey('raw', new TextEncoder().encode(password), 'PBKDF2', false, ['deriveBits']);
  const salt = new TextEncoder().encode('saltsaltsaltsalt');
  const bits = await crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-256', salt, iterations: 1 }, key, 256);
  return Buffer.from(bits).toString('base64');
}

describe('in production', () => {
  onStack(
    'real',
    (stack) => {
      // checks: 20
      test('the cookie is Secure, /dev is 404, and the log is JSON without secrets', async () => {
        const call = callerOf('rest', stack().url);
        const { session, ...person } = await loggedIn({ stack: stack(), call });
        const reply = await call('auth.login', person);
        expect(reply.setCookies).toEqual([
          `auth_session=${sessionIn(reply)}; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800; Secure`,
          expect.stringMatching(
            /^__Host-auth_device=[\w.-]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=34560000; Secure$/,
          ),
        ]);
        for (const path of ['/dev/mail', '/dev/idp', '/dev']) {
          expect((await fetch(stack().url + path)).status).toBe(404);
        }
        for (const path of ['/docs', '/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js']) {
          expect((await fetch(stack().url + path)).status).toBe(200);
        }
        const service = stack().services[0];
        await service?.restart();
        const lines = (service?.output() ?? '').split('\n').filter((line) => line.startsWith('{'));
        expect(lines.length).toBeGreaterThan(3);
        const requests = lines.map((line) => JSON.parse(line)).filter(({ route }) => route === '/auth/login');
        expect(requests[0]).toMatchObject({ method: 'POST', status: 200, user: person.id, id: expect.any(String) });
        expect(requests[0].ms).toBeGreaterThan(0);
        for (const secret of [person.email, PASSWORD, session]) expect(service?.output()).not.toContain(secret);
      });
    },
    { env: { NODE_ENV: 'production', ...noS3 } },
  );

  const listFile = join(folder, 'loaded.json');
  const preloaded = `--import=${join(import.meta.dirname, '../rig/observe/loaded-packages.ts')}`;
  onStack(
    'real',
    (stack) => {
      test('a start on a current schema loads only the code of its first requests', async () => {
        await stack().services[0]?.restart();
        await stack().services[0]?.stop();
        const loaded: string[] = JSON.parse(readFileSync(listFile, 'utf8'));
        expect(loaded).toEqual(expect.arrayContaining(['koa', 'kysely', 'ioredis', 'mysql2']));
        const later = [
          '@node-rs/argon2',
          '@node-rs/bcrypt',
          '@mikro-orm/migrations',
          '@opentelemetry/api',
          'koa-body',
          'minio',
          'nodemailer',
          'oidc-provider',
          'openid-client',
          'prom-client',
          'sharp',
          'trpc-to-openapi',
        ];
        expect(loaded.filter((name) => [...later, 'pino-pretty'].includes(name))).toEqual([]);
      });
    },
    { env: { NODE_ENV: 'production', ...noS3, NODE_OPTIONS: preloaded, LOADED_PACKAGES: listFile } },
  );
});
