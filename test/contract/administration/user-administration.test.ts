import { randomBytes, randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import { until } from '../../rig/until.ts';
import type { Call, Reply } from '../rig/callers.ts';
import { withPasskey } from '../rig/passkey-scenario.ts';
import {
  administrator,
  deviceIn,
  everywhere,
  expectRefusal,
  growOld,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  mailsSettled,
  PASSWORD,
  registered,
  type Scenario,
  verified,
} from '../rig/scenario.ts';
import { codeOf, firstStep, withApp, wrongCode } from '../rig/totp-scenario.ts';

/** What administrators see of users and do to them, and nobody else. */

const WRONG = `${PASSWORD}!`;
const UNKNOWN = 'user_00000000-0000-7000-8000-000000000000';
const HOUR_MS = 60 * 60_000;
const NOW = () => Math.floor(Date.now() / 1000);

/** The actions of administrators on a user, with their inputs beside the id, and the resulting event. */
const acts: [procedure: string, input: object, event: { kind: string; details?: object }, mail?: string][] = [
  ['users.block', {}, { kind: 'blocked' }, 'is blocked'],
  ['users.unlock', {}, { kind: 'unlocked' }],
  ['users.unlock', { address: '203.0.113.7' }, { kind: 'unlocked', details: { address: '203.0.113.7' } }],
  [
    'users.setRole',
    { role: 'admin' },
    { kind: 'role-changed', details: { to: 'admin' } },
    'You are now an administrator',
  ],
  ['users.sendReset', {}, { kind: 'reset-sent' }, 'Reset your password'],
  ['users.delete', {}, { kind: 'deletion-requested', details: { removedAfter: expect.any(String) } }, 'being deleted'],
  ['users.endSessions', {}, { kind: 'sessions-ended' }],
  ['users.unblock', {}, { kind: 'unblocked' }, 'no longer blocked'],
  ['users.removeSecondFactors', {}, { kind: 'second-factors-removed' }, 'no longer requires a code'],
];

/** Users for the actions that do nothing to most users. */
const targets: Record<string, (scenario: Scenario) => Promise<{ id: string; email: string }>> = {
  'users.removeSecondFactors': withApp,
  'users.unblock': async (scenario) => {
    const person = await loggedIn(scenario);
    await scenario.stack.database('update users set blocked_at = 1 where id = ?', [person.id]);
    return person;
  },
};

const readings = ['users.find', 'users.show', 'users.activity'];

everywhere(
  (scenario) => {
    const call: Call = (...given) => scenario().call(...given);
    const asAdmin = async (procedure: string, input: object): Promise<Reply> =>
      call(procedure, input, { session: (await administrator(scenario())).session });
    const succeed = async (procedure: string, input: object) => {
      const reply = await asAdmin(procedure, input);
      expect(reply).toMatchObject({ status: 200, code: undefined });
      return reply.data;
    };
    const eventsWith = (id: string, kind: string) =>
      scenario().stack.database<{ actor: string; actor_id: string; details: string | null }>(
        'select actor, actor_id, details from activity where user_id = ? and kind = ?',
        [id, kind],
      );

    test.each(acts)('%s %j requires an administrator with a recent credential', async (procedure, input) => {
      const { stack } = scenario();
      const [target, stranger] = [await loggedIn(scenario()), await loggedIn(scenario())];
      const attempt = (session?: string, id = target.id) => call(procedure, { ...input, id }, { session });
      expectRefusal(await attempt(), 401, 'UNAUTHENTICATED');
      expectRefusal(await attempt(stranger.session), 403, 'FORBIDDEN');
      expectRefusal(await attempt(target.session), 403, 'FORBIDDEN');
      const admin = await administrator(scenario());
      await growOld(stack, admin.id);
      expectRefusal(await attempt(admin.session), 403, 'REAUTHENTICATION_REQUIRED');
      expect(await isAlive(call, target.session)).toBe(true);
      await call('auth.reauthenticate', { password: PASSWORD }, { session: admin.session });
      for (const id of ['user_', freshEmail(), UNKNOWN]) {
        expectRefusal(await attempt(admin.session, id), 404, 'NOT_FOUND', 'User not found');
      }
      expect(
        await stack.database("select id from activity where user_id = ? and actor <> 'user'", [target.id]),
      ).toEqual([]);
    });

    test.each(acts)(
      '%s %j creates an event by the administrator, and a mail where required',
      async (procedure, input, { kind, details }, subject) => {
        const { stack } = scenario();
        const admin = await administrator(scenario());
        const target = await (targets[procedure] ?? loggedIn)(scenario());
        await mailsSettled(stack, target.email);
        const before = (await stack.mailsTo(target.email)).length;
        expect((await call(procedure, { ...input, id: target.id }, { session: admin.session })).status).toBe(200);
        const [event, ...others] = await eventsWith(target.id, kind);
        expect({ ...event, details: event?.details && JSON.parse(event.details) }).toEqual({
          actor: 'administrator',
          actor_id: admin.id,
          details: details ?? null,
        });
        expect(others).toEqual([]);
        if (subject) await stack.waitForMail({ to: target.email, subject });
        await mailsSettled(stack, target.email);
        expect((await stack.mailsTo(target.email)).length - before).toBe(subject ? 1 : 0);
      },
    );

    test.each(readings)('%s requires an administrator', async (procedure) => {
      const { id, session } = await loggedIn(scenario());
      expectRefusal(await call(procedure, { id }), 401, 'UNAUTHENTICATED');
      expectRefusal(await call(procedure, { id }, { session }), 403, 'FORBIDDEN');
      if (procedure === 'users.find') return;
      expectRefusal(await asAdmin(procedure, { id: UNKNOWN }), 404, 'NOT_FOUND', 'User not found');
      expectRefusal(await asAdmin(procedure, { id: 'user_' }), 404, 'NOT_FOUND', 'User not found');
    });

    test('an action without effect creates no event and no mail', async () => {
      const { stack } = scenario();
      const { id, email } = await loggedIn(scenario());
      await succeed('users.unblock', { id });
      await succeed('users.removeSecondFactors', { id });
      await succeed('users.setRole', { id, role: 'user' });
      for (let times = 0; times < 2; times++) await succeed('users.block', { id });
      const deletions = [await succeed('users.delete', { id }), await succeed('users.delete', { id })];
      expect(deletions[1]).toEqual(deletions[0]);
      const kinds = await stack.database<{ kind: string }>(
        "select kind from activity where user_id = ? and actor = 'administrator' order by id",
        [id],
      );
      expect(kinds.map(({ kind }) => kind)).toEqual(['blocked', 'deletion-requested']);
      await mailsSettled(stack, email);
      expect(await stack.mailsTo(email)).toHaveLength(3);
    });

    test('a later word of the name finds a user, from the registration on and after another name', async () => {
      const { call } = scenario();
      const admin = await administrator(scenario());
      const word = `Ortega${randomBytes(6).toString('hex')}`;
      const find = async (q: string) =>
        (await call('users.find', { q }, { session: admin.session })).data.data.map(({ id }: { id: string }) => id);
      const { id, session } = await loggedIn(scenario(), { name: `Lucía ${word}` });
      expect(await find(word.toUpperCase())).toEqual([id]);
      await call('profile.update', { bio: 'Writes.' }, { session });
      expect(await find(word)).toEqual([id]);
      await call('profile.update', { name: `Lucía Renamed ${word}x` }, { session });
      expect(await find(`renamed ${word}`)).toEqual([id]);
      await call('profile.update', { name: 'Lucía' }, { session });
      expect(await find(word)).toEqual([]);
      // Everyone else searches by the beginning only.
      await call('profile.update', { name: `Lucía ${word}` }, { session });
      expect((await call('users.list', { q: word })).data.data).toEqual([]);
    });

    test('lists all users in pages, newest first, with their state', async () => {
      const { session } = await administrator(scenario());
      const prefix = `find${Math.random().toString(36).slice(2)}`;
      const emails = ['a', 'b', 'c', 'd'].map((letter) => `${prefix}-${letter}@example.test`);
      const [unverified, blocked, deleted, plain] = [
        await registered(scenario(), { email: emails[0] ?? '' }),
        await verified(scenario(), { email: emails[1] ?? '' }),
        await loggedIn(scenario(), { email: emails[2] ?? '' }),
        await verified(scenario(), { email: emails[3] ?? '' }),
      ];
      await call('users.block', { id: blocked.id }, { session });
      await call('account.delete', undefined, { session: deleted.session });
      const find = async (input: object) => (await call('users.find', input, { session })).data;

      const none = { role: 'user', emailVerified: true, blockedAt: null, deletedAt: null };
      const { data } = await find({ q: prefix });
      const about = NOW();
      expect(data).toEqual(
        [
          { id: unverified.id, email: emails[0], ...none, emailVerified: false },
          { id: blocked.id, email: emails[1], ...none, blockedAt: expect.any(Number) },
          { id: deleted.id, email: emails[2], ...none, deletedAt: expect.any(Number) },
          { id: plain.id, email: emails[3], ...none },
        ].map((user) => ({
          name: 'Ada Lovelace',
          avatar: '',
          provider: 'email',
          createdAt: expect.any(Number),
          lastLoginAt: user.id === deleted.id ? expect.any(Number) : null,
          ...user,
        })),
      );
      expect(Math.abs(data[2].lastLoginAt - about)).toBeLessThan(60);
      for (const time of [data[1].blockedAt, data[2].deletedAt]) expect(Math.abs(time - about)).toBeLessThan(60);

      const newest = await find({ limit: 4 });
      expect(newest.data.map(({ id }: { id: string }) => id)).toEqual([
        plain.id,
        deleted.id,
        blocked.id,
        unverified.id,
      ]);
      const pages = [];
      for (let cursor: string | undefined; pages.length < 4; ) {
        const page = await find({ q: prefix, limit: 1, ...(cursor && { cursor }) });
        expect(page.data.length).toBeLessThanOrEqual(1);
        pages.push(...page.data);
        cursor = page.nextCursor;
      }
      expect(pages).toEqual(data);
      const after = await find({ limit: 2, cursor: newest.data[1].id });
      expect(after.data).toEqual(newest.data.slice(2));
      expectRefusal(await call('users.find', { cursor: 'x' }, { session }), 400, 'VALIDATION_FAILED');
    });

    test('lists the users of one standing, those blocked or deleted last first', async () => {
      const { stack } = scenario();
      const { session, id: own } = await administrator(scenario());
      const [first, second, third] = [
        await loggedIn(scenario()),
        await loggedIn(scenario()),
        await registered(scenario()),
      ];
      for (const { id } of [second, first]) await call('users.block', { id }, { session });
      await stack.database('update users set blocked_at = blocked_at + 1000 where id = ?', [first.id]);
      await call('users.delete', { id: second.id }, { session });
      await call('users.delete', { id: third.id }, { session });
      await stack.database('update users set deleted_at = deleted_at + 1000 where id = ?', [third.id]);
      const known = [own, first.id, second.id, third.id];
      /** All pages of a list, of this many users each. */
      const all = async (standing: string, limit: number) => {
        const found: string[] = [];
        for (let cursor: string | undefined = '-'; cursor !== undefined; ) {
          const input = { standing, limit, ...(cursor !== '-' && { cursor }) };
          const { data } = await call('users.find', input, { session });
          expect(data.data.length).toBeLessThanOrEqual(limit);
          // A page after a cursor is not empty.
          if (cursor !== '-') expect(data.data).not.toEqual([]);
          found.push(...data.data.map(({ id }: { id: string }) => id));
          cursor = data.nextCursor;
        }
        expect(new Set(found).size).toBe(found.length);
        return found.filter((id) => known.includes(id));
      };
      for (const limit of [1, 100]) {
        expect(await all('administrator', limit)).toEqual([own]);
        expect(await all('unverified', limit)).toEqual([third.id]);
        expect(await all('blocked', limit)).toEqual([first.id, second.id]);
        expect(await all('deleted', limit)).toEqual([third.id, second.id]);
      }
      const both = await call('users.find', { standing: 'blocked', q: 'ada' }, { session });
      expectRefusal(both, 400, 'VALIDATION_FAILED');
      const elsewhere = { standing: 'blocked', cursor: first.id };
      expectRefusal(await call('users.find', elsewhere, { session }), 400, 'VALIDATION_FAILED');
      const foreign = Buffer.from(JSON.stringify(['é', 'x'])).toString('base64url');
      const byEmail = { sort: 'email', cursor: foreign };
      expectRefusal(await call('users.find', byEmail, { session }), 400, 'VALIDATION_FAILED');
    });

    test('lists all users by name, email or creation, in both directions', async () => {
      const { session } = await administrator(scenario());
      const mark = ` ${Math.random().toString(36).slice(2)}`;
      const made: { id: string; name: string; email: string }[] = [];
      for (const [name, letter] of [
        ['Émile', 'c'],
        ['emil', 'a'],
        ['Zuse', 'b'],
        // Equal names, more than fit a page.
        ['emil', 'd'],
        ['emil', 'e'],
        ['emil', 'f'],
      ] as const)
        made.push(
          await registered(scenario(), { name: `${name}${mark}`, email: `${letter}${mark.slice(1)}@example.test` }),
        );
      const [emile, emil, zuse, ...others] = made.map(({ id }) => id);
      /** Those of the six, through pages of three users each. */
      const sorted = async (sort: string) => {
        const found: string[] = [];
        for (let cursor: string | undefined = '-'; cursor !== undefined; ) {
          const { data } = await call('users.find', { sort, limit: 3, ...(cursor !== '-' && { cursor }) }, { session });
          found.push(...data.data.map(({ id }: { id: string }) => id));
          cursor = data.nextCursor;
        }
        expect(new Set(found).size).toBe(found.length);
        return found.filter((id) => made.some((user) => user.id === id));
      };
      expect(await sorted('name')).toEqual([emil, ...others, emile, zuse]);
      expect(await sorted('-name')).toEqual([zuse, emile, ...others.toReversed(), emil]);
      expect(await sorted('email')).toEqual([emil, zuse, emile, ...others]);
      expect(await sorted('-email')).toEqual([...others.toReversed(), emile, zuse, emil]);
      expect(await sorted('created')).toEqual([emile, emil, zuse, ...others]);
      expect(await sorted('-created')).toEqual([...others.toReversed(), zuse, emil, emile]);
    });

    test('shows a user with sessions, login methods and uploads, without secrets', async () => {
      const { stack } = scenario();
      const { id, email, session } = await withPasskey(scenario());
      const other = await administrator(scenario());
      const shown = (await call('users.show', { id }, { session: other.session })).data;
      expect(shown).toEqual({
        user: {
          id,
          email,
          name: 'Ada Lovelace',
          bio: '',
          location: '',
          website: '',
          avatar: '',
          provider: 'email',
          createdAt: expect.any(Number),
          role: 'user',
          emailVerified: true,
          blockedAt: null,
          deletedAt: null,
        },
        hasPassword: true,
        hasSecondFactor: false,
        passkeys: 1,
        identities: [],
        sessions: [
          {
            id: expect.any(String),
            createdAt: expect.any(Number),
            lastUsedAt: expect.any(Number),
            address: expect.any(String),
            device: expect.any(String),
            method: 'password',
          },
        ],
        uploads: { used: 0, quota: 1024 ** 3, files: 0, newest: [] },
      });
      const [row] = await stack.database<Record<string, unknown>>('select * from users where id = ?', [id]);
      const [stored] = await stack.database<Record<string, unknown>>('select * from sessions where user_id = ?', [id]);
      const secrets = [session, row?.['password_hash'], stored?.['token_hash']];
      expect(secrets.filter((secret) => JSON.stringify(shown).includes(String(secret)))).toEqual([]);

      const app = await withApp(scenario());
      const presigned = { filename: 'a.png', contentType: 'image/png', size: 1234 };
      expect((await call('upload.presign', presigned, { session: app.session })).status).toBe(200);
      const { hasSecondFactor, uploads } = (await call('users.show', { id: app.id }, { session: other.session })).data;
      expect(hasSecondFactor).toBe(true);
      expect(uploads).toMatchObject({ used: 1234, files: 1, newest: [{ contentType: 'image/png', state: 'pending' }] });
    });

    test('unlocking resets the limits on guesses from unknown devices, from known devices and at codes', async () => {
      const { secret, ...person } = await withApp(scenario());
      const pending = await firstStep(call, person);
      const login = await call('auth.secondFactor', { code: codeOf(secret) }, { pending });
      const device = deviceIn(login);
      const guess = (options = {}) => call('auth.login', { email: person.email, password: WRONG }, options);
      const limited = async () => {
        const replies = [await guess(), await guess({ device })];
        return replies.map(({ status }) => status === 429);
      };
      for (let i = 0; i < 2; i++) for (const options of [{}, { device }]) await guess(options);
      expect(await limited()).toEqual([true, true]);
      await succeed('users.unlock', { id: person.id });
      expect(await limited()).toEqual([false, false]);

      await succeed('users.unlock', { id: person.id });
      const codes = async () => {
        const step = await firstStep(call, person);
        return (await call('auth.secondFactor', { code: wrongCode(secret) }, { pending: step })).code;
      };
      for (let i = 0; i < 2; i++) expect(await codes()).toBe('INVALID_CODE');
      expect(await codes()).toBe('RATE_LIMITED');
      await succeed('users.unlock', { id: person.id });
      expect(await codes()).toBe('INVALID_CODE');
      // Limits of others still apply.
      const stranger = await verified(scenario());
      for (let i = 0; i < 2; i++) await call('auth.login', { email: stranger.email, password: WRONG });
      await succeed('users.unlock', { id: person.id });
      const refused = await call('auth.login', { email: stranger.email, password: WRONG });
      expectRefusal(refused, 429, 'RATE_LIMITED');
    });

    test.each(['203.0.113.9', '2001:db8:77::1'])('unlocking with an address lets %s log in again', async (shared) => {
      const address = shared.includes(':')
        ? `2001:db8:${(clientAddress().split('.')[0] ?? '').padStart(4, '1')}::1`
        : clientAddress();
      const person = await verified(scenario());
      const attempt = () => call('auth.login', { email: freshEmail(), password: WRONG }, { address });
      const isLimited = async () => (await attempt()).status === 429;
      await until(isLimited);
      await succeed('users.unlock', { id: person.id });
      expect(await isLimited()).toBe(true);
      await succeed('users.unlock', { id: person.id, address });
      await logIn(call, person, { address });
      expectRefusal(await asAdmin('users.unlock', { id: person.id, address: 'nowhere' }), 400, 'VALIDATION_FAILED');
    });

    test('a user with an unproven email or password cannot become an administrator', async () => {
      const { call, stack } = scenario();
      const { id, email } = await registered(scenario());
      const promote = () => asAdmin('users.setRole', { id, role: 'admin' });
      expectRefusal(await promote(), 409, 'UNPROVEN_ACCOUNT');
      // In another browser than that of the registration.
      await call('auth.verifyEmail', { token: await mailedToken(stack, email, 'verify-email') });
      expectRefusal(await promote(), 409, 'UNPROVEN_ACCOUNT');
      await succeed('users.sendReset', { id });
      const token = await mailedToken(stack, email, 'reset-password');
      await call('auth.resetPassword', { token, email, password: `${PASSWORD}!` });
      expect((await promote()).status).toBe(200);
    });

    test('a new administrator must log in again; a former one loses the rights immediately', async () => {
      const { id, email, session, ...person } = await loggedIn(scenario());
      const { message } = await succeed('users.setRole', { id, role: 'admin' });
      expect(message).toBe('The user is an administrator.');
      expect(await isAlive(call, session)).toBe(false);
      const own = await logIn(call, { email, ...person });
      expect((await call('users.find', {}, { session: own })).status).toBe(200);
      await succeed('users.setRole', { id, role: 'user' });
      expectRefusal(await call('users.find', {}, { session: own }), 403, 'FORBIDDEN');
      expect(await isAlive(call, own)).toBe(true);
      await scenario().stack.waitForMail({ to: email, subject: 'no longer an administrator' });
      expectRefusal(await asAdmin('users.setRole', { id, role: 'god' }), 400, 'VALIDATION_FAILED');
    });

    test('the mailed reset link sets a new password', async () => {
      const { id, email } = await verified(scenario());
      await succeed('users.sendReset', { id });
      const token = await mailedToken(scenario().stack, email, 'reset-password');
      expect((await call('auth.resetPassword', { token, email, password: WRONG })).status).toBe(200);
      await logIn(call, { email, password: WRONG, name: '' });
    });

    test('a reset link that waits is not mailed to an address that the user has given up meanwhile', async () => {
      const { stack } = scenario();
      const { id } = await verified(scenario());
      const [former, now] = [freshEmail(), Date.now()];
      await stack.database(
        `insert into outbox (id, kind, email, inbox, user_id, state, attempts, due_at, expires_at, created_at)
         values (?, 'reset-password', ?, ?, ?, 'pending', 0, ?, ?, ?)`,
        [randomUUID(), former, former, id, now, now + HOUR_MS, now],
      );
      await mailsSettled(stack, former);
      expect(await stack.mailsTo(former)).toEqual([]);
    });

    test('a user deleted by an administrator is hidden and can restore the account', async () => {
      const { stack } = scenario();
      const { id, email, session } = await loggedIn(scenario());
      const { deletedAt, removedAfter } = await succeed('users.delete', { id });
      expect(Math.abs(deletedAt - NOW())).toBeLessThan(60);
      expect(removedAfter - deletedAt).toBe(14 * 24 * 60 * 60);
      expect(await isAlive(call, session)).toBe(false);
      expect((await call('users.get', { id })).status).toBe(404);
      expectRefusal(await call('auth.login', { email, password: PASSWORD }), 403, 'ACCOUNT_DELETED');
      const { text } = await stack.waitForMail({ to: email, subject: 'is being deleted' });
      expect(text).toContain('was deleted by the operator of the site');
      expect((await succeed('users.show', { id })).user).toMatchObject({ id, deletedAt });
      await succeed('users.endSessions', { id });
      expect((await call('account.restore', { email, password: PASSWORD })).status).toBe(200);
      expect((await call('users.get', { id })).status).toBe(200);
    });

    /** Demotes all administrators of the tests before. */
    const dismissAll = () => scenario().stack.database("update users set role = 'user' where role = 'admin'");

    test('the last administrator keeps the role and the account', async () => {
      const { stack } = scenario();
      await dismissAll();
      const { id, session } = await administrator(scenario());
      // Administrators who cannot log in do not count.
      const others = [await loggedIn(scenario()), await registered(scenario()), await loggedIn(scenario())];
      for (const other of others) await stack.database("update users set role = 'admin' where id = ?", [other.id]);
      await stack.database('update users set blocked_at = 1 where id = ?', [others[0]?.id ?? '']);
      await stack.database('update users set deleted_at = 1 where id = ?', [others[2]?.id ?? '']);
      const last = [409, 'LAST_ADMINISTRATOR', 'This is the last administrator who can log in'] as const;
      const attempts: [string, object?][] = [
        ['users.setRole', { id, role: 'user' }],
        ['users.block', { id }],
        ['users.delete', { id }],
        ['account.delete'],
      ];
      for (const [procedure, input] of attempts) expectRefusal(await call(procedure, input, { session }), ...last);
      expect((await call('users.setRole', { id, role: 'admin' }, { session })).status).toBe(200);
      expect((await call('users.find', {}, { session })).status).toBe(200);
      // Actions on those others are allowed.
      for (const { id: other } of others.slice(0, 2)) {
        expect((await call('users.setRole', { id: other, role: 'user' }, { session })).status).toBe(200);
      }
      expect((await call('users.unblock', { id: others[0]?.id }, { session })).status).toBe(200);
      expect((await call('users.setRole', { id: others[0]?.id, role: 'admin' }, { session })).status).toBe(200);
      expect((await call('account.delete', undefined, { session })).status).toBe(200);
    });

    test.each([
      ['each other the role', 'users.setRole', { role: 'user' }],
      ['each other’s logins', 'users.block', {}],
      ['each other’s accounts', 'users.delete', {}],
    ])('if two last administrators take %s concurrently, one remains', async (_, procedure, input) => {
      const { stack } = scenario();
      await dismissAll();
      const [one, other] = [await administrator(scenario()), await administrator(scenario())];
      const replies = await Promise.all([
        call(procedure, { ...input, id: other.id }, { session: one.session }),
        call(procedure, { ...input, id: one.id }, { session: other.session }),
      ]);
      const statuses = replies.map(({ status }) => status).sort();
      // The second one may find its session ended, its role removed, or itself the last.
      expect(statuses[0]).toBe(200);
      expect([401, 403, 409]).toContain(statuses[1]);
      const left = await stack.database<{ id: string }>(
        "select id from users where role = 'admin' and blocked_at is null and deleted_at is null",
      );
      expect(left).toHaveLength(1);
    });
  },
  { env: { LIMIT_ACCOUNT: '2/3600', LIMIT_DEVICE: '2/900', LIMIT_CODE: '2/3600', LIMIT_LOGIN: '20/900' } },
);
