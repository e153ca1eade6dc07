import { describe, expect, test } from 'vitest';
import { ask } from '../rig/raw.ts';
import { startService } from '../rig/service.ts';
import { onBothStacks, onStack } from './scenario.ts';

/** Whose callers can read every mail and log in as any user. */
const paths = [
  '/dev',
  '/dev/mail',
  '/DEV/mail',
  '/Dev/Mail/any',
  '/%64ev/mail',
  '/dev/mail/any',
  '/dev/idp',
  '/dev/idp/.well-known/openid-configuration',
];

describe('the names of development tools', () => {
  onBothStacks((stack) => {
    const statusOf = async (path: string, host: string, method = 'GET') =>
      (await ask(stack().url + path, { method, headers: { host } })).status;

    test.each(['localhost', '127.0.0.1', '127.1.2.3', '[::1]', 'accounts.localhost', 'LOCALHOST'])(
      'they answer to %s',
      async (name) => {
        const host = `${name}:${stack().services[0]?.port}`;
        expect(await statusOf('/dev/mail', host)).toBe(200);
        expect(await statusOf('/dev/idp/.well-known/openid-configuration', host)).toBe(200);
      },
    );

    test.each([
      'evil.test',
      'evil.test:PORT',
      'localhost',
      'localhost:1',
      'localhost.evil.test:PORT',
      '127.0.0.1.evil.test:PORT',
      '10.0.0.1:PORT',
    ])('they do not answer to %s', async (name) => {
      const host = name.replace('PORT', String(stack().services[0]?.port));
      for (const path of paths) {
        // What has more than a name and a port is no Host at all.
        const status = /[#@]/.test(host) ? 400 : 404;
        for (const method of ['GET', 'HEAD', 'POST']) expect(await statusOf(path, host, method)).toBe(status);
      }
    });

    test('X-Forwarded-Host names nothing', async () => {
      const headers = { host: 'evil.test', 'x-forwarded-host': new URL(stack().appUrl).host };
      expect((await ask(`${stack().url}/dev/mail`, { headers })).status).toBe(404);
    });
  });
});

describe('at a public APP_URL', () => {
  onStack(
    'real',
    (stack) => {
      test('no development tool is served, to whichever name, nor a login through the embedded provider', async () => {
        for (const path of [...paths, '/auth/idp', '/auth/idp/callback?code=x&state=y']) {
          for (const host of ['accounts.example.test', `localhost:${stack().services[0]?.port}`]) {
            expect((await ask(stack().url + path, { headers: { host } })).status).toBe(404);
          }
        }
      });
    },
    { env: { APP_URL: 'https://accounts.example.test' } },
  );

  test('embedded parts that give no power do without DEV_TOOLS', async () => {
    const env = {
      APP_URL: 'https://accounts.example.test',
      SMTP_URL: 'smtps://127.0.0.1:9',
      MAIL_FROM: 'a@example.test',
    };
    const service = await startService({ env });
    expect((await ask(`${service.url}/dev/mail`, { headers: { host: 'accounts.example.test' } })).status).toBe(404);
    await service.stop();
    expect(service.output()).not.toContain('/dev');
  });

  test('without a mail server there is no start', async () => {
    const start = startService({ env: { APP_URL: 'https://accounts.example.test' } });
    await expect(start).rejects.toThrow(/SMTP_URL is missing[\s\S]*MAIL_FROM is missing/);
  });

  test('DEV_TOOLS=on serves them under its name, and the log warns', async () => {
    const service = await startService({ env: { APP_URL: 'http://accounts.example.test', DEV_TOOLS: 'on' } });
    for (const [host, status] of Object.entries({ 'accounts.example.test': 200, 'evil.test': 404 })) {
      expect((await ask(`${service.url}/dev/mail`, { headers: { host } })).status).toBe(status);
    }
    await service.stop();
    expect(service.output()).toContain('WARN: DEV_TOOLS are open');
  });
});
