import { generateKeyPair, importJWK, type JWTPayload, SignJWT } from 'jose';
import * as client from 'openid-client';
import { describe, expect, test } from 'vitest';
import { createSecrets } from '../../../server/secrets.ts';
import { type RelyingParty, relyingParty, Visitor } from '../rig/relying-party.ts';
import { everywhere, expectRefusal, isAlive, kindsOf, loggedIn, sessionIn } from '../rig/scenario.ts';

/** An application sends a browser to log out (OpenID Connect RP-Initiated Logout 1.0). */

const APP_SECRET = 's'.repeat(64);
const GOODBYE = 'https://shop.example.com/goodbye';
const UNKNOWN = '01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c';
const leaving = { postLogoutRedirectUris: [GOODBYE] };

const otherAddresses: [what: string, address: string][] = [
  ['another port', 'https://shop.example.com:8443/goodbye'],
  ['the port of the scheme', 'https://shop.example.com:443/goodbye'],
  ['another case', 'https://shop.example.com/Goodbye'],
  ['another case of the host', 'https://SHOP.example.com/goodbye'],
  ['another path', 'https://shop.example.com/goodbye/'],
  ['a path that climbs', 'https://shop.example.com/x/../goodbye'],
  ['a query', 'https://shop.example.com/goodbye?next=1'],
  ['a user', 'https://shop.example.com@evil.example/goodbye'],
  ['a user at the host', 'https://a@shop.example.com/goodbye'],
  ['a fragment', 'https://shop.example.com/goodbye#x'],
  ['another host', 'https://shop.example.com.evil.example/goodbye'],
  ['another scheme', 'http://shop.example.com/goodbye'],
  ['a script', 'javascript:alert(1)//https://shop.example.com/goodbye'],
  ['no scheme', '//shop.example.com/goodbye'],
  ['a backslash', 'https:\\\\shop.example.com/goodbye'],
  ['a space', ' https://shop.example.com/goodbye'],
  ['two addresses', `${GOODBYE} https://shop.example.com/bye`],
  ['the address of logins', 'https://shop.example.com/callback'],
  ['no address', ''],
];

everywhere(
  (scenario) => {
    const logOut = (session: string | undefined, input: object = {}) =>
      scenario().call('authorizations.logOut', input, { session });

    /** A user who has logged in to an application. */
    const visiting = async (given: object = {}) => {
      const party = await relyingParty(scenario(), { ...leaving, ...given });
      const user = await loggedIn(scenario());
      const { id_token: idTokenHint = '' } = await party.logIn(user.session);
      return { party, user, idTokenHint };
    };

    /** The private key that signs for the service. */
    const signingKey = async () => {
      const [row] = await scenario().stack.database<{ id: string; sealed: string }>('select * from signing_keys');
      const { id = '', sealed = '' } = row ?? {};
      const { text } = createSecrets([APP_SECRET]).open('signing-key', id, sealed) ?? { text: '{}' };
      return { kid: id, key: await importJWK(JSON.parse(text), 'ES256') };
    };

    const claimsFor = ({ id: aud }: RelyingParty, { id: sub }: { id: string }): JWTPayload => {
      const now = Math.floor(Date.now() / 1000);
      return { iss: scenario().stack.appUrl, aud, sub, iat: now, exp: now + 60 };
    };
    const signed = (payload: JWTPayload, { kid, key }: Awaited<ReturnType<typeof signingKey>>) =>
      new SignJWT(payload).setProtectedHeader({ alg: 'ES256', kid }).sign(key);

    test('the metadata names the endpoint, which sends the browser to the page without a word in a log', async () => {
      const { party, idTokenHint } = await visiting();
      const parameters = { id_token_hint: idTokenHint, post_logout_redirect_uri: GOODBYE, state: 'the state' };
      const url = client.buildEndSessionUrl(party.config, parameters);
      expect(url.pathname).toBe('/oauth/logout');
      const body = new URLSearchParams({ ...parameters, client_id: party.id, ui_locales: 'de' });
      const replies = [
        await new Visitor().go(party.at(url)),
        await fetch(party.at('/oauth/logout'), { method: 'POST', body, redirect: 'manual' }),
      ];
      for (const { status, headers } of replies) {
        const location = new URL(headers.get('location') ?? '', scenario().stack.appUrl);
        expect([status, location.pathname, location.search]).toEqual([303, '/logout', '']);
        expect(Object.fromEntries(new URLSearchParams(location.hash.slice(1)))).toEqual({
          ...parameters,
          client_id: party.id,
        });
        expect(headers.getSetCookie()).toEqual([]);
      }
    });

    test.each([
      ['a repeated parameter counts as missing', 'state=1&state=2&client_id=3', 'client_id=3'],
      ['no parameter is needed', '', ''],
    ])('%s', async (_, query, fragment) => {
      const { at } = await relyingParty(scenario());
      const reply = await fetch(at(`/oauth/logout?${query}`), { redirect: 'manual' });
      expect(new URL(reply.headers.get('location') ?? '', reply.url).hash.slice(1)).toBe(fragment);
    });

    test('a body of more than 4 KB, and another method, are refused', async () => {
      const { at } = await relyingParty(scenario());
      const body = new URLSearchParams({ state: 'x'.repeat(5000) });
      expect((await fetch(at('/oauth/logout'), { method: 'POST', body })).status).toBe(413);
      expect((await fetch(at('/oauth/logout'), { method: 'PUT' })).status).toBe(404);
    });

    test("the ID token of the session's user ends the session at once, and the browser goes back", async () => {
      const { party, user, idTokenHint } = await visiting();
      const before = await kindsOf(scenario().stack, user.id);
      const reply = await logOut(user.session, {
        idTokenHint,
        clientId: party.id,
        postLogoutRedirectUri: GOODBYE,
        state: 'a&b=c',
      });
      expect(reply.data).toEqual({ step: 'continue', location: `${GOODBYE}?state=a%26b%3Dc` });
      expect(sessionIn(reply)).toBe('');
      expect(await isAlive(scenario().call, user.session)).toBe(false);
      expect(await kindsOf(scenario().stack, user.id)).toEqual([...before, 'logged-out']);
    });

    test('without a redirect address the page says that the session has ended', async () => {
      const { user, idTokenHint } = await visiting();
      expect((await logOut(user.session, { idTokenHint })).data).toEqual({ step: 'done' });
      expect(await isAlive(scenario().call, user.session)).toBe(false);
    });

    // checks: 86
    test.each(['no ID token', 'the ID token of another user'])('the user is asked with %s', async (what) => {
      const { party, idTokenHint } = await visiting();
      const user = await loggedIn(scenario());
      const request = {
        ...(what === 'no ID token' ? { clientId: party.id } : { idTokenHint }),
        postLogoutRedirectUri: GOODBYE,
      };
      const question = { step: 'confirm', userId: user.id, email: user.email };
      const asked = await logOut(user.session, request);
      expect([asked.data, asked.setCookies]).toEqual([question, []]);
      const another = await loggedIn(scenario());
      expect((await logOut(user.session, { ...request, userId: another.id })).data).toEqual(question);
      expect(await isAlive(scenario().call, user.session)).toBe(true);
      const { data } = await logOut(user.session, { ...request, userId: user.id });
      expect(data).toEqual({ step: 'continue', location: GOODBYE });
      expect(await isAlive(scenario().call, user.session)).toBe(false);
    });

    // checks: 86
    test('a link without any parameter logs nobody out', async () => {
      const { session, id, email } = await loggedIn(scenario());
      expect((await logOut(session)).data).toEqual({ step: 'confirm', userId: id, email });
      expect(await isAlive(scenario().call, session)).toBe(true);
      expect((await logOut(session, { userId: id })).data).toEqual({ step: 'done' });
      expect(await isAlive(scenario().call, session)).toBe(false);
    });

    test('without a session the browser goes back', async () => {
      const { party, user, idTokenHint } = await visiting();
      const request = { idTokenHint, postLogoutRedirectUri: GOODBYE };
      const onward = { step: 'continue', location: GOODBYE };
      expect((await logOut(undefined, request)).data).toEqual(onward);
      expect((await logOut(undefined, { clientId: party.id, postLogoutRedirectUri: GOODBYE })).data).toEqual(onward);
      await scenario().call('auth.logout', undefined, { session: user.session });
      expect((await logOut(user.session, request)).data).toEqual(onward);
    });

    test('an expired ID token is accepted', async () => {
      const { party, user } = await visiting();
      const idTokenHint = await signed({ ...claimsFor(party, user), iat: 1, exp: 2 }, await signingKey());
      const { data } = await logOut(user.session, { idTokenHint, postLogoutRedirectUri: GOODBYE });
      expect(data).toEqual({ step: 'continue', location: GOODBYE });
    });

    describe('an ID token is refused', () => {
      type Hint = (party: RelyingParty, user: { id: string }) => Promise<string>;
      const unsigned = (payload: JWTPayload) =>
        [{ alg: 'none' }, payload].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
      const hints: Record<string, Hint> = {
        'of another key': async (party, user) => {
          const { privateKey } = await generateKeyPair('ES256');
          return signed(claimsFor(party, user), { kid: (await signingKey()).kid, key: privateKey });
        },
        'of another issuer': async (party, user) =>
          signed({ ...claimsFor(party, user), iss: 'https://evil.example' }, await signingKey()),
        'for another application': async (party, user) =>
          signed({ ...claimsFor(party, user), aud: UNKNOWN }, await signingKey()),
        'without a signature': async (party, user) => `${unsigned(claimsFor(party, user))}.`,
        'that is none': async () => 'a.b.c',
      };
      test.each(Object.entries(hints))('%s', async (_, make) => {
        const { party, user } = await visiting();
        const idTokenHint = await make(party, user);
        for (const clientId of [party.id, undefined]) {
          const request = { idTokenHint, clientId, postLogoutRedirectUri: GOODBYE };
          expect((await logOut(user.session, request)).data).toMatchObject({ step: 'confirm' });
          expect((await logOut(undefined, request)).data).toEqual({ step: 'done' });
        }
        expect(await isAlive(scenario().call, user.session)).toBe(true);
      });
    });

    describe('the browser goes nowhere else', () => {
      // checks: 83
      test('than to the registered address, compared exactly', async () => {
        const postLogoutRedirectUris = [GOODBYE, 'https://shop.example.com/bye'];
        const { party, idTokenHint } = await visiting({ postLogoutRedirectUris });
        for (const [what, postLogoutRedirectUri] of otherAddresses) {
          const request = { clientId: party.id, postLogoutRedirectUri };
          for (const input of [request, { ...request, idTokenHint }])
            expect([what, (await logOut(undefined, input)).data]).toEqual([what, { step: 'done' }]);
        }
      });

      test('for an unknown, disabled or removed application, or none', async () => {
        const { party, idTokenHint } = await visiting();
        const another = await relyingParty(scenario());
        const nowhere = async (input: object) =>
          expect((await logOut(undefined, { postLogoutRedirectUri: GOODBYE, ...input })).data).toEqual({
            step: 'done',
          });
        const known = [{ idTokenHint }, { clientId: party.id }];
        for (const clientId of [another.id, UNKNOWN, 'é', '']) {
          await nowhere({ clientId });
          await nowhere({ clientId, idTokenHint });
        }
        await nowhere({});
        await party.asAdministrator('applications.update', { enabled: false });
        for (const input of known) await nowhere(input);
        await party.asAdministrator('applications.update', { enabled: true, postLogoutRedirectUris: [] });
        for (const input of known) await nowhere(input);
        await party.asAdministrator('applications.delete');
        for (const input of known) await nowhere(input);
      });
    });

    test('the answer to another page, and an access key, end no session', async () => {
      const { user, idTokenHint } = await visiting();
      const headers = { origin: 'https://evil.example' };
      const options = { session: user.session, headers };
      expectRefusal(await scenario().call('authorizations.logOut', { idTokenHint }, options), 403, 'ORIGIN_MISMATCH');
      const withKey = await scenario().call('authorizations.logOut', { idTokenHint }, { key: 'invalid' });
      expectRefusal(withKey, 401, 'UNAUTHENTICATED');
      expect(await isAlive(scenario().call, user.session)).toBe(true);
    });
  },
  { env: { APP_SECRET } },
);
