import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import {
  administrator,
  eventsOf,
  expectRefusal,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  onBothStacks,
  PASSWORD,
  registered,
  verified,
} from '../contract/rig/scenario.ts';
import { viewSqlite } from '../rig/observe/database-view.ts';
import { runToItsEnd } from '../rig/process/command.ts';
import { clientAddress, freshEmail } from '../rig/servers/address.ts';
import { temporaryDirectory } from '../rig/servers/custodian.ts';

/** `npm run user`: account commands for operators, with the service running or stopped. */

const WRONG = `${PASSWORD}!`;
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

onBothStacks(
  (stack, name) => {
    const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });
    const env = () => stack().services[0]?.env ?? {};
    const user = (...args: string[]) => runToItsEnd('user', env(), args);
    const succeed = async (...args: string[]) => {
      const { code, stdout, stderr } = await user(...args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return stdout;
    };
    const refused = async (...args: string[]) => {
      const { code, stdout, stderr } = await user(...args);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      return stderr;
    };
    const operatorOf = (id: string, kind: string) =>
      stack().database('select actor, actor_id, address from activity where user_id = ? and kind = ?', [id, kind]);
    const byOperator = [{ actor: 'operator', actor_id: null, address: '' }];

    test('finds accounts by prefix, and shows them without secrets', async () => {
      const prefix = `seek${Math.random().toString(36).slice(2)}`;
      const person = await loggedIn(scenario(), { email: `${prefix}@example.test`, name: 'Ada \u202e Lovelace' });
      const unverified = await registered(scenario(), { email: `${prefix}z@example.test` });
      const found = await succeed('find', prefix);
      expect(found.split('\n').slice(1)).toEqual([
        expect.stringMatching(new RegExp(`^${prefix}@example\\.test +Ada � Lovelace +user +\\d{4}-\\d\\d-\\d\\d$`)),
        expect.stringMatching(new RegExp(`^${prefix}z@example\\.test +Ada Lovelace .* unverified$`)),
        '',
      ]);
      expect(JSON.parse(await succeed('find', prefix, '--json'))).toMatchObject([
        { id: person.id, emailVerified: true, blockedAt: null },
        { id: unverified.id, emailVerified: false },
      ]);
      expect(await succeed('find')).toContain(unverified.email);
      expect(await succeed('find', `${prefix}-none`)).toBe('No account\n');

      const shown = await succeed('show', person.email.toUpperCase());
      for (const text of [person.id, 'password', 'from ', 'Second factor  none']) expect(shown).toContain(text);
      const data = await succeed('show', person.email, '--json');
      expect(JSON.parse(data)).toMatchObject({ id: person.id, hasPassword: true, sessions: [{ method: 'password' }] });
      const [row] = await stack().database<Record<string, string>>('select * from users where id = ?', [person.id]);
      for (const secret of [person.session, row?.['password_hash'] ?? '?']) {
        expect([found, shown, data].join()).not.toContain(secret);
      }
    });

    test('blocks and unblocks a user, who gets a mail', async () => {
      const { call } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const { id, email } = person;
      expect(await succeed('block', email)).toBe(`${email} is blocked, and all sessions were ended.\n`);
      expect(await isAlive(call, session)).toBe(false);
      expectRefusal(await call('auth.login', { email, password: PASSWORD }), 403, 'ACCOUNT_BLOCKED');
      expect(await operatorOf(id, 'blocked')).toEqual(byOperator);
      await stack().waitForMail({ to: email, subject: 'is blocked' });
      expect(await succeed('show', email)).toContain('blocked since');
      expect(JSON.parse(await succeed('unblock', email, '--json'))).toEqual({ id, email });
      await logIn(call, person);
    });

    test('invites an email that has no account', async () => {
      const { call } = scenario();
      const email = freshEmail();
      expect(await succeed('invite', email.toUpperCase())).toMatch(
        new RegExp(`^${email} is invited until \\d{4}-\\d\\d-\\d\\d\\.\n$`),
      );
      const another = freshEmail();
      expect(JSON.parse(await succeed('invite', another, '--json'))).toEqual({
        invitation: expect.any(String),
        email: another,
        expiresAt: expect.stringMatching(ISO_TIME),
      });
      const person = { name: 'Ada', email, password: PASSWORD };
      const invitation = await mailedToken(stack(), email, 'register');
      const reply = await call('auth.register', { ...person, invitation });
      expect(reply.status).toBe(201);
      const { id } = (reply.data as { user: { id: string } }).user;
      expect(await eventsOf(stack(), id, 'registered')).toEqual([{ method: 'password', invitedBy: 'operator' }]);
      await logIn(call, person);
      expect(await refused('invite', email)).toBe('Email already registered\n');
    });

    test('resets the login limits of an account and of an address', async () => {
      const { call } = scenario();
      const person = await verified(scenario());
      const address = clientAddress();
      const attempt = (from = {}) => call('auth.login', { email: person.email, password: WRONG }, from);
      for (let i = 0; i < 3; i++) await attempt({ address });
      expect((await attempt()).status).toBe(429);
      await succeed('unlock', person.email);
      expect((await attempt()).status).toBe(401);
      expect((await attempt({ address })).status).toBe(429);
      await succeed('unlock', person.email, '--address', address);
      await logIn(call, person, { address });
      expect(await eventsOf(stack(), person.id, 'unlocked')).toEqual([null, { address }]);
    });

    test('makes the first administrator, and keeps the last one', async () => {
      const { call } = scenario();
      await stack().database("update users set role = 'user'");
      const [person, unverified] = [await verified(scenario()), await registered(scenario())];
      const { email } = person;
      expect(await succeed('make-admin', email)).toBe(
        `${email} is an administrator. Next: log in again, and open /admin.\n`,
      );
      const session = await logIn(call, person);
      expect((await call('users.find', {}, { session })).status).toBe(200);
      expect(await operatorOf(person.id, 'role-changed')).toEqual(byOperator);
      expect(await refused('make-admin', unverified.email)).toContain('must first verify the email');
      for (const command of ['block', 'delete']) {
        expect(await refused(command, email)).toBe('This is the last administrator who can log in\n');
      }
      expect(await isAlive(call, session)).toBe(true);
    });

    test('deletes and restores an account', async () => {
      const { call } = scenario();
      await administrator(scenario());
      const person = await loggedIn(scenario());
      expect(await succeed('delete', person.email)).toMatch(/A login can restore the account until \d{4}-\d\d-\d\d\./);
      expect(await isAlive(call, person.session)).toBe(false);
      await stack().waitForMail({ to: person.email, subject: 'is being deleted' });
      const { email } = person;
      expect((await call('account.restore', { email, password: PASSWORD })).status).toBe(200);
      expect(JSON.parse(await succeed('delete', email, '--json'))).toEqual({
        id: person.id,
        email,
        removedAfter: expect.stringMatching(ISO_TIME),
      });
    });

    test('refuses an unknown email and an unknown command', async () => {
      const email = freshEmail();
      for (const command of ['show', 'unlock', 'block', 'unblock', 'make-admin', 'delete']) {
        expect(await refused(command, email)).toBe(`No account has the email ${email}\n`);
      }
      const misuses = [
        [],
        ['frobnicate', email],
        ['show'],
        ['show', 'nobody'],
        ['show', email, email],
        ['show', '--all'],
      ];
      const wrongAddresses = [
        ['unlock', email, '--address', 'nowhere'],
        ['block', email, '--address', '192.0.2.1'],
      ];
      for (const args of [...misuses, ...wrongAddresses, ['find', '\u0301'], ['constructor', email]]) {
        const { code, stdout, stderr } = await user(...args);
        expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' });
        expect(stderr).not.toMatch(/\bat \S+:\d+/);
      }
    });

    test('works while the service is stopped, which sends the mails later', async () => {
      const { email } = await verified(scenario());
      const [service] = stack().services;
      await service?.stop();
      expect(await succeed('block', email)).toContain('is blocked');
      await service?.restart();
      expectRefusal(await scenario().call('auth.login', { email, password: PASSWORD }), 403, 'ACCOUNT_BLOCKED');
      await stack().waitForMail({ to: email, subject: 'is blocked' });
    });

    if (name === 'real') {
      test('reports an unreachable database in one line', async () => {
        const { code, stderr } = await runToItsEnd(
          'user',
          { ...env(), DATABASE_URL: 'mysql://a:b@127.0.0.1:1/accounts' },
          ['find'],
        );
        expect({ code, lines: stderr.trim().split('\n').length }).toEqual({ code: 2, lines: 1 });
        expect(stderr).toContain('the database does not answer');
      });
    }
  },
  { env: { LIMIT_ACCOUNT: '3/3600', LIMIT_LOGIN: '3/900' } },
);

test('does not change an outdated schema', async () => {
  const DATA_DIR = temporaryDirectory('user-command');
  expect((await runToItsEnd('migrate', { DATA_DIR })).code).toBe(0);
  const { query, close } = viewSqlite(DATA_DIR);
  await query('delete from mikro_orm_migrations where id = (select max(id) from mikro_orm_migrations)');
  await close();
  const { code, stderr } = await runToItsEnd('user', { DATA_DIR }, ['find']);
  expect({ code, stderr }).toEqual({ code: 2, stderr: 'The schema is not up to date: run `npm run migrate`\n' });
});

test('with a DATA_DIR in which no service has run it says so, and makes nothing there', async () => {
  const [empty, missing] = [temporaryDirectory('empty'), join(temporaryDirectory('other'), 'typo')];
  for (const DATA_DIR of [empty, missing]) {
    const { code, stdout, stderr } = await runToItsEnd('user', { DATA_DIR }, ['find']);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toBe(
      `No service has run with DATA_DIR=${DATA_DIR}: it has no database. Set DATA_DIR to that of the service\n`,
    );
  }
  expect(readdirSync(empty)).toEqual([]);
  expect(existsSync(missing)).toBe(false);
});
