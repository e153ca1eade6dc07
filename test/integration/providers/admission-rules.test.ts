import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Identity, Totp, type User } from '../../../entities/index.ts';
import type { ProvidedIdentity } from '../../../server/parts/identity-provider/contract.ts';
import type { ProviderName } from '../../../server/shared/method-names.ts';
import { type Opened, type OpenedRules, openRules, requester, statingProvider } from '../rig/rules.ts';

/** Which user an identity belongs to, and what becomes of both (design/providers.md). */
let rules: OpenedRules;
let closed: OpenedRules;
const acme = 'acme' as ProviderName;
const HERE = 'h'.repeat(43);
const env = { LIMIT_IDP_START: '100000/900', TERMS_URL: 'https://example.test/terms', TERMS_VERSION: '1' };

const providers = { acme: statingProvider() };
const domains = { ...env, AVATARS: 'own', REGISTRATION: 'domains', REGISTRATION_DOMAINS: 'example.test' };
let opened: Opened[];
beforeAll(async () => {
  opened = [
    await openRules('admission-rules', { env, providers }),
    await openRules('admission-domains', { env: domains, providers }),
  ];
});
beforeEach(() => {
  [rules, closed] = opened.map(({ create }) => create()) as [OpenedRules, OpenedRules];
});
afterAll(() => Promise.all(opened.map(({ close }) => close())));

let count = 0;
const addressOf = (name: string, domain = 'example.test') => `${name}${++count}@${domain}`;

interface Stated extends Partial<ProvidedIdentity> {
  email: string | undefined;
}
interface Beginning {
  purpose?: 'login' | 'restore';
  isAskedFor?: boolean;
  on?: OpenedRules;
}

/** A login through the provider, begun and ended in one browser. */
async function logIn(stated: Stated, { purpose = 'login', isAskedFor = true, on = rules }: Beginning = {}) {
  const { login } = on.accounts.providers;
  const begun = await login.begin({
    provider: acme,
    purpose,
    owner: undefined,
    page: undefined,
    returnTo: '/next',
    browser: HERE,
    isAskedFor,
    ownUrl: on.config.appUrl,
    clientAddress: requester.clientAddress,
  });
  if (begun.result !== 'begun') throw new Error(begun.result);
  const { state } = begun;
  const identity = { issuer: 'https://acme.test', subject: stated.email ?? 'nobody', emailVerified: true, ...stated };
  const code = JSON.stringify(identity);
  const end = await login.finish({
    provider: acme,
    state,
    cookieState: state,
    code,
    browser: HERE,
    request: requester,
  });
  return end.result;
}

/** An identity at the provider, not proven. */
async function link({ id, email }: User, { on = rules, subject = email }: { on?: OpenedRules; subject?: string } = {}) {
  const identity = Identity.link(id, { issuer: 'https://acme.test', subject, provider: acme, email });
  await on.database.transaction(async (em) => {
    await em.insert(identity);
  });
}

const addApp = ({ id: userId }: User) =>
  rules.database.transaction(async (em) => {
    await em.insert(Totp, { userId, secret: 'x', lastStep: 0, createdAt: 1 });
  });

const rowsOf = (on: OpenedRules, email: string) =>
  on.database.query(async (tables) => {
    const user = await tables.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst();
    if (!user) return undefined;
    const of = (table: 'identities' | 'activity' | 'consents') =>
      tables.selectFrom(table).selectAll().where('user_id', '=', user.id).orderBy('id').execute();
    const mails = await tables.selectFrom('outbox').selectAll().where('email', '=', email).orderBy('id').execute();
    return {
      user,
      identities: await of('identities'),
      events: await of('activity'),
      consents: await of('consents'),
      mails,
    };
  });

/** Recorded and mailed by the login that follows. */
const ofLogins = ['logged-in', 'new-device'];
const kindsOf = (rows: Record<string, unknown>[]) =>
  rows.map(({ kind }) => String(kind)).filter((kind) => !ofLogins.includes(kind));

/** What is stored of the user with an address. `has`: the identities, a `?` after unproven ones, with the last address. */
async function storedAt(email: string, on = rules) {
  const rows = await rowsOf(on, email);
  if (!rows) return undefined;
  const { user, identities, events, mails, consents } = rows as unknown as {
    user: Record<string, unknown>;
  } & Record<'identities' | 'events' | 'mails' | 'consents', Record<string, unknown>[]>;
  return {
    verified: user['email_verified'] === 1,
    has: identities.map(({ subject, proven, email: stated }) => `${subject}${proven === 1 ? '' : '?'} ${stated}`),
    events: kindsOf(events),
    mails: kindsOf(mails),
    accepted: consents.length,
  };
}

const ofNewcomer = (email: string) => ({
  verified: true,
  has: [`${email} ${email}`],
  events: ['registered', 'identity-linked'],
  // The user has just created the account with the identity: no mail.
  mails: [],
  accepted: 1,
});

describe('an unknown identity with an unknown address', () => {
  test('becomes a user, who is verified and has a proven identity if the provider vouches for the address', async () => {
    const email = addressOf('new');
    expect(await logIn({ email })).toBe('logged-in');
    expect(await storedAt(email)).toEqual(ofNewcomer(email));
    const { events = [] } = (await rowsOf(rules, email)) ?? {};
    expect(events).toMatchObject([
      { details: JSON.stringify({ method: 'acme' }) },
      { details: JSON.stringify({ provider: 'acme' }) },
      {},
    ]);
  });

  test('has created the account on this device: its login is not reported', async () => {
    const email = addressOf('new');
    await logIn({ email });
    expect((await rowsOf(rules, email))?.mails).toEqual([]);
  });

  test('is found by the words of its name', async () => {
    const email = addressOf('new');
    await logIn({ email, name: 'Augusta Byron' });
    const { users } = await rules.accounts.administration.users.find({ q: 'byron', limit: 10 });
    expect(users).toMatchObject([{ email }]);
  });

  test('becomes an unverified user with a mailed link, which is confirmed best in this browser', async () => {
    const email = addressOf('new');
    expect(await logIn({ email, emailVerified: false })).toBe('verification-sent');
    expect(await storedAt(email)).toEqual({
      ...ofNewcomer(email),
      verified: false,
      has: [`${email}? ${email}`],
      mails: ['verify-email'],
    });
    const { identities = [] } = (await rowsOf(rules, email)) ?? {};
    expect(identities).toMatchObject([{ browser: expect.stringMatching(/^[\w-]{43}$/) }]);
  });

  test('a login that another site began accepts no terms, and is of no known browser', async () => {
    const email = addressOf('new');
    expect(await logIn({ email, emailVerified: false }, { isAskedFor: false })).toBe('verification-sent');
    expect(await storedAt(email)).toMatchObject({ accepted: 0 });
    expect((await rowsOf(rules, email))?.identities).toMatchObject([{ browser: null }]);
  });

  test.each<[string, Partial<ProvidedIdentity>, string]>([
    ['a valid one, trimmed', { name: ' Ada Lovelace ' }, 'Ada Lovelace'],
    ['the local part for an invalid one', { name: ' ' }, 'local'],
    ['the local part without one', {}, 'local'],
  ])('has the stated name: %s', async (_, stated, name) => {
    const email = addressOf('local', `${crypto.randomUUID()}.test`);
    await logIn({ email, ...stated });
    const { user } = (await rowsOf(rules, email)) ?? {};
    expect(user?.name.replace(/\d+$/, '')).toBe(name);
  });

  test.each<[string, string | undefined, string | null]>([
    ['a web address', 'https://acme.test/ada.png', 'https://acme.test/ada.png'],
    ['no other text', 'javascript:alert()', null],
    ['none', undefined, null],
  ])('has the stated picture: %s', async (_, picture, avatar) => {
    const email = addressOf('new');
    await logIn({ email, picture });
    expect((await rowsOf(rules, email))?.user).toMatchObject({ avatar });
  });

  test('has no picture of the provider where avatars are uploaded only', async () => {
    const email = addressOf('new');
    await logIn({ email, picture: 'https://acme.test/ada.png' }, { on: closed });
    expect((await rowsOf(closed, email))?.user).toMatchObject({ avatar: null });
  });

  test.each<[string, Stated, string]>([
    ['without an address', { email: undefined }, 'failed'],
    ['with a malformed address', { email: 'nobody' }, 'failed'],
    ['with a subject that cannot be stored', { email: 'un@example.test', subject: ' x' }, 'failed'],
    ['with an issuer that cannot be stored', { email: 'un@example.test', issuer: 'ü' }, 'failed'],
  ])('is not admitted %s', async (_, stated, result) => {
    expect(await logIn(stated)).toBe(result);
    expect(await storedAt('un@example.test')).toBeUndefined();
  });

  test('has no deleted account to restore', async () => {
    const email = addressOf('new');
    expect(await logIn({ email }, { purpose: 'restore' })).toBe('no-account');
    expect(await storedAt(email)).toBeUndefined();
  });
});

/** As if the user had replaced this address, which they can still undo. */
const reserve = (email: string, { id }: User) =>
  rules.database.write((tables) =>
    tables
      .insertInto('email_changes')
      .values({
        id: crypto.randomUUID(),
        user_id: id,
        email: 'other@example.test',
        former: email,
        confirm_hash: crypto.randomUUID(),
        undo_hash: crypto.randomUUID(),
        created_at: 1,
        confirmed_at: 1,
        expires_at: Date.now() + 60_000,
      })
      .execute(),
  );

test('an address that its former user can take back gets no account', async () => {
  const email = addressOf('former');
  await reserve(email, await rules.insertUser(`owner${++count}`));
  expect(await logIn({ email })).toBe('email-unverified');
  expect(await storedAt(email)).toBeUndefined();
});

describe('where only some addresses are admitted', () => {
  const foreign = () => addressOf('guest', 'elsewhere.test');

  test.each([true, false])('other addresses get no account, vouched for or not', async (emailVerified) => {
    const email = foreign();
    expect(await logIn({ email, emailVerified }, { on: closed })).toBe('registration-closed');
    expect(await storedAt(email, closed)).toBeUndefined();
  });

  test('an address that the provider does not vouch for is refused alike, with or without an account', async () => {
    const { email } = await closed.insertUser('x', (user) => user.changeEmail(foreign()));
    const login = { email, subject: 'unknown', emailVerified: false };
    expect(await logIn(login, { on: closed })).toBe('registration-closed');
    expect(await logIn({ ...login, emailVerified: true }, { on: closed })).toBe('logged-in');
  });

  test('an invitation admits its address, once the provider vouches for it', async () => {
    const email = foreign();
    await closed.database.change((tables) =>
      tables
        .insertInto('invitations')
        .values({
          id: crypto.randomUUID(),
          email,
          token_hash: crypto.randomUUID(),
          invited_by: null,
          created_at: 1,
          expires_at: Date.now() + 60_000,
          return_to: '/welcome',
        })
        .execute(),
    );
    expect(await logIn({ email, emailVerified: false }, { on: closed })).toBe('registration-closed');
    expect(await logIn({ email }, { on: closed })).toBe('logged-in');
    const { events: [registered] = [] } = (await rowsOf(closed, email)) ?? {};
    expect(JSON.parse(String(registered?.details))).toEqual({ method: 'acme', invitedBy: 'operator' });
  });

  test('an unverified account follows its identity to no other address, and says nothing of its owner', async () => {
    const former = addressOf('typo');
    const user = await closed.insertUser('x', (one) => one.changeEmail(former));
    await link(user, { on: closed });
    const { email: taken } = await closed.insertUser('x', (one) => one.changeEmail(foreign()));
    for (const email of [foreign(), taken])
      expect(await logIn({ email, subject: former, emailVerified: false }, { on: closed })).toBe('registration-closed');
    expect(await logIn({ email: foreign(), subject: former }, { on: closed })).toBe('registration-closed');
    expect(await storedAt(former, closed)).toMatchObject({ verified: false, mails: [] });
  });
});

describe('an unknown identity with the address of a user', () => {
  test('is linked, proven and mailed if the provider vouches for the address', async () => {
    const { email } = await rules.insertUser(`ada${++count}`);
    expect(await logIn({ email })).toBe('logged-in');
    expect(await storedAt(email)).toEqual({
      verified: true,
      has: [`${email} ${email}`],
      events: ['identity-linked'],
      mails: ['identity-linked'],
      // Accepted when the account was made.
      accepted: 0,
    });
    expect((await rowsOf(rules, email))?.mails[0]).toMatchObject({ detail: 'acme' });
  });

  test.each<[string, (user: User) => void, boolean, string]>([
    ['the provider does not vouch for the address', () => undefined, false, 'email-unverified'],
    ['the user is blocked', (user) => user.block(1), true, 'blocked'],
    ['the user is deleted', (user) => user.delete(1), true, 'deleted'],
    // Says nothing of the account.
    ['neither', (user) => user.block(1), false, 'email-unverified'],
  ])('is not linked: %s', async (_, change, emailVerified, result) => {
    const { email } = await rules.insertUser(`ada${++count}`, change);
    expect(await logIn({ email, emailVerified })).toBe(result);
    expect(await storedAt(email)).toMatchObject({ has: [], mails: [] });
  });

  test('is not linked to a user with an authenticator app', async () => {
    const user = await rules.insertUser(`ada${++count}`);
    await addApp(user);
    expect(await logIn({ email: user.email })).toBe('not-linked');
    expect(await storedAt(user.email)).toMatchObject({ has: [], mails: [] });
  });

  test('restores a deleted user who asks for it', async () => {
    const { email, id: userId } = await rules.insertUser(`ada${++count}`, (user) => user.delete(1));
    await rules.database.write((tables) =>
      tables
        .insertInto('removals')
        .values({ user_id: userId, due_at: Date.now() + 60_000 })
        .execute(),
    );
    expect(await logIn({ email }, { purpose: 'restore' })).toBe('logged-in');
    expect((await rowsOf(rules, email))?.user).toMatchObject({ deleted_at: null });
  });

  test('is the 50th, not the 51st of a user', async () => {
    const user = await rules.insertUser(`ada${++count}`);
    for (let i = 0; i < 49; i++) await link(user, { subject: `${user.id} ${i}` });
    expect(await logIn({ email: user.email, subject: 'fifty' })).toBe('logged-in');
    await rules.database.write((tables) =>
      tables.updateTable('identities').set({ proven: 1 }).where('user_id', '=', user.id).execute(),
    );
    for (let i = 0; i < 49; i++) await link(user, { subject: `${user.id} again ${i}` });
    expect(await logIn({ email: user.email, subject: 'fifty-one' })).toBe('failed');
  });

  test('takes a never verified account over: nothing of its registrant stays', async () => {
    const former = addressOf('ada');
    const { id } = await rules.insertUser('Mallory', (user) => {
      user.changeEmail(former);
      user.changePassword('hash');
      user.changeProfile({ bio: 'planted' });
    });
    expect(await logIn({ email: former, name: 'Ada' })).toBe('logged-in');
    const { user, events = [] } = (await rowsOf(rules, former)) ?? {};
    expect(user).toMatchObject({ id, name: 'Ada', bio: null, email_verified: 1, password_hash: null });
    expect(events.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['login-methods-removed', 'verified']));
    // The owner accepts the terms, as a new user does.
    expect(await storedAt(former)).toMatchObject({ accepted: 1 });
  });

  test('verifies an account without another login method, which keeps its profile', async () => {
    const former = addressOf('ada');
    await rules.insertUser('Ada', (user) => {
      user.changeEmail(former);
      user.changeProfile({ bio: 'engines' });
    });
    expect(await logIn({ email: former, name: 'Other' })).toBe('logged-in');
    expect((await rowsOf(rules, former))?.user).toMatchObject({ name: 'Ada', bio: 'engines', email_verified: 1 });
    expect(await storedAt(former)).toMatchObject({ events: ['identity-linked', 'verified'], accepted: 0 });
  });
});

describe('a linked identity', () => {
  const linked = async (change?: (user: User) => void) => {
    const user = await rules.insertUser(`ada${++count}`, change);
    await link(user);
    return user;
  };

  test('logs a verified user in, whatever address it states; only that of the account proves it', async () => {
    const { email } = await linked();
    const other = addressOf('other');
    for (const stated of [{ email: other }, { email, emailVerified: false }, { email: undefined }]) {
      expect(await logIn({ ...stated, subject: email })).toBe('logged-in');
      // The last known address is kept.
      expect(await storedAt(email)).toMatchObject({ has: [`${email}? ${stated.email ?? email}`], events: [] });
    }
    expect(await logIn({ email })).toBe('logged-in');
    expect(await storedAt(email)).toMatchObject({ has: [`${email} ${email}`], events: [], mails: [] });
    expect(await storedAt(other)).toBeUndefined();
  });

  test.each<[string, (user: User) => void]>([
    ['blocked', (user) => user.block(1)],
    ['deleted', (user) => user.delete(1)],
  ])('logs no %s user in', async (result, change) => {
    const { email } = await linked(change);
    expect(await logIn({ email })).toBe(result);
  });

  const unverified = () => linked((user) => user.changeEmail(addressOf('typo')));

  test.each(['the same', 'no'])('of an unverified user mails the link again for %s address', async (which) => {
    const { email } = await unverified();
    const stated = { email: which === 'no' ? undefined : email, subject: email, emailVerified: false };
    expect(await logIn(stated)).toBe('verification-sent');
    expect(await storedAt(email)).toMatchObject({ verified: false, mails: ['verify-email'], events: [] });
  });

  test.each([
    [true, 'logged-in', ['email-changed', 'verified'], []],
    [false, 'verification-sent', ['email-changed'], ['verify-email']],
  ])('takes an unverified user to its new address (vouched for: %s)', async (emailVerified, result, events, mails) => {
    const { id, email: subject } = await unverified();
    const email = addressOf('right');
    expect(await logIn({ email, subject, emailVerified })).toBe(result);
    expect(await storedAt(email)).toMatchObject({ verified: emailVerified, events, mails });
    const rows = await rowsOf(rules, email);
    expect(rows?.user.id).toBe(id);
    expect(JSON.parse(String(rows?.events[0]?.details))).toEqual({ from: subject, to: email });
    expect(await storedAt(subject)).toBeUndefined();
  });

  test('takes an unverified user to no address that another can take back', async () => {
    const { email: subject } = await unverified();
    const email = addressOf('former');
    await reserve(email, await rules.insertUser(`owner${++count}`));
    expect(await logIn({ email, subject })).toBe('email-unverified');
    expect(await storedAt(subject)).toMatchObject({ verified: false, mails: [] });
  });

  describe('of an unverified user, with the address of another', () => {
    const both = async (change?: (owner: User) => void) => {
      const { email: subject } = await unverified();
      const owner = await rules.insertUser(`owner${++count}`, change);
      return { subject, owner, email: owner.email };
    };

    test('moves there if the provider vouches for it; the mistyped account is deleted', async () => {
      const { subject, owner, email } = await both();
      const former = (await rowsOf(rules, subject))?.user.id;
      expect(await logIn({ email, subject })).toBe('logged-in');
      expect(await storedAt(subject)).toBeUndefined();
      expect(await storedAt(email)).toMatchObject({
        has: [`${subject} ${email}`],
        events: ['identity-linked'],
        mails: ['identity-linked'],
      });
      const { events = [] } = (await rowsOf(rules, email)) ?? {};
      expect(events[0]).toMatchObject({ user_id: owner.id, details: JSON.stringify({ provider: 'acme' }) });
      const unlinked = await rules.database.query((tables) =>
        tables.selectFrom('activity').select('details').where('user_id', '=', String(former)).execute(),
      );
      expect(unlinked).toContainEqual({ details: JSON.stringify({ provider: 'acme' }) });
    });

    test('leaves the mistyped account if it has another login method, without a mail to a stranger', async () => {
      const { subject, email } = await both();
      await rules.database.write((tables) =>
        tables.updateTable('users').set({ password_hash: 'x' }).where('email', '=', subject).execute(),
      );
      expect(await logIn({ email, subject })).toBe('logged-in');
      expect(await storedAt(subject)).toMatchObject({ has: [], events: ['identity-unlinked'], mails: [] });
    });

    test.each<[string, (owner: User) => void, boolean, string]>([
      ['of a blocked one, vouched for', (owner) => owner.block(1), true, 'blocked'],
      ['of a deleted one, vouched for', (owner) => owner.delete(1), true, 'deleted'],
      // It is not said whether the account is blocked.
      ['of a blocked one', (owner) => owner.block(1), false, 'verification-sent'],
      ['of a deleted one', (owner) => owner.delete(1), false, 'email-unverified'],
      ['that it does not vouch for', () => undefined, false, 'verification-sent'],
    ])('stays: %s', async (_, change, emailVerified, result) => {
      const { subject, email } = await both(change);
      expect(await logIn({ email, subject, emailVerified })).toBe(result);
      // The link is mailed to the address of the account, not to the owner of the other.
      const mails = result === 'verification-sent' ? ['verify-email'] : [];
      expect(await storedAt(subject)).toMatchObject({ verified: false, has: [`${subject}? ${email}`], mails });
      expect(await storedAt(email)).toMatchObject({ has: [], mails: [] });
    });

    test('stays if that user has an authenticator app, or too many identities', async () => {
      const withApp = await both();
      await addApp(withApp.owner);
      expect(await logIn({ email: withApp.email, subject: withApp.subject })).toBe('not-linked');
      const full = await both();
      for (let i = 0; i < 50; i++) await link(full.owner, { subject: `${full.owner.id} ${i}` });
      expect(await logIn({ email: full.email, subject: full.subject })).toBe('failed');
      for (const { subject } of [withApp, full]) expect(await storedAt(subject)).toMatchObject({ events: [] });
    });
  });

  test('moves an address: links mailed to the former one are void', async () => {
    const { id, email: subject } = await unverified();
    const tokens = () =>
      rules.database.query((tables) =>
        tables.selectFrom('one_time_tokens').select('id').where('user_id', '=', id).execute(),
      );
    await rules.database.write((tables) =>
      tables
        .insertInto('one_time_tokens')
        .values({
          id: crypto.randomUUID(),
          user_id: id,
          purpose: 'verify-email',
          token_hash: crypto.randomUUID(),
          used: 0,
          expires_at: Date.now() + 60_000,
        })
        .execute(),
    );
    expect(await tokens()).toHaveLength(1);
    await logIn({ email: addressOf('right'), subject, emailVerified: false });
    expect(await tokens()).toEqual([]);
  });
});
