import { describe, expect, test } from 'vitest';
import { clientAddress } from '../rig/address.ts';
import { noS3 } from '../rig/s3.ts';
import type { Stack } from '../rig/stack.ts';
import { callerOf } from './callers.ts';
import { expectRefusal, logIn, onBothStacks, onStack, registered } from './scenario.ts';

/** A GET of the mailed link, as curl and as browsers send it. */
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

onBothStacks((stack) => {
  test('a program that opens the mailed link confirms, and gets the answer of POST /auth/verify-email', async () => {
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

  test('without the browser’s cookie it confirms elsewhere', async () => {
    const call = callerOf('rest', stack().url);
    const { email } = await registered({ stack: stack(), call });
    const { body } = await open(await linkTo(stack(), email));
    expect(JSON.parse(body).unproven).toEqual([{ method: 'password', addedAt: expect.any(Number) }]);
  });

  test('a browser gets the page, and neither that nor a HEAD confirms', async () => {
    const call = callerOf('rest', stack().url);
    const person = await registered({ stack: stack(), call });
    const link = await linkTo(stack(), person.email);
    const page = await open(link, { accept: browserAccepts });
    expect([page.status, page.type]).toEqual([200, 'text/html; charset=utf-8']);
    await open(link, { method: 'HEAD' });
    expectRefusal(await call('auth.login', person), 403, 'EMAIL_NOT_VERIFIED');
  });

  test('a wrong token is refused and counted as everywhere', async () => {
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

describe('in production', () => {
  onStack(
    'real',
    (stack) => {
      test('opening the mailed link confirms nothing, whatever opens it', async () => {
        const call = callerOf('rest', stack().url);
        const person = await registered({ stack: stack(), call });
        const link = await linkTo(stack(), person.email);
        for (const accept of ['*/*', 'application/json', browserAccepts]) {
          expect((await open(link, { accept })).type).toBe('text/html; charset=utf-8');
        }
        expectRefusal(await call('auth.login', person), 403, 'EMAIL_NOT_VERIFIED');
      });
    },
    { env: { NODE_ENV: 'production', ...noS3 } },
  );
});
