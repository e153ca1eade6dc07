import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Identity, Totp, type User } from '../../../entities/index.ts';
import { backgroundJob, operator } from '../../../server/activity/caller.ts';
import type { ProviderName } from '../../../server/shared/method-names.ts';
import { logIn, type Opened, type OpenedRules, openRules, procedures } from '../rig/rules.ts';

/** The acts of administrators on users: what changes, is recorded, mailed and answered. */
let opened: Opened;
let quiet: Opened;
/** With one administrator, and without impersonation. */
let alone: Opened;
let rules: OpenedRules;
let admin: User;
let only: User;
const DAY_MS = 24 * 60 * 60_000;
const promote = (user: User) => {
  user.role = 'admin';
};
beforeAll(async () => {
  const env = { LIMIT_ADMINISTRATION: '100000/900', IMPERSONATION: 'on' };
  opened = await openRules('administration', { env });
  quiet = await openRules('quiet-administration', { env: { LIMIT_ADMINISTRATION: '2/900', IMPERSONATION: 'quiet' } });
  alone = await openRules('last-administrator', { env: { LIMIT_ADMINISTRATION: '100/900' } });
  admin = await opened.create().insertUser('admin', promote);
  only = await alone.create().insertUser('only', promote);
});
beforeEach(() => {
  rules = opened.create();
});
afterAll(() => Promise.all([opened, quiet, alone].map(({ close }) => close())));

let count = 0;
const insert = (change?: (user: User) => void, on = rules) => on.insertUser(`user${++count}`, change);
const refusal = (code: string, rest: object = {}) => ({ cause: expect.objectContaining({ code, ...rest }) });
const as = async (user: User, on = rules) =>
  procedures(on, { sessionToken: await logIn(on, user, 'passkey') }).caller.users;

/** What is stored of a user. */
const storedOf = ({ id }: User, on = rules) =>
  on.database.query(async (tables) => {
    const user = await tables.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    const events = await tables.selectFrom('activity').selectAll().where('user_id', '=', id).orderBy('id').execute();
    const mails = await tables.selectFrom('outbox').selectAll().where('email', '=', user.email).orderBy('id').execute();
    return {
      user,
      events: events
        .filter(({ kind }) => kind !== 'logged-in')
        .map(({ kind, actor, actor_id: by, details }) => ({
          kind,
          actor,
          by,
          details: details && JSON.parse(details),
        })),
      mails: mails.map(({ kind }) => kind).filter((kind) => kind !== 'new-device'),
    };
  });

const addApp = ({ id: userId }: User) =>
  rules.database.transaction(async (em) => {
    await em.insert(Totp, { userId, secret: 'x', lastStep: 0, createdAt: 1 });
  });

type Users = Awaited<ReturnType<typeof as>>;
type Act = (users: Users, id: string) => Promise<{ message: string }>;
interface Effect {
  kind: string;
  details?: object;
  mails: string[];
  message: string;
  user?: object;
}

const acts: [string, Act, Effect, ((user: User) => void)?][] = [
  [
    'blocks',
    (users, id) => users.block({ id }),
    {
      kind: 'blocked',
      mails: ['account-blocked'],
      message: 'The user is blocked, and all sessions were ended.',
      user: { blocked_at: expect.any(Number), session_epoch: 1 },
    },
  ],
  [
    'unblocks',
    (users, id) => users.unblock({ id }),
    {
      kind: 'unblocked',
      mails: ['account-unblocked'],
      message: 'The user can log in again.',
      user: { blocked_at: null },
    },
    (user) => user.block(1),
  ],
  [
    'resets the limits of',
    (users, id) => users.unlock({ id }),
    { kind: 'unlocked', mails: [], message: "The user's login limits were reset.", user: { limit_epoch: 1 } },
  ],
  [
    'resets the limits, also of an address, of',
    (users, id) => users.unlock({ id, address: '203.0.113.7' }),
    {
      kind: 'unlocked',
      details: { address: '203.0.113.7' },
      mails: [],
      message: "The user's login limits were reset.",
      user: { limit_epoch: 1 },
    },
  ],
  [
    'makes an administrator of',
    (users, id) => users.setRole({ id, role: 'admin' }),
    {
      kind: 'role-changed',
      details: { to: 'admin' },
      mails: ['role-changed'],
      message: 'The user is an administrator.',
      user: { role: 'admin', session_epoch: 1 },
    },
  ],
  [
    'demotes',
    (users, id) => users.setRole({ id, role: 'user' }),
    {
      kind: 'role-changed',
      details: { to: 'user' },
      mails: ['role-changed'],
      message: 'The user is not an administrator.',
      // Stays logged in, without the rights.
      user: { role: 'user', session_epoch: 0 },
    },
    promote,
  ],
  [
    'sends a reset link to',
    (users, id) => users.sendReset({ id }),
    {
      kind: 'reset-sent',
      mails: ['reset-password'],
      message: 'A link to set a new password is on its way to the user.',
    },
  ],
  [
    'ends the sessions of',
    (users, id) => users.endSessions({ id }),
    {
      kind: 'sessions-ended',
      mails: [],
      message: 'All sessions of the user were ended.',
      user: { session_epoch: 1 },
    },
  ],
  [
    'deletes',
    (users, id) => users.delete({ id }),
    {
      kind: 'deletion-requested',
      details: { removedAfter: expect.any(String) },
      mails: ['account-closed'],
      message: 'The account was deleted. It can be restored for a while.',
      user: { deleted_at: expect.any(Number), session_epoch: 1 },
    },
  ],
];

describe('an administrator', () => {
  test.each(acts)(
    '%s a user: one event, and its mail',
    async (_, act, { kind, details = null, mails, message, user }, state) => {
      const given = await insert(state);
      expect(await act(await as(admin), given.id)).toMatchObject({ success: true, message });
      const stored = await storedOf(given);
      expect(stored.events).toEqual([{ kind, actor: 'administrator', by: admin.id, details }]);
      expect(stored.mails).toEqual(mails);
      expect(stored.user).toMatchObject(user ?? {});
    },
  );

  test.each(acts.filter(([name]) => !/administrator|demotes|reset link/.test(name)))(
    '%s an unverified user without a mail: the address may be a stranger’s',
    async (_, act, { kind }, state) => {
      const given = await insert((user) => {
        user.emailVerified = false;
        state?.(user);
      });
      await act(await as(admin), given.id);
      const { events, mails } = await storedOf(given);
      expect([events.map((event) => event.kind), mails]).toEqual([[kind], []]);
    },
  );

  test.each<[string, Act, ((user: User) => void)?]>([
    ['blocks a blocked user', (users, id) => users.block({ id }), (user) => user.block(1)],
    ['unblocks another', (users, id) => users.unblock({ id })],
    ['gives the same role', (users, id) => users.setRole({ id, role: 'user' })],
    ['removes no second factors', (users, id) => users.removeSecondFactors({ id })],
  ])('who %s changes nothing, and nothing is recorded', async (_, act, state) => {
    const given = await insert(state);
    const { user } = await storedOf(given);
    await act(await as(admin), given.id);
    expect(await storedOf(given)).toEqual({ user, events: [], mails: [] });
  });

  test.each(acts)('%s no unknown user', async (_, act) => {
    const users = await as(admin);
    const notFound = refusal('NOT_FOUND', { message: 'User not found' });
    for (const id of [`user_${crypto.randomUUID()}`, 'nobody'])
      await expect(act(users, id)).rejects.toMatchObject(notFound);
  });

  test('removes the second factors of a user', async () => {
    const user = await insert();
    await addApp(user);
    const users = await as(admin);
    expect(await users.show({ id: user.id })).toMatchObject({ hasSecondFactor: true });
    expect(await users.removeSecondFactors({ id: user.id })).toMatchObject({
      message: 'The user can log in without a second factor.',
    });
    expect(await users.show({ id: user.id })).toMatchObject({ hasSecondFactor: false });
    const { events, mails } = await storedOf(user);
    expect([events.map(({ kind }) => kind), mails]).toEqual([['second-factors-removed'], ['second-factors-removed']]);
  });

  test('deletes an account once: later requests have the dates of the first', async () => {
    const { id } = await insert();
    const users = await as(admin);
    const first = await users.delete({ id });
    expect(first.removedAfter - first.deletedAt).toBe((14 * DAY_MS) / 1000);
    expect(first.deletedAt).toBeCloseTo(Date.now() / 1000, -1);
    expect(await users.delete({ id })).toEqual(first);
  });

  test.each<[string, (user: User) => unknown]>([
    ['an unverified email', (user) => user.changeEmail(`unproven${++count}@example.test`)],
    ['a password that another person may have set', (user) => user.changePassword('x')],
  ])('makes no administrator of a user with %s', async (_, change) => {
    const user = await insert((one) => void change(one));
    await expect((await as(admin)).setRole({ id: user.id, role: 'admin' })).rejects.toMatchObject(
      refusal('UNPROVEN_ACCOUNT'),
    );
    expect((await storedOf(user)).user.role).toBe('user');
  });

  test('who has been demoted meanwhile is FORBIDDEN', async () => {
    const [former, user] = [await insert(promote), await insert()];
    const { acts: byRules } = rules.accounts.administration;
    const caller = { ...backgroundJob, actor: 'administrator' as const, actorId: former.id };
    await byRules.blockUser(user.id, caller);
    await byRules.setRole(former.id, 'user', operator);
    await expect(byRules.unblockUser(user.id, caller)).rejects.toMatchObject({ code: 'FORBIDDEN' });
    expect((await storedOf(user)).user.blocked_at).not.toBeNull();
  });

  test.each<[string, Act]>([
    ['blocked', (users, id) => users.block({ id })],
    ['demoted', (users, id) => users.setRole({ id, role: 'user' })],
    ['deleted', (users, id) => users.delete({ id })],
  ])('who is the last one cannot be %s', async (_, act) => {
    const on = alone.create();
    await expect(act(await as(only, on), only.id)).rejects.toMatchObject(refusal('LAST_ADMINISTRATOR'));
  });
});

test.each<[string, Act]>([
  ['unlocked', (users, id) => users.unlock({ id })],
  ['unblocked', (users, id) => users.unblock({ id })],
  ['an administrator again', (users, id) => users.setRole({ id, role: 'admin' })],
])('the last administrator can be %s', async (_, act) => {
  await act(await as(only, alone.create()), only.id);
});

test('with an address, its login limits are reset too', async () => {
  const [user, address] = [await insert(), `198.51.100.${++count}`];
  const useUp = async () => {
    while (await rules.limits.allows('login', address));
  };
  const users = await as(admin);
  await useUp();
  await users.unlock({ id: user.id });
  expect(await rules.limits.allows('login', address)).toBe(false);
  await users.unlock({ id: user.id, address });
  expect(await rules.limits.allows('login', address)).toBe(true);
});

test('acts of administrators are limited, those of the operator are not', async () => {
  const on = quiet.create();
  const [limited, user] = [await insert(promote, on), await insert(undefined, on)];
  const users = await as(limited, on);
  for (let i = 0; i < 2; i++) await users.unblock({ id: user.id });
  await expect(users.unblock({ id: user.id })).rejects.toMatchObject(refusal('RATE_LIMITED'));
  const { acts: byRules } = on.accounts.administration;
  for (let i = 0; i < 3; i++) await byRules.unblockUser(user.id, operator);
  await byRules.blockUser(user.id, operator);
  const { events } = await storedOf(user, on);
  expect(events).toEqual([{ kind: 'blocked', actor: 'operator', by: null, details: null }]);
});

describe('acting for a user', () => {
  test('opens a session of the user, which is recorded and mailed', async () => {
    const user = await insert();
    const { caller, changed } = procedures(rules, { sessionToken: await logIn(rules, admin, 'passkey') });
    const { id, email, name } = user;
    expect(await caller.users.impersonate({ id })).toEqual({
      success: true,
      message: 'You act for the user.',
      user: { id, email, name, provider: 'email' },
    });
    const { token } = changed['session'] as { token: string };
    expect((await procedures(rules, { sessionToken: token }).caller.profile.get()).user.id).toBe(id);
    const { events, mails } = await storedOf(user);
    expect(events).toMatchObject([{ kind: 'impersonated', by: admin.id, details: { session: expect.any(String) } }]);
    expect(mails).toEqual(['impersonated']);
    // The administrator's own session is replaced.
    await expect(caller.users.find()).rejects.toMatchObject(refusal('UNAUTHENTICATED'));
  });

  test('is not mailed where it is quiet, and not possible where it is off', async () => {
    const on = quiet.create();
    const [administrator, user] = [await insert(promote, on), await insert(undefined, on)];
    await (await as(administrator, on)).impersonate({ id: user.id });
    const { events, mails } = await storedOf(user, on);
    expect([events.map(({ kind }) => kind), mails]).toEqual([['impersonated'], []]);
    const off = alone.create();
    const target = await insert(undefined, off);
    await expect((await as(only, off)).impersonate({ id: target.id })).rejects.toMatchObject(refusal('NOT_FOUND'));
  });

  test.each<[string, string, (user: User) => void, object?]>([
    ['another administrator', 'FORBIDDEN', promote, { user: expect.objectContaining({ rule: 'is_administrator' }) }],
    ['a blocked user', 'ACCOUNT_BLOCKED', (user) => user.block(1)],
    ['a deleted user', 'ACCOUNT_DELETED', (user) => user.delete(1)],
    ['an unverified user', 'EMAIL_NOT_VERIFIED', (user) => user.changeEmail(`unverified${++count}@example.test`)],
  ])('is refused for %s', async (_, code, change, details) => {
    const user = await insert(change);
    await expect((await as(admin)).impersonate({ id: user.id })).rejects.toMatchObject(
      refusal(code, details && { details }),
    );
    expect((await storedOf(user)).events).toEqual([]);
  });

  test('needs a session that is still open', async () => {
    const user = await insert();
    const { administration, sessions } = rules.accounts;
    const token = await logIn(rules, admin, 'passkey');
    const session = await sessions.validate(token);
    if (!session) throw new Error('no session');
    await sessions.end(token, operator);
    const caller = { ...backgroundJob, actor: 'administrator' as const, actorId: admin.id };
    const acting = (own: typeof session) => administration.acts.impersonate(user.id, { ...own, token }, caller);
    await expect(acting(session)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    await expect(acting({ ...session, id: undefined })).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  test('needs a second factor', async () => {
    const user = await insert();
    const { caller } = procedures(rules, { sessionToken: await logIn(rules, admin, 'password') });
    await expect(caller.users.impersonate({ id: user.id })).rejects.toMatchObject(
      refusal('FORBIDDEN', { details: { user: expect.objectContaining({ rule: 'second_factor' }) } }),
    );
  });
});

describe('a list of users', () => {
  const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id);

  /** All pages of four users. */
  async function pagesOf(request: Parameters<Users['find']>[0]) {
    const users = await as(admin);
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await users.find({ ...request, limit: 4, cursor });
      ids.push(...idsOf(page));
      cursor = page.nextCursor;
    } while (cursor !== undefined && ids.length < 1000);
    return ids;
  }

  test('has every user once, in each order', async () => {
    for (let i = 0; i < 7; i++) await rules.insertUser(`same${i}`, (user) => user.changeProfile({ name: 'Same Name' }));
    const rows = await rules.database.query((tables) =>
      tables.selectFrom('users').select(['id', 'email', 'search_name as name']).orderBy('id').execute(),
    );
    const by = (order: (a: (typeof rows)[number], b: (typeof rows)[number]) => number) =>
      rows.toSorted(order).map(({ id }) => id);
    const compare = (a: string | null, b: string | null) => Buffer.compare(Buffer.from(a ?? ''), Buffer.from(b ?? ''));
    expect(await pagesOf({})).toEqual(by((a, b) => compare(b.id, a.id)));
    expect(await pagesOf({ sort: 'created' })).toEqual(by((a, b) => compare(a.id, b.id)));
    expect(await pagesOf({ sort: '-email' })).toEqual(by((a, b) => compare(b.email, a.email)));
    expect(await pagesOf({ sort: 'name' })).toEqual(by((a, b) => compare(a.name, b.name) || compare(a.id, b.id)));
  });

  test('of one standing has those users only, the last one first', async () => {
    const [first, second, third] = [await insert(), await insert(), await insert()];
    for (const [i, user] of [third, first, second].entries())
      await rules.database.write((tables) =>
        tables
          .updateTable('users')
          .set({ blocked_at: 9e14 + i, deleted_at: 9e14 - i, email_verified: 0 })
          .where('id', '=', user.id)
          .execute(),
      );
    const users = await as(admin);
    expect(idsOf(await users.find({ standing: 'blocked', limit: 3 }))).toEqual([second.id, first.id, third.id]);
    expect(idsOf(await users.find({ standing: 'deleted', limit: 3 }))).toEqual([third.id, first.id, second.id]);
    expect((await pagesOf({ standing: 'blocked' })).slice(0, 3)).toEqual([second.id, first.id, third.id]);
    for (const { emailVerified } of (await users.find({ standing: 'unverified' })).data)
      expect(emailVerified).toBe(false);
    for (const { role } of (await users.find({ standing: 'administrator' })).data) expect(role).toBe('admin');
  });

  test('of as many users as were asked for has no next page', async () => {
    const users = await as(only, alone.create());
    const { data } = await users.find();
    expect(await users.find({ limit: data.length })).toEqual({ data });
  });

  test('has those whose name has a word that begins like this', async () => {
    const user = await insert();
    const { caller } = procedures(rules, { sessionToken: await logIn(rules, user) });
    await caller.profile.update({ name: 'Lucía Ortega' });
    expect(idsOf(await (await as(admin)).find({ q: 'orte' }))).toEqual([user.id]);
  });

  test('shows each user as administrators see it', async () => {
    const user = await insert((one) => one.block(1_700_000_000_999));
    const { data } = await (await as(admin)).find({ q: user.email });
    expect(data).toEqual([
      {
        id: user.id,
        name: user.name,
        email: user.email,
        avatar: '',
        provider: 'email',
        createdAt: Math.floor(user.createdAt / 1000),
        role: 'user',
        emailVerified: true,
        blockedAt: 1_700_000_000,
        deletedAt: null,
        lastLoginAt: null,
      },
    ]);
    const own = await (await as(admin)).find({ q: admin.email });
    const { id } = await rules.database.query((tables) =>
      tables
        .selectFrom('activity')
        .select((activity) => activity.fn.max('id').as('id'))
        .where('user_id', '=', admin.id)
        .where('kind', '=', 'logged-in')
        .executeTakeFirstOrThrow(),
    );
    // The time in the id (RFC 9562 section 5.7), which stays ahead after a test that moved the clock.
    expect(own.data[0]?.lastLoginAt).toBe(Math.floor(Number.parseInt(id.replace('-', '').slice(0, 12), 16) / 1000));
  });

  test.each<[string, Parameters<Users['find']>[0], string]>([
    ['a search with an order', { q: 'a', sort: 'name' }, 'sort'],
    ['a standing with an order', { standing: 'blocked', sort: 'name' }, 'sort'],
    ['a search with a standing', { q: 'a', standing: 'blocked' }, 'sort'],
    ['the cursor of another list', { cursor: 'x' }, 'cursor'],
    [
      'the cursor of another order',
      { cursor: `user_${'0'.repeat(8)}-0000-0000-0000-000000000000`, sort: 'name' },
      'cursor',
    ],
    ['the cursor of no search', { cursor: 'x', q: 'a' }, 'cursor'],
  ])('is refused: %s', async (_, request, field) => {
    const error = await (await as(admin)).find(request).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'BAD_REQUEST', cause: { issues: [{ path: [field] }] } });
  });
});

test('the view of a user has the ways to log in, the sessions and the uploads', async () => {
  const user = await insert((one) => one.changePassword('x'));
  await rules.database.transaction(async (em) => {
    const given = { issuer: 'https://acme.test', subject: user.id, provider: 'acme' as ProviderName };
    await em.insert(Identity.link(user.id, given));
  });
  await logIn(rules, user);
  const users = await as(admin);
  expect(await users.show({ id: user.id })).toMatchObject({
    user: { id: user.id, bio: '', role: 'user', blockedAt: null, deletedAt: null, emailVerified: true },
    hasPassword: true,
    hasSecondFactor: false,
    passkeys: 0,
    identities: [{ provider: 'acme', email: '' }],
    sessions: [{ method: 'password', address: '192.0.2.1' }],
    uploads: { used: 0, quota: 1024 ** 3, files: 0, newest: [] },
  });
  expect((await users.activity({ id: user.id })).data).toMatchObject([{ kind: 'logged-in', address: '192.0.2.1' }]);
  const unknown = `user_${crypto.randomUUID()}`;
  await expect(users.show({ id: unknown })).rejects.toMatchObject(refusal('NOT_FOUND'));
  await expect(users.activity({ id: unknown })).rejects.toMatchObject(refusal('NOT_FOUND'));
});

test('every administrator who can log in is mailed what concerns all', async () => {
  const states: [string, (user: User) => void][] = [
    ['active', promote],
    ['blocked', (user) => user.block(1)],
    ['deleted', (user) => user.delete(1)],
    ['unverified', (user) => user.changeEmail(`unverified-admin${++count}@example.test`)],
  ];
  const administrators = await Promise.all(
    states.map(([, change]) =>
      insert((user) => {
        promote(user);
        change(user);
      }),
    ),
  );
  await rules.database.change((tables) =>
    rules.accounts.administration.mailAdministrators(tables, 'webhook-failing', 'https://crm.test'),
  );
  const mailed = await Promise.all(administrators.map(async (user) => (await storedOf(user)).mails));
  expect(mailed).toEqual([['webhook-failing'], [], [], []]);
});
