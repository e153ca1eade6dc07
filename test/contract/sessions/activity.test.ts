import { createHash } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import { atInstance, begin, identityClaims, loginsThrough, usersWith } from '../../provider/login.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { until } from '../../rig/until.ts';
import type { Call, CallOptions, Reply } from '../rig/callers.ts';
import {
  administrator,
  eventsOf,
  everywhere,
  expectRefusal,
  loggedIn,
  logIn,
  mailedToken,
  PASSWORD,
  registered,
  sessionIn,
  verified,
} from '../rig/scenario.ts';
import { png } from '../uploads/corpus.ts';

/** The recorded events of an account, with actor and origin, and who may read them. */
const provider = await startHostileProvider();
const logInThrough = loginsThrough(provider);
afterAll(() => provider.close());

const SERVICE_TOKEN = 'billing-token';
const env = {
  ...environmentFor(provider),
  SERVICE_TOKENS: `billing:${createHash('sha256').update(SERVICE_TOKEN).digest('hex')}`,
};
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const NEW_PASSWORD = 'Difference-Engine-1822';
const WRONG = 'Wrong-Password-1';
const ANY_USER = 'user_00000000-0000-7000-8000-000000000000';

interface Row {
  id: string;
  kind: string;
  actor: string;
  actor_id: string | null;
  address: string;
  device: string;
  request_id: string;
  details: string | null;
  created_at: number;
}

/** Without the number, which the sequencer gives later. */
const rowsOf = async ({ database }: Stack, userId: string, kind = '%'): Promise<Row[]> => {
  const rows = await database<Row & { number: number | null }>(
    'select * from activity where user_id = ? and kind like ? order by id',
    [userId, kind],
  );
  return rows.map(({ number, ...row }) => row);
};

interface Scenario {
  stack: Stack;
  call: Call;
}

/** What an act must leave: an event of the user, with the answered request. */
interface Expected {
  userId: string;
  requestId: string | null;
  details: Record<string, unknown> | null;
  actor?: string;
  actorId?: string;
}

type Act = (scenario: Scenario, from: CallOptions) => Promise<Expected>;

const requestIdOf = ({ status, code, headers }: Reply, expected = 200): string | null => {
  expect({ status, code }).toMatchObject({ status: expected });
  return headers.get('x-request-id');
};

/** A page of a user's own events, then the next by its cursor. */
const list = async (call: Call, session: string, input: object = {}) => {
  const { status, data } = await call('activity.list', input, { session });
  expect(status).toBe(200);
  return data as { data: { id: string; at: number; kind: string }[]; nextCursor?: string };
};

const refusedWith =
  (password: string, reason: string, status: number, verify: boolean): Act =>
  async (scenario, from) => {
    const person = await (verify ? verified(scenario) : registered(scenario));
    const reply = await scenario.call('auth.login', { email: person.email, password }, from);
    return { userId: person.id, requestId: requestIdOf(reply, status), details: { reason } };
  };

/** Every kind of event with an act that causes it; several acts if their details differ. */
const acts: [kind: string, what: string, act: Act][] = [
  [
    'registered',
    'with a password',
    async ({ call }, from) => {
      const reply = await call(
        'auth.register',
        { email: `a${Math.random()}@example.test`, name: 'Ada', password: PASSWORD },
        from,
      );
      return {
        userId: reply.data.user.id,
        requestId: requestIdOf(reply, reply.status),
        details: { method: 'password' },
      };
    },
  ],
  [
    'registered',
    'by an invitation',
    async (scenario, from) => {
      const { stack, call } = scenario;
      const { session } = await administrator(scenario);
      const email = freshEmail();
      await call('users.invite', { email }, { session });
      const invitation = await mailedToken(stack, email, 'register');
      const reply = await call('auth.register', { email, name: 'Ada', password: PASSWORD, invitation }, from);
      const details = { method: 'password', invitedBy: 'administrator' };
      return { userId: reply.data.user.id, requestId: requestIdOf(reply, reply.status), details };
    },
  ],
  [
    'user-invited',
    'of the administrator',
    async (scenario, from) => {
      const { session, id } = await administrator(scenario);
      const email = freshEmail();
      const reply = await scenario.call('users.invite', { email }, { ...from, session });
      return { userId: id, requestId: requestIdOf(reply, reply.status), details: { email } };
    },
  ],
  [
    'invitation-revoked',
    'of the administrator',
    async (scenario, from) => {
      const { session, id } = await administrator(scenario);
      const email = freshEmail();
      const { data } = await scenario.call('users.invite', { email }, { session });
      const reply = await scenario.call('users.revokeInvitation', { id: data.invitation.id }, { ...from, session });
      return { userId: id, requestId: requestIdOf(reply), details: { email } };
    },
  ],
  ['registered', 'through a provider', (scenario, from) => throughProvider(scenario, from, { method: 'acme' })],
  ['identity-linked', 'with the account', (scenario, from) => throughProvider(scenario, from, { provider: 'acme' })],
  [
    'logged-in',
    'through a provider',
    (scenario, from) => throughProvider(scenario, from, { method: 'acme', session: expect.any(String) }),
  ],
  [
    'verified',
    'by the mailed link',
    async (scenario, from) => {
      const person = await registered(scenario);
      const token = await mailedToken(scenario.stack, person.email, 'verify-email');
      const reply = await scenario.call('auth.verifyEmail', { token }, from);
      return { userId: person.id, requestId: requestIdOf(reply), details: null };
    },
  ],
  [
    'logged-in',
    'with a password',
    async (scenario, from) => {
      const { id, email, device } = await verified(scenario);
      const reply = await scenario.call('auth.login', { email, password: PASSWORD }, { ...from, device });
      const session = await idOf(scenario, sessionIn(reply));
      return { userId: id, requestId: requestIdOf(reply), details: { method: 'password', session } };
    },
  ],
  ['login-refused', 'a wrong password', refusedWith(WRONG, 'wrong-password', 401, true)],
  ['login-refused', 'a wrong password of an unverified account', refusedWith(WRONG, 'wrong-password', 401, false)],
  ['login-refused', 'an unverified account', refusedWith(PASSWORD, 'unverified', 403, false)],
  [
    'login-refused',
    'past the limit',
    async (scenario, from) => {
      const { id, email } = await verified(scenario);
      const attempt = { email: 'nobody@example.test', password: WRONG };
      for (let i = 0; i < 5; i++) await scenario.call('auth.login', attempt, from);
      const reply = await scenario.call('auth.login', { email, password: PASSWORD }, from);
      return { userId: id, requestId: requestIdOf(reply, 429), details: { reason: 'limited' } };
    },
  ],
  [
    'logged-out',
    'by its logout',
    async (scenario, from) => {
      const { id, session } = await loggedIn(scenario);
      const details = { session: await idOf(scenario, session) };
      const reply = await scenario.call('auth.logout', undefined, { ...from, session });
      return { userId: id, requestId: requestIdOf(reply), details };
    },
  ],
  [
    'logged-out',
    'by a login in its place',
    async (scenario, from) => {
      const { id, email, session } = await loggedIn(scenario);
      const details = { session: await idOf(scenario, session) };
      const reply = await scenario.call('auth.login', { email, password: PASSWORD }, { ...from, session });
      return { userId: id, requestId: requestIdOf(reply), details };
    },
  ],
  [
    'session-ended',
    'from another one',
    async (scenario, from) => {
      const { id, session, ...person } = await loggedIn(scenario);
      await logIn(scenario.call, person, { headers: { 'user-agent': 'curl/8.5.0' } });
      const { data } = await scenario.call('sessions.list', undefined, { session });
      const [{ id: ended }] = data.data;
      const reply = await scenario.call('sessions.end', { id: ended }, { ...from, session });
      return { userId: id, requestId: requestIdOf(reply), details: { device: 'curl', session: ended } };
    },
  ],
  [
    'sessions-ended',
    'by the user',
    async (scenario, from) => {
      const { id, session } = await loggedIn(scenario);
      const reply = await scenario.call('auth.logoutAll', undefined, { ...from, session });
      return { userId: id, requestId: requestIdOf(reply), details: null };
    },
  ],
  [
    'sessions-ended',
    'by an administrator',
    async (scenario, from) => {
      const [{ id }, admin] = [await loggedIn(scenario), await administrator(scenario)];
      const reply = await scenario.call('users.endSessions', { id }, { ...from, session: admin.session });
      const by = { actor: 'administrator', actorId: admin.id };
      return { userId: id, requestId: requestIdOf(reply), details: null, ...by };
    },
  ],
  [
    'sessions-ended',
    'by a service',
    async (scenario, { address = '', headers }) => {
      const { id } = await loggedIn(scenario);
      const response = await fetch(`${scenario.stack.url}/trpc/service.endSessions`, {
        method: 'POST',
        headers: {
          ...headers,
          'x-forwarded-for': address,
          'content-type': 'application/json',
          authorization: `Bearer ${SERVICE_TOKEN}`,
        },
        body: JSON.stringify({ userId: id }),
      });
      expect(response.status).toBe(200);
      const requestId = response.headers.get('x-request-id');
      return { userId: id, requestId, details: null, actor: 'service:billing' };
    },
  ],
  [
    'not-me',
    'by the link of the mail about a login',
    async (scenario, from) => {
      const { id, ...person } = await loggedIn(scenario);
      await logIn(scenario.call, person);
      const token = await mailedToken(scenario.stack, person.email, 'not-me');
      const reply = await scenario.call('account.notMe', { token }, from);
      return { userId: id, requestId: requestIdOf(reply), details: { methods: 'password' } };
    },
  ],
  [
    'password-changed',
    'by a reset',
    async (scenario, from) => {
      const { id, email } = await verified(scenario);
      return { userId: id, requestId: await reset(scenario, email, from), details: { by: 'reset' } };
    },
  ],
  [
    'login-methods-removed',
    'by a reset, of an account whose identity nobody had proven',
    async (scenario, from) => {
      const { email } = await unproven(scenario);
      const [user] = await usersWith(scenario.stack, email);
      return { userId: user?.id ?? '', requestId: await reset(scenario, email, from), details: { methods: 'acme' } };
    },
  ],
  [
    'identity-unlinked',
    'moved to the account of its right address',
    async (scenario, from) => {
      const { stack } = scenario;
      const typo = identityClaims({ email_verified: false });
      await logInThrough(stack, typo);
      const [former] = await usersWith(stack, typo.email);
      // The account has another login method, so it stays.
      await stack.database("update users set password_hash = '1:x:x' where id = ?", [former?.id ?? '']);
      const { email } = await verified(scenario);
      const { requestId } = await comeBack(scenario, from, { ...typo, email, email_verified: true });
      return { userId: former?.id ?? '', requestId, details: { provider: 'acme' } };
    },
  ],
  [
    'profile-changed',
    'with the names of the fields only',
    async (scenario, from) => {
      const { id, session } = await loggedIn(scenario);
      const change = { bio: 'A secret bio', website: 'https://example.test/secret' };
      const reply = await scenario.call('profile.update', change, { ...from, session });
      return { userId: id, requestId: requestIdOf(reply), details: { fields: 'bio, website' } };
    },
  ],
  [
    'upload-stored',
    'an image',
    async (scenario, { address = '', headers }) => {
      const { id, session } = await loggedIn(scenario);
      const body = new FormData();
      body.append('type', 'avatar');
      body.append('file', new File([new Uint8Array(await png())], 'ada.png', { type: 'image/png' }));
      const response = await fetch(`${scenario.stack.url}/api/upload/image`, {
        method: 'POST',
        body,
        headers: { ...headers, 'x-forwarded-for': address, cookie: `auth_session=${session}` },
      });
      const { url } = (await response.json()) as { url: string };
      const key = url.slice(url.indexOf('uploads/'));
      return { userId: id, requestId: response.headers.get('x-request-id'), details: { key } };
    },
  ],
];

/** The id of a session in the list of devices. */
async function idOf({ call }: Scenario, session: string | undefined): Promise<string> {
  const { data } = await call('sessions.list', undefined, { session: session ?? '' });
  return data.data.find(({ current }: { current: boolean }) => current).id;
}

/** The kinds tested in other files, with their acts. */
const elsewhere: Record<string, string> = {
  reauthenticated: 'reauthentication.test.ts',
  'email-change-requested': 'changes',
  'email-changed': 'changes',
  'email-change-undone': 'changes',
  'deletion-requested': 'leaving',
  'deletion-undone': 'leaving',
  'passkey-added': 'passkeys.test.ts',
  'passkey-removed': 'passkeys.test.ts',
  'key-created': 'keys.test.ts',
  'key-revoked': 'keys.test.ts',
  'totp-enabled': 'totp.test.ts',
  'totp-disabled': 'totp.test.ts',
  'recovery-codes-renewed': 'totp.test.ts',
  'recovery-code-used': 'second-factor.test.ts',
  'second-factors-removed': 'totp.test.ts',
  blocked: 'user-administration.test.ts',
  unblocked: 'user-administration.test.ts',
  unlocked: 'user-administration.test.ts',
  'role-changed': 'user-administration.test.ts',
  'reset-sent': 'user-administration.test.ts',
  impersonated: 'impersonation.test.ts',
  'upload-removed': 'events.test.ts',
  'upload-quarantined': 'events.test.ts',
  'user-removed': 'events.test.ts',
  'webhook-added': 'webhooks.test.ts',
  'webhook-changed': 'webhooks.test.ts',
  'webhook-removed': 'webhooks.test.ts',
  'grant-created': 'openid-provider.test.ts',
  'grant-revoked': 'openid-provider.test.ts',
  'application-added': 'applications.test.ts',
  'application-changed': 'applications.test.ts',
  'application-removed': 'applications.test.ts',
};

/** The end of a provider login in a browser with this address and User-Agent. */
async function comeBack(
  { stack }: Scenario,
  { address = '', headers }: CallOptions,
  claims: ReturnType<typeof identityClaims>,
) {
  const { browser, request } = await begin(stack);
  const callback = atInstance(stack, provider.authorize(request, claims));
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const response = await fetch(callback, {
    redirect: 'manual',
    headers: { ...headers, 'x-forwarded-for': address, cookie },
  });
  expect(response.headers.get('location')).toBe('/dashboard');
  return { requestId: response.headers.get('x-request-id') };
}

async function throughProvider(scenario: Scenario, from: CallOptions, details: object): Promise<Expected> {
  const claims = identityClaims();
  const { requestId } = await comeBack(scenario, from, claims);
  const [user] = await usersWith(scenario.stack, claims.email);
  return { userId: user?.id ?? '', requestId, details: { ...details } };
}

/** An account with an unproven identity. */
async function unproven({ stack, call }: Scenario) {
  const claims = identityClaims({ email_verified: false });
  await logInThrough(stack, claims);
  const token = await mailedToken(stack, claims.email, 'verify-email');
  expect((await call('auth.verifyEmail', { token })).status).toBe(200);
  return claims;
}

async function reset({ stack, call }: Scenario, email: string, from: CallOptions): Promise<string | null> {
  await call('auth.forgotPassword', { email });
  const token = await mailedToken(stack, email, 'reset-password');
  return requestIdOf(await call('auth.resetPassword', { token, email, password: NEW_PASSWORD }, from));
}

everywhere(
  (scenario) => {
    test.each(acts)('%s: %s', async (kind, _, act) => {
      const { stack, call } = scenario();
      const address = clientAddress();
      const before = Date.now();
      const {
        userId,
        requestId,
        details,
        actor = 'user',
        actorId = null,
      } = await act(scenario(), {
        address,
        headers: { 'user-agent': FIREFOX },
      });
      expect(requestId).toMatch(/^[\w-]{8,}$/);
      const row = await until(async () =>
        (await rowsOf(stack, userId, kind)).find(({ request_id }) => request_id === requestId),
      );
      expect({ ...row, details: row.details && JSON.parse(row.details) }).toEqual({
        id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/),
        user_id: userId,
        kind,
        actor,
        actor_id: actorId,
        address,
        device: 'Firefox on Linux',
        request_id: requestId,
        details,
        created_at: expect.anything(),
        // Computed by the database: the index of the searched kinds.
        topic: kind === 'logged-in' && details?.['device'] === 'new' ? 'logged-in:new' : kind,
      });
      expect(Math.abs(Number(row.created_at) - before)).toBeLessThan(60_000);

      const admin = await administrator(scenario());
      const { data } = await call('users.activity', { id: userId }, { session: admin.session });
      expect(data.data.find(({ id }: { id: string }) => id === row.id)).toEqual({
        id: row.id,
        at: Math.floor(Number(row.created_at) / 1000),
        kind,
        actor,
        address,
        device: 'Firefox on Linux',
        ...(details && { details }),
      });
    });

    test('users do not see the address of an administrator, in the activity or in the export', async () => {
      const { call, stack } = scenario();
      const { session, id } = await loggedIn(scenario());
      const admin = await administrator(scenario());
      const from = { address: clientAddress(), headers: { 'user-agent': FIREFOX } };
      expect((await call('users.unlock', { id }, { ...from, session: admin.session })).status).toBe(200);
      await call('users.unlock', { id: admin.id }, { ...from, session: admin.session });
      const listed = await list(call, session);
      const exported = (await call('account.export', undefined, { session })).data;
      for (const events of [listed.data, exported.activity as typeof listed.data]) {
        const unlocked = events.find(({ kind }) => kind === 'unlocked');
        expect(unlocked).toMatchObject({ actor: 'administrator', address: '', device: '' });
        const own = events.find(({ kind }) => kind === 'logged-in');
        expect(own).toMatchObject({ actor: 'user', address: expect.stringMatching(/./), device: 'node' });
      }
      expect(JSON.stringify([listed, exported])).not.toContain(from.address);
      const seen = await call('users.activity', { id }, { session: admin.session });
      expect(seen.data.data).toContainEqual(expect.objectContaining({ kind: 'unlocked', address: from.address }));
      // An administrator's actions on the own account have no hidden address.
      const ofAdmin = (await list(call, admin.session)).data.find(({ kind }) => kind === 'unlocked');
      expect(ofAdmin).toMatchObject({ address: from.address, device: 'Firefox on Linux' });
      expect(await rowsOf(stack, id, 'unlocked')).toMatchObject([{ address: from.address }]);
    });

    test('every kind of event is documented', async () => {
      const document = await (await fetch(`${scenario().stack.url}/openapi.json`)).text();
      const [description = ''] = /`registered`: [^"]*/.exec(document) ?? [];
      const kinds = [...description.matchAll(/`([a-z-]+)`: /g)].map(([, kind]) => kind);
      const known = new Set([...acts.map(([kind]) => kind), ...Object.keys(elsewhere)]);
      expect(new Set(kinds)).toEqual(known);
    });

    // checks: 37
    test('events contain no secrets', async () => {
      const { call, stack } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const other = await logIn(call, person);
      await call('auth.login', { email: person.email, password: WRONG });
      const change = { name: 'A private name', bio: 'A private bio' };
      await call('profile.update', change, { session: other });
      await reset(scenario(), person.email, {});
      const token = await mailedToken(stack, person.email, 'not-me');
      await call('account.notMe', { token });
      await until(async () => (await rowsOf(stack, person.id, 'login-refused')).length === 1);
      const text = JSON.stringify(await rowsOf(stack, person.id));
      const hashes = await stack.database<{ password_hash: string | null }>('select password_hash from users');
      const tokens = await stack.database<{ token_hash: string }>('select token_hash from one_time_tokens');
      const secrets = [
        ...[session, other, token, PASSWORD, NEW_PASSWORD, WRONG, change.name, change.bio],
        ...hashes.flatMap(({ password_hash }) => password_hash ?? []),
        ...tokens.map(({ token_hash }) => token_hash),
      ];
      expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
    });

    // checks: 49
    test('users see only their own events, newest first, in pages', async () => {
      const { call, stack } = scenario();
      const { session, id } = await loggedIn(scenario());
      const stranger = await loggedIn(scenario());
      for (let i = 0; i < 7; i++) await call('profile.update', { bio: `${i}` }, { session });
      const rows = (await rowsOf(stack, id)).map((row) => row.id).reverse();
      expect(rows).toHaveLength(10);
      const pages = [];
      let cursor: string | undefined;
      do {
        const page = await list(call, session, { limit: 4, ...(cursor && { cursor }) });
        pages.push(page.data.map((event) => event.id));
        cursor = page.nextCursor;
      } while (cursor);
      expect(pages.map(({ length }) => length)).toEqual([4, 4, 2]);
      expect(pages.flat()).toEqual(rows);
      expect((await list(call, session)).data.map((event) => event.id)).toEqual(rows);
      expect(await list(call, session, { limit: 10 })).not.toHaveProperty('nextCursor');
      // New events during paging shift no page.
      const first = await list(call, session, { limit: 5 });
      await call('profile.update', { bio: 'new' }, { session });
      const next = await list(call, session, { limit: 5, cursor: first.nextCursor });
      expect([...first.data, ...next.data].map((event) => event.id)).toEqual(rows);
      // Another user's cursor is only a time, and shows none of their events.
      const [theirs] = (await list(call, stranger.session)).data;
      const ids = (await list(call, session, { cursor: theirs?.id })).data.map((event) => event.id);
      expect(ids.every((event) => [...rows].includes(event))).toBe(true);
    });

    test.each([
      ['no cursor of ours', { cursor: 'x' }],
      ['an id with something around it', { cursor: ` ${ANY_USER.slice(5)}` }],
      ['SQL', { cursor: "' or 1=1 --" }],
      ['a user id', { cursor: ANY_USER }],
      ['no limit', { limit: 0 }],
      ['a limit past the largest', { limit: 101 }],
      ['an invalid limit', { limit: 'all' }],
    ])('%s is refused', async (_, input) => {
      const { call } = scenario();
      const admin = await administrator(scenario());
      const options = { session: admin.session };
      expectRefusal(await call('activity.list', input, options), 400, 'VALIDATION_FAILED');
      expectRefusal(await call('users.activity', { id: admin.id, ...input }, options), 400, 'VALIDATION_FAILED');
    });

    // checks: 49
    test('reading requires a session, and reading others’ events the role', async () => {
      const { call } = scenario();
      const { session, id } = await loggedIn(scenario());
      const admin = await administrator(scenario());
      for (const none of [undefined, 'x'.repeat(43)]) {
        expectRefusal(await call('activity.list', {}, { session: none }), 401, 'UNAUTHENTICATED');
        expectRefusal(await call('users.activity', { id }, { session: none }), 401, 'UNAUTHENTICATED');
      }
      for (const whose of [id, admin.id, ANY_USER, 'x']) {
        expectRefusal(await call('users.activity', { id: whose }, { session }), 403, 'FORBIDDEN');
      }
      for (const nobody of [ANY_USER, 'x', "'"]) {
        const reply = await call('users.activity', { id: nobody }, { session: admin.session });
        expectRefusal(reply, 404, 'NOT_FOUND', 'User not found');
      }
      // The parameter is ignored: the own list has no user.
      const own = await call('activity.list', { id: admin.id, userId: admin.id, limit: 100 }, { session });
      expect(own.data.data).toHaveLength(3);
    });

    describe('a change and its event are stored together', () => {
      const fresh = { email: `sabotage-${process.pid}@example.test`, name: 'Ada', password: PASSWORD };
      interface User {
        id: string;
        email: string;
        session: string;
      }
      const users = 'select count(*) as users from users';
      const sessions = 'select user_id, epoch from sessions order by id';
      const failing: [
        what: string,
        kind: string,
        unchanged: string,
        act: (call: Call, user: User) => Promise<Reply>,
      ][] = [
        ['a registration', 'registered', users, (call) => call('auth.register', fresh)],
        ['a login', 'logged-in', sessions, (call, { email }) => call('auth.login', { email, password: PASSWORD })],
        [
          'a change of the profile',
          'profile-changed',
          'select id, bio from users order by id',
          (call, { session }) => call('profile.update', { bio: 'x' }, { session }),
        ],
        ['a logout', 'logged-out', sessions, (call, { session }) => call('auth.logout', undefined, { session })],
        [
          'the end of all sessions',
          'sessions-ended',
          'select id, session_epoch from users order by id',
          (call, { session }) => call('auth.logoutAll', undefined, { session }),
        ],
      ];

      test.each(failing)('%s fails if its event cannot be written', async (_, kind, unchanged, act) => {
        const { call, stack } = scenario();
        const user = await loggedIn(scenario());
        const body =
          stack.name === 'embedded'
            ? `when new.kind = '${kind}' begin select raise(abort, 'sabotage'); end`
            : `for each row if new.kind = '${kind}' then signal sqlstate '45000' set message_text = 'sabotage'; end if`;
        const state = async () => [await stack.database(unchanged), await rowsOf(stack, user.id)];
        const before = await state();
        await stack.database(`create trigger no_event before insert on activity ${body}`);
        try {
          expectRefusal(await act(call, user), 500, 'INTERNAL');
          expect(await state()).toEqual(before);
        } finally {
          await stack.database('drop trigger no_event');
        }
        expect((await act(call, user)).status).toBeLessThan(300);
        expect(await state()).not.toEqual(before);
        await stack.database('delete from users where email = ?', [fresh.email]);
      });
    });

    test('refused logins are recorded twenty times an hour per account and reason, and never for an unknown email', async () => {
      const { call, stack } = scenario();
      const { id, email } = await loggedIn(scenario());
      const refused = async (reason = 'wrong-password') =>
        (await eventsOf(stack, id, 'login-refused')).filter((details) => details.reason === reason).length;
      const ofNobody = 'select id from activity where user_id not in (select id from users)';
      const attempts = (whose: string, times: number, address?: string) =>
        Promise.all(
          Array.from({ length: times }, () =>
            call('auth.login', { email: whose, password: WRONG }, { address: address ?? clientAddress() }),
          ),
        );
      const before = await stack.database(ofNobody);
      await attempts('nobody@example.test', 30);
      await attempts('nobody@example.test', 100, clientAddress());
      const address = clientAddress();
      for (let i = 0; i < 3; i++) await attempts(email, 100, address);
      while ((await refused()) < 20) await attempts(email, 10);
      await attempts(email, 60);
      await attempts(email, 100, address);
      // Events written after their answers are complete once a later one, of another account, is written.
      const witness = await verified(scenario());
      await until(async () => {
        await attempts(witness.email, 1);
        return (await rowsOf(stack, witness.id, 'login-refused')).length > 0;
      });
      expect(await refused()).toBe(20);
      expect(await refused('limited')).toBeLessThanOrEqual(20);
      expect(await stack.database(ofNobody)).toEqual(before);
      // They leave room for another reason.
      await stack.database('update users set blocked_at = 1 where id = ?', [id]);
      await call('auth.login', { email, password: PASSWORD });
      await until(async () => (await refused('blocked')) === 1);
      await stack.database('update users set blocked_at = null where id = ?', [id]);
      // An hour later there is room again.
      await stack.database('delete from activity where user_id = ? and kind = ?', [id, 'login-refused']);
      await until(async () => {
        await attempts(email, 1);
        return (await refused()) > 0;
      });
    });
  },
  { env },
);
