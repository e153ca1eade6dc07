/*
 * Who added the login methods of an account, and what happens to those that the owner of the inbox did not add.
 *
 * An account in letters: its password (p) and identity (i), upper case if proven; `?` while its address is unverified.
 * After an event: `n` a new password, `o` another subject at the same provider; `s` the earlier session is valid, `c`
 * the profile was cleared, `m` a mail lists what was removed, `t` the earlier consent is removed; `x` no account is
 * left.
 *
 * Impossible, so omitted: an account without any method (it is deleted with its last one), and a proven method with an
 * unverified address (what proves the one verifies the other).
 */

import { afterAll, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import { environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import {
  atInstance,
  begin,
  expectStateRefused,
  freshSubject,
  fromAnotherSite,
  identitiesOf,
  identityClaims,
  loginsThrough,
  usersWith,
} from '../../provider/login.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { until } from '../../rig/until.ts';
import { callerOf } from '../rig/callers.ts';
import {
  browserIn,
  deviceIn,
  expectRefusal,
  inBrowser,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  onBothStacks,
  overSurfaces,
  PASSWORD,
  registered,
  verified,
} from '../rig/scenario.ts';

const provider = await startHostileProvider();
const logInAs = loginsThrough(provider);
afterAll(() => provider.close());

// The cost of a hash does not matter here.
const env = environmentFor(provider);
const NEW_PASSWORD = 'Difference-Engine-1822';
const DAY_MS = 24 * 60 * 60_000;
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

const events = [
  'click here',
  'click elsewhere',
  'reset',
  'vouched',
  'unvouched',
  'other subject',
  'not me',
  // The result of another person's cookies in the owner's browser.
  'planted callback',
  'planted session',
  // The identity is younger than the reported login.
  'late reset',
] as const;
type Event = (typeof events)[number];

const table: [state: string, ...outcomes: string[]][] = [
  //        click here, elsewhere, reset, vouched, unvouched, other subject, not me, planted callback, planted session, late reset
  ['p', 'P s', 'p s', 'N t', 'I mt', 'p s', 'O mt', 'x', 'p s', 'p s', 'N t'],
  ['P', 'P s', 'P s', 'N', 'PI s', 'P s', 'PO s', 'P', 'P s', 'P s', 'N'],
  ['i', 'I s', 'i s', 'N mt', 'I s', 'i s', 'O mt', 'x', 'i s', 'i s', 'N mt'],
  ['I', 'I s', 'I s', 'NI', 'I s', 'I s', 'IO s', 'I', 'I s', 'I s', 'N m'],
  ['pi', 'PI s', 'pi s', 'N mt', 'I mt', 'pi s', 'O mt', 'x', 'pi s', 'pi s', 'N mt'],
  ['pI', 'PI s', 'pI s', 'NI t', 'I mt', 'pI s', 'IO mt', 'I mt', 'pI s', 'pI s', 'N mt'],
  ['Pi', 'PI s', 'Pi s', 'N mt', 'PI s', 'Pi s', 'PO mt', 'P mt', 'Pi s', 'Pi s', 'N mt'],
  ['PI', 'PI s', 'PI s', 'NI', 'PI s', 'PI s', 'PIO s', 'PI', 'PI s', 'PI s', 'N m'],
  ['?p', 'P', 'p', 'N ct', 'I cmt', '?p', 'O cmt', 'x', '?p', '?p', 'N ct'],
  ['?i', 'I', 'i', 'N cmt', 'I', '?i', 'O cmt', 'x', '?i', '?i', 'N cmt'],
  ['?pi', 'PI', 'pi', 'N cmt', 'I cmt', '?pi', 'O cmt', 'x', '?pi', '?pi', 'N cmt'],
];

/** Both methods were requested in the same browser. States that no procedure reaches are created in the database. */
async function make(stack: Stack, state: string) {
  const call = callerOf('rest', stack.url);
  const account = await registered({ stack, call }, { name: 'Mallory' });
  await stack.database("insert into consents (id, user_id, version, created_at) values (?, ?, 'former', 1)", [
    freshSubject(),
    account.id,
  ]);
  const token = await mailedToken(stack, account.email, 'verify-email');
  const identity = identityClaims({ email: account.email });
  const isVerified = !state.startsWith('?');
  if (/i/i.test(state)) {
    await stack.database(
      // Added a day before the login: a reset removes what was added since a reported login.
      `insert into identities (id, user_id, issuer, subject, provider, proven, browser, created_at)
       select ?, id, ?, ?, 'acme', ?, password_browser, created_at - ? from users where id = ?`,
      [freshSubject(), provider.url, identity.sub, state.includes('I') ? 1 : 0, DAY_MS, account.id],
    );
  }
  await stack.database("update users set bio = 'Mine', email_verified = ?, password_proven = ? where id = ?", [
    isVerified ? 1 : 0,
    state.includes('P') ? 1 : 0,
    account.id,
  ]);
  if (!/p/i.test(state)) {
    await stack.database(
      "update users set password_hash = null, password_browser = null, provider = 'acme' where id = ?",
      [account.id],
    );
  }
  await stack.database('update one_time_tokens set used = ? where user_id = ?', [isVerified ? 1 : 0, account.id]);
  const session = isVerified ? await openSession(stack, state, account, identity) : undefined;
  return { ...account, call, token, identity, other: identityClaims({ email: account.email }), session };
}

async function openSession(stack: Stack, state: string, account: Account['person'], identity: Account['identity']) {
  if (/p/i.test(state)) return logIn(callerOf('rest', stack.url), account);
  return (await logInAs(stack, { ...identity, email_verified: false })).session;
}

interface Account {
  person: { name: string; email: string; password: string };
  identity: ReturnType<typeof identityClaims>;
}
type Made = Awaited<ReturnType<typeof make>>;

const happen: Record<Event, (stack: Stack, account: Made) => Promise<unknown>> = {
  'click here': (_, { call, token, browser }) => call('auth.verifyEmail', { token }, { browser }),
  'click elsewhere': (_, { call, token }) => call('auth.verifyEmail', { token }),
  async reset(stack, { call, email }) {
    await call('auth.forgotPassword', { email });
    const token = await mailedToken(stack, email, 'reset-password');
    expect((await call('auth.resetPassword', { token, email, password: NEW_PASSWORD })).status).toBe(200);
  },
  vouched: (stack, { identity }) => logInAs(stack, identity),
  unvouched: (stack, { identity }) => logInAs(stack, { ...identity, email_verified: false }),
  'other subject': (stack, { other }) => logInAs(stack, other),
  'not me': (_, { call, token }) => call('account.notMe', { token }),
  async 'planted callback'(stack, { other }) {
    const { browser, request } = await begin(stack);
    const victim = new Browser();
    victim.cookies.set('acme_oauth_state', browser.cookies.get('acme_oauth_state') ?? '');
    await expectStateRefused(victim, atInstance(stack, provider.authorize(request, other)));
  },
  async 'planted session'(stack, { call, session }) {
    if (!session) return;
    const email = freshEmail();
    expect((await call('account.changeEmail', { email }, inBrowser(session))).status).toBe(200);
    const token = await mailedToken(stack, email, 'confirm-email');
    expectRefusal(await call('account.confirmEmail', { token }, { session }), 403, 'FORBIDDEN');
  },
  async 'late reset'(stack, account) {
    await stack.database('update identities set created_at = ? where user_id = ?', [Date.now(), account.id]);
    await happen.reset(stack, account);
  },
};

/** In the letters of the table; each method is both tried and read. */
async function outcomeFor(stack: Stack, { id, call, email, identity, other, session }: Made): Promise<string> {
  const [user] = await stack.database<{ email_verified: number; password_proven: number; bio: string | null }>(
    'select email_verified, password_proven, bio from users where id = ?',
    [id],
  );
  const links = await stack.database<{ subject: string; proven: number }>(
    'select subject, proven from identities where user_id = ?',
    [id],
  );
  const sent = await stack.database("select id from outbox where user_id = ? and kind = 'login-methods-removed'", [id]);
  const isAliveNow = session !== undefined && (await isAlive(call, session));
  if (!user) {
    expect([links, isAliveNow]).toEqual([[], false]);
    return 'x';
  }
  // All tokens that may have been requested with the removed method are void too.
  if (sent.length > 0)
    expect(
      await stack.database(
        "select id from one_time_tokens where user_id = ? and purpose <> 'new-device' and used = 0",
        [id],
      ),
    ).toEqual([]);

  const passwordOpens = async (password: string) =>
    (await call('auth.login', { email, password })).status === (user.email_verified === 1 ? 200 : 403);
  const cased = (letter: string, proven: number | undefined) => (proven === 1 ? letter.toUpperCase() : letter);
  const letterOf = async (letter: string, claims: Account['identity']) => {
    const link = links.find(({ subject }) => subject === claims.sub);
    const { location } = await logInAs(stack, { ...claims, email_verified: false });
    const opens = user.email_verified === 1 ? '/dashboard' : '/verify-email';
    expect(location).toBe(link ? opens : '/login?error=email_unverified');
    return link ? cased(letter, link.proven) : '';
  };
  const methods = [
    user.email_verified === 1 ? '' : '?',
    (await passwordOpens(PASSWORD)) ? cased('p', user.password_proven) : '',
    (await passwordOpens(NEW_PASSWORD)) ? cased('n', user.password_proven) : '',
    await letterOf('i', identity),
    await letterOf('o', other),
  ].join('');
  const consents = await stack.database('select id from consents where user_id = ?', [id]);
  const changes = `${user.bio === null ? 'c' : ''}${sent.length > 0 ? 'm' : ''}${consents.length === 0 ? 't' : ''}`;
  const rest = `${isAliveNow ? 's' : ''}${changes}`;
  return `${methods} ${rest}`.trim();
}

onBothStacks(
  (stack, name) => {
    // checks: 12
    test.each(table)(
      '%s: the account keeps the expected login methods after each event',
      async (state, ...outcomes) => {
        const found = await Promise.all(
          events.map(async (event) => {
            const account = await make(stack(), state);
            await happen[event](stack(), account);
            return [event, await outcomeFor(stack(), account)];
          }),
        );
        expect(Object.fromEntries(found)).toEqual(Object.fromEntries(events.map((event, i) => [event, outcomes[i]])));
      },
    );

    // checks: 12
    test('the owner’s reset removes an attacker’s identity that the owner’s click verified', async () => {
      const call = callerOf('rest', stack().url);
      const attacker = identityClaims({ email_verified: false, name: 'Mallory' });
      const { email } = attacker;
      await logInAs(stack(), attacker);
      const token = await mailedToken(stack(), email, 'verify-email');
      const { data } = await call('auth.verifyEmail', { token });
      expect(data.unproven).toEqual([{ method: 'acme', addedAt: expect.any(Number) }]);
      expect(JSON.stringify(data)).not.toContain('Mallory');
      const { session } = await logInAs(stack(), attacker);
      expect(await isAlive(call, session ?? '')).toBe(true);

      await call('auth.forgotPassword', { email });
      const reset = await mailedToken(stack(), email, 'reset-password');
      await call('auth.resetPassword', { token: reset, email, password: NEW_PASSWORD });
      expect(await isAlive(call, session ?? '')).toBe(false);
      expect((await logInAs(stack(), attacker)).location).toBe('/login?error=email_unverified');
      await logIn(call, { name: '', email, password: NEW_PASSWORD });
      const mail = await stack().waitForMail({ to: email, subject: 'were removed' });
      expect(mail.text).toContain('through Acme');
    });

    test('the owner’s login through a provider removes an attacker’s password that the owner’s click verified', async () => {
      const call = callerOf('rest', stack().url);
      const attacker = await registered({ stack: stack(), call });
      const token = await mailedToken(stack(), attacker.email, 'verify-email');
      await call('auth.verifyEmail', { token });
      const session = await logIn(call, attacker);
      await call('auth.forgotPassword', { email: attacker.email });
      const reset = await mailedToken(stack(), attacker.email, 'reset-password');

      const owner = await logInAs(stack(), identityClaims({ email: attacker.email }));
      expect(await isAlive(call, session)).toBe(false);
      expect(await isAlive(call, owner.session ?? '')).toBe(true);
      expectRefusal(await call('auth.login', attacker), 401, 'INVALID_CREDENTIALS');
      const again = { token: reset, email: attacker.email, password: NEW_PASSWORD };
      expectRefusal(await call('auth.resetPassword', again), 400, 'INVALID_TOKEN');
      const mail = await stack().waitForMail({ to: attacker.email, subject: 'were removed' });
      expect(mail.text).toContain('with a password');
    });

    test('the browser that returns from the provider is recognized at the confirmation', async () => {
      const call = callerOf('rest', stack().url);
      const person = identityClaims({ email_verified: false });
      const { browser } = await logInAs(stack(), person);
      expect(browser.setCookies).toContainEqual(
        expect.stringMatching(/^auth_browser=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=86400$/),
      );
      const token = await mailedToken(stack(), person.email, 'verify-email');
      const cookie = browser.cookies.get('auth_browser');
      const { data } = await call('auth.verifyEmail', { token }, { browser: cookie });
      expect(data).toEqual({ success: true, message: expect.any(String) });
    });

    // checks: 68
    test('a callback fails if its state cookie was planted in another browser', async () => {
      const call = callerOf('rest', stack().url);
      const attacker = identityClaims({ email_verified: false });
      const { email } = attacker;
      for (const victim of [new Browser(), (await begin(stack())).browser]) {
        const { browser, request } = await begin(stack());
        const callback = atInstance(stack(), provider.authorize(request, attacker));
        victim.cookies.set('acme_oauth_state', browser.cookies.get('acme_oauth_state') ?? '');
        await expectStateRefused(victim, callback);
        // The token is used up, even in the attacker's browser.
        await expectStateRefused(browser, callback);
      }
      expect(await usersWith(stack(), email)).toEqual([]);
      expect(await identitiesOf(stack(), attacker.sub)).toEqual([]);

      // After the owner's proof and reset, only the owner gets in, whatever was planted.
      const { browser } = await logInAs(stack(), attacker);
      const token = await mailedToken(stack(), email, 'verify-email');
      const own = (await begin(stack())).browser.cookies.get('auth_browser');
      expect(own).not.toBe(browser.cookies.get('auth_browser'));
      expect((await call('auth.verifyEmail', { token }, { browser: own })).data.unproven).toHaveLength(1);
      await happen.reset(stack(), { call, email } as Made);
      expect((await logInAs(stack(), attacker)).location).toBe('/login?error=email_unverified');
    });

    // checks: 70
    test('an identity from a login that another site started stays unproven, even if the same browser confirms the mail', async () => {
      const call = callerOf('rest', stack().url);
      // The browser is logged in at the provider as the attacker, and the provider asks nothing.
      const attacker = identityClaims({ email_verified: false });
      const { email } = attacker;
      const { browser } = await logInAs(stack(), attacker, { headers: fromAnotherSite });
      const token = await mailedToken(stack(), email, 'verify-email');
      const { data } = await call('auth.verifyEmail', { token }, { browser: browser.cookies.get('auth_browser') });
      expect(data.unproven).toEqual([{ method: 'acme', addedAt: expect.any(Number) }]);
      await happen.reset(stack(), { call, email } as Made);
      expect((await logInAs(stack(), attacker)).location).toBe('/login?error=email_unverified');
    });

    // checks: 70
    test('a reset removes what was added since a reported login, and nothing older', async () => {
      const call = callerOf('rest', stack().url);
      const { id, ...owner } = await loggedIn({ stack: stack(), call });
      const [own, foreign] = [identityClaims(), identityClaims()];
      const linkIn = async (session: string, claims: typeof own) => {
        const browser = new Browser();
        browser.cookies.set('auth_session', session);
        const { request } = await begin(stack(), browser, 'acme?link=1');
        browser.cookies.delete('auth_session');
        const location = await browser.redirectOf(atInstance(stack(), provider.authorize(request, claims)));
        expect(location).toBe('/dashboard/security?notice=linked');
      };
      await linkIn(owner.session, own);
      await stack().database('update identities set created_at = created_at - 3600000 where user_id = ?', [id]);
      const thief = await logIn(call, owner);
      await mailedToken(stack(), owner.email, 'not-me');
      await linkIn(thief, foreign);
      await happen.reset(stack(), { call, email: owner.email } as Made);
      expect((await logInAs(stack(), foreign)).browser.session).not.toBe(undefined);
      expect(await identitiesOf(stack(), foreign.sub)).not.toEqual([expect.objectContaining({ user_id: id })]);
      expect(await identitiesOf(stack(), own.sub)).toEqual([expect.objectContaining({ user_id: id })]);
      const { text } = await stack().waitForMail({ to: owner.email, subject: 'were removed' });
      expect(text).toContain('through Acme');
    });

    test('a reset keeps what was added since a login that was reported more than a week ago', async () => {
      const call = callerOf('rest', stack().url);
      const { id, email, ...person } = await loggedIn({ stack: stack(), call });
      await logIn(call, { ...person, email });
      await mailedToken(stack(), email, 'not-me');
      const longAgo = (Date.now() - 8 * DAY_MS).toString(16).padStart(12, '0');
      const logins = "select id from activity where user_id = ? and kind = 'logged-in'";
      for (const row of await stack().database<{ id: string }>(logins, [id])) {
        const aged = `${longAgo.slice(0, 8)}-${longAgo.slice(8)}${row.id.slice(13)}`;
        await stack().database('update activity set id = ? where id = ?', [aged, row.id]);
      }
      const own = freshSubject();
      await stack().database(
        `insert into identities (id, user_id, issuer, subject, provider, proven, created_at)
         select ?, id, ?, ?, 'acme', 1, ? from users where id = ?`,
        [freshSubject(), provider.url, own, Date.now(), id],
      );
      await happen.reset(stack(), { call, email } as Made);
      expect(await identitiesOf(stack(), own)).toHaveLength(1);
    });

    test('the owner’s login through a provider makes an attacker’s devices unknown', async () => {
      const call = callerOf('rest', stack().url);
      const attacker = await registered({ stack: stack(), call });
      const { email } = attacker;
      await call('auth.verifyEmail', { token: await mailedToken(stack(), email, 'verify-email') });
      const device = deviceIn(await call('auth.login', attacker)) ?? '';
      const owner = identityClaims({ email });
      expect((await logInAs(stack(), owner)).location).toBe('/dashboard');
      const isNews = async () => {
        const reports = "select id from outbox where kind = 'new-device' and email = ?";
        const before = (await stack().database(reports, [email])).length;
        const browser = new Browser();
        browser.cookies.set('auth_device', device);
        await logInAs(stack(), owner, { browser, headers: { 'user-agent': FIREFOX } });
        return (await stack().database(reports, [email])).length > before;
      };
      expect(await isNews()).toBe(true);
    });

    test('an unverified identity belongs to the browser that returned last', async () => {
      const call = callerOf('rest', stack().url);
      const person = identityClaims({ email_verified: false });
      const first = await logInAs(stack(), person);
      const second = await logInAs(stack(), person);
      const token = await mailedToken(stack(), person.email, 'verify-email', 2);
      const unprovenIn = async ({ cookies }: Browser) =>
        (await call('auth.verifyEmail', { token }, { browser: cookies.get('auth_browser') })).data.unproven;
      expect(await unprovenIn(first.browser)).toHaveLength(1);
      expect(await unprovenIn(second.browser)).toBeUndefined();
    });

    test('a first login through a provider is mailed, and ends no session if nothing was removed', async () => {
      const call = callerOf('rest', stack().url);
      const { session, email } = await loggedIn({ stack: stack(), call });
      const person = identityClaims({ email });
      for (let i = 0; i < 2; i++) expect((await logInAs(stack(), person)).location).toBe('/dashboard');
      expect(await isAlive(call, session)).toBe(true);
      await stack().waitForMail({ to: email, subject: 'A new way to log in' });
      const mails = await stack().mailsTo(email);
      expect(mails.filter(({ subject }) => !subject.startsWith('New login'))).toHaveLength(2);
    });

    test('two unverified users who swap emails concurrently both get in', async () => {
      const [one, two] = [identityClaims({ email_verified: false }), identityClaims({ email_verified: false })];
      await Promise.all([one, two].map((person) => logInAs(stack(), person)));
      const ends = await Promise.all([
        logInAs(stack(), { ...one, email: two.email, email_verified: true }),
        logInAs(stack(), { ...two, email: one.email, email_verified: true }),
      ]);
      expect(ends.map(({ location }) => location)).toEqual(['/dashboard', '/dashboard']);
      for (const { sub } of [one, two]) expect(await identitiesOf(stack(), sub)).toHaveLength(1);
    });

    overSurfaces(stack, name, (scenario) => {
      test('a confirmation in another browser names the login methods; the right browser can still prove them', async () => {
        const { call, stack } = scenario();
        const person = await registered(scenario(), { name: 'Mallory' });
        const token = await mailedToken(stack, person.email, 'verify-email');
        const elsewhere = await call('auth.verifyEmail', { token }, { browser: 'x'.repeat(43) });
        const [row] = await stack.database<{ created_at: number }>('select created_at from users where id = ?', [
          person.id,
        ]);
        const addedAt = Math.floor(Number(row?.created_at) / 1000);
        expect(elsewhere.data).toEqual({
          success: true,
          message: expect.any(String),
          unproven: [{ method: 'password', addedAt }],
        });
        expect((await call('auth.verifyEmail', { token })).data).toEqual(elsewhere.data);
        const here = { success: true, message: expect.any(String) };
        expect((await call('auth.verifyEmail', { token }, { browser: person.browser })).data).toEqual(here);
        expect((await call('auth.verifyEmail', { token })).data).toEqual(here);
      });

      test('an expired token proves nothing', async () => {
        const { call, stack } = scenario();
        const person = await registered(scenario());
        const token = await mailedToken(stack, person.email, 'verify-email');
        await call('auth.verifyEmail', { token });
        await stack.database('update one_time_tokens set expires_at = expires_at - 86401000 where user_id = ?', [
          person.id,
        ]);
        expect((await call('auth.verifyEmail', { token }, { browser: person.browser })).status).toBe(200);
        expectRefusal(await call('account.notMe', { token }), 400, 'INVALID_TOKEN');
        expect(await stack.database('select password_proven from users where id = ?', [person.id])).toEqual([
          { password_proven: 0 },
        ]);
      });

      test('a browser keeps its cookie, only the hash is stored, and two cookies count as none', async () => {
        const { call, stack } = scenario();
        const first = await call('auth.register', { name: 'Ada', email: freshEmail(), password: PASSWORD });
        const browser = browserIn(first) ?? '';
        expect(first.setCookies).toContain(`auth_browser=${browser}; Path=/; HttpOnly; SameSite=Lax; Max-Age=86400`);
        const again = () => ({ name: 'Ada', email: freshEmail(), password: PASSWORD });
        expect(browserIn(await call('auth.register', again(), { browser }))).toBe(browser);
        const cookie = `auth_browser=${browser}; auth_browser=${'x'.repeat(43)}`;
        const strangers = [
          await call('auth.register', again(), { headers: { cookie } }),
          await call('auth.register', again(), { browser: 'chosen-by-somebody-else' }),
        ];
        for (const reply of strangers) {
          expect(browserIn(reply)).toMatch(/^[\w-]{43}$/);
          expect([browser, 'x'.repeat(43)]).not.toContain(browserIn(reply));
        }
        expect(JSON.stringify(await stack.database('select * from users'))).not.toContain(browser);
      });

      test('“This was not me” deletes an account without proven methods, with its sessions, and frees the email', async () => {
        const { call, stack } = scenario();
        const person = await registered(scenario());
        const token = await mailedToken(stack, person.email, 'verify-email');
        await call('auth.verifyEmail', { token });
        const session = await logIn(call, person);
        const reply = await call('account.notMe', { token });
        expect([reply.status, reply.data]).toEqual([200, { success: true, message: 'The account was deleted.' }]);
        expect(await usersWith(stack, person.email)).toEqual([]);
        expect(await isAlive(call, session)).toBe(false);
        expectRefusal(await call('account.notMe', { token }), 400, 'INVALID_TOKEN', 'Invalid or expired token');
        await registered(scenario(), { email: person.email });
      });

      test('“This was not me” before verification also deletes the account', async () => {
        const { call, stack } = scenario();
        const person = await registered(scenario());
        const token = await mailedToken(stack, person.email, 'verify-email');
        expect((await call('account.notMe', { token })).status).toBe(200);
        expect(await usersWith(stack, person.email)).toEqual([]);
        expectRefusal(await call('auth.verifyEmail', { token }), 400, 'INVALID_TOKEN');
      });

      test('the files of a deleted account are deleted and cannot come back', async () => {
        const { call, stack } = scenario();
        const person = await registered(scenario());
        const token = await mailedToken(stack, person.email, 'verify-email');
        await call('auth.verifyEmail', { token });
        const session = await logIn(call, person);
        const body = Buffer.from('89504e470d0a1a0a00', 'hex');
        const file = { filename: 'a.png', contentType: 'image/png', size: body.length };
        const { data } = await call('upload.presign', file, { session });
        const put = () => fetch(data.presignedUrl, { method: 'PUT', headers: { 'content-type': 'image/png' }, body });
        expect((await put()).ok).toBe(true);
        await call('account.notMe', { token });
        const isGone = async () => (await fetch(data.publicUrl)).status === 404;
        await until(isGone, { what: 'the deletion of the file' });
        // The row stays while its URL works, so that the job checks again.
        const isKept = () =>
          stack.database(
            "select state from uploads where object_key = ? and state = 'doomed' and due_at > expires_at",
            [data.key],
          );
        await until(async () => (await isKept()).length === 1, { what: 'a later look' });
      });

      test.each([undefined, '', 'x'.repeat(43), ['x'], 1, 'x'.repeat(90_000)])(
        '“This was not me” refuses the token %j',
        async (token) => {
          const reply = await scenario().call('account.notMe', { token });
          expectRefusal(reply, 400, 'INVALID_TOKEN', 'Invalid or expired token');
        },
      );

      test('“This was not me” has the common limit on wrong tokens', async () => {
        const { call } = scenario();
        const address = clientAddress();
        const token = 'x'.repeat(43);
        const replies = await Promise.all(
          Array.from({ length: 60 }, () => call('account.notMe', { token }, { address })),
        );
        expect(replies.map(({ code }) => code)).toContain('RATE_LIMITED');
        expectRefusal(await call('auth.verifyEmail', { token }, { address }), 429, 'RATE_LIMITED');
      });

      test('a reset token does not reveal who created the account', async () => {
        const { call, stack } = scenario();
        const { email } = await verified(scenario());
        await call('auth.forgotPassword', { email });
        const token = await mailedToken(stack, email, 'reset-password');
        expectRefusal(await call('account.notMe', { token }), 400, 'INVALID_TOKEN');
      });

      test('concurrent confirmations and “This was not me” leave the account deleted or complete', async () => {
        const { call, stack } = scenario();
        const person = await registered(scenario());
        const token = await mailedToken(stack, person.email, 'verify-email');
        const replies = await Promise.all(
          Array.from({ length: 12 }, (_, i) =>
            call(i % 3 === 0 ? 'account.notMe' : 'auth.verifyEmail', { token }, { browser: person.browser }),
          ),
        );
        const users = await usersWith(stack, person.email);
        const isProven = replies.some(({ status }, i) => i % 3 !== 0 && status === 200);
        // A confirmed address stays, and the link works again; a deleted account is deleted once, with its link.
        const counts = [200, 400].map((wanted) => replies.filter(({ status }) => status === wanted).length);
        expect(counts).toEqual(isProven ? [12, 0] : [1, 11]);
        expect(users).toHaveLength(isProven ? 1 : 0);
        if (isProven) await logIn(call, person);
      });
    });
  },
  { env },
);
