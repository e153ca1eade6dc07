import { expect, test } from 'vitest';
import type { Cbor, Lies } from '../../rig/client/authenticator.ts';
import {
  addPasskey,
  authenticatorFor,
  beginLogin,
  beginRegistration,
  lies,
  logInByPasskey,
  passkeyRows,
  withPasskey,
} from '../rig/passkey-scenario.ts';
import { eventsOf, everywhere, expectRefusal, loggedIn, logIn } from '../rig/scenario.ts';

/** What is accepted as a new passkey, and how often. */

const env = { LIMIT_PASSKEY_START: '10000/900' };
const REFUSED = 'This passkey was not accepted, please try again';
const signedElsewhere = new Map<string, Cbor>([
  ['alg', -7],
  ['sig', Buffer.alloc(70)],
]);
const certified = new Map([...signedElsewhere, ['x5c', [Buffer.alloc(500)]]]);
const cose = (...pairs: [number, Cbor][]) => new Map<number, Cbor>(pairs);

everywhere(
  (scenario) => {
    test('the options request a discoverable passkey with user verification and no attestation', async () => {
      const { call, stack } = scenario();
      const { id, email, name, session, authenticator } = await withPasskey(scenario());
      const { options } = await beginRegistration(call, session);
      expect(options).toMatchObject({
        challenge: expect.stringMatching(/^[\w-]{43}$/),
        rp: { id: new URL(stack.appUrl).hostname },
        user: { id: Buffer.from(id).toString('base64url'), name: email, displayName: name },
        timeout: 300_000,
        attestation: 'none',
        authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
        excludeCredentials: [
          {
            id: authenticator.credentialId.toString('base64url'),
            type: 'public-key',
            transports: ['internal', 'hybrid'],
          },
        ],
      });
    });

    test.each<[string, Lies]>([
      ...lies,
      ['the type of a login', { type: 'webauthn.get' }],
      ['another credential id than signed', { id: 'AAAAAAAAAAAAAAAAAAAAAA' }],
      ['a credential id of 1024 bytes', { credentialId: Buffer.alloc(1024, 7) }],
      ['a credential id of 1024 bytes under a shorter one', { credentialId: Buffer.alloc(1024, 7), id: 'AAAA' }],
      ['no credential id', { credentialId: Buffer.alloc(0) }],
      ['an algorithm that was not asked for', { publicKey: cose([1, 3], [3, -65535], [-1, Buffer.alloc(256)]) }],
      [
        'a key of 3 kB',
        { publicKey: cose([1, 3], [3, -257], [-1, Buffer.alloc(3000, 1)], [-2, Buffer.from([1, 0, 1])]) },
      ],
      ['an invalid key', { publicKey: 'key' }],
      ['an unknown attestation', { attestation: { fmt: 'apple-of-eden', attStmt: new Map() } }],
      ['an attestation that was not asked for', { attestation: { fmt: 'apple', attStmt: certified } }],
      ['a self attestation with certificates', { attestation: { fmt: 'packed', attStmt: certified } }],
      ['a self attestation by another key', { attestation: { fmt: 'packed', attStmt: signedElsewhere } }],
    ])('%s is refused and adds nothing', async (_, lie) => {
      const { call, stack } = scenario();
      const { id, session } = await loggedIn(scenario());
      const { options, browser } = await beginRegistration(call, session);
      const response = authenticatorFor(stack).register(options, lie);
      const reply = await call('passkeys.finishRegistration', response, { session, browser });
      expectRefusal(reply, 400, 'VALIDATION_FAILED');
      expect(await passkeyRows(stack, id)).toEqual([]);
      expect(await eventsOf(stack, id, 'passkey-added')).toEqual([]);
    });

    test('a challenge works once, in its session and browser, and for its purpose', async () => {
      const { call, stack } = scenario();
      const { id, session, ...person } = await loggedIn(scenario());
      const other = await loggedIn(scenario());
      const sibling = await logIn(call, person);
      const fresh = async () => ({ ...(await beginRegistration(call, session)), made: authenticatorFor(stack) });
      const refuse = async (response: unknown, options: { session: string; browser: string }) => {
        const reply = await call('passkeys.finishRegistration', response, options);
        expectRefusal(reply, 400, 'VALIDATION_FAILED', REFUSED);
      };
      for (const elsewhere of [{ session: other.session }, { session: sibling }, { browser: 'x'.repeat(43) }]) {
        const { options, browser, made } = await fresh();
        await refuse(made.register(options), { session, browser, ...elsewhere });
        // That has used it up.
        await refuse(made.register(options), { session, browser });
      }
      const { options, browser, made } = await fresh();
      const response = made.register(options);
      expect((await call('passkeys.finishRegistration', response, { session, browser })).data.success).toBe(true);
      await refuse(response, { session, browser });
      await refuse(authenticatorFor(stack).register(options), { session, browser });

      const login = await beginLogin(call);
      const creation = { challenge: login.options.challenge, rp: { id: login.options.rpId }, user: options.user };
      await refuse(authenticatorFor(stack).register(creation), { session, browser: login.browser });
      expect(await passkeyRows(stack, id)).toHaveLength(1);
      expect(await passkeyRows(stack, other.id)).toEqual([]);
    });

    test('a session that ended during the registration adds no passkey', async () => {
      const { call, stack } = scenario();
      const { id, session, ...person } = await loggedIn(scenario());
      const other = await logIn(call, person);
      const { options, browser } = await beginRegistration(call, session);
      const made = authenticatorFor(stack);
      expect((await call('auth.logoutAll', undefined, { session: other })).status).toBe(200);
      const reply = await call('passkeys.finishRegistration', made.register(options), { session, browser });
      expectRefusal(reply, 401, 'UNAUTHENTICATED');
      const again = await logIn(call, person);
      const retried = await call('passkeys.finishRegistration', made.register(options), { session: again, browser });
      expectRefusal(retried, 400, 'VALIDATION_FAILED', REFUSED);
      expect(await passkeyRows(stack, id)).toEqual([]);
    });

    test('a credential can be registered once, by one user', async () => {
      const { call, stack } = scenario();
      const { authenticator, id, session } = await withPasskey(scenario());
      const thief = await loggedIn(scenario());
      for (const taker of [thief.session, session]) {
        const { options, browser } = await beginRegistration(call, taker);
        const response = authenticator.clone().register(options);
        const reply = await call('passkeys.finishRegistration', response, { session: taker, browser });
        expectRefusal(reply, 400, 'VALIDATION_FAILED', REFUSED);
      }
      expect([await passkeyRows(stack, id), await passkeyRows(stack, thief.id)]).toMatchObject([[{ user_id: id }], []]);
      await logInByPasskey(call, authenticator);
    });

    test('a user has at most ten passkeys, even if two are added concurrently', async () => {
      const { call, stack } = scenario();
      const { id, session } = await loggedIn(scenario());
      for (let i = 0; i < 9; i++) await addPasskey(call, session, authenticatorFor(stack));
      const begun = await Promise.all([0, 1, 2].map(() => beginRegistration(call, session)));
      const replies = await Promise.all(
        begun.map(({ options, browser }) =>
          call('passkeys.finishRegistration', authenticatorFor(stack).register(options), { session, browser }),
        ),
      );
      expect(replies.map(({ code }) => code ?? 'added').sort()).toEqual([
        'VALIDATION_FAILED',
        'VALIDATION_FAILED',
        'added',
      ]);
      expect(await passkeyRows(stack, id)).toHaveLength(10);
      expect(await eventsOf(stack, id, 'passkey-added')).toHaveLength(10);
      const late = await call('passkeys.beginRegistration', undefined, { session });
      expectRefusal(late, 400, 'VALIDATION_FAILED', 'You already have 10 passkeys. Remove one first');
    });

    test('only one of many concurrent finishes of a challenge adds a passkey', async () => {
      const { call, stack } = scenario();
      const { id, session } = await loggedIn(scenario());
      const { options, browser } = await beginRegistration(call, session);
      const replies = await Promise.all(
        Array.from({ length: 10 }, () =>
          call('passkeys.finishRegistration', authenticatorFor(stack).register(options), { session, browser }),
        ),
      );
      expect(replies.filter(({ code }) => code === undefined)).toHaveLength(1);
      expect(await passkeyRows(stack, id)).toHaveLength(1);
    });

    test('fields that the caller may not set are ignored', async () => {
      const { call, stack } = scenario();
      const { id, session } = await loggedIn(scenario());
      const other = await loggedIn(scenario());
      const { options, browser } = await beginRegistration(call, session);
      const claims = { userId: other.id, proven: false, signCount: 99, publicKey: 'AAAA', createdAt: 0, lastUsedAt: 5 };
      const input = { ...claims, ...authenticatorFor(stack).register(options) };
      expect((await call('passkeys.finishRegistration', input, { session, browser })).code).toBeUndefined();
      const [row] = await passkeyRows(stack, id);
      expect(row).toMatchObject({ user_id: id, proven: 1, sign_count: 0, last_used_at: null });
      expect(row?.['public_key']).not.toBe('AAAA');
      const change = { ...claims, id: row?.['id'], name: 'Mine', credentialId: 'AAAA' };
      expect((await call('passkeys.rename', change, { session })).status).toBe(200);
      expect(await passkeyRows(stack, id)).toEqual([{ ...row, name: 'Mine' }]);
    });

    test('self attestation is accepted', async () => {
      const { call, stack } = scenario();
      const { session } = await loggedIn(scenario());
      const { options, browser } = await beginRegistration(call, session);
      const authenticator = authenticatorFor(stack);
      const response = authenticator.register(options, { attestation: 'self' });
      expect((await call('passkeys.finishRegistration', response, { session, browser })).code).toBeUndefined();
      await logInByPasskey(call, authenticator);
    });
  },
  { env },
);
