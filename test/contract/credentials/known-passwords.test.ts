import { createHash, pbkdf2Sync } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildHashList } from '../../../server/cli/breached-passwords/build.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import type { Reply } from '../rig/callers.ts';
import {
  everywhere,
  loggedIn,
  logIn,
  mailedToken,
  PASSWORD,
  registered,
  type Scenario,
  verified,
} from '../rig/scenario.ts';

/** Passwords that keep the documented rules and are known (OWASP ASVS 5.0 6.2.4, 6.2.12). */

const person = (password: string) => ({ email: freshEmail(), name: 'Grace Zyxalor', password });

function expectRule(reply: Reply, field: string, rule: string): void {
  expect(reply).toMatchObject({ status: 400, code: 'VALIDATION_FAILED', details: { [field]: { rule } } });
  expect(reply.details?.[field]?.message).toMatch(/^This password (?:is|appears) /);
}

const usersOf = ({ stack }: Scenario, email: string) => stack.database('select id from users where email = ?', [email]);

describe('PASSWORD_STRENGTH=3', () => {
  everywhere(
    (scenario) => {
      test.each([
        ['common', 'Password1!'],
        ['a row of keys', 'Qwerty123!'],
        ['the name', 'Zyxalor-1'],
        ['the name of the site', 'Wonderland1!'],
        ['repeated', 'Aa1!'.repeat(32)],
      ])('a password that is %s is refused at a registration, with advice, and no user exists', async (_, password) => {
        const input = person(password);
        expectRule(await scenario().call('auth.register', input), 'password', 'too_guessable');
        expect(await usersOf(scenario(), input.email)).toHaveLength(0);
      });

      test('what is the name of one user may be part of the password of another', async () => {
        const reply = await scenario().call('auth.register', { ...person('Zyxalor-1'), name: 'Ada Lovelace' });
        expect(reply.code).toBeUndefined();
      });

      test('a reset refuses one, and its link stays usable', async () => {
        const { call, stack } = scenario();
        const { email } = await verified(scenario());
        await call('auth.forgotPassword', { email });
        const token = await mailedToken(stack, email, 'reset-password');
        const input = { email, token, password: 'Password1!' };
        expectRule(await call('auth.resetPassword', input), 'password', 'too_guessable');
        expect((await call('auth.resetPassword', { ...input, password: `${PASSWORD}-2` })).status).toBe(200);
      });

      test('a change refuses one, after the current password was checked', async () => {
        const { call } = scenario();
        const { session } = await loggedIn(scenario());
        const input = { currentPassword: PASSWORD, newPassword: 'Password1!' };
        expectRule(await call('account.changePassword', input, { session }), 'newPassword', 'too_guessable');
        const wrong = await call('account.changePassword', { ...input, currentPassword: 'Wrong-1843' }, { session });
        expect(wrong.code).toBe('INVALID_CREDENTIALS');
      });

      test('twenty at once are all judged', async () => {
        const replies = await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            scenario().call('auth.register', person(i % 2 ? 'Password1!' : PASSWORD)),
          ),
        );
        expect(replies.filter(({ status }) => status === 201 || status === 200)).toHaveLength(10);
        expect(replies.filter(({ status }) => status === 400)).toHaveLength(10);
      });
    },
    { env: { PASSWORD_STRENGTH: '3', APP_NAME: 'Wonderland' } },
  );
});

describe('PASSWORD_STRENGTH=3 with LIMIT_TOKEN=3', () => {
  everywhere(
    (scenario) => {
      test('one token has no more passwords judged than wrong tokens are accepted, one after the other or at once', async () => {
        const { call, stack } = scenario();
        for (const isAtOnce of [true, false]) {
          const { email } = await verified(scenario());
          await call('auth.forgotPassword', { email });
          const token = await mailedToken(stack, email, 'reset-password');
          const address = clientAddress();
          const guess = () => call('auth.resetPassword', { email, token, password: 'Password1!' }, { address });
          const replies = isAtOnce ? await Promise.all([1, 2, 3, 4, 5, 6].map(guess)) : [];
          while (replies.length < 6) replies.push(await guess());
          const codes = replies.map(({ code }) => code).sort();
          expect(codes).toEqual([...Array(3).fill('RATE_LIMITED'), ...Array(3).fill('VALIDATION_FAILED')]);
          // From another address the token is still usable.
          const reset = { email, token, password: `${PASSWORD}-2` };
          expect((await call('auth.resetPassword', reset)).status).toBe(200);
        }
      });

      test('a wrong token is told before the password is judged, and a reset does not count', async () => {
        const { call, stack } = scenario();
        const address = clientAddress();
        for (let i = 0; i < 4; i++) {
          const { email } = await verified(scenario());
          await call('auth.forgotPassword', { email });
          const token = await mailedToken(stack, email, 'reset-password');
          const reset = { email, token, password: `${PASSWORD}-2` };
          expect((await call('auth.resetPassword', reset, { address })).status).toBe(200);
          if (i > 0) continue;
          const wrong = await call('auth.resetPassword', { ...reset, password: 'Password1!' }, { address });
          expect(wrong).toMatchObject({ status: 400, code: 'INVALID_TOKEN' });
        }
      });
    },
    { env: { PASSWORD_STRENGTH: '3', LIMIT_TOKEN: '3/900' } },
  );
});

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex').toUpperCase();
const BREACHED = 'Analytical-Breached-1843';

async function fileOf(passwords: string[]): Promise<string> {
  const path = join(temporaryDirectory('breached'), 'list');
  const lines = passwords.map((password) => `${sha1(password)}:7\n`).sort();
  await buildHashList([Buffer.from(lines.join(''))], path);
  return path;
}

describe('BREACHED_PASSWORDS_FILE', async () => {
  const env = { BREACHED_PASSWORDS_FILE: await fileOf([BREACHED, 'Password1!']) };
  everywhere(
    (scenario) => {
      /** A user who has the password since before it was in the list. */
      const userWith = async (password: string) => {
        const { stack } = scenario();
        const [one, other] = [await verified(scenario()), sha1(password)];
        const iterations = 1000;
        const salt = Buffer.from(other).subarray(0, 16);
        const hash = pbkdf2Sync(password, salt, iterations, 32, 'sha256').toString('base64');
        await stack.database('update users set password_hash = ? where id = ?', [
          `${iterations}:${salt.toString('base64')}:${hash}`,
          one.id,
        ]);
        return { ...one, password };
      };
      const profileIn = async (session: string) => (await scenario().call('profile.get', undefined, { session })).data;

      test('a registration refuses a breached password', async () => {
        const input = person(BREACHED);
        expectRule(await scenario().call('auth.register', input), 'password', 'breached');
        expect(await usersOf(scenario(), input.email)).toHaveLength(0);
        expect((await registered(scenario())).id).toMatch(/^user_/);
      });

      test('a reset and a change refuse one', async () => {
        const { call, stack } = scenario();
        const { email, session } = await loggedIn(scenario());
        const change = { currentPassword: PASSWORD, newPassword: BREACHED };
        expectRule(await call('account.changePassword', change, { session }), 'newPassword', 'breached');
        await call('auth.forgotPassword', { email });
        const token = await mailedToken(stack, email, 'reset-password');
        expectRule(await call('auth.resetPassword', { email, token, password: BREACHED }), 'password', 'breached');
      });

      test('a login with one succeeds, and only its session is marked, until the password is changed', async () => {
        const { call, stack } = scenario();
        const user = await userWith(BREACHED);
        const session = await logIn(call, user);
        expect(await profileIn(session)).toMatchObject({ hasBreachedPassword: true });
        const columns = JSON.stringify([
          await stack.database('select * from users where id = ?', [user.id]),
          await stack.database('select * from sessions where user_id = ?', [user.id]),
        ]);
        expect(columns.toLowerCase()).not.toContain('breach');

        const change = { currentPassword: BREACHED, newPassword: `${PASSWORD}-new` };
        const changed = await call('account.changePassword', change, { session });
        expect(changed.status).toBe(200);
        const next = changed.setCookies.map((cookie) => /^auth_session=([^;]+)/.exec(cookie)?.[1]).find(Boolean) ?? '';
        expect(await profileIn(next)).not.toHaveProperty('hasBreachedPassword');
        const again = await logIn(call, { ...user, password: `${PASSWORD}-new` });
        expect(await profileIn(again)).not.toHaveProperty('hasBreachedPassword');
      });

      test('a wrong password that is breached is only wrong', async () => {
        const { email } = await verified(scenario());
        const reply = await scenario().call('auth.login', { email, password: BREACHED });
        expect(reply).toMatchObject({ status: 401, code: 'INVALID_CREDENTIALS' });
      });
    },
    { env },
  );
});

describe('off, the default', () => {
  everywhere((scenario) => {
    test('only the documented rules hold', async () => {
      const reply = await scenario().call('auth.register', person('Password1!'));
      expect(reply.code).toBeUndefined();
      const { session } = await loggedIn(scenario());
      expect(Object.keys((await scenario().call('profile.get', undefined, { session })).data)).toEqual(['user']);
    });
  });
});
