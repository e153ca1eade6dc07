import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { Browser } from '../provider/browser.ts';
import { type Claims, type Lie, secondsFromNow } from '../provider/hostile.ts';
import { identitiesOf, profileOf, somebody, usersWith } from '../provider/login.ts';
import type { Stack } from '../rig/stack.ts';
import { callerOf } from './callers.ts';
import {
  browserWith,
  comeBack,
  listed,
  refusalOf,
  SECURITY,
  startTwoProviders,
  withPassword,
} from './linked-logins.ts';
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
} from './scenario.ts';

/** Another identity of an account: linked by its user, and by nobody else. */
const { acme, env, upToCallback, through, logInThrough, withLinked } = await startTwoProviders();

const provenOf = async ({ database }: Stack, subject: string) =>
  (await database<{ proven: number }>('select proven from identities where subject = ?', [subject]))[0]?.proven;

/** `refusalOf` where a browser shows the answer to its user: the header is none that `fetch` lets a caller set. */
const shownIn = async ({ cookies }: Browser, url: string) => {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const asked = get(url, { headers: { cookie, 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'same-origin' } });
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.resume();
  return [response.statusCode, response.headers.location];
};

onBothStacks(
  (stack) => {
    describe('linking', () => {
      test('adds a way to log in to the account of the session, and a mail and an event tell of it', async () => {
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

      test('the address at the provider is the one of the last login', async () => {
        const { session, identity } = await withLinked(stack());
        const email = somebody().email;
        await logInThrough(stack(), { ...identity, email });
        expect(await listed(stack(), session)).toEqual([expect.objectContaining({ email })]);
        await logInThrough(stack(), { ...identity, email: undefined });
        expect(await listed(stack(), session)).toEqual([expect.objectContaining({ email })]);
        await stack().database('update identities set email = null where subject = ?', [identity.sub]);
        expect(await listed(stack(), session)).toEqual([expect.objectContaining({ email: '' })]);
      });

      test('where an attacker may have opened the session, what it links stays unproven, and ends with a reset', async () => {
        const call = callerOf('rest', stack().url);
        const account = await registered({ stack: stack(), call });
        await call('auth.verifyEmail', { token: await mailedToken(stack(), account.email, 'verify-email') });
        const browser = browserWith(await logIn(call, account));
        const [foreign, own] = [somebody(), somebody({ email: account.email })];
        for (const identity of [foreign, own]) {
          expect(await through({ stack: stack(), browser }, identity)).toBe(`${SECURITY}?notice=linked`);
        }
        expect(await provenOf(stack(), foreign.sub)).toBe(0);
        // The owner of the inbox is at the provider.
        expect(await provenOf(stack(), own.sub)).toBe(1);
        await call('auth.forgotPassword', { email: account.email });
        const token = await mailedToken(stack(), account.email, 'reset-password');
        await call('auth.resetPassword', { token, email: account.email, password: PASSWORD });
        expect(await identitiesOf(stack(), foreign.sub)).toEqual([]);
        expect(await identitiesOf(stack(), own.sub)).toHaveLength(1);
      });

      test('of two users who link one identity at once one has it, ten times', async () => {
        for (let round = 0; round < 10; round++) {
          const identity = somebody();
          const users = await Promise.all([withPassword(stack()), withPassword(stack())]);
          const ends = await Promise.all(
            users.map(({ session }) => through({ stack: stack(), browser: browserWith(session) }, identity)),
          );
          expect(ends.sort()).toEqual([`${SECURITY}?error=identity_taken`, `${SECURITY}?notice=linked`]);
          expect(await identitiesOf(stack(), identity.sub)).toHaveLength(1);
        }
      });
    });

    describe('a link that the user did not ask for', () => {
      type Case = (victim: { browser: Browser; id: string; session: string }, identity: Claims) => Promise<unknown>;
      const link = (browser: Browser, identity: Claims, lie?: Lie) =>
        upToCallback({ stack: stack(), browser }, identity, lie);
      const call = (procedure: string, session: string) =>
        callerOf('rest', stack().url)(procedure, undefined, { session });
      const attacker = async () => browserWith((await withPassword(stack())).session);

      test.each<[string, Case, unknown]>([
        [
          'of another browser',
          async ({ browser }, identity) => refusalOf(browser, await link(await attacker(), identity)),
          [400, 'INVALID_STATE'],
        ],
        [
          'of another user, whose state cookie was planted',
          async ({ browser }, identity) => {
            const theirs = await attacker();
            const callback = await link(theirs, identity);
            browser.cookies.set('acme_oauth_state', theirs.cookies.get('acme_oauth_state') ?? '');
            return refusalOf(browser, callback);
          },
          [400, 'INVALID_STATE'],
        ],
        [
          'in a session that was logged out meanwhile',
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
          'that comes back at another provider',
          async ({ browser }, identity) => {
            const callback = await link(browser, identity);
            browser.cookies.set('work_oauth_state', browser.cookies.get('acme_oauth_state') ?? '');
            callback.pathname = '/auth/work/callback';
            return refusalOf(browser, callback);
          },
          [400, 'INVALID_STATE'],
        ],
        [
          'with a signature of another',
          async ({ browser }, identity) =>
            comeBack(browser, await link(browser, identity, { signature: 'foreign key' })),
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
          'without a session, in a browser',
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
          'in a session without a recent credential, in a browser',
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
        const identity = somebody();
        expect(await attempt({ ...victim, browser: browserWith(victim.session) }, identity)).toEqual(outcome);
        expect(await identitiesOf(stack(), identity.sub)).toEqual([]);
        expect(await usersWith(stack(), identity.email)).toEqual([]);
        expect(await eventsOf(stack(), victim.id, 'identity-linked')).toEqual([]);
      });

      test('an identity of another account stays where it is', async () => {
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

      test('of twenty callbacks at once one links, and a later one finds no flow', async () => {
        const { session } = await withPassword(stack());
        const browser = browserWith(session);
        const identity = somebody();
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
