import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { until } from '../../rig/until.ts';
import { createKey, KEY_PATTERN, SCOPES, withKey } from '../rig/key-scenario.ts';
import {
  administrator,
  eventsOf,
  everywhere,
  expectRefusal,
  growOld,
  loggedIn,
  mailsSettled,
} from '../rig/scenario.ts';

/** Access keys: created, listed, revoked. */

const UNKNOWN = '02KqT8YzJv0aP3mWfR7xLd';
const given = { name: 'Backup', scopes: ['profile:read'] };

everywhere((scenario) => {
  const keysOf = async (session: string) => (await scenario().call('keys.list', undefined, { session })).data.data;

  // checks: 37
  test('a key is shown once, listed without its secret, and stored as a hash', async () => {
    const { key, secret, session, id } = await withKey(scenario(), { ...given, expiresInDays: 30 });
    expect(secret).toMatch(KEY_PATTERN);
    expect(key).toEqual({
      ...given,
      id: expect.any(String),
      prefix: secret.slice(0, 28),
      createdAt: expect.any(Number),
      expiresAt: key.createdAt + 30 * 24 * 3600,
      lastUsedAt: null,
    });
    expect(key.prefix).toBe(`acct_${key.id}_`);
    expect(await keysOf(session)).toEqual([key]);
    const [row] = await scenario().stack.database<Record<string, unknown>>(
      'select * from access_keys where user_id = ?',
      [id],
    );
    const stored = secret.slice(28, 28 + 43);
    expect(row).toMatchObject({ id: key.id, secret_hash: createHash('sha256').update(stored).digest('base64url') });
    expect(JSON.stringify(row)).not.toContain(stored);
    const { data } = await scenario().call('account.export', undefined, { session });
    expect(data.accessKeys).toEqual([
      {
        id: key.id,
        name: 'Backup',
        scopes: 'profile:read',
        createdAt: key.createdAt,
        expiresAt: key.expiresAt,
        lastUsedAt: null,
      },
    ]);
    expect(JSON.stringify(data)).not.toContain(stored);
  });

  test('the newest key is first, and without an expiry it does not expire', async () => {
    const { key, session } = await withKey(scenario());
    const { key: second } = await createKey(scenario(), session, { name: 'Second', scopes: ['email', 'email'] });
    expect(second).toMatchObject({ expiresAt: null, scopes: ['email'] });
    expect(await keysOf(session)).toEqual([second, key]);
  });

  // checks: 74
  test('a new key is mailed without its name and its secret, and recorded', async () => {
    const { stack } = scenario();
    const { key, secret, email, id } = await withKey(scenario(), { name: 'Visit evil.example' });
    const mail = await stack.waitForMail({ to: email, subject: 'A new access key' });
    expect(mail.text).toContain('/not-me?token=');
    for (const unseen of ['evil.example', secret, key.id]) expect(mail.text).not.toContain(unseen);
    expect(await eventsOf(stack, id, 'key-created')).toEqual([
      { id: key.id, name: 'Visit evil.example', scopes: SCOPES.join(',') },
    ]);
  });

  test('a revoked key is refused at once and gone from the list', async () => {
    const { call, stack } = scenario();
    const { key, secret, session, id } = await withKey(scenario());
    const { secret: other } = await createKey(scenario(), session);
    expect((await call('profile.get', undefined, { key: secret })).data.user.id).toBe(id);
    expect((await call('keys.revoke', { id: key.id }, { session })).data).toEqual({
      success: true,
      message: 'The access key was revoked.',
    });
    expectRefusal(await call('profile.get', undefined, { key: secret }), 401, 'UNAUTHENTICATED');
    expect((await call('profile.get', undefined, { key: other })).code).toBeUndefined();
    expect(await keysOf(session)).toHaveLength(1);
    expect(await eventsOf(stack, id, 'key-revoked')).toEqual([{ id: key.id, name: 'Backup' }]);
    expectRefusal(await call('keys.revoke', { id: key.id }, { session }), 404, 'NOT_FOUND', 'Access key not found');
  });

  // checks: 49
  test('keys of others, unknown and malformed ids are 404', async () => {
    const { key, secret } = await withKey(scenario());
    const { session } = await loggedIn(scenario());
    for (const id of [key.id, UNKNOWN, 'x', `${key.id} `, "1'--"]) {
      const reply = await scenario().call('keys.revoke', { id }, { session });
      expectRefusal(reply, 404, 'NOT_FOUND', 'Access key not found');
    }
    expect((await scenario().call('profile.get', undefined, { key: secret })).code).toBeUndefined();
    expect(await keysOf(session)).toEqual([]);
  });

  test('a new key needs a session with a recent credential; its revocation does not', async () => {
    const { call, stack } = scenario();
    const { key, secret, session, id } = await withKey(scenario());
    await growOld(stack, id);
    expectRefusal(await call('keys.create', given, { session }), 403, 'REAUTHENTICATION_REQUIRED');
    for (const options of [{}, { session: 'x'.repeat(43) }])
      expectRefusal(await call('keys.create', given, options), 401, 'UNAUTHENTICATED');
    expectRefusal(await call('keys.create', given, { key: secret }), 403, 'INSUFFICIENT_SCOPE');
    expect((await call('keys.revoke', { id: key.id }, { session })).code).toBeUndefined();
  });

  test.each([
    ['no name', { name: ' ' }, 'name'],
    ['a long name', { name: 'x'.repeat(65) }, 'name'],
    ['no scope', { scopes: [] }, 'scopes'],
    ['an unknown scope', { scopes: ['admin'] }, 'scopes.0'],
    ['a list of forty thousand unknown scopes', { scopes: Array.from({ length: 40_000 }, () => 0) }, 'scopes'],
    ['no day', { expiresInDays: 0 }, 'expiresInDays'],
    ['half a day', { expiresInDays: 1.5 }, 'expiresInDays'],
    ['more than ten years', { expiresInDays: 3651 }, 'expiresInDays'],
  ])('%s is refused', async (_what, wrong, field) => {
    const { session } = await loggedIn(scenario());
    const reply = await scenario().call('keys.create', { ...given, ...wrong }, { session });
    expectRefusal(reply, 400, 'VALIDATION_FAILED');
    expect(Object.keys(reply.details ?? {})).toEqual([field]);
  });

  test('the last use is recorded, at most once a minute', async () => {
    const { call, stack } = scenario();
    const { key, secret, session } = await withKey(scenario());
    const lastUse = async () => (await keysOf(session))[0].lastUsedAt;
    const stored = async () =>
      (await stack.database<{ used: number }>('select last_used_at as used from access_keys where id = ?', [key.id]))[0]
        ?.used;
    await call('profile.get', undefined, { key: secret });
    await until(async () => (await lastUse()) !== null, { what: 'the record of the use' });
    expect(Math.abs((await lastUse()) - Date.now() / 1000)).toBeLessThan(60);
    const first = await stored();
    for (let i = 0; i < 5; i++) await call('profile.get', undefined, { key: secret });
    // A write of its own, after which an earlier one would be seen.
    await call('profile.update', { bio: 'x' }, { key: secret });
    expect(await stored()).toBe(first);
    await stack.database('update access_keys set last_used_at = last_used_at - 60001 where id = ?', [key.id]);
    await call('profile.get', undefined, { key: secret });
    await until(async () => Number(await stored()) >= Number(first), { what: 'the record of the later use' });
  });

  // checks: 72
  test('creations are limited per hour', async () => {
    const { session, id, email } = await loggedIn(scenario());
    for (let i = 0; i < 10; i++) await createKey(scenario(), session);
    expectRefusal(await scenario().call('keys.create', given, { session }), 429, 'RATE_LIMITED');
    expect(await eventsOf(scenario().stack, id, 'key-created')).toHaveLength(10);
    await mailsSettled(scenario().stack, email);
  });

  // checks: 73
  test('the keys of an administrator give no rights of the role', async () => {
    const { session } = await administrator(scenario());
    const { secret } = await createKey(scenario(), session);
    for (const procedure of ['webhooks.list', 'users.find', 'users.invitations'])
      expectRefusal(await scenario().call(procedure, {}, { key: secret }), 403, 'INSUFFICIENT_SCOPE');
  });
});

describe('the number of keys', () => {
  everywhere((scenario) => {
    /** Keys of the user's current epoch. */
    const fill = async (userId: string, count: number, epoch = 0) => {
      for (let i = 0; i < count; i++)
        await scenario().stack.database(
          "insert into access_keys (id, user_id, name, secret_hash, scopes, epoch, created_at) values (?, ?, '', '', '', ?, 0)",
          [`${userId.slice(-12)}-${epoch}-${i}`, userId, epoch],
        );
    };

    // checks: 71
    test('is at most fifty, also for concurrent creations', async () => {
      const { call, stack } = scenario();
      const { session, id } = await loggedIn(scenario());
      await fill(id, 49);
      const replies = await Promise.all(Array.from({ length: 4 }, () => call('keys.create', given, { session })));
      expect(replies.map(({ code }) => code ?? 'created').sort()).toEqual([
        'TOO_MANY_KEYS',
        'TOO_MANY_KEYS',
        'TOO_MANY_KEYS',
        'created',
      ]);
      expectRefusal(await call('keys.create', given, { session }), 409, 'TOO_MANY_KEYS');
      expect(await stack.database('select id from access_keys where user_id = ?', [id])).toHaveLength(50);
    });

    test('does not count keys that ended with all sessions; the next creation deletes them', async () => {
      const { session, id } = await loggedIn(scenario());
      await fill(id, 50, -1);
      const { key } = await createKey(scenario(), session);
      const rows = await scenario().stack.database('select id from access_keys where user_id = ?', [id]);
      expect(rows).toEqual([{ id: key.id }]);
    });
  });
});
