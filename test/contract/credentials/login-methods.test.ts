import { afterAll, expect, test } from 'vitest';
import type { Browser } from '../provider/browser.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { freshSubject, identitiesOf, loginsThrough, somebody, usersWith } from '../provider/login.ts';
import { clientAddress, freshEmail } from '../rig/address.ts';
import type { Stack } from '../rig/stack.ts';
import { until } from '../rig/until.ts';
import { callerOf } from './callers.ts';
import {
  browserIn,
  expectRefusal,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  onBothStacks,
  overBoth,
  PASSWORD,
  registered,
  verified,
} from './scenario.ts';

/** Who has added the ways into an account, and what becomes of those that the owner of the inbox has not. */
const provider = await startHostileProvider();
const logInAs = loginsThrough(provider);
afterAll(() => provider.close());

// How costly a hash is changes nothing here.
const env = environmentFor(provider);
const NEW_PASSWORD = 'Difference-Engine-1822';

/**
 * An account, in letters: its password (p) and an identity (i), a capital where it is proven; `?` while its address is not
 * verified. Beside the first two, after an event: `n` a new password, `o` another subject at the same provider; `s` the
 * session from before is alive, `c` the profile was cleared, `m` the owner is told what was removed, `t` the terms that were
 * accepted before are accepted no more; `x` no account is left.
 *
 * Left out, for they cannot be: an account without any method (it is deleted with its last one), and a method that is
 * proven while the address is not verified (what proves the one verifies the other).
 */
const events = ['click here', 'click elsewhere', 'reset', 'vouched', 'unvouched', 'other subject', 'not me'] as const;
type Event = (typeof events)[number];

const table: [state: string, ...outcomes: string[]][] = [
  //        click here, elsewhere, reset, vouched, unvouched, other subject, not me
  ['p', 'P s', 'p s', 'N t', 'I mt', 'p s', 'O mt', 'x'],
  ['P', 'P s', 'P s', 'N', 'PI s', 'P s', 'PO s', 'P'],
  ['i', 'I s', 'i s', 'N mt', 'I s', 'i s', 'O mt', 'x'],
  ['I', 'I s', 'I s', 'NI', 'I s', 'I s', 'IO s', 'I'],
  ['pi', 'PI s', 'pi s', 'N mt', 'I mt', 'pi s', 'O mt', 'x'],
  ['pI', 'PI s', 'pI s', 'NI t', 'I mt', 'pI s', 'IO mt', 'I mt'],
  ['Pi', 'PI s', 'Pi s', 'N mt', 'PI s', 'Pi s', 'PO mt', 'P mt'],
  ['PI', 'PI s', 'PI s', 'NI', 'PI s', 'PI s', 'PIO s', 'PI'],
  ['?p', 'P', 'p', 'N ct', 'I cmt', '?p', 'O cmt', 'x'],
  ['?i', 'I', 'i', 'N cmt', 'I', '?i', 'O cmt', 'x'],
  ['?pi', 'PI', 'pi', 'N cmt', 'I cmt', '?pi', 'O cmt', 'x'],
];

/** Both methods of a state were asked for in the same browser. What no procedure leads to yet is made in the database. */
async function make(stack: Stack, state: string) {
  const call = callerOf('rest', stack.url);
  const account = await registered({ stack, call }, { name: 'Mallory' });
  await stack.database("insert into consents (id, user_id, version, created_at) values (?, ?, 'former', 1)", [
    freshSubject(),
    account.id,
  ]);
  const token = await mailedToken(stack, account.email, 'verify-email');
  const identity = somebody({ email: account.email });
  const isVerified = !state.startsWith('?');
  if (/i/i.test(state)) {
    await stack.database(
      `insert into identities (id, user_id, issuer, subject, provider, proven, browser, created_at)
       select ?, id, ?, ?, 'acme', ?, password_browser, created_at from users where id = ?`,
      [freshSubject(), provider.url, identity.sub, state.includes('I') ? 1 : 0, account.id],
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
  return { ...account, call, token, identity, other: somebody({ email: account.email }), session };
}

async function openSession(stack: Stack, state: string, account: Account['person'], identity: Account['identity']) {
  if (/p/i.test(state)) return logIn(callerOf('rest', stack.url), account);
  return (await logInAs(stack, { ...identity, email_verified: false })).session;
}

interface Account {
  person: { name: string; email: string; password: string };
  identity: ReturnType<typeof somebody>;
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
};

/** In the letters of the table, each method tried as well as read. */
async function outcomeFor(stack: Stack, { id, call, email, identity, other, session }: Made): Promise<string> {
  const [user] = await stack.database<{ email_verified: number; password_proven: number; bio: string | null }>(
    'select email_verified, password_proven, bio from users where id = ?',
    [id],
  );
  const links = await stack.database<{ subject: string; proven: number }>(
    'select subject, proven from identities where user_id = ?',
    [id],
  );
  const told = await stack.database("select id from outbox where user_id = ? and kind = 'login-methods-removed'", [id]);
  const isAliveNow = session !== undefined && (await isAlive(call, session));
  if (!user) {
    expect([links, isAliveNow]).toEqual([[], false]);
    return 'x';
  }
  // With what was removed goes every token that may have been asked for by it.
  if (told.length > 0)
    expect(
      await stack.database("select id from one_time_tokens where user_id = ? and purpose <> 'new-device'", [id]),
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
  const changes = `${user.bio === null ? 'c' : ''}${told.length > 0 ? 'm' : ''}${consents.length === 0 ? 't' : ''}`;
  const rest = `${isAliveNow ? 's' : ''}${changes}`;
  return `${methods} ${rest}`.trim();
}

onBothStacks(
  (stack) => {
    test.each(table)('%s: what is left of an account after each event', async (state, ...outcomes) => {
      const found = await Promise.all(
        events.map(async (event) => {
          const account = await make(stack(), state);
          await happen[event](stack(), account);
          return [event, await outcomeFor(stack(), account)];
        }),
      );
      expect(Object.fromEntries(found)).toEqual(Object.fromEntries(events.map((event, i) => [event, outcomes[i]])));
    });

    test('an attacker’s identity, let in because the owner clicked, ends with the owner’s reset', async () => {
      const call = callerOf('rest', stack().url);
      const attacker = somebody({ email_verified: false, name: 'Mallory' });
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

    test('an attacker’s password, let in because the owner clicked, ends with the owner’s login by a provider', async () => {
      const call = callerOf('rest', stack().url);
      const attacker = await registered({ stack: stack(), call });
      const token = await mailedToken(stack(), attacker.email, 'verify-email');
      await call('auth.verifyEmail', { token });
      const session = await logIn(call, attacker);
      await call('auth.forgotPassword', { email: attacker.email });
      const reset = await mailedToken(stack(), attacker.email, 'reset-password');

      const owner = await logInAs(stack(), somebody({ email: attacker.email }));
      expect(await isAlive(call, session)).toBe(false);
      expect(await isAlive(call, owner.session ?? '')).toBe(true);
      expectRefusal(await call('auth.login', attacker), 401, 'INVALID_CREDENTIALS');
      const again = { token: reset, email: attacker.email, password: NEW_PASSWORD };
      expectRefusal(await call('auth.resetPassword', again), 400, 'INVALID_TOKEN');
      const mail = await stack().waitForMail({ to: attacker.email, subject: 'were removed' });
      expect(mail.text).toContain('by a password');
    });

    test('the browser that comes from the provider is known when it confirms', async () => {
      const call = callerOf('rest', stack().url);
      const person = somebody({ email_verified: false });
      const { browser } = await logInAs(stack(), person);
      expect(browser.setCookies).toContainEqual(
        expect.stringMatching(/^auth_browser=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=86400$/),
      );
      const token = await mailedToken(stack(), person.email, 'verify-email');
      const cookie = browser.cookies.get('auth_browser');
      const { data } = await call('auth.verifyEmail', { token }, { browser: cookie });
      expect(data).toEqual({ success: true, message: expect.any(String) });
    });

    test('an identity that nobody vouches for belongs to the browser that came last', async () => {
      const call = callerOf('rest', stack().url);
      const person = somebody({ email_verified: false });
      const first = await logInAs(stack(), person);
      const second = await logInAs(stack(), person);
      const token = await mailedToken(stack(), person.email, 'verify-email', 2);
      const unprovenIn = async ({ cookies }: Browser) =>
        (await call('auth.verifyEmail', { token }, { browser: cookies.get('auth_browser') })).data.unproven;
      expect(await unprovenIn(first.browser)).toHaveLength(1);
      expect(await unprovenIn(second.browser)).toBeUndefined();
    });

    test('a first login by a provider is told by mail, and ends no session if there was nothing to remove', async () => {
      const call = callerOf('rest', stack().url);
      const { session, email } = await loggedIn({ stack: stack(), call });
      const person = somebody({ email });
      for (let i = 0; i < 2; i++) expect((await logInAs(stack(), person)).location).toBe('/dashboard');
      expect(await isAlive(call, session)).toBe(true);
      await stack().waitForMail({ to: email, subject: 'A new way to log in' });
      const mails = await stack().mailsTo(email);
      expect(mails.filter(({ subject }) => !subject.startsWith('New login'))).toHaveLength(2);
    });

    test('two who wait and whose addresses change places at once both get in', async () => {
      const [one, two] = [somebody({ email_verified: false }), somebody({ email_verified: false })];
      await Promise.all([one, two].map((person) => logInAs(stack(), person)));
      const ends = await Promise.all([
        logInAs(stack(), { ...one, email: two.email, email_verified: true }),
        logInAs(stack(), { ...two, email: one.email, email_verified: true }),
      ]);
      expect(ends.map(({ location }) => location)).toEqual(['/dashboard', '/dashboard']);
      for (const { sub } of [one, two]) expect(await identitiesOf(stack(), sub)).toHaveLength(1);
    });

    overBoth(stack, (scenario) => {
      test('confirmed elsewhere, the answer says by what the account was asked for; the right browser may still prove it', async () => {
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

      test('a token past its life proves nothing any more', async () => {
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

      test('a browser keeps its cookie, only whose hash is stored, and two of them are none', async () => {
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

      test('“this was not me” deletes what nobody has proven, with its sessions, and the address is free', async () => {
        const { call, stack } = scenario();
        const person = await registered(scenario());
        const token = await mailedToken(stack, person.email, 'verify-email');
        await call('auth.verifyEmail', { token });
        const session = await logIn(call, person);
        const reply = await call('account.notMe', { token });
        expect([reply.status, reply.data]).toEqual([200, { success: true, message: 'The account is deleted.' }]);
        expect(await usersWith(stack, person.email)).toEqual([]);
        expect(await isAlive(call, session)).toBe(false);
        expectRefusal(await call('account.notMe', { token }), 400, 'INVALID_TOKEN', 'Invalid or expired token');
        await registered(scenario(), { email: person.email });
      });

      test('“this was not me” before the address is confirmed deletes the account as well', async () => {
        const { call, stack } = scenario();
        const person = await registered(scenario());
        const token = await mailedToken(stack, person.email, 'verify-email');
        expect((await call('account.notMe', { token })).status).toBe(200);
        expect(await usersWith(stack, person.email)).toEqual([]);
        expectRefusal(await call('auth.verifyEmail', { token }), 400, 'INVALID_TOKEN');
      });

      test('the files of a deleted account go too, and cannot come back', async () => {
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
        // As long as its address works the row stays, so that the job looks again.
        const isKept = () =>
          stack.database(
            "select state from uploads where object_key = ? and state = 'doomed' and due_at > expires_at",
            [data.key],
          );
        await until(async () => (await isKept()).length === 1, { what: 'a later look' });
      });

      test.each([undefined, '', 'x'.repeat(43), ['x'], 1, 'x'.repeat(90_000)])(
        '“this was not me” with the token %j is refused',
        async (token) => {
          const reply = await scenario().call('account.notMe', { token });
          expectRefusal(reply, 400, 'INVALID_TOKEN', 'Invalid or expired token');
        },
      );

      test('guessing tokens of “this was not me” has the limit of all tokens', async () => {
        const { call } = scenario();
        const address = clientAddress();
        const token = 'x'.repeat(43);
        const replies = await Promise.all(
          Array.from({ length: 60 }, () => call('account.notMe', { token }, { address })),
        );
        expect(replies.map(({ code }) => code)).toContain('RATE_LIMITED');
        expectRefusal(await call('auth.verifyEmail', { token }, { address }), 429, 'RATE_LIMITED');
      });

      test('a reset token says nothing about who asked for the account', async () => {
        const { call, stack } = scenario();
        const { email } = await verified(scenario());
        await call('auth.forgotPassword', { email });
        const token = await mailedToken(stack, email, 'reset-password');
        expectRefusal(await call('account.notMe', { token }), 400, 'INVALID_TOKEN');
      });

      test('of “this was not me” and confirmations at once, the account is gone or whole', async () => {
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
        // A confirmed address stays, and the link works again; a deleted account is deleted once, and its link with it.
        const counts = [200, 400].map((wanted) => replies.filter(({ status }) => status === wanted).length);
        expect(counts).toEqual(isProven ? [12, 0] : [1, 11]);
        expect(users).toHaveLength(isProven ? 1 : 0);
        if (isProven) await logIn(call, person);
      });
    });
  },
  { env },
);
