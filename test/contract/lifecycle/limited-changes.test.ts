import { expect, test } from 'vitest';
import { freshEmail } from '../../rig/servers/address.ts';
import {
  administrator,
  eventsOf,
  everywhere,
  expectRefusal,
  loggedIn,
  mailedToken,
  mailsSettled,
  PASSWORD,
  sessionIn,
} from '../rig/scenario.ts';

/** Changes that send mails are limited per user and administrator, so that a thief cannot bury a mail under others. */

const ALLOWED = 3;
const NEW_PASSWORD = 'Difference-Engine-1822';

everywhere(
  (scenario) => {
    /** As if the user had an authenticator app. */
    const withApp = async () => {
      const { stack } = scenario();
      const person = await loggedIn(scenario());
      await stack.database("insert into totps (user_id, secret, last_step, created_at) values (?, 'sealed', 0, 0)", [
        person.id,
      ]);
      return person;
    };
    const mailsOf = async (email: string, subject: string) => {
      await mailsSettled(scenario().stack, email);
      return (await scenario().stack.mailsTo(email)).filter((mail) => mail.subject.includes(subject));
    };
    const codesOf = (id: string) =>
      scenario().stack.database('select code_hash from recovery_codes where user_id = ? order by code_hash', [id]);

    // checks: 72
    test('renewals of recovery codes are limited per hour, each is mailed, and other calls still work', async () => {
      const { call } = scenario();
      const { session, id, email } = await withApp();
      for (let i = 0; i < ALLOWED; i++) {
        expect(await call('recoveryCodes.renew', undefined, { session })).toMatchObject({ code: undefined });
      }
      const codes = await codesOf(id);
      const refused = await call('recoveryCodes.renew', undefined, { session });
      expectRefusal(refused, 429, 'RATE_LIMITED', 'Too many attempts. Please retry after 60 minutes.');
      expect(refused.headers.get('ratelimit-limit')).toBe(`${ALLOWED}`);
      expect(Number(refused.headers.get('retry-after'))).toBe(3600);
      expect(await codesOf(id)).toEqual(codes);
      expect(await eventsOf(scenario().stack, id, 'recovery-codes-renewed')).toHaveLength(ALLOWED);
      expect(await mailsOf(email, 'recovery codes')).toHaveLength(ALLOWED);
      // Each kind of change has its own count, and undoing changes does not count.
      expect((await call('account.changeEmail', { email: freshEmail() }, { session })).status).toBe(200);
      expect((await call('totp.disable', undefined, { session })).status).toBe(200);
      expect(await mailsOf(email, 'no longer requires a code')).toHaveLength(1);
    });

    test('concurrent renewals do not exceed the limit', async () => {
      const { call, stack } = scenario();
      const { session, id } = await withApp();
      const renew = () => call('recoveryCodes.renew', undefined, { session });
      const replies = await Promise.all(Array.from({ length: 3 * ALLOWED }, renew));
      expect(replies.filter(({ status }) => status === 200)).toHaveLength(ALLOWED);
      expect(await eventsOf(stack, id, 'recovery-codes-renewed')).toHaveLength(ALLOWED);
    });

    // checks: 72
    test('password changes are limited, resets are not', async () => {
      const { call, stack } = scenario();
      const { email, session: first } = await loggedIn(scenario());
      let session = first;
      let currentPassword = PASSWORD;
      for (let i = 0; i < ALLOWED; i++) {
        const newPassword = `${PASSWORD}-${i}`;
        const reply = await call('account.changePassword', { currentPassword, newPassword }, { session });
        expect(reply).toMatchObject({ code: undefined });
        session = sessionIn(reply) ?? '';
        currentPassword = newPassword;
      }
      const change = { currentPassword, newPassword: NEW_PASSWORD };
      expectRefusal(await call('account.changePassword', change, { session }), 429, 'RATE_LIMITED');
      expect((await call('profile.get', undefined, { session })).status).toBe(200);
      await call('auth.forgotPassword', { email });
      const token = await mailedToken(stack, email, 'reset-password');
      expect((await call('auth.resetPassword', { token, email, password: NEW_PASSWORD })).status).toBe(200);
    });

    // checks: 72
    test('email changes are limited per user, across client addresses', async () => {
      const { call, stack } = scenario();
      const { session, id } = await loggedIn(scenario());
      const ask = () => call('account.changeEmail', { email: freshEmail() }, { session });
      for (let i = 0; i < ALLOWED; i++) expect((await ask()).status).toBe(200);
      expectRefusal(await ask(), 429, 'RATE_LIMITED');
      const queued = await stack.database("select id from outbox where user_id = ? and kind = 'confirm-email'", [id]);
      expect(queued.length).toBe(ALLOWED);
    });

    // checks: 72
    test('actions and invitations are limited per administrator', async () => {
      const { call, stack } = scenario();
      const [admin, other] = [await administrator(scenario()), await administrator(scenario())];
      const user = await loggedIn(scenario());
      const invite = (session: string, email: string) => call('users.invite', { email }, { session });
      for (let i = 1; i < ALLOWED; i++)
        expect(await invite(admin.session, freshEmail())).toMatchObject({ code: undefined });
      const { status } = await call('users.block', { id: user.id }, { session: admin.session });
      expect(status).toBe(200);
      const late = freshEmail();
      expectRefusal(await invite(admin.session, late), 429, 'RATE_LIMITED');
      expect(await stack.database('select id from outbox where email = ?', [late])).toEqual([]);
      const unblock = (session: string) => call('users.unblock', { id: user.id }, { session });
      expectRefusal(await unblock(admin.session), 429, 'RATE_LIMITED');
      expect((await unblock(other.session)).status).toBe(200);
      expect(await invite(other.session, late)).toMatchObject({ code: undefined });
    });
  },
  { env: { LIMIT_CHANGE: `${ALLOWED}/3600`, LIMIT_ADMINISTRATION: `${ALLOWED}/3600` } },
);
