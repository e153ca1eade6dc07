import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Identity, Totp, type User } from '../../../entities/index.ts';
import type { Context } from '../../../routers/context.ts';
import type { ProvidedIdentity } from '../../../server/parts/identity-provider/contract.ts';
import type { ProviderName } from '../../../server/shared/method-names.ts';
import { logIn, type Opened, type OpenedRules, openRules, procedures, statingProvider } from '../rig/rules.ts';

/** Where flows through an identity provider begin and end, and the cookies that they set. */
let opened: Opened;
let rules: OpenedRules;
let ada: User;
let linked: User;
const acme = 'acme' as ProviderName;
const insertIdentity = ({ id, email }: User) =>
  rules.database.transaction(async (em) => {
    const identity = Identity.link(id, { issuer: 'https://acme.test', subject: email, provider: acme, email });
    identity.prove();
    await em.insert(identity);
  });

beforeAll(async () => {
  const env = { REGISTRATION: 'domains', REGISTRATION_DOMAINS: 'example.test' };
  const down = { begin: () => Promise.reject(new Error('down')) };
  const providers = {
    acme: statingProvider({ provesLogin: true }),
    mute: statingProvider(),
    down: statingProvider(down),
  };
  opened = await openRules('identity-provider', { env, providers });
  rules = opened.create();
  ada = await rules.insertUser('ada');
  linked = await rules.insertUser('linked');
  await insertIdentity(linked);
});
beforeEach(() => {
  rules = opened.create();
});
afterAll(() => opened.close());

const refusal = (code: string, rest: object = {}) => ({ cause: expect.objectContaining({ code, ...rest }) });
const of = async (user: User | undefined, given: Partial<Context> = {}) =>
  procedures(rules, { sessionToken: user && (await logIn(rules, user)), ...given });

type Start = Parameters<ReturnType<typeof procedures>['caller']['auth']['idp']['start']>[0];

/** A flow of the user, begun and ended in one browser. */
async function flow(stated: Partial<ProvidedIdentity> | { error: string }, start: Start, user?: User) {
  const { caller, changed, browser } = await of(user);
  const { location: state } = await caller.auth.idp.start(start);
  const back = procedures(rules, { stateCookie: () => state, browser: () => browser });
  const given = (stated: Partial<ProvidedIdentity>) =>
    JSON.stringify({
      issuer: 'https://acme.test',
      subject: stated.email,
      emailVerified: true,
      loggedInAt: Date.now(),
      ...stated,
    });
  const answer = 'error' in stated ? stated : { code: given(stated) };
  const ended = back.caller.auth.idp.callback({ provider: 'acme', state, ...answer });
  return { started: changed, ended, changed: back.changed, browser };
}

describe('a start', () => {
  test('leads to the provider, and sets the cookies of the browser and of the flow', async () => {
    const { caller, changed, browser } = await of(undefined);
    const { location } = await caller.auth.idp.start({ provider: 'acme' });
    // The test's provider answers with the state.
    expect(location).toMatch(/^[\w-]{43}$/);
    expect(changed).toEqual({ browser, 'state of acme': location });
  });

  test('goes to the first provider unless it names one', async () => {
    for (const input of [undefined, {}]) {
      const { caller, changed } = await of(undefined);
      await caller.auth.idp.start(input);
      expect(changed).toHaveProperty(['state of acme']);
    }
    const { caller, changed } = await of(undefined);
    await caller.auth.idp.start({ provider: 'mute' });
    expect(Object.keys(changed)).toEqual(['browser', 'state of mute']);
    await expect(caller.auth.idp.start({ provider: 'other' })).rejects.toMatchObject(refusal('NOT_FOUND'));
  });

  test('has one purpose', async () => {
    const { caller } = await of(ada);
    await expect(caller.auth.idp.start({ link: '1', restore: '1' })).rejects.toMatchObject(
      refusal('VALIDATION_FAILED', { message: 'Only one of restore, link can be given' }),
    );
  });

  test('takes only an allowed returnTo', async () => {
    const { caller } = await of(undefined);
    await expect(caller.auth.idp.start({ returnTo: 'https://evil.test' })).rejects.toMatchObject(
      refusal('VALIDATION_FAILED', { details: { returnTo: expect.objectContaining({ rule: 'not_allowed' }) } }),
    );
  });

  test.each<[string, Start, string]>([
    ['that cannot be asked', { provider: 'down' }, '/login?error=oauth_failed'],
    ['that cannot be asked', { provider: 'down', returnTo: '/x' }, '/login?error=oauth_failed&returnTo=%2Fx'],
    ['that proves no login', { provider: 'mute', reauthenticate: '1' }, '/dashboard/security?error=login_not_fresh'],
    [
      'that proves no login',
      { provider: 'mute', reauthenticate: '1', page: '/admin', returnTo: '/x' },
      '/admin?error=login_not_fresh&returnTo=%2Fx',
    ],
    // Only a reauthentication has a page of its own to return to.
    ['that cannot be asked', { provider: 'down', link: '1' }, '/dashboard/security?error=oauth_failed'],
  ])('at a provider %s leads to the page that says so: %o', async (_, start, location) => {
    const { caller, changed } = await of(ada);
    expect(await caller.auth.idp.start(start)).toEqual({ location });
    expect(changed).not.toHaveProperty('browser');
  });

  const elsewhere = { isAskedOnOurPages: () => false };
  const shown = { isNavigation: () => true };

  test.each<[string, Partial<Context>, Start, boolean, string, string | undefined]>([
    ['restores', elsewhere, { restore: '1' }, false, 'ORIGIN_MISMATCH', '/login'],
    ['links', elsewhere, { link: '1' }, true, 'ORIGIN_MISMATCH', '/dashboard/security?error=reauthentication_required'],
    [
      'reauthenticates',
      elsewhere,
      { reauthenticate: '1' },
      true,
      'ORIGIN_MISMATCH',
      '/dashboard/security?error=reauthentication_required',
    ],
    ['logs in within a frame', { ...elsewhere, isPage: () => false }, {}, false, 'ORIGIN_MISMATCH', undefined],
    ['links without a session', {}, { link: '1' }, false, 'UNAUTHENTICATED', '/login'],
    ['reauthenticates without a session', {}, { reauthenticate: '1' }, false, 'UNAUTHENTICATED', '/login'],
  ])('of another site or without a session is refused: %s', async (_, given, start, isLoggedIn, code, location) => {
    const user = isLoggedIn ? ada : undefined;
    const { caller, changed } = await of(user, given);
    await expect(caller.auth.idp.start(start)).rejects.toMatchObject(refusal(code, { location: undefined }));
    expect(changed).not.toHaveProperty('browser');
    const page = await of(user, { ...given, ...shown });
    await expect(page.caller.auth.idp.start(start)).rejects.toMatchObject(refusal(code, { location }));
    if (location === undefined) return;
    await expect(page.caller.auth.idp.start({ ...start, returnTo: '/x' })).rejects.toMatchObject(
      refusal(code, { location: `${location}${location.includes('?') ? '&' : '?'}returnTo=%2Fx` }),
    );
  });

  test('of a login by another site is allowed as a page', async () => {
    const { caller, changed } = await of(undefined, elsewhere);
    await caller.auth.idp.start();
    expect(changed).toHaveProperty('browser');
  });

  test('of a link needs a recent credential, of a reauthentication any session', async () => {
    const user = await rules.insertUser(`old${Date.now()}`);
    const { caller } = await of(user, shown);
    await caller.auth.idp.start({ link: '1' });
    await rules.database.write((tables) =>
      tables.updateTable('sessions').set({ authenticated_at: 1 }).where('user_id', '=', user.id).execute(),
    );
    await expect(caller.auth.idp.start({ link: '1' })).rejects.toMatchObject(
      refusal('REAUTHENTICATION_REQUIRED', { location: '/dashboard/security?error=reauthentication_required' }),
    );
    await caller.auth.idp.start({ reauthenticate: '1' });
  });
});

const newcomer = () => `new${crypto.randomUUID()}@example.test`;

describe('the end of a flow', () => {
  test('logs in: sets the cookies of the session and ends that of the flow', async () => {
    const { ended, changed } = await flow({ email: linked.email }, {});
    expect(await ended).toEqual({ location: '/end-of-login' });
    expect(changed).toEqual({
      'state of acme': 'cleared',
      session: expect.objectContaining({ token: expect.stringMatching(/^[\w-]{43}$/) }),
      device: expect.any(String),
      'logged user': linked.id,
    });
  });

  test('leads a user with an authenticator app to the second step', async () => {
    const user = await rules.insertUser(`app${Date.now()}`);
    await insertIdentity(user);
    await rules.database.transaction(async (em) => {
      await em.insert(Totp, { userId: user.id, secret: 'x', lastStep: 0, createdAt: 1 });
    });
    const { ended, changed } = await flow({ email: user.email }, { returnTo: '/x' });
    expect(await ended).toEqual({ location: '/second-factor?returnTo=%2Fx' });
    expect(changed).toEqual({ 'state of acme': 'cleared', pending: expect.stringMatching(/^[\w-]{43}$/) });
  });

  test('leads a user whose address is to be confirmed to the page that says so, with the cookie of the browser', async () => {
    const { ended, changed, browser } = await flow({ email: newcomer(), emailVerified: false }, {});
    expect(await ended).toEqual({ location: '/verify-email' });
    expect(changed).toEqual({ 'state of acme': 'cleared', browser });
  });

  test.each<[string, Start, string]>([
    ['a login', { returnTo: '/x' }, '/x'],
    ['a restoring login', { restore: '1' }, '/dashboard?notice=restored'],
    ['a restoring login', { restore: '1', returnTo: '/x' }, '/x'],
    ['a reauthentication', { reauthenticate: '1' }, '/dashboard/security?notice=confirmed'],
    ['a reauthentication', { reauthenticate: '1', page: '/admin' }, '/admin?notice=confirmed'],
    ['a reauthentication', { reauthenticate: '1', page: '/admin', returnTo: '/x' }, '/x'],
    ['a link', { link: '1' }, '/dashboard/security?notice=already-linked'],
    ['a link', { link: '1', returnTo: '/x' }, '/x'],
    // The page is of a reauthentication.
    ['a login', { page: '/admin' }, '/end-of-login'],
  ])('is that of its purpose: %s, begun with %o', async (_, start, location) => {
    const { ended, changed } = await flow({ email: linked.email }, start, linked);
    expect(await ended).toEqual({ location });
    expect('session' in changed).toBe(!start?.reauthenticate && !start?.link);
  });

  test('links an identity', async () => {
    const user = await rules.insertUser(`links${Date.now()}`);
    const { ended } = await flow({ email: user.email }, { link: '1' }, user);
    expect(await ended).toEqual({ location: '/dashboard/security?notice=linked' });
  });

  test.each<[string, Partial<ProvidedIdentity> | { error: string }, Start, string]>([
    ['cancelled', { error: 'access_denied' }, {}, '/login?error=cancelled'],
    [
      'cancelled',
      { error: 'access_denied' },
      { link: '1', returnTo: '/x' },
      '/dashboard/security?error=cancelled&returnTo=%2Fx',
    ],
    ['failed', { email: undefined, subject: '1' }, {}, '/login?error=oauth_failed'],
    [
      'of an address that is not vouched for',
      { email: 'ada@example.test', emailVerified: false },
      {},
      '/login?error=email_unverified',
    ],
    ['without an account to restore', { email: newcomer() }, { restore: '1' }, '/login?error=account_removed'],
    [
      'by another identity',
      { email: newcomer() },
      { reauthenticate: '1' },
      '/dashboard/security?error=identity_mismatch',
    ],
    [
      'by another identity',
      { email: newcomer() },
      { reauthenticate: '1', page: '/admin' },
      '/admin?error=identity_mismatch',
    ],
    [
      'by an older login',
      { email: 'linked@example.test', loggedInAt: 1 },
      { reauthenticate: '1' },
      '/dashboard/security?error=login_not_fresh',
    ],
  ])('is reported if it is %s: %o %o', async (_, stated, start, location) => {
    const { ended, changed } = await flow(stated, start, linked);
    expect(await ended).toEqual({ location });
    expect(changed).toEqual({ 'state of acme': 'cleared' });
  });

  test('is reported if the user is blocked', async () => {
    const user = await rules.insertUser(`blocked${Date.now()}`, (one) => one.block(1));
    await insertIdentity(user);
    expect(await (await flow({ email: user.email }, {})).ended).toEqual({ location: '/login?error=account_blocked' });
  });

  test('is IDENTITY_TAKEN, or REGISTRATION_CLOSED, with the page that says so', async () => {
    const taken = await flow({ email: linked.email }, { link: '1' }, ada);
    await expect(taken.ended).rejects.toMatchObject(
      refusal('IDENTITY_TAKEN', { location: '/dashboard/security?error=identity_taken' }),
    );
    const closed = await flow({ email: `new${Date.now()}@elsewhere.test` }, {});
    await expect(closed.ended).rejects.toMatchObject(
      refusal('REGISTRATION_CLOSED', { location: '/login?error=registration_closed' }),
    );
    expect(closed.changed).toEqual({ 'state of acme': 'cleared' });
  });

  test('says that the session in which it began has ended', async () => {
    const user = await rules.insertUser(`ended${Date.now()}`);
    const { caller, browser } = await of(user);
    const { location: state } = await caller.auth.idp.start({ link: '1' });
    await caller.auth.logoutAll();
    const { caller: back } = procedures(rules, { stateCookie: () => state, browser: () => browser });
    const code = JSON.stringify({ issuer: 'https://acme.test', subject: 'x', emailVerified: false });
    expect(await back.auth.idp.callback({ provider: 'acme', state, code })).toEqual({
      location: '/login?error=session_ended',
    });
  });

  test('leads an invited newcomer where the invitation says, if that is still allowed', async () => {
    for (const [to, location] of [
      ['/welcome', '/welcome'],
      ['https://former.test', '/end-of-login'],
    ] as const) {
      const email = `invited${crypto.randomUUID()}@elsewhere.test`;
      await rules.database.change((tables) =>
        tables
          .insertInto('invitations')
          .values({
            id: crypto.randomUUID(),
            email,
            token_hash: crypto.randomUUID(),
            invited_by: null,
            created_at: 1,
            expires_at: Date.now() + 60_000,
            return_to: to,
          })
          .execute(),
      );
      expect(await (await flow({ email }, {})).ended).toEqual({ location });
    }
  });
});

describe('a callback that the browser did not begin', () => {
  test('is INVALID_STATE, and leaves the cookie of an open flow', async () => {
    const { caller, changed } = procedures(rules, { stateCookie: () => 'another' });
    const invalid = refusal('INVALID_STATE');
    const { callback } = caller.auth.idp;
    await expect(callback({ provider: 'acme', state: 'x', code: '{}' })).rejects.toMatchObject(invalid);
    await expect(callback({ provider: 'acme', code: '{}' })).rejects.toMatchObject(invalid);
    // A repeated parameter is none; so is a very long one.
    for (const state of [['another'], 'a'.repeat(4097)])
      await expect(callback({ provider: 'acme', state })).rejects.toMatchObject(invalid);
    expect(changed).toEqual({});
  });

  test('with a refusal ends no flow', async () => {
    const { caller, changed } = procedures(rules, { stateCookie: () => 'another' });
    expect(await caller.auth.idp.callback({ provider: 'acme', state: 'x', error: 'access_denied' })).toEqual({
      location: '/login?error=cancelled',
    });
    expect(changed).toEqual({});
  });
});
