import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import * as client from 'openid-client';
import { expect, test } from 'vitest';
import { callerOf } from '../rig/callers.ts';
import { boundToken } from '../rig/proofs.ts';
import { deviceParty, refused, relyingParty, Visitor } from '../rig/relying-party.ts';
import { eventsOf, isAlive, loggedIn, onStack } from '../rig/scenario.ts';

/** The OpenID provider on two instances. */

onStack(
  'real',
  (stack) => {
    const scenario = () => ({ stack: stack(), call: callerOf('rest', stack().url) });
    const urlOf = (index: number) => stack().services[index]?.url ?? '';
    const winners = async (attempts: Promise<client.TokenEndpointResponse>[]) =>
      (await Promise.allSettled(attempts)).flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []));

    // checks: 81
    test('a code is used once, also on two instances at once, and the second use ends the grant', async () => {
      const party = await relyingParty(scenario());
      const other = await party.configured(urlOf(1));
      const { session } = await loggedIn(scenario());
      for (let round = 0; round < 5; round++) {
        const { callback, verifier } = await party.authorize(session);
        const won = await winners(
          [party.config, other, party.config, other].map((config) => party.redeem(callback as URL, verifier, config)),
        );
        expect(won.length).toBeLessThanOrEqual(1);
        for (const { refresh_token: token = '' } of won)
          await expect(client.refreshTokenGrant(party.config, token)).rejects.toThrow();
      }
    });

    // checks: 72
    test('first uses of several applications on two instances at once do not exceed the limit', async () => {
      const { session, id: userId } = await loggedIn(scenario());
      const parties = await Promise.all(Array.from({ length: 16 }, () => relyingParty(scenario())));
      const requests = await Promise.all(
        parties.map(async (party, index) => {
          const visitor = new Visitor();
          const { id } = await party.begin(visitor, await party.parameters('v'.repeat(43)));
          const call = callerOf('rest', urlOf(index % 2));
          const proceed = (answer: object) =>
            call('authorizations.proceed', { id, ...answer }, { session, browser: visitor.browser });
          expect((await proceed({})).data.step).toBe('consent');
          return proceed;
        }),
      );
      const replies = await Promise.all(requests.map((proceed) => proceed({ allow: true, userId })));
      expect(replies.filter(({ status }) => status === 200)).toHaveLength(10);
      expect(await eventsOf(stack(), userId, 'grant-created')).toHaveLength(10);
    });

    test('the ID token of one instance ends the session at another', async () => {
      const party = await relyingParty(scenario());
      const { session } = await loggedIn(scenario());
      const { id_token: idTokenHint } = await party.logIn(session);
      const { data } = await callerOf('rest', urlOf(1))('authorizations.logOut', { idTokenHint }, { session });
      expect(data).toEqual({ step: 'done' });
      expect(await isAlive(scenario().call, session)).toBe(false);
    });

    // checks: 81
    test('a client assertion works once, also on two instances at once', async () => {
      const { publicKey, privateKey } = await generateKeyPair('ES256');
      const given = { kind: 'service', redirectUris: [], scopes: ['orders:read'] };
      const { id, at } = await relyingParty(scenario(), { ...given, publicKeys: [await exportJWK(publicKey)] });
      for (let round = 0; round < 5; round++) {
        const assertion = await new SignJWT({ jti: crypto.randomUUID() })
          .setProtectedHeader({ alg: 'ES256' })
          .setIssuer(id)
          .setSubject(id)
          .setAudience(stack().appUrl)
          .setExpirationTime('1m')
          .sign(privateKey);
        const body = new URLSearchParams({
          grant_type: 'client_credentials',
          client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
          client_assertion: assertion,
        });
        const statuses = await Promise.all(
          [0, 1, 0, 1].map(
            async (index) => (await fetch(at('/oauth/token', urlOf(index)), { method: 'POST', body })).status,
          ),
        );
        expect(statuses.sort()).toEqual([200, 401, 401, 401]);
      }
    });

    // checks: 81
    test('a device code is used once, also on two instances at once, and the second use ends the grant', async () => {
      const party = await deviceParty(scenario());
      const other = await party.configured(urlOf(1));
      const user = await loggedIn(scenario());
      for (let round = 0; round < 5; round++) {
        const codes = await party.begin();
        await party.answer(codes, user);
        const won = await winners(
          [party.config, other, party.config, other].map((config) => party.redeem(codes, config)),
        );
        expect(won.length).toBeLessThanOrEqual(1);
        for (const { refresh_token: token = '' } of won)
          await expect(client.refreshTokenGrant(party.config, token)).rejects.toThrow();
      }
    });

    test('a device asks at one instance and gets the answer of its user at the other', async () => {
      const party = await deviceParty(scenario());
      const other = await party.configured(urlOf(1));
      const user = await loggedIn(scenario());
      const codes = await client.initiateDeviceAuthorization(other, { scope: 'openid' });
      await party.answer(codes, user);
      expect((await party.redeem(codes, other)).claims()?.sub).toBe(user.id);
    });

    test('a device learns that its code has expired, answered or not', async () => {
      const party = await deviceParty(scenario());
      const user = await loggedIn(scenario());
      const { redis } = stack();
      const stored = async () => (await redis?.keys('*oauth:DeviceCode:*')) ?? [];
      const former = new Set(await stored());
      const [pending, answered] = [await party.begin(), await party.begin()];
      await party.answer(answered, user);
      for (const key of (await stored()).filter((name) => !former.has(name)))
        await redis?.pexpire(key, (await redis.pttl(key)) - 600_000);
      for (const codes of [pending, answered, answered])
        expect(await refused(party.redeem(codes))).toBe('expired_token');
      const other = await deviceParty(scenario());
      expect(await refused(other.redeem(pending))).toBe('invalid_grant');
      const open = await scenario().call('grants.list', undefined, user);
      expect(open.data.data).toMatchObject([{ id: party.id }]);
    });

    // checks: 81
    test('a DPoP proof for our own API is used once on two instances at once', async () => {
      const { session } = await loggedIn(scenario());
      const { token, prove } = await boundToken(scenario(), session);
      for (let round = 0; round < 5; round++) {
        const headers = { authorization: `DPoP ${token}`, dpop: await prove('GET', '/api/profile') };
        const answers = [0, 1, 0, 1].map((index) => fetch(`${urlOf(index)}/api/profile`, { headers }));
        const statuses = (await Promise.all(answers)).map(({ status }) => status);
        expect(statuses.sort()).toEqual([200, 401, 401, 401]);
      }
    });

    test('a flow goes over both instances, which sign by the same keys', async () => {
      const party = await relyingParty(scenario());
      const other = await party.configured(urlOf(1));
      const user = await loggedIn(scenario());
      const { callback, verifier } = await party.authorize(user.session);
      const tokens = await party.redeem(callback as URL, verifier, other);
      expect(await client.fetchUserInfo(party.config, tokens.access_token, user.id)).toMatchObject({ sub: user.id });
      const next = await client.refreshTokenGrant(party.config, tokens.refresh_token ?? '');
      expect(await client.fetchUserInfo(other, next.access_token, user.id)).toMatchObject({ sub: user.id });
      const keysAt = async (index: number) => (await fetch(party.at('/oauth/jwks', urlOf(index)))).json();
      expect(await keysAt(0)).toEqual(await keysAt(1));
    });
  },
  { instances: 2 },
);
