import { expect, test } from 'vitest';
import { clientAddress, freshEmail } from '../rig/address.ts';
import type { Reply } from './callers.ts';
import { everywhere, expectRefusal, PASSWORD, registered } from './scenario.ts';

const ALLOWED = 3;

/** What one client address may ask for; logins and tokens are in sessions.test.ts and recovery.test.ts. */
everywhere(
  (scenario) => {
    const expectLimited = (reply: Reply, seconds: number) => {
      expectRefusal(reply, 429, 'RATE_LIMITED', /^Too many attempts/);
      expect(reply.headers.get('ratelimit-limit')).toBe(`${ALLOWED}`);
      const retryAfter = Number(reply.headers.get('retry-after'));
      expect(retryAfter).toBeGreaterThan(0);
      expect(retryAfter).toBeLessThanOrEqual(seconds);
    };

    test('registrations of one address are limited; past the limit nobody is registered, and another address may', async () => {
      const { call, stack } = scenario();
      const address = clientAddress();
      const person = () => ({ name: 'Ada Lovelace', email: freshEmail(), password: PASSWORD });
      for (let i = 0; i < ALLOWED; i++) {
        expect(await call('auth.register', person(), { address })).toMatchObject({ code: undefined });
      }
      const late = person();
      expectLimited(await call('auth.register', late, { address }), 900);
      expect(await stack.database('select id from users where email = ?', [late.email])).toEqual([]);
      expect(await call('auth.register', late)).toMatchObject({ code: undefined });
    });

    test.each(['auth.forgotPassword', 'auth.resendVerification'])(
      'requests for mails of one address are limited together, %s too; past the limit nothing is queued',
      async (procedure) => {
        const { call, stack } = scenario();
        const address = clientAddress();
        const { email } = await registered(scenario());
        await stack.waitForMail({ to: email });
        for (let i = 0; i < ALLOWED; i++) {
          const other = i % 2 ? 'auth.forgotPassword' : 'auth.resendVerification';
          expect((await call(other, { email: freshEmail() }, { address })).status).toBe(200);
        }
        expectLimited(await call(procedure, { email }, { address }), 3600);
        expect(await stack.database('select id from outbox where email = ?', [email])).toHaveLength(1);
        expect((await call(procedure, { email })).status).toBe(200);
        await stack.waitForMail({ to: email, count: 2 });
      },
    );
  },
  { env: { LIMIT_REGISTER: `${ALLOWED}/900`, LIMIT_MAIL_REQUEST: `${ALLOWED}/3600` } },
);
