import { expect, test } from 'vitest';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import { callerOf, type Reply } from '../rig/callers.ts';
import {
  expectRefusal,
  mailsSettled,
  onBothStacks,
  overSurfaces,
  PASSWORD,
  registered,
  verified,
} from '../rig/scenario.ts';

const ALLOWED = 3;

/**
 * Limits per client address, and mails per inbox. Logins are tested in networks.test.ts, tokens in
 * password-reset.test.ts.
 */
onBothStacks(
  (stack, name) => {
    overSurfaces(stack, name, (scenario) => {
      const expectLimited = (reply: Reply, seconds: number) => {
        expectRefusal(reply, 429, 'RATE_LIMITED', /^Too many attempts/);
        expect(reply.headers.get('ratelimit-limit')).toBe(`${ALLOWED}`);
        const retryAfter = Number(reply.headers.get('retry-after'));
        expect(retryAfter).toBeGreaterThan(0);
        expect(retryAfter).toBeLessThanOrEqual(seconds);
      };

      test('registrations are limited per client address', async () => {
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

      test('malformed login attempts count like others', async () => {
        const { call } = scenario();
        const person = await verified(scenario());
        const malformed = [{}, { email: 'x', password: PASSWORD }, { email: person.email }, { email: 1 }];
        const address = clientAddress();
        for (const input of malformed) {
          expectRefusal(await call('auth.login', input, { address }), 400, 'VALIDATION_FAILED');
        }
        expectRefusal(await call('account.restore', {}, { address }), 400, 'VALIDATION_FAILED');
        for (const input of [...malformed, person]) {
          const reply = await call('auth.login', input, { address });
          expectRefusal(reply, 429, 'RATE_LIMITED', 'Too many attempts. Please retry after 15 minutes.');
        }
        expect((await call('auth.login', person)).status).toBe(200);
      });

      // checks: 11
      test.each(['auth.forgotPassword', 'auth.resendVerification'])(
        'requests for mails are limited per address, %s too; past the limit nothing is queued',
        async (procedure) => {
          const { call, stack } = scenario();
          const address = clientAddress();
          const { email } = await registered(scenario());
          await stack.waitForMail({ to: email });
          for (let i = 0; i < ALLOWED; i++) {
            const other = i % 2 ? 'auth.forgotPassword' : 'auth.resendVerification';
            expect((await call(other, { email: freshEmail() }, { address })).status).toBe(200);
          }
          const late = await call(procedure, { email }, { address });
          // interface.md section 4 has one answer only.
          if (procedure === 'auth.forgotPassword') expect(late).toMatchObject({ status: 200, data: { success: true } });
          else expectLimited(late, 3600);
          expect(await stack.database('select id from outbox where email = ?', [email])).toHaveLength(1);
          expect((await call(procedure, { email })).status).toBe(200);
          await stack.waitForMail({ to: email, count: 2 });
        },
      );
    });

    test.each([
      ['no JSON', 'application/json', '{', 400],
      ['no object', 'application/json', '[]', 400],
      ['a body of another type', 'text/plain', 'x', 415],
      ['a body that is too large', 'application/json', `"${'x'.repeat(200_000)}"`, 413],
    ])('a login of %s counts', async (_, type, body, status) => {
      const headers = { 'content-type': type, 'x-forwarded-for': clientAddress() };
      const attempt = async () => (await fetch(`${stack().url}/auth/login`, { method: 'POST', headers, body })).status;
      const statuses = [];
      for (let i = 0; i < 6; i++) statuses.push(await attempt());
      expect(statuses).toEqual([...Array(5).fill(status), 429]);
    });

    // checks: 31
    test('an inbox gets at most thirty mails an hour, across tags of its address', async () => {
      const call = callerOf('rest', stack().url);
      const [local, domain] = freshEmail().split('@');
      const addresses = Array.from({ length: 40 }, (_, i) => `${local}+${i}@${domain}`);
      await Promise.all(addresses.map((email) => registered({ stack: stack(), call }, { email })));
      await Promise.all(addresses.map((email) => mailsSettled(stack(), email)));
      const mails = await Promise.all(addresses.map((email) => stack().mailsTo(email)));
      expect(mails.flat().length).toBe(30);
      // Another inbox of the same domain has its own limit.
      const { email } = await registered({ stack: stack(), call }, { email: `${local}-other@${domain}` });
      await stack().waitForMail({ to: email });
    });

    test('a flood of tagged addresses does not keep the owner from a reset', async () => {
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
