import { describe, expect, test } from 'vitest';
import { ask } from '../../rig/client/raw.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import { noS3 } from '../../rig/servers/s3.ts';
import type { Stack } from '../../rig/stack.ts';
import { callerOf } from '../rig/callers.ts';
import { devPaths } from '../rig/dev-paths.ts';
import { frontEnds, loginFrom } from '../rig/front-ends.ts';
import { expectRefusal, onStack, PASSWORD, registered, verified } from '../rig/scenario.ts';

/** Rules for a service that others can reach. */

const cookiesAreSafe = (stack: () => Stack) =>
  // checks: 68
  test('browser and device cookies are Secure and have the prefix __Host-, so other hosts cannot plant them', async () => {
    const call = callerOf('rest', stack().url);
    const reply = await call('auth.register', { name: 'Ada', email: freshEmail(), password: PASSWORD });
    expect(reply.setCookies).toEqual([
      expect.stringMatching(/^__Host-auth_browser=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=86400; Secure$/),
    ]);
    const login = await call('auth.login', await verified({ stack: stack(), call }));
    expect(login.setCookies.sort()).toEqual([
      expect.stringMatching(
        /^__Host-auth_device=[\w-]{43}\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=34560000; Secure$/,
      ),
      expect.stringMatching(/^auth_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800; Secure$/),
    ]);
    // Cookies without the prefix are ignored: another host may have set them.
    const cookies = login.setCookies.map((line) => line.split(';', 1)[0]).join('; ');
    const change = { currentPassword: PASSWORD, newPassword: `${PASSWORD}-2` };
    const changed = await call('account.changePassword', change, {
      headers: { cookie: cookies.replace('__Host-', '') },
    });
    expect(changed.setCookies).toEqual([expect.stringMatching(/^auth_session=/)]);
  });

describe('in production', () => {
  onStack(
    'real',
    (stack) => {
      const call = () => callerOf('rest', stack().url);

      test('the stored hash has the documented format', async () => {
        const { id } = await registered({ stack: stack(), call: call() });
        const [row] = await stack().database('select password_hash from users where id = ?', [id]);
        const [iterations, salt = '', hash = ''] = String(row?.['password_hash']).split(':');
        expect(iterations).toBe('100000');
        expect(Buffer.from(salt, 'base64')).toHaveLength(16);
        expect(Buffer.from(hash, 'base64')).toHaveLength(32);
      });

      test('the start logs who can register and who can read users', async () => {
        const output = () => stack().services[0]?.output();
        // Requests are answered before the start has logged everything.
        await expect.poll(output, { timeout: 10_000 }).toContain('"msg":"ready"');
        expect(output()).toContain('PUBLIC_USERS is full: everyone can read the names and addresses of all users');
        expect(output()).toContain('REGISTRATION is open: everyone can create an account');
        const warnings = (output()?.split('\n') ?? []).filter((line) => line.includes('"level":40'));
        expect(warnings.join('\n')).toMatch(/PUBLIC_USERS is full: .*Set PUBLIC_USERS=off/);
        expect(warnings.join('\n')).toMatch(/LIMIT_LOGIN is \d+\/\d+: /);
      });

      cookiesAreSafe(stack);

      // checks: 10
      test('opening a mailed link confirms nothing', async () => {
        const person = await registered({ stack: stack(), call: call() });
        const { text } = await stack().waitForMail({ to: person.email, subject: 'Verify your email' });
        const { pathname, search } = new URL(text.match(/https?:\/\/\S+/)?.[0] ?? '');
        for (const accept of ['*/*', 'application/json', 'text/html,*/*;q=0.8']) {
          const page = await fetch(stack().url + pathname + search, { headers: { accept } });
          expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
        }
        expectRefusal(await call()('auth.login', person), 403, 'EMAIL_NOT_VERIFIED');
      });

      test.each(frontEnds)('requests from %s are refused as cross-site', async (origin) => {
        expect(await loginFrom(stack(), origin)).toMatchObject({ code: 'ORIGIN_MISMATCH', allowed: null });
      });
    },
    { env: { NODE_ENV: 'production', ...noS3 } },
  );
});

describe('at a public APP_URL', () => {
  onStack(
    'real',
    (stack) => {
      cookiesAreSafe(stack);

      test.each(frontEnds)('requests from %s are refused as cross-site', async (origin) => {
        expect(await loginFrom(stack(), origin)).toMatchObject({ code: 'ORIGIN_MISMATCH', allowed: null });
      });

      test('development tools and the embedded provider are not served, under any host name', async () => {
        for (const path of [...devPaths, '/auth/idp', '/auth/idp/callback?code=x&state=y']) {
          for (const host of ['accounts.example.test', `localhost:${stack().services[0]?.port}`]) {
            expect((await ask(stack().url + path, { headers: { host } })).status).toBe(404);
          }
        }
      });
    },
    { env: { APP_URL: 'https://accounts.example.test' } },
  );
});
