import { describe, expect, test } from 'vitest';
import { ask } from '../../rig/client/raw.ts';
import { startService } from '../../rig/process/service.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { callerOf } from '../rig/callers.ts';
import { devPaths } from '../rig/dev-paths.ts';
import { expectRefusal, logIn, onBothStacks, registered } from '../rig/scenario.ts';

/** A GET of the mailed link, as sent by curl and by browsers. */
const browserAccepts = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

async function linkTo(stack: Stack, email: string): Promise<string> {
  const { text } = await stack.waitForMail({ to: email, subject: 'Verify your email' });
  const link = new URL(text.match(/https?:\/\/\S+/)?.[0] ?? '');
  return stack.url + link.pathname + link.search;
}

const open = async (
  link: string,
  { accept = '*/*', method = 'GET', browser = '', address = clientAddress() } = {},
): Promise<{ status: number; type: string; body: string; caching: string | null }> => {
  const headers = { accept, cookie: `auth_browser=${browser}`, 'x-forwarded-for': address };
  const response = await fetch(link, { method, headers });
  const { status } = response;
  const type = response.headers.get('content-type') ?? '';
  return { status, type, body: await response.text(), caching: response.headers.get('cache-control') };
};

describe('development tools', () => {
  onBothStacks((stack) => {
    const statusOf = async (path: string, host: string, method = 'GET') =>
      (await ask(stack().url + path, { method, headers: { host } })).status;

    test.each(['localhost', '127.0.0.1', '127.1.2.3', '[::1]', 'accounts.localhost', 'LOCALHOST'])(
      'answer requests to %s',
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
    ])('do not answer requests to %s', async (name) => {
      const host = name.replace('PORT', String(stack().services[0]?.port));
      for (const path of devPaths) {
        for (const method of ['GET', 'HEAD', 'POST']) expect(await statusOf(path, host, method)).toBe(404);
      }
    });

    test('X-Forwarded-Host is ignored', async () => {
      const headers = { host: 'evil.test', 'x-forwarded-host': new URL(stack().appUrl).host };
      expect((await ask(`${stack().url}/dev/mail`, { headers })).status).toBe(404);
    });

    test('a program that opens the mailed link confirms it, with the answer of POST /auth/verify-email', async () => {
      const call = callerOf('rest', stack().url);
      for (const accept of ['*/*', 'application/json']) {
        const person = await registered({ stack: stack(), call });
        const link = await linkTo(stack(), person.email);
        const { status, type, body, caching } = await open(link, { accept, browser: person.browser });
        expect([status, type, caching]).toEqual([200, 'application/json; charset=utf-8', 'no-store']);
        const token = new URL(link).searchParams.get('token');
        const posted = await call('auth.verifyEmail', { token }, { browser: person.browser });
        expect(JSON.parse(body)).toEqual(posted.data);
        await logIn(call, person);
      }
    });

    test('without the cookie of the browser it confirms as another browser', async () => {
      const call = callerOf('rest', stack().url);
      const { email } = await registered({ stack: stack(), call });
      const { body } = await open(await linkTo(stack(), email));
      expect(JSON.parse(body).unproven).toEqual([{ method: 'password', addedAt: expect.any(Number) }]);
    });

    // checks: 10
    test('a browser gets the page; neither that nor HEAD confirms', async () => {
      const call = callerOf('rest', stack().url);
      const person = await registered({ stack: stack(), call });
      const link = await linkTo(stack(), person.email);
      const page = await open(link, { accept: browserAccepts });
      expect([page.status, page.type]).toEqual([200, 'text/html; charset=utf-8']);
      await open(link, { method: 'HEAD' });
      expectRefusal(await call('auth.login', person), 403, 'EMAIL_NOT_VERIFIED');
    });

    test('a wrong token is refused and counted', async () => {
      const address = clientAddress();
      const wrong = () => open(`${stack().url}/verify-email?token=${'x'.repeat(43)}`, { address });
      const first = await wrong();
      expect([first.status, JSON.parse(first.body)]).toEqual([
        400,
        { message: 'Invalid or expired token', code: 'INVALID_TOKEN' },
      ]);
      const others = await Promise.all(Array.from({ length: 60 }, wrong));
      expect(others.map(({ status }) => status)).toContain(429);
    });
  });
});

describe('at a public APP_URL', () => {
  test('harmless embedded parts work without DEV_TOOLS', async () => {
    const env = {
      APP_URL: 'https://accounts.example.test',
      SMTP_URL: 'smtps://127.0.0.1:9',
      MAIL_FROM: 'a@example.test',
    };
    const service = await startService({ env });
    expect((await ask(`${service.url}/dev/mail`, { headers: { host: 'accounts.example.test' } })).status).toBe(404);
    await service.stop({ by: 'SIGINT' });
    expect(service.output()).not.toMatch(/\/dev\/(?!shm\/)/);
  });

  test('without a mail server the service does not start', async () => {
    const start = startService({ env: { APP_URL: 'https://accounts.example.test' } });
    await expect(start).rejects.toThrow(/SMTP_URL is missing[\s\S]*MAIL_FROM is missing/);
  });

  test('DEV_TOOLS=on serves them under the public name, and the log warns', async () => {
    const service = await startService({ env: { APP_URL: 'http://accounts.example.test', DEV_TOOLS: 'on' } });
    for (const [host, status] of Object.entries({ 'accounts.example.test': 200, 'evil.test': 404 })) {
      expect((await ask(`${service.url}/dev/mail`, { headers: { host } })).status).toBe(status);
    }
    await service.stop({ by: 'SIGINT' });
    expect(service.output()).toContain('WARN: DEV_TOOLS are open');
  });
});
