import { afterAll, expect, test } from 'vitest';
import { type Claims, environmentFor, type Lie, startHostileProvider } from '../../provider/hostile.ts';
import {
  freshSubject,
  identitiesOf,
  identityClaims,
  loginsThrough,
  profileOf,
  usersWith,
} from '../../provider/login.ts';
import { freshEmail } from '../../rig/servers/address.ts';
import { callerOf } from '../rig/callers.ts';
import {
  eventsOf,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  mailsSettled,
  onBothStacks,
  PASSWORD,
  registered,
  verified,
} from '../rig/scenario.ts';

/** Which user an identity belongs to: the four rules of design/providers.md. */
const provider = await startHostileProvider();
const logInAs = loginsThrough(provider);
afterAll(() => provider.close());

onBothStacks(
  (stack) => {
    test('a new user gets an account with the claims of the provider', async () => {
      const person = identityClaims({ email: freshEmail().replace('user', 'USER') });
      const { location, session, browser } = await logInAs(stack(), person);
      expect(location).toBe('/dashboard');
      expect(browser.setCookies).toContainEqual(
        `auth_session=${session}; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800`,
      );
      expect(await profileOf(stack(), session)).toMatchObject({
        email: person.email.toLowerCase(),
        name: 'Grace Hopper',
        avatar: person.picture,
        provider: 'acme',
        emailVerified: true,
        bio: '',
      });
      expect(await identitiesOf(stack(), person.sub)).toEqual([expect.objectContaining({ issuer: provider.url })]);
      expect(await stack().mailsTo(person.email)).toEqual([]);
    });

    test.each<[string, Claims, Record<string, unknown>]>([
      ['no name', { name: undefined }, { avatar: 'https://img.example.test/grace.png' }],
      ['a name of one letter', { name: 'G' }, {}],
      ['an invisible name', { name: '\u200b\u200b\u200b' }, {}],
      ['a name with a line break', { name: 'Grace\r\nBcc: x' }, {}],
      ['a name that is no text', { name: { first: 'Grace' } }, {}],
      ['a long name', { name: 'G'.repeat(101) }, {}],
      ['a picture that is a script', { picture: 'javascript:alert(1)', name: undefined }, { avatar: '' }],
      ['a picture that is no text', { picture: 7, name: undefined }, { avatar: '' }],
    ])('%s is replaced by known data', async (_, claims, expected) => {
      const person = identityClaims(claims);
      const { location, session } = await logInAs(stack(), person);
      expect(location).toBe('/dashboard');
      const name = person.email.slice(0, person.email.indexOf('@'));
      expect(await profileOf(stack(), session)).toMatchObject({ name, ...expected });
    });

    test('an email with a short local part becomes the name', async () => {
      const email = `a@${freshEmail('x').replace('@', '.')}`;
      const { session } = await logInAs(stack(), identityClaims({ email, name: undefined }));
      expect(await profileOf(stack(), session)).toMatchObject({ name: email });
    });

    // checks: 46
    test('rule 1: the same subject is the same user, whatever the email', async () => {
      const person = identityClaims();
      const first = await logInAs(stack(), person);
      const before = await profileOf(stack(), first.session);
      const other = await loggedIn({ stack: stack(), call: callerOf('rest', stack().url) });
      for (const change of [
        { email: freshEmail() },
        { email: other.email },
        { email: undefined },
        { email: 'josé@example.test' },
        { email_verified: false, name: 'Somebody Else', picture: 'https://img.example.test/other.png' },
      ]) {
        const again = await logInAs(stack(), { ...person, ...change });
        expect(again.location).toBe('/dashboard');
        expect(await profileOf(stack(), again.session)).toEqual(before);
      }
      expect(await identitiesOf(stack(), person.sub)).toHaveLength(1);
    });

    test('rule 2: a verified email is its user, who keeps proven password, profile and sessions', async () => {
      const call = callerOf('rest', stack().url);
      const local = await loggedIn({ stack: stack(), call });
      await call('profile.update', { bio: 'Mine' }, { session: local.session });
      const first = identityClaims({ email: local.email });
      const { location, session } = await logInAs(stack(), first);
      expect(location).toBe('/dashboard');
      expect(await profileOf(stack(), session)).toMatchObject({
        id: local.id,
        name: local.name,
        bio: 'Mine',
        avatar: '',
        provider: 'email',
      });
      expect(await isAlive(call, local.session)).toBe(true);
      await logIn(call, local);
      // Several identities, one user.
      const second = await logInAs(stack(), identityClaims({ email: local.email.toUpperCase() }));
      expect(await profileOf(stack(), second.session)).toMatchObject({ id: local.id });
    });

    // checks: 45
    test('rule 2: an account that another person registered first belongs to the owner of the email', async () => {
      const call = callerOf('rest', stack().url);
      const squatted = await registered({ stack: stack(), call }, { name: 'A Squatter' });
      const token = await mailedToken(stack(), squatted.email, 'verify-email');
      await call('auth.forgotPassword', { email: squatted.email });
      const reset = await mailedToken(stack(), squatted.email, 'reset-password');
      await stack().database("update users set bio = 'Trap', website = 'https://evil.test' where id = ?", [
        squatted.id,
      ]);
      const { location, session } = await logInAs(stack(), identityClaims({ email: squatted.email }));
      expect(location).toBe('/dashboard');
      expect(await profileOf(stack(), session)).toMatchObject({
        id: squatted.id,
        name: 'Grace Hopper',
        bio: '',
        website: '',
        avatar: '',
        provider: 'acme',
        emailVerified: true,
      });
      expect(await eventsOf(stack(), squatted.id, 'profile-changed')).toEqual([{ fields: 'name, bio, website' }]);
      const login = await call('auth.login', { email: squatted.email, password: PASSWORD });
      expect([login.status, login.code]).toEqual([401, 'INVALID_CREDENTIALS']);
      expect((await call('auth.verifyEmail', { token })).code).toBe('INVALID_TOKEN');
      const input = { email: squatted.email, token: reset, password: 'Difference-Engine-1' };
      expect((await call('auth.resetPassword', input)).code).toBe('INVALID_TOKEN');
      expect(await isAlive(call, session ?? '')).toBe(true);
    });

    // checks: 45
    test('rule 2: a squatter does not keep the identity that created the account', async () => {
      const email = freshEmail();
      const squatter = identityClaims({ email, email_verified: false });
      expect((await logInAs(stack(), squatter)).location).toBe('/verify-email');
      const owner = await logInAs(stack(), identityClaims({ email }));
      expect(owner.location).toBe('/dashboard');
      const back = await logInAs(stack(), squatter);
      expect([back.location, back.session]).toEqual(['/login?error=email_unverified', undefined]);
      expect(await identitiesOf(stack(), squatter.sub)).toEqual([]);
    });

    test('a password reset also removes the identity of a squatter', async () => {
      const call = callerOf('rest', stack().url);
      const squatter = identityClaims({ email_verified: false });
      await logInAs(stack(), squatter);
      await call('auth.forgotPassword', { email: squatter.email });
      const token = await mailedToken(stack(), squatter.email, 'reset-password');
      expect((await call('auth.resetPassword', { token, email: squatter.email, password: PASSWORD })).status).toBe(200);
      expect((await logInAs(stack(), squatter)).location).toBe('/login?error=email_unverified');
      const session = await logIn(call, { name: '', email: squatter.email, password: PASSWORD });
      expect(await profileOf(stack(), session)).toMatchObject({ provider: 'email', emailVerified: true });
    });

    // checks: 44
    test.each([
      ['false', { email_verified: false }],
      ['absent', { email_verified: undefined }],
      ['"true"', { email_verified: 'true' }],
      ['1', { email_verified: 1 }],
      ['"false"', { email_verified: 'false' }],
    ])('rule 3: with email_verified %s and a taken email, nothing is linked and nobody logs in', async (_, claims) => {
      const call = callerOf('rest', stack().url);
      const [taken, squatted] = await Promise.all([
        verified({ stack: stack(), call }),
        registered({ stack: stack(), call }),
      ]);
      for (const { email } of [taken, squatted]) {
        const person = identityClaims({ email, ...claims });
        const { location, session } = await logInAs(stack(), person);
        expect([location, session]).toEqual(['/login?error=email_unverified', undefined]);
        expect(await identitiesOf(stack(), person.sub)).toEqual([]);
      }
    });

    test('rule 4: a new user with an unverified email must verify it first', async () => {
      const call = callerOf('rest', stack().url);
      const person = identityClaims({ email_verified: false });
      const { location, session } = await logInAs(stack(), person);
      expect([location, session]).toEqual(['/verify-email', undefined]);
      expect(await usersWith(stack(), person.email)).toEqual([expect.objectContaining({ email_verified: 0 })]);
      const token = await mailedToken(stack(), person.email, 'verify-email');
      expect((await call('auth.verifyEmail', { token })).status).toBe(200);
      const again = await logInAs(stack(), person);
      expect(again.location).toBe('/dashboard');
      expect(await profileOf(stack(), again.session)).toMatchObject({ email: person.email, emailVerified: true });
    });

    test('an unverified user can get another link, within the limit', async () => {
      const person = identityClaims({ email_verified: false });
      for (let i = 0; i < 12; i++) expect((await logInAs(stack(), person)).location).toBe('/verify-email');
      await mailsSettled(stack(), person.email);
      const sent = await stack().database("select id from outbox where email = ? and state = 'sent'", [person.email]);
      expect(sent.length).toBeLessThanOrEqual(10);
      expect((await stack().mailsTo(person.email)).length).toBe(sent.length);
    });

    test('an unverified user can log in once the provider verifies the same email', async () => {
      const person = identityClaims({ email_verified: false });
      await logInAs(stack(), person);
      const [user] = await usersWith(stack(), person.email);
      const becameVerified = () => eventsOf(stack(), user?.id ?? '', 'verified');
      expect(await becameVerified()).toEqual([]);
      for (let i = 0; i < 2; i++) {
        const { location, session } = await logInAs(stack(), { ...person, email_verified: true });
        expect(location).toBe('/dashboard');
        expect(await profileOf(stack(), session)).toMatchObject({ email: person.email, emailVerified: true });
        expect(await becameVerified()).toHaveLength(1);
      }
    });

    test.each([
      ['vouched for', true, '/dashboard'],
      ['not vouched for', false, '/verify-email'],
    ])(
      'an unverified user with a mistyped email can continue with the right one, %s',
      async (_, emailVerified, end) => {
        const call = callerOf('rest', stack().url);
        const person = identityClaims({ email_verified: false });
        await logInAs(stack(), person);
        const token = await mailedToken(stack(), person.email, 'verify-email');
        const [before] = await usersWith(stack(), person.email);
        const corrected = { ...person, email: freshEmail(), email_verified: emailVerified };
        expect((await logInAs(stack(), corrected)).location).toBe(end);
        expect(await usersWith(stack(), person.email)).toEqual([]);
        expect(await usersWith(stack(), corrected.email)).toEqual([
          { id: before?.id, email_verified: emailVerified ? 1 : 0 },
        ]);
        const change = { from: person.email, to: corrected.email };
        expect(await eventsOf(stack(), before?.id ?? '', 'email-changed')).toEqual([change]);
        expect((await call('auth.verifyEmail', { token })).code).toBe('INVALID_TOKEN');
      },
    );

    test('an unverified user with a mistyped email joins the account of the right one once it is verified', async () => {
      const call = callerOf('rest', stack().url);
      const { session, ...owner } = await loggedIn({ stack: stack(), call });
      const person = identityClaims({ email_verified: false });
      await logInAs(stack(), person);
      const back = await logInAs(stack(), { ...person, email: owner.email, email_verified: true });
      expect(back.location).toBe('/dashboard');
      expect(await profileOf(stack(), back.session)).toMatchObject({ id: owner.id, name: owner.name });
      expect(await usersWith(stack(), person.email)).toEqual([]);
      expect(await isAlive(call, session)).toBe(true);
      // From then on it is recognized, whatever the provider states about the email.
      expect((await logInAs(stack(), person)).session).toBeDefined();
      expect(await identitiesOf(stack(), person.sub)).toEqual([expect.objectContaining({ user_id: owner.id })]);
    });

    test('an account with a mistyped email and another login method stays', async () => {
      const owner = await verified({ stack: stack(), call: callerOf('rest', stack().url) });
      const person = identityClaims({ email_verified: false });
      await logInAs(stack(), person);
      const second = identityClaims();
      const [mistyped] = await usersWith(stack(), person.email);
      await stack().database(
        "insert into identities (id, user_id, issuer, subject, provider, proven, created_at) values (?, ?, ?, ?, 'acme', 0, 0)",
        [freshSubject(), mistyped?.id ?? '', provider.url, second.sub],
      );
      await logInAs(stack(), { ...person, email: owner.email, email_verified: true });
      expect(await usersWith(stack(), person.email)).toEqual([expect.objectContaining({ id: mistyped?.id })]);
      expect(await identitiesOf(stack(), second.sub)).toEqual([expect.objectContaining({ user_id: mistyped?.id })]);
    });

    test('an unverified user cannot reach another account by taking its email', async () => {
      const other = await verified({ stack: stack(), call: callerOf('rest', stack().url) });
      const person = identityClaims({ email_verified: false });
      await logInAs(stack(), person);
      const { location } = await logInAs(stack(), { ...person, email: other.email });
      expect(location).toBe('/verify-email');
      expect(await usersWith(stack(), other.email)).toEqual([{ id: other.id, email_verified: 1 }]);
      expect(await usersWith(stack(), person.email)).toHaveLength(1);
    });

    test.each<[string, Claims]>([
      ['none', { email: undefined }],
      ['no address', { email: 'nobody' }],
      ['not ASCII', { email: 'josé@example.test' }],
      ['two', { email: 'a@example.test, b@example.test' }],
      ['a line break', { email: 'a@example.test\r\nBcc: b@example.test' }],
      ['no text', { email: ['a@example.test'] }],
      ['too long', { email: `${'a'.repeat(65)}@example.test` }],
    ])('an unusable email creates no account: %s', async (_, claims) => {
      const person = identityClaims(claims);
      const { location, session } = await logInAs(stack(), person);
      expect([location, session]).toEqual(['/login?error=oauth_failed', undefined]);
      expect(await identitiesOf(stack(), person.sub)).toEqual([]);
    });

    test.each([
      ['ends in a space', 'abc '],
      ['is not ASCII', 'é'],
      ['is too long', 'x'.repeat(256)],
    ])('a subject that %s is refused', async (_, sub) => {
      const { location, session } = await logInAs(stack(), identityClaims({ sub }));
      expect([location, session]).toEqual(['/login?error=oauth_failed', undefined]);
    });

    test('subjects are case-sensitive', async () => {
      const sub = freshSubject();
      const one = await logInAs(stack(), identityClaims({ sub }));
      const two = await logInAs(stack(), identityClaims({ sub: sub.toUpperCase() }));
      const ids = await Promise.all([one, two].map(async ({ session }) => (await profileOf(stack(), session)).id));
      expect(new Set(ids).size).toBe(2);
    });

    // checks: 46
    test('email and email_verified come from one source', async () => {
      const victim = await verified({ stack: stack(), call: callerOf('rest', stack().url) });
      const person = identityClaims({ email: victim.email, email_verified: undefined, name: undefined });
      const lie: Lie = {
        idToken: { email: victim.email },
        userinfo: { email: freshEmail(), email_verified: true, name: 'Mallory' },
      };
      expect((await logInAs(stack(), person, { lie })).location).toBe('/login?error=email_unverified');
    });

    // checks: 18
    test('without a password, a password login gets the answer of a wrong password', async () => {
      const call = callerOf('rest', stack().url);
      const person = identityClaims();
      await logInAs(stack(), person);
      const reply = await call('auth.login', { email: person.email, password: PASSWORD });
      expect([reply.status, reply.message]).toEqual([401, 'Invalid email or password']);
    });
  },
  { env: environmentFor(provider) },
);
