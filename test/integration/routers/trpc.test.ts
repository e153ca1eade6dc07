import { TRPCError } from '@trpc/server';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { User } from '../../../entities/index.ts';
import type { Context } from '../../../routers/context.ts';
import { errorShapeOf } from '../../../routers/procedures.ts';
import { callerOf, serviceErrorOf } from '../../../routers/trpc.ts';
import { ServiceError } from '../../../server/errors.ts';
import { logIn, type Opened, type OpenedRules, openRules, procedures } from '../rig/rules.ts';

/** Who may call a procedure, and the errors that both surfaces send. */
const DAY_MS = 24 * 60 * 60_000;
const env = { IMPERSONATION: 'on', LIMIT_LOGIN: '3/900', LIMIT_UNIQUE_FIELD: '2/900' };
let opened: Opened;
let rules: OpenedRules;
let ada: User;
let admin: User;
beforeAll(async () => {
  opened = await openRules('routers', { env });
  const { insertUser } = opened.create();
  ada = await insertUser('ada');
  admin = await insertUser('admin', (user) => {
    user.role = 'admin';
  });
});
beforeEach(() => {
  rules = opened.create();
});
afterAll(() => opened.close());
afterEach(() => {
  vi.useRealTimers();
});

const refusal = (code: string, rest: object = {}) => ({ cause: expect.objectContaining({ code, ...rest }) });
const sessionOf = async (user: User, given: Partial<Context> = {}) =>
  procedures(rules, { sessionToken: await logIn(rules, user), ...given });

describe('a procedure for logged-in callers', () => {
  test.each([undefined, 'x'.repeat(43)])('is UNAUTHENTICATED with the session token %s', async (sessionToken) => {
    const { caller, changed } = procedures(rules, { sessionToken });
    await expect(caller.sessions.list()).rejects.toMatchObject(refusal('UNAUTHENTICATED'));
    await expect(caller.auth.logoutAll()).rejects.toMatchObject(refusal('UNAUTHENTICATED'));
    expect(changed).toEqual({});
  });

  test('names the user in the log', async () => {
    const { caller, changed } = await sessionOf(ada);
    await caller.sessions.list();
    expect(changed).toEqual({ 'logged user': ada.id });
  });

  test('is OTHER_USER for a page that shows another user, unless its output names the user', async () => {
    const { caller } = await sessionOf(ada, { expectedUser: () => admin.id });
    await expect(caller.sessions.list()).rejects.toMatchObject(refusal('OTHER_USER'));
    expect(await caller.profile.get()).toMatchObject({ user: { id: ada.id } });
    const own = await sessionOf(ada, { expectedUser: () => ada.id });
    expect((await own.caller.sessions.list()).data).not.toEqual([]);
  });

  test('changes nothing for a caller that has gone; reads are harmless', async () => {
    const { caller } = await sessionOf(ada, { isGone: () => true });
    await expect(caller.profile.update({ bio: 'gone' })).rejects.toMatchObject(refusal('REQUEST_TIMEOUT'));
    expect(await caller.profile.get()).toMatchObject({ user: { bio: '' } });
  });

  test('sets the cookie again if the session was extended', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    const token = await logIn(rules, ada);
    vi.setSystemTime(Date.now() + 4 * DAY_MS);
    const { caller, changed } = procedures(rules, { sessionToken: token });
    await caller.sessions.list();
    expect(changed['session']).toEqual({ token, expiresAt: Date.now() + 7 * DAY_MS });
  });

  test('checks the session again once a late body has arrived', async () => {
    const token = await logIn(rules, ada);
    const { caller } = procedures(rules, { sessionToken: token, hasArrived: () => false });
    const validate = vi.spyOn(rules.accounts.sessions, 'validate');
    await caller.profile.update({ location: 'London' });
    expect(validate).toHaveBeenCalledTimes(2);
    validate.mockRestore();
  });

  test('refuses a session that has ended while the body arrived', async () => {
    const token = await logIn(rules, ada);
    const { accounts } = rules;
    let checks = 0;
    const sessions = {
      ...accounts.sessions,
      async validate(given: string) {
        if (++checks === 2) await accounts.sessions.end(token, { ...callerOfUser, language: () => undefined });
        return accounts.sessions.validate(given);
      },
    };
    const late = { accounts: { ...accounts, sessions }, sessionToken: token, hasArrived: () => false };
    const { caller } = procedures(rules, late);
    await expect(caller.profile.update({ bio: 'late' })).rejects.toMatchObject(refusal('UNAUTHENTICATED'));
    expect(await (await sessionOf(ada)).caller.profile.get()).toMatchObject({ user: { bio: '' } });
  });

  test('with a late body withdraws the cookie, and sets it once the body has arrived', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    const token = await logIn(rules, ada);
    vi.setSystemTime(Date.now() + 4 * DAY_MS);
    const set: unknown[] = [];
    const { caller } = procedures(rules, {
      sessionToken: token,
      hasArrived: () => false,
      cookies: {
        setSession: ({ token }: { token: string }) => set.push(token),
        forgetSession: () => set.push('withdrawn'),
      } as unknown as Context['cookies'],
    });
    await caller.profile.update({ location: 'Paris' });
    expect(set).toEqual([token, 'withdrawn', token]);
  });
});

const callerOfUser = { actor: 'user' as const, clientAddress: '', userAgent: '', requestId: '' };

describe('rights', () => {
  test('of administrators need the role', async () => {
    await expect((await sessionOf(ada)).caller.users.find()).rejects.toMatchObject(refusal('FORBIDDEN'));
    expect((await (await sessionOf(admin)).caller.users.find()).data.length).toBeGreaterThan(1);
  });

  test('of sensitive changes end ten minutes after the credential', async () => {
    const { caller } = await sessionOf(admin);
    await caller.users.unblock({ id: ada.id });
    await rules.database.write((tables) =>
      tables
        .updateTable('sessions')
        .set({ authenticated_at: Date.now() - 10 * 60_000 - 1000 })
        .where('user_id', '=', admin.id)
        .execute(),
    );
    const required = refusal('REAUTHENTICATION_REQUIRED');
    await expect(caller.users.unblock({ id: ada.id })).rejects.toMatchObject(required);
    await expect(caller.keys.create({ name: 'k', scopes: ['profile:read'] })).rejects.toMatchObject(required);
    expect((await caller.users.find()).data).not.toEqual([]);
  });

  test('of services need a service token; a session gives none', async () => {
    const { caller } = await sessionOf(admin);
    await expect(caller.service.users({ ids: [] })).rejects.toMatchObject(
      refusal('UNAUTHENTICATED', { message: 'A service token is required' }),
    );
    const { caller: shop, changed } = procedures(rules, { service: 'shop' });
    expect(await shop.service.users({ ids: [] })).toEqual({ users: [] });
    expect(changed).toEqual({ 'logged service': 'shop' });
  });

  test('an administrator who acts for a user is refused what only the user may do', async () => {
    const { caller: administrator, changed } = procedures(rules, {
      sessionToken: await logIn(rules, admin, 'passkey'),
    });
    await administrator.users.impersonate({ id: ada.id });
    const { token } = changed['session'] as { token: string };
    const { caller } = procedures(rules, { sessionToken: token });
    expect(await caller.profile.get()).toMatchObject({ user: { id: ada.id }, impersonation: { by: admin.id } });
    await expect(caller.auth.logoutAll()).rejects.toMatchObject(
      refusal('FORBIDDEN', {
        message: 'This is not possible while an administrator acts for the user',
        details: {
          session: {
            message: 'This is not possible while an administrator acts for the user',
            rule: 'impersonation',
          },
        },
      }),
    );
    await expect(caller.account.delete()).rejects.toMatchObject(refusal('REAUTHENTICATION_REQUIRED'));
    await caller.profile.update({ bio: 'written by an administrator' });
    const events = await rules.database.query((tables) =>
      tables
        .selectFrom('activity')
        .select(['actor', 'actor_id as by'])
        .where('user_id', '=', ada.id)
        .where('kind', '=', 'profile-changed')
        .orderBy('id', 'desc')
        .execute(),
    );
    expect(events[0]).toEqual({ actor: 'administrator', by: admin.id });
    await caller.profile.update({ bio: '' });
  });
});

describe('an access key', () => {
  const keyOf = async (scopes: ('profile:read' | 'profile:write' | 'email')[]) =>
    (await (await sessionOf(ada)).caller.keys.create({ name: 'key', scopes })).secret;

  test('calls what its scopes allow, and sees the address with the scope `email` only', async () => {
    const [plain, withEmail] = [await keyOf(['profile:read']), await keyOf(['profile:read', 'email'])];
    const { caller, changed } = procedures(rules, { credential: { token: plain } });
    const { user } = await caller.profile.get();
    expect(user).toMatchObject({ id: ada.id });
    expect(user).not.toHaveProperty('email');
    expect(changed).toEqual({ 'logged user': ada.id });
    const other = procedures(rules, { credential: { token: withEmail } });
    expect((await other.caller.profile.get()).user).toMatchObject({ email: ada.email });
  });

  test('is INSUFFICIENT_SCOPE elsewhere, which names the scope, if there is one', async () => {
    const { caller } = procedures(rules, { credential: { token: await keyOf(['profile:read']) } });
    await expect(caller.profile.update({ bio: 'x' })).rejects.toMatchObject(
      refusal('INSUFFICIENT_SCOPE', { challenge: 'Bearer error="insufficient_scope", scope="profile:write"' }),
    );
    await expect(caller.sessions.list()).rejects.toMatchObject(
      refusal('INSUFFICIENT_SCOPE', { challenge: 'Bearer error="insufficient_scope"' }),
    );
  });

  test('is refused if it is unknown', async () => {
    const { caller } = procedures(rules, { credential: { token: 'unknown' } });
    await expect(caller.profile.get()).rejects.toMatchObject(
      refusal('UNAUTHENTICATED', {
        message: 'The access key or token is not valid',
        challenge: 'Bearer error="invalid_token"',
      }),
    );
  });
});

test('a malformed login counts as an attempt; another refusal counts for itself', async () => {
  const clientAddress = () => '198.51.100.7';
  const { caller } = procedures(rules, { clientAddress });
  const malformed = () => caller.auth.login({ email: 'malformed', password: 'x' });
  for (let i = 0; i < 3; i++) await expect(malformed()).rejects.toMatchObject({ code: 'BAD_REQUEST' });
  await expect(malformed()).rejects.toMatchObject(refusal('RATE_LIMITED'));
  const other = procedures(rules, { clientAddress: () => '198.51.100.8' });
  const wrong = () => other.caller.auth.login({ email: 'nobody@example.test', password: 'x' });
  for (let i = 0; i < 3; i++) await expect(wrong()).rejects.toMatchObject(refusal('INVALID_CREDENTIALS'));
  await expect(wrong()).rejects.toMatchObject(refusal('RATE_LIMITED'));
});

describe('the caller of a rule', () => {
  const given = {
    clientAddress: () => '192.0.2.9',
    userAgent: () => 'agent',
    requestId: () => 'request',
    language: () => 'de' as const,
  };

  test.each([
    ['the user, with the language of the browser', undefined, undefined, { actor: 'user' }, 'de'],
    [
      'the administrator who acts for the user',
      { id: 'a' },
      undefined,
      { actor: 'administrator', actorId: 'a' },
      undefined,
    ],
    ['another that is named', undefined, { actor: 'service:shop' } as const, { actor: 'service:shop' }, undefined],
  ])('is %s', (_, actor, acting, expected, language) => {
    const ctx = { ...given, session: { actor } } as unknown as Context;
    const { language: languageOf, ...caller } = acting ? callerOf(ctx, acting) : callerOf(ctx);
    expect(caller).toEqual({ ...expected, clientAddress: '192.0.2.9', userAgent: 'agent', requestId: 'request' });
    expect(languageOf()).toBe(language);
  });
});

describe('the error of a procedure', () => {
  test.each([
    ['BAD_REQUEST', 'VALIDATION_FAILED'],
    ['PARSE_ERROR', 'VALIDATION_FAILED'],
    ['NOT_FOUND', 'NOT_FOUND'],
    ['METHOD_NOT_SUPPORTED', 'NOT_FOUND'],
    ['PAYLOAD_TOO_LARGE', 'PAYLOAD_TOO_LARGE'],
    ['UNSUPPORTED_MEDIA_TYPE', 'UNSUPPORTED_MEDIA_TYPE'],
    ['INTERNAL_SERVER_ERROR', 'INTERNAL'],
    ['TIMEOUT', 'INTERNAL'],
  ] as const)('of tRPC, %s, is %s', (code, expected) => {
    const cause = new Error('cause');
    expect(serviceErrorOf(new TRPCError({ code, cause }))).toMatchObject({ code: expected, cause });
  });

  test('is a ServiceError as it was thrown', () => {
    const cause = new ServiceError('EMAIL_TAKEN');
    expect(serviceErrorOf(new TRPCError({ code: 'INTERNAL_SERVER_ERROR', cause }))).toBe(cause);
  });

  const issue = (path: (string | number)[], message: string, rule?: string) => ({
    code: 'custom' as const,
    path,
    message,
    input: undefined,
    ...(rule && { params: { rule } }),
  });
  const detailsOf = (issues: z.core.$ZodIssue[], code: TRPCError['code'] = 'BAD_REQUEST') =>
    serviceErrorOf(new TRPCError({ code, cause: new z.ZodRealError(issues) }));

  test('lists the broken rules of each field, with the message of the first', () => {
    const { code, details } = detailsOf([
      issue(['a', 0], 'first', 'one'),
      issue(['a', 0], 'second', 'two'),
      issue(['a', 0], 'again', 'one'),
      issue([], 'whole'),
      { code: 'too_big', path: ['b'], message: 'big', maximum: 1, origin: 'string', input: undefined },
    ]);
    expect(code).toBe('VALIDATION_FAILED');
    expect(details).toEqual({
      'a.0': { message: 'first', rule: 'one', rules: ['one', 'two'] },
      body: { message: 'whole', rule: 'custom', rules: ['custom'] },
      b: { message: 'big', rule: 'too_big', rules: ['too_big'] },
    });
  });

  test('lists a hundred issues at most', () => {
    const { details = {} } = detailsOf(Array.from({ length: 101 }, (_, i) => issue([i], 'm')));
    expect(Object.keys(details)).toHaveLength(100);
  });

  test('is INTERNAL for an output that breaks its schema', () => {
    expect(detailsOf([issue([], 'output')], 'INTERNAL_SERVER_ERROR')).toMatchObject({ code: 'INTERNAL' });
  });

  test.each([
    [new ServiceError('UNAUTHENTICATED'), -32001, { code: 'UNAUTHENTICATED', httpStatus: 401 }],
    [new ServiceError('RATE_LIMITED', { retryAfter: 7 }), -32029, { httpStatus: 429, retryAfter: 7 }],
    [
      new ServiceError('VALIDATION_FAILED', { details: { a: { message: 'm', rule: 'r' } } }),
      -32600,
      { httpStatus: 400, details: { a: { message: 'm', rule: 'r' } } },
    ],
  ])('over /trpc has its status, and the JSON-RPC code of that: %s', (cause, code, data) => {
    const error = new TRPCError({ code: 'INTERNAL_SERVER_ERROR', cause });
    const shape = errorShapeOf(error, { path: 'auth.login', type: 'mutation' });
    expect(shape).toMatchObject({ code, message: cause.message, data: { path: 'auth.login', ...data } });
    for (const optional of ['details', 'retryAfter']) expect(optional in shape.data).toBe(optional in data);
    expect(shape.data).not.toHaveProperty('stack');
  });
});
