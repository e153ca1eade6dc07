import { expect, test } from 'vitest';
import { clientAddress, freshEmail } from '../rig/address.ts';
import { callerOf, type Reply } from './callers.ts';
import { expectRefusal, mailsSettled, onBothStacks, overBoth, PASSWORD, registered, verified } from './scenario.ts';

const ALLOWED = 3;

/**
 * What one client address may ask for, and what one inbox is sent; logins are in networks.test.ts, tokens in
 * recovery.test.ts.
 */
onBothStacks(
  (stack) => {
    overBoth(stack, (scenario) => {
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
    });

    test('one inbox gets thirty mails an hour, however many tags its address is given', async () => {
      const call = callerOf('rest', stack().url);
      const [local, domain] = freshEmail().split('@');
      const addresses = Array.from({ length: 40 }, (_, i) => `${local}+${i}@${domain}`);
      await Promise.all(addresses.map((email) => registered({ stack: stack(), call }, { email })));
      await Promise.all(addresses.map((email) => mailsSettled(stack(), email)));
      const mails = await Promise.all(addresses.map((email) => stack().mailsTo(email)));
      expect(mails.flat().length).toBe(30);
      // Another inbox of the same domain has its own share.
      const { email } = await registered({ stack: stack(), call }, { email: `${local}-other@${domain}` });
      await stack().waitForMail({ to: email });
    });

    test('a flood of tags does not keep the owner of the inbox from a reset', async () => {
      const call = callerOf('rest', stack().url);
      const owner = await verified({ stack: stack(), call });
      const [local, domain] = owner.email.split('@');
      const addresses = Array.from({ length: 31 }, (_, i) => `${local}+${i}@${domain}`);
      await Promise.all(addresses.map((email) => registered({ stack: stack(), call }, { email })));
      await Promise.all(addresses.map((email) => mailsSettled(stack(), email)));
      await call('auth.forgotPassword', { email: owner.email });
      await stack().waitForMail({ to: owner.email, subject: 'Reset your password' });
    });
  },
  { env: { LIMIT_REGISTER: `${ALLOWED}/900`, LIMIT_MAIL_REQUEST: `${ALLOWED}/3600` } },
);
