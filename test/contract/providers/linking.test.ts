import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { v7 as uuidv7 } from 'uuid';
import { describe, expect, test } from 'vitest';
import { Browser } from '../../provider/browser.ts';
import { type Claims, type Lie, secondsFromNow } from '../../provider/hostile.ts';
import { identitiesOf, identityClaims, profileOf, usersWith } from '../../provider/login.ts';
import type { Stack } from '../../rig/stack.ts';
import { callerOf } from '../rig/callers.ts';
import {
  browserWith,
  comeBack,
  listed,
  refusalOf,
  SECURITY,
  startTwoProviders,
  withPassword,
} from '../rig/linked-logins.ts';
import {
  eventsOf,
  expectRefusal,
  growOld,
  isAlive,
  logIn,
  mailedToken,
  onBothStacks,
  PASSWORD,
  registered,
} from '../rig/scenario.ts';

/** Only the user of an account can link another identity. */
const { acme, env, upToCallback, through, logInThrough, withLinked } = await startTwoProviders();

const provenOf = async ({ database }: Stack, subject: string) =>
  (await database<{ proven: number }>('select proven from identities where subject = ?', [subject]))[0]?.proven;

/** `refusalOf` for a navigation: `fetch` cannot set Sec-Fetch-Mode. */
const shownIn = async ({ cookies }: Browser, url: string, site = 'same-origin') => {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const request = get(url, { headers: { cookie, 'sec-fetch-mode': 'navigate', 'sec-fetch-site': site } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.resume();
  return [response.statusCode, response.headers.location];
};

onBothStacks(
  (stack) => {
    describe('linking', () => {
      test('adds a login method to the account of the session, with mail and event', async () => {
        const { id, email, session, identity, browser } = await withLinked(stack());
        expect(await listed(stack(), session)).toEqual([
          {
            id: expect.any(String),
            provider: 'acme',
            email: identity.email,
            createdAt: expect.closeTo(secondsFromNow(0), -2),
          },
        ]);
        expect(await eventsOf(stack(), id, 'identity-linked')).toEqual([{ provider: 'acme' }]);
        const mail = await stack().waitForMail({ to: email, subject: 'A new way to log in' });
        expect(mail.text).toContain('through Acme');
        expect(await provenOf(stack(), identity.sub)).toBe(1);
        expect(await isAlive(callerOf('rest', stack().url), session)).toBe(true);

        expect(await through({ stack: stack(), browser }, { ...identity, email: 'new@example.test' })).toBe(
          `${SECURITY}?notice=already-linked`,
        );
        expect(await listed(stack(), session)).toHaveLength(1);
        expect(await eventsOf(stack(), id, 'identity-linked')).toHaveLength(1);
        expect(await profileOf(stack(), await logInThrough(stack(), identity))).toMatchObject({
          id,
          provider: 'email',
        });
      });

      test.each([
        ['fifty identities per user', 49, 0],
        ['ten links per user and hour', 0, 9],
      ])('%s is the limit: further links and logins end with oauth_failed', async (_, identities, links) => {
        const { id, session, browser } = await withLinked(stack());
        for (let i = 0; i < identities; i++) {
          await stack().database(
            `insert into identities (id, user_id, issuer, subject, provider, proven, created_at) values (?, ?, 'https://x.test', ?, 'acme', 1, 0)`,
            [crypto.randomUUID(), id, crypto.randomUUID()],
          );
        }
        for (let i = 0; i < links; i++) {
          await stack().database(
            `insert into activity (id, user_id, kind, actor, address, device, request_id, created_at) values (?, ?, 'identity-linked', 'user', '', '', '', 0)`,
            [uuidv7(), id],
          );
        }
        const another = identityClaims();
        const end = await through({ stack: stack(), browser }, another);
        expect(end).toBe(`${SECURITY}?error=oauth_failed`);
        expect(await identitiesOf(stack(), another.sub)).toEqual([]);
        // A login with a matching email cannot link either.
        const { email } = await profileOf(stack(), session);
        const login = { stack: stack(), browser: new Browser(), query: '' };
        expect(await through(login, { ...identityClaims(), email })).toBe('/login?error=oauth_failed');
      });

      test('a login updates the stored provider email; a login without an email keeps it', async () => {
        const { session, identity } = await withLinked(stack());
        const email = identityClaims().email;
        await logInThrough(stack(), { ...identity, email });
        expect(await listed(stack(), session)).toEqual([expect.objectContaining({ email })]);
        await logInThrough(stack(), { ...identity, email: undefined });
        expect(await listed(stack(), session)).toEqual([expect.objectContaining({ email })]);
        await stack().database('update identities set email = null where subject = ?', [identity.sub]);
        expect(await listed(stack(), session)).toEqual([expect.objectContaining({ email: '' })]);
      });

      // checks: 45
      test('an identity linked in a possibly stolen session is unproven, and a reset removes it', async () => {
        const call = callerOf('rest', stack().url);
        const account = await registered({ stack: stack(), call });
        await call('auth.verifyEmail', { token: await mailedToken(stack(), account.email, 'verify-email') });
        const browser = browserWith(await logIn(call, account));
        const [unproven, own] = [identityClaims(), identityClaims({ email: account.email })];
        for (const identity of [unproven, own]) {
          expect(await through({ stack: stack(), browser }, identity)).toBe(`${SECURITY}?notice=linked`);
        }
        expect(await provenOf(stack(), unproven.sub)).toBe(0);
        // The provider proves the address, so the link is proven.
        expect(await provenOf(stack(), own.sub)).toBe(1);
        await call('auth.forgotPassword', { email: account.email });
        const token = await mailedToken(stack(), account.email, 'reset-password');
        await call('auth.resetPassword', { token, email: account.email, password: PASSWORD });
        expect(await identitiesOf(stack(), unproven.sub)).toEqual([]);
        // Linked in a reported session, it is removed too. The owner's next login there links it again.
        expect(await identitiesOf(stack(), own.sub)).toEqual([]);
        await logInThrough(stack(), own);
        expect(await identitiesOf(stack(), own.sub)).toHaveLength(1);
      });

      // checks: 43
      test('when two users link one identity concurrently, exactly one succeeds (ten rounds)', async () => {
        for (let round = 0; round < 10; round++) {
          const identity = identityClaims();
          const users = await Promise.all([withPassword(stack()), withPassword(stack())]);
          const ends = await Promise.all(
            users.map(({ session }) => through({ stack: stack(), browser: browserWith(session) }, identity)),
          );
          expect(ends.sort()).toEqual([`${SECURITY}?error=identity_taken`, `${SECURITY}?notice=linked`]);
          expect(await identitiesOf(stack(), identity.sub)).toHaveLength(1);
        }
      });
    });

    describe('a refused link', () => {
      type Case = (victim: { browser: Browser; id: string; session: string }, identity: Claims) => Promise<unknown>;
      const link = (browser: Browser, identity: Claims, lie?: Lie) =>
        upToCallback({ stack: stack(), browser }, identity, lie);
      const call = (procedure: string, session: string) =>
        callerOf('rest', stack().url)(procedure, undefined, { session });
      const attacker = async () => browserWith((await withPassword(stack())).session);

      // checks: 24, 40
      test.each<[string, Case, unknown]>([
        [
          'of another browser',
          async ({ browser }, identity) => refusalOf(browser, await link(await attacker(), identity)),
          [400, 'INVALID_STATE'],
        ],
        [
          'of another user, whose state cookie was planted',
          async ({ browser }, identity) => {
            const attackers = await attacker();
            const callback = await link(attackers, identity);
            browser.cookies.set('acme_oauth_state', attackers.cookies.get('acme_oauth_state') ?? '');
            return refusalOf(browser, callback);
          },
          [400, 'INVALID_STATE'],
        ],
        [
          'in a session that was logged out before the callback',
          async ({ browser, session }, identity) => {
            const callback = await link(browser, identity);
            await call('auth.logout', session);
            return comeBack(browser, callback);
          },
          '/login?error=session_ended',
        ],
        [
          'in a session that was ended with all others',
          async ({ browser, session }, identity) => {
            const callback = await link(browser, identity);
            await call('auth.logoutAll', session);
            return comeBack(browser, callback);
          },
          '/login?error=session_ended',
        ],
        [
          'whose callback is at another provider',
          async ({ browser }, identity) => {
            const callback = await link(browser, identity);
            browser.cookies.set('work_oauth_state', browser.cookies.get('acme_oauth_state') ?? '');
            callback.pathname = '/auth/work/callback';
            return refusalOf(browser, callback);
          },
          [400, 'INVALID_STATE'],
        ],
        [
          'signed with another key',
          async ({ browser }, identity) => comeBack(browser, await link(browser, identity, { signature: 'other key' })),
          `${SECURITY}?error=oauth_failed`,
        ],
        [
          'that is declined at the provider',
          async ({ browser }, identity) => {
            const callback = await link(browser, identity);
            callback.search = `error=access_denied&state=${callback.searchParams.get('state')}`;
            return comeBack(browser, callback);
          },
          `${SECURITY}?error=cancelled`,
        ],
        [
          'by a page of another site',
          ({ browser }) => refusalOf(browser, `${stack().url}/auth/acme?link=1`, { 'sec-fetch-site': 'cross-site' }),
          [403, 'ORIGIN_MISMATCH'],
        ],
        [
          'by a page of a sibling host',
          ({ browser }) => refusalOf(browser, `${stack().url}/auth/acme?link=1`, { 'sec-fetch-site': 'same-site' }),
          [403, 'ORIGIN_MISMATCH'],
        ],
        [
          'by a link in a mail',
          ({ browser }) => refusalOf(browser, `${stack().url}/auth/acme?link=1`, { 'sec-fetch-site': 'none' }),
          [403, 'ORIGIN_MISMATCH'],
        ],
        [
          'by a link in a mail, as a navigation',
          ({ browser }) => shownIn(browser, `${stack().url}/auth/acme?link=1`, 'none'),
          [302, `${SECURITY}?error=reauthentication_required`],
        ],
        [
          'by a script of another site',
          ({ browser }) => refusalOf(browser, `${stack().url}/auth/acme?link=1`, { origin: 'https://evil.test' }),
          [403, 'ORIGIN_MISMATCH'],
        ],
        [
          'without a session',
          () => refusalOf(new Browser(), `${stack().url}/auth/acme?link=1`),
          [401, 'UNAUTHENTICATED'],
        ],
        [
          'without a session, as a navigation',
          () => shownIn(new Browser(), `${stack().url}/auth/acme?link=1`),
          [302, '/login'],
        ],
        [
          'in a session without a recent credential',
          async ({ browser, id }) => {
            await growOld(stack(), id);
            return refusalOf(browser, `${stack().url}/auth/acme?link=1`);
          },
          [403, 'REAUTHENTICATION_REQUIRED'],
        ],
        [
          'in a session without a recent credential, as a navigation',
          async ({ browser, id }) => {
            await growOld(stack(), id);
            return shownIn(browser, `${stack().url}/auth/acme?link=1`);
          },
          [302, `${SECURITY}?error=reauthentication_required`],
        ],
        [
          'together with another purpose',
          ({ browser }) => refusalOf(browser, `${stack().url}/auth/acme?link=1&reauthenticate=1`),
          [400, 'VALIDATION_FAILED'],
        ],
        [
          'with another value',
          ({ browser }) => refusalOf(browser, `${stack().url}/auth/acme?link=yes`),
          [400, 'VALIDATION_FAILED'],
        ],
      ])('%s changes nothing', async (_, attempt, outcome) => {
        const victim = await withPassword(stack());
        const identity = identityClaims();
        expect(await attempt({ ...victim, browser: browserWith(victim.session) }, identity)).toEqual(outcome);
        expect(await identitiesOf(stack(), identity.sub)).toEqual([]);
        expect(await usersWith(stack(), identity.email)).toEqual([]);
        expect(await eventsOf(stack(), victim.id, 'identity-linked')).toEqual([]);
      });

      // checks: 46
      test('an identity of another account cannot be linked', async () => {
        const owner = await withLinked(stack());
        const { id, session } = await withPassword(stack());
        const browser = browserWith(session);
        expect(await through({ stack: stack(), browser }, owner.identity)).toBe(`${SECURITY}?error=identity_taken`);
        expect(await identitiesOf(stack(), owner.identity.sub)).toEqual([
          expect.objectContaining({ user_id: owner.id }),
        ]);
        expect(await listed(stack(), session)).toEqual([]);

        const rpc = callerOf('trpc', stack().url);
        const started = await rpc('auth.idp.start', { provider: 'acme', link: '1' }, { session });
        const cookie = started.setCookies.map((line) => line.split(';')[0]).join('; ');
        const { searchParams } = acme.authorize(new URL(started.data.location), owner.identity);
        const ended = await rpc('auth.idp.callback', Object.fromEntries(searchParams), { headers: { cookie } });
        expectRefusal(ended, 409, 'IDENTITY_TAKEN', 'This identity belongs to another account');
        expect(await eventsOf(stack(), id, 'identity-linked')).toEqual([]);
      });

      // checks: 43
      test('only one of twenty concurrent callbacks links, and later ones find no flow', async () => {
        const { session } = await withPassword(stack());
        const browser = browserWith(session);
        const identity = identityClaims();
        const callback = await upToCallback({ stack: stack(), browser }, identity);
        const cookies = [...browser.cookies];
        const copies = Array.from({ length: 20 }, () => {
          const copy = new Browser();
          for (const [name, value] of cookies) if (name !== 'auth_session') copy.cookies.set(name, value);
          return copy;
        });
        const ends = await Promise.all(copies.map((copy) => refusalOf(copy, callback)));
        expect(ends.filter(([status]) => status === 302)).toEqual([[302, `${SECURITY}?notice=linked`]]);
        expect(ends.filter(([, code]) => code === 'INVALID_STATE')).toHaveLength(19);
        expect(await identitiesOf(stack(), identity.sub)).toHaveLength(1);
        for (const [name, value] of cookies) browser.cookies.set(name, value);
        expect(await refusalOf(browser, callback)).toEqual([400, 'INVALID_STATE']);
      });
    });
  },
  { env },
);
