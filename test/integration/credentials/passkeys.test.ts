import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Authenticator, type Lies } from '../../rig/client/authenticator.ts';
import {
  browser,
  ELSEWHERE,
  type EmbeddedAccounts,
  type LoggedIn,
  openAccounts,
  refused,
  refusedField,
  request,
} from '../rig/accounts.ts';

/** Passkeys, with a software authenticator, on embedded parts. */
const APP_URL = 'http://localhost:3000';
let service: EmbeddedAccounts;
beforeAll(async () => {
  service = await openAccounts({ APP_URL, APP_NAME: 'Wonderland', LIMIT_PASSKEY_START: '100000/900' });
});
afterAll(() => service.close());

type Mode = 'registration' | 'upgrade';
const passkeys = () => service.accounts.credentials.passkeys;
const begin = ({ session }: LoggedIn, mode: Mode = 'registration') =>
  passkeys().beginPasskeyRegistration(session, { mode, browser }, request());
/** The same, as the authenticator takes them. */
const optionsFor = async (who: LoggedIn, mode?: Mode) =>
  (await begin(who, mode)) as unknown as Parameters<Authenticator['register']>[0];
type Response = ReturnType<Authenticator['register']>;
const finish = (
  { session }: LoggedIn,
  response: Response,
  change: { mode?: Mode; browser?: string; name?: string } = {},
) =>
  passkeys().finishPasskeyRegistration(
    session,
    { response: response as never, name: undefined, mode: 'registration', browser, ...change },
    request(),
  );
/** Adds a passkey. */
async function add(who: LoggedIn, authenticator = new Authenticator(APP_URL), lies: Lies = {}) {
  const listed = await finish(who, authenticator.register(await optionsFor(who), lies));
  return { authenticator, id: listed.id };
}
const rowOf = async (id: string) =>
  service.database.query((tables) =>
    tables.selectFrom('passkeys').selectAll().where('id', '=', id).executeTakeFirstOrThrow(),
  );

describe('a registration of a passkey', () => {
  test('asks for a verified user and a discoverable credential of this service', async () => {
    const who = await service.loggedIn();
    const { authenticator } = await add(who);
    const options = await begin(who);
    expect(options).toMatchObject({
      rp: { name: 'Wonderland', id: 'localhost' },
      user: { id: passkeys().ownerOf(who.user.id).userHandle, name: who.user.email, displayName: who.user.name },
      timeout: 300_000,
      attestation: 'none',
      excludeCredentials: [
        {
          id: authenticator.credentialId.toString('base64url'),
          transports: ['internal', 'hybrid'],
          type: 'public-key',
        },
      ],
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    });
    expect(passkeys().ownerOf(who.user.id).rpId).toBe('localhost');
    expect((await begin(who, 'upgrade')).authenticatorSelection?.userVerification).toBe('preferred');
  });

  test('stores and lists the passkey, and reports it by mail', async () => {
    const who = await service.loggedIn();
    const { authenticator, id } = await add(who, undefined, { aaguid: 'ea9b8d66-4d01-1d21-3ce4-b6b48cb575d4' });
    const credentialId = authenticator.credentialId.toString('base64url');
    expect(await passkeys().listPasskeys(who.user.id)).toEqual([
      { id, credentialId, name: 'Google Password Manager', createdAt: expect.any(Number), lastUsedAt: null },
    ]);
    expect(await rowOf(id)).toMatchObject({
      proven: 1,
      transports: 'internal,hybrid',
      backup_eligible: 1,
      backed_up: 1,
    });
    expect((await service.eventsOf(who.user.id)).at(-1)).toEqual({
      kind: 'passkey-added',
      name: 'Google Password Manager',
      id,
    });
    expect(await service.mailKindsTo(who.user.email)).toContain('passkey-added');
  });

  test('takes the name that the user gives, and proves nothing beside an unproven method', async () => {
    const who = await service.loggedIn();
    await service.addIdentity(who.user);
    const response = new Authenticator(APP_URL).register(await optionsFor(who), {
      backupEligible: false,
      backedUp: false,
    });
    const { id, name } = await finish(who, response, { name: 'My phone' });
    expect(name).toBe('My phone');
    expect(await rowOf(id)).toMatchObject({ proven: 0, backup_eligible: 0, backed_up: 0 });
  });

  test.each<[string, Lies]>([
    ['of another origin', { origin: 'http://other.test' }],
    ['for another relying party', { rpId: 'other.test' }],
    ['with another challenge', { challenge: 'x'.repeat(43) }],
    ['of another ceremony', { type: 'webauthn.get' }],
    ['of a framed page', { crossOrigin: true }],
    ['without a user present', { userPresent: false }],
    ['without a verified user', { userVerified: false }],
    ['with the id of another credential', { id: 'x'.repeat(22) }],
    ['of a foreign attestation', { attestation: { fmt: 'packed', attStmt: new Map([['x5c', []]]) } }],
    ['of an unknown attestation', { attestation: { fmt: 'tpm', attStmt: new Map() } }],
  ])('%s is refused', async (_what, lies) => {
    const who = await service.loggedIn();
    const response = new Authenticator(APP_URL).register(await optionsFor(who), lies);
    await expect(finish(who, response)).rejects.toEqual(refusedField('passkey', 'refused'));
    expect(await passkeys().listPasskeys(who.user.id)).toEqual([]);
  });

  test('with self attestation is accepted', async () => {
    await add(await service.loggedIn(), undefined, { attestation: 'self' });
  });

  test('is bound to its session, browser and mode, and is used up', async () => {
    const who = await service.loggedIn();
    const other = { ...who, ...(await service.logIn(who.user)) };
    const response = async () => new Authenticator(APP_URL).register(await optionsFor(who));
    const no = refusedField('passkey', 'refused');
    await expect(finish(other, await response())).rejects.toEqual(no);
    await expect(finish(who, await response(), { browser: ELSEWHERE })).rejects.toEqual(no);
    await expect(finish(who, await response(), { mode: 'upgrade' })).rejects.toEqual(no);
    const once = await response();
    await finish(who, once);
    await expect(finish(who, once)).rejects.toEqual(no);
  });

  test('of a credential that exists, also of another user, is refused', async () => {
    const [who, other] = [await service.loggedIn(), await service.loggedIn()];
    const { authenticator } = await add(who);
    const { credentialId } = authenticator;
    await expect(add(other, undefined, { credentialId })).rejects.toEqual(refusedField('passkey', 'refused'));
  });

  test('is refused past ten passkeys', async () => {
    const who = await service.loggedIn();
    for (let i = 0; i < 9; i++) await add(who);
    const late = new Authenticator(APP_URL).register(await optionsFor(who));
    await add(who);
    await expect(begin(who)).rejects.toEqual(refusedField('passkey', 'too_many'));
    await expect(finish(who, late)).rejects.toEqual(refusedField('passkey', 'too_many'));
  });

  test('as an upgrade needs no gesture, but a login by password a few minutes ago', async () => {
    const who = await service.loggedIn();
    const lies = { userPresent: false, userVerified: false };
    const made = await finish(who, new Authenticator(APP_URL).register(await optionsFor(who, 'upgrade'), lies), {
      mode: 'upgrade',
    });
    expect(made.name).toBe('Passkey');
    await service.database.write((tables) =>
      tables
        .updateTable('sessions')
        .set({ created_at: Date.now() - 5 * 60_000 - 1000 })
        .where('id', '=', who.session.id ?? '')
        .execute(),
    );
    await expect(begin(who, 'upgrade')).rejects.toEqual(refused('REAUTHENTICATION_REQUIRED'));
    const without = { ...who, session: { ...who.session, id: undefined } };
    await expect(begin(without, 'upgrade')).rejects.toEqual(refused('REAUTHENTICATION_REQUIRED'));
  });
});

describe('a passkey', () => {
  test('is renamed by its owner only', async () => {
    const [who, other] = [await service.loggedIn(), await service.loggedIn()];
    const { id } = await add(who);
    await passkeys().renamePasskey(who.user.id, id, 'My phone');
    await expect(passkeys().renamePasskey(other.user.id, id, 'Mine')).rejects.toEqual(refused('NOT_FOUND'));
    await expect(passkeys().renamePasskey(who.user.id, 'é', 'Mine')).rejects.toEqual(refused('NOT_FOUND'));
    expect((await rowOf(id)).name).toBe('My phone');
  });

  test('that is removed ends the other sessions opened by passkey, and no others', async () => {
    const who = await service.loggedIn();
    const { id } = await add(who);
    const { sessions } = service.accounts;
    const { token } = await sessions.openSession(who.session.user, { method: 'passkey', passkeyId: id }, request());
    await expect(passkeys().removePasskey((await service.loggedIn()).session, id, request())).rejects.toEqual(
      refused('NOT_FOUND'),
    );
    await passkeys().removePasskey(who.session, id, request());
    expect([await service.isOpen(token), await service.isOpen(who.token)]).toEqual([false, true]);
    expect((await service.eventsOf(who.user.id)).at(-1)).toEqual({ kind: 'passkey-removed', name: 'Passkey', id });
    expect(await service.mailKindsTo(who.user.email)).toContain('passkey-removed');
  });

  test('is not removed if it is the last login method', async () => {
    const who = await service.loggedIn((user) => user.removePassword());
    const { id } = await add(who);
    await expect(passkeys().removePasskey(who.session, id, request())).rejects.toEqual(refused('LAST_LOGIN_METHOD'));
    expect(await passkeys().listPasskeys(who.user.id)).toHaveLength(1);
  });
});

describe('an assertion', () => {
  const asked = { purpose: 'login', browser } as const;
  const assertions = () => service.accounts.credentials.assertions;
  const challenge = async (of: object) =>
    (await assertions().begin(of as typeof asked)) as unknown as Parameters<Authenticator['assert']>[0];
  const check = async (authenticator: Authenticator, lies: Lies = {}, of: object = asked, by: object = of) =>
    assertions().check(authenticator.assert(await challenge(of), lies) as never, by as never);

  test('of a passkey is accepted with its user, and its use recorded', async () => {
    const who = await service.loggedIn();
    const { authenticator, id } = await add(who, new Authenticator(APP_URL, { signCount: 1 }));
    expect(await check(authenticator, { backedUp: false })).toEqual({
      result: 'accepted',
      user: expect.objectContaining({ id: who.user.id }),
      isDeleted: false,
      isBlocked: false,
      passkeyId: id,
    });
    expect(await rowOf(id)).toMatchObject({ backed_up: 0, last_used_at: expect.any(Number) });
    expect((await rowOf(id)).sign_count).toBeGreaterThan(1);
    await service.change(who.user, { blocked_at: 1, deleted_at: 1 });
    expect(await check(authenticator)).toMatchObject({ result: 'accepted', isDeleted: true, isBlocked: true });
  });

  test.each<[string, Lies]>([
    ['of another origin', { origin: 'http://other.test' }],
    ['for another relying party', { rpId: 'other.test' }],
    ['with another challenge', { challenge: 'x'.repeat(43) }],
    ['of another ceremony', { type: 'webauthn.create' }],
    ['of a framed page', { crossOrigin: true }],
    ['without a verified user', { userVerified: false }],
    ['that names another user', { userHandle: 'x' }],
    ['that names no user', { userHandle: null }],
  ])('%s is refused', async (_what, lies) => {
    const { authenticator } = await add(await service.loggedIn());
    expect(await check(authenticator, lies)).toEqual({ result: 'refused' });
  });

  test('is bound to its purpose, browser and user, and is used up', async () => {
    const who = await service.loggedIn();
    const { authenticator } = await add(who);
    const ofUser = { ...asked, purpose: 'second-factor', userId: who.user.id };
    for (const [of, by] of [
      [asked, ofUser],
      [asked, { ...asked, browser: ELSEWHERE }],
      [ofUser, { ...ofUser, purpose: 'reauthenticate' }],
    ] as const)
      expect(await check(authenticator, {}, of, by)).toEqual({ result: 'refused' });
    // The user is known, so the response need not name it.
    expect(await check(authenticator, { userHandle: null }, ofUser)).toMatchObject({ result: 'accepted' });
    const response = authenticator.assert(await challenge(asked)) as never;
    expect(await assertions().check(response, asked)).toMatchObject({ result: 'accepted' });
    expect(await assertions().check(response, asked)).toEqual({ result: 'refused' });
  });

  test('of another user’s passkey is refused, and of an unknown one told apart', async () => {
    const [who, other] = [await service.loggedIn(), await service.loggedIn()];
    const { authenticator, id } = await add(who);
    const ofOther = { purpose: 'second-factor', browser, userId: other.user.id };
    expect(await check(authenticator, {}, ofOther)).toEqual({ result: 'refused' });
    await passkeys().removePasskey(who.session, id, request());
    expect(await check(authenticator)).toEqual({ result: 'unknown' });
  });

  test.each([
    [5, 6, 'accepted'],
    [5, 5, 'cloned'],
    [5, 4, 'cloned'],
    [5, 0, 'cloned'],
    [0, 0, 'accepted'],
    [0, 1, 'accepted'],
  ])('after the count %i, one with %i is %s', async (stored, signCount, result) => {
    const { authenticator, id } = await add(await service.loggedIn());
    await service.database.write((tables) =>
      tables.updateTable('passkeys').set({ sign_count: stored }).where('id', '=', id).execute(),
    );
    expect(await check(authenticator, { signCount })).toMatchObject({ result });
  });

  test('of a passkey that has become a synchronized one is refused as a clone', async () => {
    const { authenticator } = await add(await service.loggedIn());
    expect(await check(authenticator, { backupEligible: false, backedUp: false })).toMatchObject({ result: 'cloned' });
  });

  test('asks for the passkeys of a known user, else for any', async () => {
    const who = await service.loggedIn();
    const { authenticator } = await add(who);
    const options = await assertions().begin({ purpose: 'second-factor', browser, userId: who.user.id });
    expect(options).toMatchObject({
      rpId: 'localhost',
      timeout: 300_000,
      userVerification: 'required',
      allowCredentials: [{ id: authenticator.credentialId.toString('base64url'), transports: ['internal', 'hybrid'] }],
    });
    expect((await assertions().begin(asked)).allowCredentials ?? []).toEqual([]);
  });
});
