import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import { environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import { identitiesOf, identityClaims, loginsThrough, profileOf, usersWith } from '../../provider/login.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { callerOf } from '../rig/callers.ts';
import {
  administrator,
  deviceIn,
  eventsOf,
  everywhere,
  expectRefusal,
  inBrowser,
  isAlive,
  kindsOf,
  loggedIn,
  logIn,
  mailedToken,
  mailsSettled,
  PASSWORD,
  registered,
  type Scenario,
  visibleIn,
} from '../rig/scenario.ts';
import { storedUser } from '../rig/stored-user.ts';

/** Who may register: REGISTRATION, REGISTRATION_DOMAINS and invitations. */
const provider = await startHostileProvider();
const logInThrough = loginsThrough(provider);
afterAll(() => provider.close());
const providers = environmentFor(provider);

const CLOSED = '/login?error=registration_closed';
const ANY_TOKEN = 'x'.repeat(43);

const registrant = (changes: object = {}) => ({
  name: 'Ada Lovelace',
  email: freshEmail(),
  password: PASSWORD,
  ...changes,
});
const elsewhere = (prefix = 'user') => `${prefix}-${randomBytes(6).toString('hex')}@elsewhere.test`;

const invitationsOf = ({ database }: Stack, email: string) =>
  database<{ id: string; token_hash: string }>('select * from invitations where email = ?', [email]);

/** An earlier invitation. Returns its token. */
async function storedInvitation({ database }: Stack, email: string, lifeMs = 60_000): Promise<string> {
  const token = randomBytes(32).toString('base64url');
  await database(
    'insert into invitations (id, email, token_hash, invited_by, created_at, expires_at) values (?, ?, ?, null, ?, ?)',
    [randomUUID(), email, createHash('sha256').update(token).digest('base64url'), Date.now(), Date.now() + lifeMs],
  );
  return token;
}

/** An attempt left nothing: no account, mail or event. */
async function expectNothing(stack: Stack, email: string): Promise<void> {
  expect(await usersWith(stack, email)).toEqual([]);
  expect(await stack.database('select id from outbox where email = ?', [email])).toEqual([]);
}

/** The refusal of a callback over /trpc by the typed client. */
async function refusalOverRpc(stack: Stack, claims: ReturnType<typeof identityClaims>) {
  const rpc = callerOf('trpc', stack.url);
  const started = await rpc('auth.idp.start', { provider: 'acme' });
  const cookie = started.setCookies.map((line) => line.split(';')[0]).join('; ');
  const { searchParams } = provider.authorize(new URL(started.data.location), claims);
  return rpc('auth.idp.callback', Object.fromEntries(searchParams), { headers: { cookie } });
}

/** Common to all modes for an address that may not register. */
function refusesStrangers(scenario: () => Scenario, addressOf: () => string): void {
  test('a registration is refused, with the same answer for a taken email', async () => {
    const { call, stack } = scenario();
    const [free, taken, invited] = [addressOf(), addressOf(), addressOf()];
    await storedUser(scenario(), { email: taken });
    await storedInvitation(stack, invited);
    const replies = [];
    for (const email of [free, taken, taken.toUpperCase(), invited]) {
      const reply = await call('auth.register', registrant({ email }));
      expectRefusal(reply, 403, 'REGISTRATION_CLOSED', 'Registration is not open to this address');
      replies.push(visibleIn(reply));
    }
    for (const reply of replies) expect(reply).toEqual(replies[0]);
    await expectNothing(stack, free);
    await expectNothing(stack, invited);
    expect(await invitationsOf(stack, invited)).toHaveLength(1);
  });

  test('a first login through a provider creates no account, verified or not', async () => {
    const { stack } = scenario();
    for (const email_verified of [true, false]) {
      const stranger = identityClaims({ email: addressOf(), email_verified });
      expect(await logInThrough(stack, stranger)).toMatchObject({ location: CLOSED, session: undefined });
      expectRefusal(await refusalOverRpc(stack, stranger), 403, 'REGISTRATION_CLOSED');
      expect(await identitiesOf(stack, stranger.sub)).toEqual([]);
      await expectNothing(stack, stranger.email);
    }
  });

  test('a provider that does not verify the email does not reveal its owner', async () => {
    const { stack } = scenario();
    const { email } = await storedUser(scenario(), { email: addressOf() });
    const claims = identityClaims({ email, email_verified: false });
    expect((await logInThrough(stack, claims)).location).toBe(CLOSED);
    expect(await identitiesOf(stack, claims.sub)).toEqual([]);
  });

  test('users with an account can log in by password, reset and verified provider', async () => {
    const { call, stack } = scenario();
    const { session, ...person } = await storedUser(scenario(), { email: addressOf() });
    expect(await isAlive(call, session)).toBe(true);
    await call('auth.forgotPassword', { email: person.email });
    const token = await mailedToken(stack, person.email, 'reset-password');
    const reset = await call('auth.resetPassword', { token, email: person.email, password: PASSWORD });
    expect(reset.status).toBe(200);
    await logIn(call, person);
    const claims = identityClaims({ email: person.email });
    for (let i = 0; i < 2; i++) {
      const login = await logInThrough(stack, claims);
      expect(login.location).toBe('/dashboard');
      expect(await profileOf(stack, login.session)).toMatchObject({ id: person.id });
    }
  });

  test('users with an account can link an identity with another email', async () => {
    const { stack } = scenario();
    const { id, session } = await storedUser(scenario(), { email: addressOf() });
    const browser = new Browser();
    browser.cookies.set('auth_session', session);
    const claims = identityClaims({ email: addressOf(), email_verified: false });
    const location = await browser.redirectOf(`${stack.url}/auth/acme?link=1`);
    const callback = provider.authorize(new URL(location), claims);
    const end = await browser.redirectOf(new URL(callback.pathname + callback.search, stack.url));
    expect(end).toBe('/dashboard/security?notice=linked');
    expect(await identitiesOf(stack, claims.sub)).toMatchObject([{ user_id: id }]);
    expect((await logInThrough(stack, claims)).location).toBe('/dashboard');
  });
}

describe('closed', () => {
  everywhere(
    (scenario) => {
      refusesStrangers(scenario, freshEmail);

      test('invitations are neither sent nor accepted, and are kept', async () => {
        const { call, stack } = scenario();
        const { session } = await storedUser(scenario(), { role: 'admin' });
        const email = freshEmail();
        const message = 'Registration is closed, even for invited users';
        expectRefusal(await call('users.invite', { email }, { session }), 403, 'REGISTRATION_CLOSED', message);
        const invitation = await storedInvitation(stack, email);
        for (const token of [invitation, ANY_TOKEN]) {
          const reply = await call('auth.register', registrant({ email, invitation: token }));
          expectRefusal(reply, 403, 'REGISTRATION_CLOSED');
        }
        expect((await logInThrough(stack, identityClaims({ email }))).location).toBe(CLOSED);
        await expectNothing(stack, email);
        expect(await invitationsOf(stack, email)).toHaveLength(1);
      });
    },
    { env: { ...providers, REGISTRATION: 'closed' } },
  );
});

/** Invites an address as an administrator. Returns the mailed token. */
async function invited(scenario: Scenario, email: string, count = 1) {
  const { session } = await storedUser(scenario, { role: 'admin' });
  const reply = await scenario.call('users.invite', { email }, { session });
  expect(reply).toMatchObject({ code: undefined, data: { success: true } });
  return mailedToken(scenario.stack, email, 'register', count);
}

/** Common to all modes with invitations. */
function takesInvitations(scenario: () => Scenario, addressOf: () => string): void {
  test('an invited user gets a verified account with a proven password and no further mail', async () => {
    const { call, stack } = scenario();
    const email = addressOf();
    const invitation = await invited(scenario(), email);
    const person = registrant({ email, invitation });
    const reply = await call('auth.register', { ...person, email: email.toUpperCase() });
    expect(reply).toMatchObject({ code: undefined, data: { user: { email, name: person.name } } });
    expect(reply.data.message).toContain('You can now log in');
    const session = await logIn(call, { ...person, email }, { device: deviceIn(reply) });
    const profile = await call('profile.get', undefined, { session });
    expect(profile.data.user).toMatchObject({ id: reply.data.user.id, emailVerified: true, provider: 'email' });
    const [user] = await stack.database('select password_proven from users where email = ?', [email]);
    expect(user?.['password_proven']).toBe(1);
    expect(await kindsOf(stack, reply.data.user.id)).toEqual(['registered', 'verified', 'logged-in']);
    expect(await eventsOf(stack, reply.data.user.id, 'registered')).toEqual([
      { method: 'password', invitedBy: 'administrator' },
    ]);
    expect(await invitationsOf(stack, email)).toEqual([]);
    await mailsSettled(stack, email);
    expect((await stack.mailsTo(email)).map(({ subject }) => subject)).toEqual([
      expect.stringContaining('You are invited'),
    ]);
  });

  test('a token works for one account with its email; a refused registration leaves it valid', async () => {
    const { call, stack } = scenario();
    const email = addressOf();
    const invitation = await invited(scenario(), email);
    const other = addressOf();
    const refused = await call('auth.register', registrant({ email: other, invitation }));
    expectRefusal(refused, 400, 'INVALID_TOKEN');
    await expectNothing(stack, other);
    for (const token of [ANY_TOKEN, `${invitation.slice(0, -1)}!`, '', 7, null]) {
      const reply = await call('auth.register', registrant({ email, invitation: token }));
      expectRefusal(reply, 400, 'INVALID_TOKEN');
    }
    const weak = await call('auth.register', registrant({ email, password: 'short', invitation }));
    expectRefusal(weak, 400, 'VALIDATION_FAILED');
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => call('auth.register', registrant({ email, invitation }))),
    );
    expect(replies.filter(({ code }) => code === undefined)).toHaveLength(1);
    expect(new Set(replies.map(({ code }) => code))).toEqual(new Set([undefined, 'INVALID_TOKEN']));
    expect(await usersWith(stack, email)).toHaveLength(1);
    expectRefusal(await call('auth.register', registrant({ email, invitation })), 400, 'INVALID_TOKEN');
  });

  test('a newer invitation replaces the older one; revoked and expired ones are refused', async () => {
    const { call, stack } = scenario();
    const email = addressOf();
    const older = await invited(scenario(), email);
    const newer = await invited(scenario(), email, 2);
    expect(newer).not.toBe(older);
    expectRefusal(await call('auth.register', registrant({ email, invitation: older })), 400, 'INVALID_TOKEN');
    const [row] = await invitationsOf(stack, email);
    const { session } = await storedUser(scenario(), { role: 'admin' });
    expect((await call('users.revokeInvitation', { id: row?.id }, { session })).status).toBe(200);
    expectRefusal(await call('auth.register', registrant({ email, invitation: newer })), 400, 'INVALID_TOKEN');
    const again = await call('users.revokeInvitation', { id: row?.id }, { session });
    expectRefusal(again, 404, 'NOT_FOUND', 'Invitation not found');
    const expired = await storedInvitation(stack, email, -1);
    expectRefusal(await call('auth.register', registrant({ email, invitation: expired })), 400, 'INVALID_TOKEN');
    await expectNoUser(stack, email);
  });

  // checks: 73
  test.each([
    ['is blocked', 'users.block', {}],
    ['is demoted', 'users.setRole', { role: 'user' }],
    ['is deleted', 'users.delete', {}],
    ['deletes the account', 'account.delete', undefined],
  ] as const)('an invitation ends when its administrator %s', async (_, procedure, input) => {
    const { call, stack } = scenario();
    const anAdministrator = () => storedUser(scenario(), { role: 'admin' });
    const [inviter, other] = [await anAdministrator(), await anAdministrator()];
    const [mailed, provided, kept] = [addressOf(), addressOf(), addressOf()];
    for (const email of [mailed, provided]) await call('users.invite', { email }, { session: inviter.session });
    await call('users.invite', { email: kept }, { session: other.session });
    const invitation = await mailedToken(stack, mailed, 'register');
    const ended = await (input
      ? call(procedure, { id: inviter.id, ...input }, { session: other.session })
      : call(procedure, undefined, { session: inviter.session }));
    expect(ended).toMatchObject({ code: undefined, status: 200 });
    const expectEnd = async () => {
      expectRefusal(await call('auth.register', registrant({ email: mailed, invitation })), 400, 'INVALID_TOKEN');
      const { data } = await call('users.invitations', {}, { session: other.session });
      const emails = data.data.map(({ email }: { email: string }) => email);
      expect([mailed, provided, kept].map((email) => emails.includes(email))).toEqual([false, false, true]);
      await expectNoUser(stack, mailed);
    };
    await expectEnd();
    // As an administrator again: earlier invitations stay void.
    await stack.database("update users set role = 'admin', blocked_at = null, deleted_at = null where id = ?", [
      inviter.id,
    ]);
    await expectEnd();
  });

  test('an invitation without an administrator is the operator’s, and only its hash is stored', async () => {
    const { call, stack } = scenario();
    const email = addressOf();
    const invitation = await storedInvitation(stack, email);
    expect(JSON.stringify(await invitationsOf(stack, email))).not.toContain(invitation);
    const { data } = await call('auth.register', registrant({ email, invitation }));
    expect(await eventsOf(stack, data.user.id, 'registered')).toEqual([{ method: 'password', invitedBy: 'operator' }]);
  });

  test('an unverified account with the email makes room for the invited user', async () => {
    const { call, stack } = scenario();
    const email = addressOf();
    const squatter = await storedUser(scenario(), { email });
    await stack.database('update users set email_verified = 0 where id = ?', [squatter.id]);
    const invitation = await storedInvitation(stack, email);
    const { data } = await call('auth.register', registrant({ email, invitation, password: `${PASSWORD}x` }));
    expect(await usersWith(stack, email)).toMatchObject([{ id: data.user.id, email_verified: 1 }]);
    expect(await isAlive(call, squatter.session)).toBe(false);
    expectRefusal(await call('auth.login', squatter), 401, 'INVALID_CREDENTIALS');
  });

  test('a verified account with the email stays', async () => {
    const { call, stack } = scenario();
    const { id, email } = await storedUser(scenario(), { email: addressOf() });
    const invitation = await storedInvitation(stack, email);
    expectRefusal(await call('auth.register', registrant({ email, invitation })), 409, 'EMAIL_TAKEN');
    expect(await usersWith(stack, email)).toMatchObject([{ id }]);
  });
}

const expectNoUser = async (stack: Stack, email: string) => expect(await usersWith(stack, email)).toEqual([]);

/** For addresses that need an invitation. */
function needsInvitation(scenario: () => Scenario, addressOf: () => string): void {
  test('a provider that verifies the invited email admits its user, once', async () => {
    const { stack } = scenario();
    const email = addressOf();
    const token = await invited(scenario(), email);
    const doubtful = identityClaims({ email, email_verified: false });
    expect((await logInThrough(stack, doubtful)).location).toBe(CLOSED);
    expect(await invitationsOf(stack, email)).toHaveLength(1);
    const claims = identityClaims({ email: email.toUpperCase() });
    const login = await logInThrough(stack, claims);
    expect(login.location).toBe('/dashboard');
    const profile = await profileOf(stack, login.session);
    expect(profile).toMatchObject({ email, emailVerified: true, provider: 'acme' });
    expect(await eventsOf(stack, profile.id, 'registered')).toEqual([{ method: 'acme', invitedBy: 'administrator' }]);
    expect(await invitationsOf(stack, email)).toEqual([]);
    const { call } = scenario();
    expectRefusal(await call('auth.register', registrant({ email, invitation: token })), 400, 'INVALID_TOKEN');
  });

  test('an expired invitation admits nobody through a provider', async () => {
    const { stack } = scenario();
    const email = addressOf();
    await storedInvitation(stack, email, -1);
    expect((await logInThrough(stack, identityClaims({ email }))).location).toBe(CLOSED);
    await expectNoUser(stack, email);
  });

  test('if the mailed link and the provider race, one creates the account', async () => {
    const { call, stack } = scenario();
    const email = addressOf();
    const invitation = await storedInvitation(stack, email);
    const [{ code }, login] = await Promise.all([
      call('auth.register', registrant({ email, invitation })),
      logInThrough(stack, identityClaims({ email })),
    ]);
    expect([undefined, 'INVALID_TOKEN', 'EMAIL_TAKEN']).toContain(code);
    // The provider verifies the email of the account, also if the other request created it.
    expect([CLOSED, '/dashboard']).toContain(login.location);
    expect(code === undefined || login.location === '/dashboard').toBe(true);
    const users = await usersWith(stack, email);
    expect(users).toHaveLength(1);
    expect(await eventsOf(stack, users[0]?.id ?? '', 'registered')).toHaveLength(1);
    expect(await invitationsOf(stack, email)).toEqual([]);
  });
}

describe('invited', () => {
  everywhere(
    (scenario) => {
      refusesStrangers(scenario, freshEmail);
      takesInvitations(scenario, freshEmail);
      needsInvitation(scenario, freshEmail);

      test('an account can change to any email', async () => {
        const { call } = scenario();
        const { session } = await storedUser(scenario());
        expect((await call('account.changeEmail', { email: elsewhere() }, inBrowser(session))).status).toBe(200);
      });
    },
    { env: { ...providers, REGISTRATION: 'invited' } },
  );
});

describe('domains', () => {
  everywhere(
    (scenario) => {
      describe('outside', () => {
        refusesStrangers(scenario, elsewhere);
        takesInvitations(scenario, elsewhere);
        needsInvitation(scenario, elsewhere);
      });

      test.each([
        ['user@example.test', true],
        ['user@EXAMPLE.test', true],
        ['user@sub.example.test', false],
        ['user@notexample.test', false],
        ['user@example.test.evil.test', false],
        ['example.test@evil.test', false],
        ['user@team.example.org', true],
        ['user@a.Team.example.org', true],
        ['user@example.org', false],
        ['user@notexample.org', false],
        ['user@example.org.evil.test', false],
      ])('%s is admitted: %s', async (address, isLetIn) => {
        const { call } = scenario();
        const email = address.replace('@', `${randomBytes(6).toString('hex')}@`);
        const reply = await call('auth.register', registrant({ email }));
        if (isLetIn) expect(reply).toMatchObject({ code: undefined, data: { user: { email: email.toLowerCase() } } });
        else expectRefusal(reply, 403, 'REGISTRATION_CLOSED');
      });

      test('an email of an admitted domain registers as usual: it is verified by mail, and a taken one is 409', async () => {
        const { call } = scenario();
        const { email } = await loggedIn(scenario());
        expectRefusal(await call('auth.register', registrant({ email })), 409, 'EMAIL_TAKEN');
      });

      test('a provider admits an email of the domain: immediately if verified, else by mail', async () => {
        const { call, stack } = scenario();
        expect((await logInThrough(stack, identityClaims())).location).toBe('/dashboard');
        const doubtful = identityClaims({ email_verified: false });
        const { location, browser } = await logInThrough(stack, doubtful);
        expect(location).toBe('/verify-email');
        const token = await mailedToken(stack, doubtful.email, 'verify-email');
        await call('auth.verifyEmail', { token }, { browser: browser.cookies.get('auth_browser') });
        expect((await logInThrough(stack, doubtful)).location).toBe('/dashboard');
      });

      test('an admitted email is no way to another one', async () => {
        const { call, stack } = scenario();
        const claims = identityClaims({ email_verified: false });
        expect((await logInThrough(stack, claims)).location).toBe('/verify-email');
        for (const email_verified of [true, false]) {
          const moved = { ...claims, email: elsewhere(), email_verified };
          expect((await logInThrough(stack, moved)).location).toBe(CLOSED);
          await expectNoUser(stack, moved.email);
        }
        expect(await usersWith(stack, claims.email)).toHaveLength(1);
        const { session } = await loggedIn(scenario());
        const refused = await call('account.changeEmail', { email: elsewhere() }, inBrowser(session));
        expectRefusal(refused, 400, 'VALIDATION_FAILED');
        expect(refused.details?.['email']?.rule).toBe('domain_not_allowed');
        expect((await call('account.changeEmail', { email: freshEmail() }, inBrowser(session))).status).toBe(200);
      });

      test('a refused email change does not reveal the owner of the email', async () => {
        const { call } = scenario();
        const { session } = await loggedIn(scenario());
        const { email: taken } = await storedUser(scenario(), { email: elsewhere() });
        const replies = [];
        for (const email of [taken, elsewhere()]) {
          replies.push(visibleIn(await call('account.changeEmail', { email }, inBrowser(session))));
        }
        expect(replies[0]).toMatchObject({ status: 400, code: 'VALIDATION_FAILED' });
        expect(replies[1]).toEqual(replies[0]);
      });
    },
    {
      env: { ...providers, REGISTRATION: 'domains', REGISTRATION_DOMAINS: 'Example.TEST, *.example.org' },
    },
  );
});

describe('open', () => {
  everywhere(
    (scenario) => {
      takesInvitations(scenario, freshEmail);

      test('inviting requires the role and a recent credential', async () => {
        const { call, stack } = scenario();
        const input = { email: freshEmail() };
        const user = await loggedIn(scenario());
        const admin = await administrator(scenario());
        const procedures: [string, object][] = [
          ['users.invite', input],
          ['users.invitations', {}],
          ['users.revokeInvitation', { id: randomUUID() }],
        ];
        for (const [procedure, given] of procedures) {
          expectRefusal(await call(procedure, given), 401, 'UNAUTHENTICATED');
          expectRefusal(await call(procedure, given, { session: user.session }), 403, 'FORBIDDEN');
        }
        const headers = { origin: 'https://evil.test' };
        const refused = await call('users.invite', input, { session: admin.session, headers });
        expectRefusal(refused, 403, 'ORIGIN_MISMATCH');
        const sent = await call('users.invite', { email: freshEmail() }, { session: admin.session });
        await stack.database('update sessions set authenticated_at = 1 where user_id = ?', [admin.id]);
        const { id, email } = sent.data.invitation;
        for (const [procedure, given] of [
          ['users.invite', input],
          ['users.revokeInvitation', { id }],
        ] as const) {
          const old = await call(procedure, given, { session: admin.session });
          expectRefusal(old, 403, 'REAUTHENTICATION_REQUIRED');
        }
        expect(await invitationsOf(stack, email)).toHaveLength(1);
        expect(await invitationsOf(stack, input.email)).toEqual([]);
        await expectNothing(stack, input.email);
      });

      test('an email that has or recently had an account cannot be invited', async () => {
        const { call, stack } = scenario();
        const { session } = await administrator(scenario());
        const waiting = await registered(scenario());
        const { session: moving, ...moved } = await loggedIn(scenario());
        const email = freshEmail();
        await call('account.changeEmail', { email }, inBrowser(moving));
        const token = await mailedToken(stack, email, 'confirm-email');
        expect((await call('account.confirmEmail', { token }, inBrowser(moving))).status).toBe(200);
        for (const taken of [waiting.email, email.toUpperCase(), moved.email]) {
          expectRefusal(await call('users.invite', { email: taken }, { session }), 409, 'EMAIL_TAKEN');
        }
        for (const none of ['', 'x', `${freshEmail()}, ${freshEmail()}`, 1, null, undefined]) {
          expectRefusal(await call('users.invite', { email: none }, { session }), 400, 'VALIDATION_FAILED');
        }
      });

      test('administrators list open invitations in pages, newest first', async () => {
        const { call, stack } = scenario();
        const { session, id } = await administrator(scenario());
        const emails: string[] = [];
        for (let i = 0; i < 5; i++) {
          const { data } = await call('users.invite', { email: freshEmail() }, { session });
          emails.unshift(data.invitation.email);
        }
        await storedInvitation(stack, freshEmail(), -1);
        const { email: taken } = await loggedIn(scenario());
        await storedInvitation(stack, taken);
        const listed: Record<string, unknown>[] = [];
        for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
          const { data } = await call('users.invitations', { limit: 2, ...(cursor && { cursor }) }, { session });
          expect(data.data.length).toBeLessThanOrEqual(2);
          listed.push(...data.data);
          cursor = data.nextCursor;
        }
        const own = listed.filter(({ invitedBy }) => invitedBy === id);
        expect(own.map(({ email }) => email)).toEqual(emails);
        expect(listed.map(({ email }) => email)).not.toContain(taken);
        for (const { createdAt, expiresAt } of own) expect(Number(expiresAt) - Number(createdAt)).toBe(7 * 24 * 3600);
        const [row] = await invitationsOf(stack, emails[0] ?? '');
        expect(JSON.stringify(listed)).not.toContain(row?.token_hash);
        expectRefusal(await call('users.invitations', { cursor: 'x' }, { session }), 400, 'VALIDATION_FAILED');
        expectRefusal(await call('users.invitations', { limit: 0 }, { session }), 400, 'VALIDATION_FAILED');
      });

      test('the export contains the invitations that the user sent', async () => {
        const { call } = scenario();
        const { session } = await administrator(scenario());
        const email = freshEmail();
        await call('users.invite', { email }, { session });
        const { data } = await call('account.export', undefined, { session });
        expect(data.invitations).toMatchObject([{ email }]);
        expect(JSON.stringify(data)).not.toContain('tokenHash');
      });

      test('two concurrent administrators leave one invitation, and mails to an inbox are limited', async () => {
        const { call, stack } = scenario();
        const admins = [await administrator(scenario()), await administrator(scenario())];
        const email = freshEmail();
        const replies = await Promise.all(admins.map(({ session }) => call('users.invite', { email }, { session })));
        expect(replies.map(({ code }) => code)).toEqual([undefined, undefined]);
        expect(await invitationsOf(stack, email)).toHaveLength(1);
        const { session = '' } = admins[0] ?? {};
        for (let i = 2; i < 10; i++) expect((await call('users.invite', { email }, { session })).code).toBeUndefined();
        const refused = await call('users.invite', { email }, { session });
        expectRefusal(refused, 429, 'RATE_LIMITED', 'This address has been mailed too often. Please retry later.');
        expect(refused.headers.get('retry-after')).toBe('3600');
        expect(await invitationsOf(stack, email)).toHaveLength(1);
      });

      test('removing an administrator removes the invitations', async () => {
        const { call, stack } = scenario();
        const { session, id } = await administrator(scenario());
        const email = freshEmail();
        await call('users.invite', { email }, { session });
        const invitation = await mailedToken(stack, email, 'register');
        await stack.database('delete from users where id = ?', [id]);
        expectRefusal(await call('auth.register', registrant({ email, invitation })), 400, 'INVALID_TOKEN');
      });
    },
    { env: providers },
  );
});
