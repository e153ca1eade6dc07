import { describe, expect, test } from 'vitest';
import { freshEmail } from '../rig/address.ts';
import { ask } from '../rig/raw.ts';
import { noS3 } from '../rig/s3.ts';
import { callerOf } from './callers.ts';
import { devPaths } from './dev-paths.ts';
import { frontEnds, loginFrom } from './front-ends.ts';
import { expectRefusal, onStack, PASSWORD, registered, verified } from './scenario.ts';

/** What holds only where others reach the service. */
describe('in production', () => {
  onStack(
    'real',
    (stack) => {
      const call = () => callerOf('rest', stack().url);

      test('the stored hash has the documented form', async () => {
        const { id } = await registered({ stack: stack(), call: call() });
        const [row] = await stack().database('select password_hash from users where id = ?', [id]);
        const [iterations, salt = '', hash = ''] = String(row?.['password_hash']).split(':');
        expect(iterations).toBe('100000');
        expect(Buffer.from(salt, 'base64')).toHaveLength(16);
        expect(Buffer.from(hash, 'base64')).toHaveLength(32);
      });

      test('the start says who can create an account, and who can read of users', async () => {
        const output = () => stack().services[0]?.output();
        // Requests are answered before the start has said all.
        await expect.poll(output, { timeout: 10_000 }).toContain('"msg":"ready"');
        expect(output()).toContain('PUBLIC_USERS is full: everyone can read the names and addresses of all users');
        expect(output()).toContain('REGISTRATION is open: everyone can create an account');
      });

      test('no other host can plant the cookies of the browser and of the device', async () => {
        const reply = await call()('auth.register', { name: 'Ada', email: freshEmail(), password: PASSWORD });
        expect(reply.setCookies).toEqual([
          expect.stringMatching(
            /^__Host-auth_browser=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=86400; Secure$/,
          ),
        ]);
        const login = await call()('auth.login', await verified({ stack: stack(), call: call() }));
        expect(login.setCookies).toContainEqual(
          expect.stringMatching(
            /^__Host-auth_device=[\w-]{43}\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=34560000; Secure$/,
          ),
        );
      });

      test('opening the mailed link confirms nothing, whatever opens it', async () => {
        const person = await registered({ stack: stack(), call: call() });
        const { text } = await stack().waitForMail({ to: person.email, subject: 'Verify your email' });
        const { pathname, search } = new URL(text.match(/https?:\/\/\S+/)?.[0] ?? '');
        for (const accept of ['*/*', 'application/json', 'text/html,*/*;q=0.8']) {
          const page = await fetch(stack().url + pathname + search, { headers: { accept } });
          expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
        }
        expectRefusal(await call()('auth.login', person), 403, 'EMAIL_NOT_VERIFIED');
      });

      test.each(frontEnds)('%s is foreign', async (origin) => {
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
      test.each(frontEnds)('%s is foreign', async (origin) => {
        expect(await loginFrom(stack(), origin)).toMatchObject({ code: 'ORIGIN_MISMATCH', allowed: null });
      });

      test('no development tool is served, to whichever name, nor a login through the embedded provider', async () => {
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
