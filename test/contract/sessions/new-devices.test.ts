import { v7 as uuidv7 } from 'uuid';
import { afterAll, expect, test } from 'vitest';
import type { Browser } from '../../provider/browser.ts';
import { environmentFor, startHostileProvider } from '../../provider/hostile.ts';
import { identitiesOf, identityClaims, loginsThrough, usersWith } from '../../provider/login.ts';
import { clientAddress, freshEmail } from '../../rig/servers/address.ts';
import type { Stack } from '../../rig/stack.ts';
import { type Call, type CallOptions, callerOf } from '../rig/callers.ts';
import { addPasskey, authenticatorFor } from '../rig/passkey-scenario.ts';
import {
  deviceIn,
  eventsOf,
  everywhere,
  expectRefusal,
  isAlive,
  loggedIn,
  logIn,
  mailedToken,
  mailsSettled,
  onStack,
  PASSWORD,
  type Person,
  registered,
  sessionIn,
  verified,
} from '../rig/scenario.ts';
import { storedUser } from '../rig/stored-user.ts';
import { codeOf, firstStep, setUpApp, withApp } from '../rig/totp-scenario.ts';

/** The device cookie, the logins that are reported by mail, and the effect of the link in that mail. */
const provider = await startHostileProvider();
const logInThrough = loginsThrough(provider);
afterAll(() => provider.close());

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const NEW_PASSWORD = 'Difference-Engine-1822';
const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

/** A login with the cookies that it sets. */
async function open(call: Call, { email, password }: Person, options: CallOptions = {}) {
  const reply = await call('auth.login', { email, password }, options);
  expect(reply).toMatchObject({ code: undefined, status: 200 });
  return { session: sessionIn(reply) ?? '', device: deviceIn(reply) ?? '' };
}

/** The number of mails about logins to an address, queued or sent: each is queued in the transaction of its login. */
const reports = async ({ database }: Stack, email: string) =>
  (await database("select id from outbox where kind = 'new-device' and email = ?", [email])).length;

/** An identity of a user. Returns its subject. */
async function addIdentity({ database }: Stack, userId: string) {
  const { sub } = identityClaims();
  await database(
    `insert into identities (id, user_id, issuer, subject, provider, proven, browser, created_at)
     values (?, ?, ?, ?, 'acme', 1, null, ?)`,
    [crypto.randomUUID(), userId, provider.url, sub, Date.now()],
  );
  return sub;
}

/** As if everything of a user had happened some days earlier. Ids of events contain their time. */
async function passDays({ database }: Stack, userId: string, days: number) {
  const ms = Math.round(days * DAY_MS);
  const tokens =
    'update one_time_tokens set covers_from = covers_from - ?, expires_at = expires_at - ? where user_id = ?';
  await database(tokens, [ms, ms, userId]);
  for (const table of ['identities', 'passkeys', 'totps', 'recovery_codes'])
    await database(`update ${table} set created_at = created_at - ? where user_id = ?`, [ms, userId]);
  const events = await database<{ id: string }>('select id from activity where user_id = ?', [userId]);
  for (const { id } of events) {
    const time = Number.parseInt(id.replace('-', '').slice(0, 12), 16) - ms;
    const hex = time.toString(16).padStart(12, '0');
    const moved = `${hex.slice(0, 8)}-${hex.slice(8)}${id.slice(13)}`;
    await database('update activity set id = ?, created_at = created_at - ? where id = ?', [moved, ms, id]);
  }
}

/** A user after the first login, and the link of a mail about a second login elsewhere. */
async function reported({ call, stack }: { call: Call; stack: Stack }) {
  const person = await loggedIn({ call, stack });
  const thief = await open(call, person);
  return { ...person, thief, token: await mailedToken(stack, person.email, 'not-me') };
}

everywhere(
  (scenario) => {
    // checks: 20
    test('a login marks the device with a cookie that names no user', async () => {
      const { call } = scenario();
      const person = await verified(scenario());
      const reply = await call('auth.login', person);
      const [device = ''] = reply.setCookies.filter((line) => line.startsWith('auth_device='));
      expect(device).toMatch(/^auth_device=[\w-]{43}\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=34560000$/);
      expect(device).not.toContain(person.id);
      expect(reply.setCookies).toHaveLength(2);
      // The same device keeps its id and mark; refused logins set nothing.
      const again = await call('auth.login', person, { device: deviceIn(reply) });
      expect(deviceIn(again)).toBe(deviceIn(reply));
      const refused = await call('auth.login', { ...person, password: 'Wrong-1' }, { device: deviceIn(reply) });
      expect(refused.setCookies).toEqual([]);
    });

    test('a first login in the browser of the registration and known devices are not reported; others are', async () => {
      const { call, stack } = scenario();
      const person = await verified(scenario());
      const { device } = await open(call, person, { device: person.device });
      await open(call, person, { device, headers: { 'user-agent': FIREFOX } });
      expect(await reports(stack, person.email)).toBe(0);
      const address = clientAddress();
      await open(call, person, { address, headers: { 'user-agent': FIREFOX } });
      const { subject, text } = await stack.waitForMail({ to: person.email, subject: 'New login' });
      expect(subject).toBe(`New login to ${new URL(stack.appUrl).host}`);
      expect(text).toContain(`from the address ${address}.`);
      const [, date = ''] = /Firefox on Linux, on (\d+ \w+ \d{4} at \d\d:\d\d UTC)/.exec(text) ?? [];
      expect(Math.abs(Date.parse(date.replace(' at', '')) - Date.now())).toBeLessThan(90_000);
      expect(await eventsOf(stack, person.id, 'logged-in')).toEqual([
        { method: 'password', session: expect.any(String) },
        { method: 'password', session: expect.any(String) },
        { method: 'password', session: expect.any(String), device: 'new' },
      ]);
    });

    test('a first login elsewhere is reported, and its link removes an app that would lock out the owner', async () => {
      const { call, stack } = scenario();
      // Imported, or with a password that others know.
      const { session, ...owner } = await storedUser(scenario());
      expect(await reports(stack, owner.email)).toBe(1);
      await setUpApp(scenario(), { ...owner, session });
      const other = await withApp(scenario());
      const token = await mailedToken(stack, owner.email, 'not-me');
      expect((await call('account.notMe', { token })).status).toBe(200);
      expect(await eventsOf(stack, owner.id, 'not-me')).toEqual([{ methods: 'password,totp,recovery' }]);
      const codesOf = (id: string) => stack.database('select id from recovery_codes where user_id = ?', [id]);
      expect([(await codesOf(owner.id)).length, (await codesOf(other.id)).length > 0]).toEqual([0, true]);
      const reset = await mailedToken(stack, owner.email, 'reset-password');
      const change = { token: reset, email: owner.email, password: NEW_PASSWORD };
      expect((await call('auth.resetPassword', change)).status).toBe(200);
      expect(await isAlive(call, (await open(call, { ...owner, password: NEW_PASSWORD })).session)).toBe(true);
    });

    test('neither a browser that confirms another’s registration nor that of the registrant is a known device', async () => {
      const { call, stack } = scenario();
      const person = await registered(scenario());
      const token = await mailedToken(stack, person.email, 'verify-email');
      const reply = await call('auth.verifyEmail', { token });
      expect(deviceIn(reply)).toBeUndefined();
      await open(call, person);
      expect(await reports(stack, person.email)).toBe(1);
    });

    test('a first login is not reported in the browser of a reset, and reported elsewhere', async () => {
      const { call, stack } = scenario();
      const person = await registered(scenario());
      await call('auth.forgotPassword', { email: person.email });
      const token = await mailedToken(stack, person.email, 'reset-password');
      const reset = await call('auth.resetPassword', { token, email: person.email, password: NEW_PASSWORD });
      expect(reset.status).toBe(200);
      await open(call, { ...person, password: NEW_PASSWORD }, { device: deviceIn(reset) });
      expect(await reports(stack, person.email)).toBe(0);
      await open(call, { ...person, password: NEW_PASSWORD });
      expect(await reports(stack, person.email)).toBe(1);
    });

    // checks: 74
    test('a mail names a device in fixed words, whatever its User-Agent', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      const lure = 'www.accounts-help.com to check that';
      await open(call, person, { headers: { 'user-agent': `${lure}/1.0 (X11; Linux x86_64)` } });
      const { text, html } = await stack.waitForMail({ to: person.email, subject: 'New login' });
      expect(text).toContain('Unknown device, on ');
      for (const words of [text, html]) expect(words).not.toContain('accounts-help');
    });

    test('a program without cookies is reported once a day per address and kind of device', async () => {
      const { call, stack } = scenario();
      const { id, ...person } = await loggedIn(scenario());
      const address = clientAddress();
      for (let i = 0; i < 3; i++) await open(call, person, { address });
      expect(await reports(stack, person.email)).toBe(1);
      await open(call, person, { address, headers: { 'user-agent': FIREFOX } });
      expect(await reports(stack, person.email)).toBe(2);
      await open(call, person);
      expect(await reports(stack, person.email)).toBe(3);
      expect(await eventsOf(stack, id, 'logged-in')).toHaveLength(6);
      // As if the first of these was a day ago. The service never changes events; ids are in order of time.
      const [first] = await stack.database<{ id: string }>(
        `select id from activity where user_id = ? and details like '%new%' order by id limit 1`,
        [id],
      );
      const dayBefore = (Date.now() - DAY_MS - 1000).toString(16).padStart(12, '0');
      await stack.database('update activity set id = ? where id = ?', [
        `${dayBefore.slice(0, 8)}-${dayBefore.slice(8)}${first?.id.slice(13)}`,
        first?.id ?? '',
      ]);
      await open(call, person, { address });
      expect(await reports(stack, person.email)).toBe(4);
    });

    test('only a reported login makes a device known', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      const address = clientAddress();
      const [told, alike] = [await open(call, person, { address }), await open(call, person, { address })];
      expect([told, alike].map(({ device }) => device.split('.').length)).toEqual([2, 1]);
      expect(await reports(stack, person.email)).toBe(1);
    });

    test('after a password change the next login is reported, however recent a similar one', async () => {
      const { call, stack } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const address = clientAddress();
      const thief = await open(call, person, { address });
      const change = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD };
      expect((await call('account.changePassword', change, { session })).status).toBe(200);
      await open(call, { ...person, password: NEW_PASSWORD }, { address, device: thief.device });
      expect(await reports(stack, person.email)).toBe(2);
    });

    test('another login method is reported, however recently the same device was', async () => {
      const { call, stack } = scenario();
      const identity = identityClaims();
      const address = clientAddress();
      await logInThrough(stack, identity);
      const [user] = await usersWith(stack, identity.email);
      await call('auth.forgotPassword', { email: identity.email });
      const token = await mailedToken(stack, identity.email, 'reset-password');
      const change = { token, email: identity.email, password: NEW_PASSWORD };
      expect((await call('auth.resetPassword', change)).status).toBe(200);
      const person = { email: identity.email, password: NEW_PASSWORD, name: '' };
      const before = await reports(stack, identity.email);
      const inPlace = async () => {
        // As if the provider login had come from the same address and program.
        await stack.database("update activity set address = ?, device = 'x' where user_id = ?", [
          address,
          user?.id ?? '',
        ]);
      };
      await logInThrough(stack, identity);
      await inPlace();
      expect(await reports(stack, identity.email)).toBe(before + 1);
      await open(call, person, { address, headers: { 'user-agent': 'x' } });
      expect(await reports(stack, identity.email)).toBe(before + 2);
      await open(call, person, { address, headers: { 'user-agent': 'x' } });
      expect(await reports(stack, identity.email)).toBe(before + 2);
    });

    test('a mark works for one user and one device; for ten users at most', async () => {
      const { call, stack } = scenario();
      const [ada, bob] = [await loggedIn(scenario()), await loggedIn(scenario())];
      const [one, other] = [await open(call, ada), await open(call, bob)];
      const before = [await reports(stack, ada.email), await reports(stack, bob.email)];
      const [[deviceOfAda, markOfAda], [deviceOfBob, markOfBob]] = [one.device.split('.'), other.device.split('.')];
      const forged = [
        other.device,
        `${deviceOfAda}.${markOfBob}`,
        `${deviceOfBob}.${markOfAda}`,
        `${deviceOfAda}.${'A'.repeat(43)}`,
        `${deviceOfAda}.${ada.id}`,
        `${deviceOfAda}`,
        `${one.device}; auth_device=${other.device}`,
        `${one.device}${`.${markOfBob}`.repeat(10)}`,
      ];
      for (const device of forged) await open(call, ada, { device });
      expect(await reports(stack, ada.email)).toBe((before[0] ?? 0) + forged.length);

      // One browser, several users: each stays known there while the others log in.
      const shared = await open(call, bob, { device: one.device });
      expect(await reports(stack, bob.email)).toBe((before[1] ?? 0) + 1);
      expect(shared.device.split('.')).toHaveLength(3);
      const both = await open(call, ada, { device: shared.device });
      const crowded = both.device + `.${'x'.repeat(43)}`.repeat(8);
      const second = await open(call, bob, { device: crowded });
      expect(second.device.split('.')).toHaveLength(11);
      expect(await reports(stack, ada.email)).toBe((before[0] ?? 0) + forged.length);
      expect(await reports(stack, bob.email)).toBe((before[1] ?? 0) + 1);
      const third = await open(call, await loggedIn(scenario()), { device: second.device });
      expect(third.device.split('.')).toHaveLength(11);
    });

    test('ten logins per hour and method are mailed, more are not queued, and every mailed link works', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      const sessions = [];
      for (let i = 0; i < 13; i++) sessions.push((await open(call, person)).session);
      expect(await reports(stack, person.email)).toBe(10);
      const onNewDevice = (await eventsOf(stack, person.id, 'logged-in')).filter(({ device }) => device === 'new');
      expect(onNewDevice).toHaveLength(10);
      await mailsSettled(stack, person.email);
      const mails = (await stack.mailsTo(person.email)).filter(({ subject }) => subject.startsWith('New login'));
      expect(mails).toHaveLength(10);
      const links = mails.map(({ text }) => text.match(/https?:\/\/\S+\/not-me\?token=\S+/)?.[0]);
      expect(new Set(links).size).toBe(1);
      const token = new URL(links[0] ?? '').searchParams.get('token');
      expect((await call('account.notMe', { token })).status).toBe(200);
      for (const session of sessions) expect(await isAlive(call, session)).toBe(false);
    });

    test.each<[string, (person: Awaited<ReturnType<typeof loggedIn>>) => Promise<string>]>([
      [
        'a change of the password',
        async ({ session, password: currentPassword }) => {
          const change = { currentPassword, newPassword: NEW_PASSWORD };
          expect((await scenario().call('account.changePassword', change, { session })).status).toBe(200);
          return NEW_PASSWORD;
        },
      ],
      [
        'a log-out everywhere',
        async ({ session, password }) => {
          expect((await scenario().call('auth.logoutAll', undefined, { session })).status).toBe(200);
          return password;
        },
      ],
    ])('after ten mailed logins and %s the next one is mailed too', async (_, forget) => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      for (let i = 0; i < 10; i++) await open(call, person);
      const password = await forget(person);
      await open(call, { ...person, password });
      await mailsSettled(stack, person.email);
      const mails = (await stack.mailsTo(person.email)).filter(({ subject }) => subject.startsWith('New login'));
      expect(mails).toHaveLength(11);
    });

    test('fifty logins an hour are mailed at most, however often a thief logs out everywhere', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      await stack.database(
        `update activity set details = '{"method":"password","device":"new"}' where user_id = ? and kind = 'logged-in'`,
        [person.id],
      );
      for (let i = 1; i < 49; i++)
        await stack.database(
          `insert into activity (id, user_id, kind, actor, address, device, request_id, details, created_at)
           select ?, user_id, kind, actor, address, device, request_id, details, created_at from activity
           where user_id = ? and kind = 'logged-in' limit 1`,
          [uuidv7(), person.id],
        );
      expect((await call('auth.logoutAll', undefined, person)).status).toBe(200);
      const before = await reports(stack, person.email);
      const one = await open(call, person);
      expect(await reports(stack, person.email)).toBe(before + 1);
      expect((await call('auth.logoutAll', undefined, one)).status).toBe(200);
      const two = await open(call, person);
      expect(await reports(stack, person.email)).toBe(before + 1);
      // A device of which no mail tells does not become known.
      expect(two.device.split('.')).toHaveLength(1);
    });

    // checks: 22
    test('“This was not me” ends every session, removes the password and mails a reset link, once', async () => {
      const { call, stack } = scenario();
      const { token, thief, session, ...person } = await reported(scenario());
      expect(await isAlive(call, thief.session)).toBe(true);
      const reply = await call('account.notMe', { token });
      expect(reply.data).toEqual({ success: true, message: expect.stringMatching(/password no longer works/) });
      expect(reply.setCookies).toEqual([]);
      for (const ended of [session, thief.session]) expect(await isAlive(call, ended)).toBe(false);
      const guess = { email: person.email, password: PASSWORD };
      expectRefusal(await call('auth.login', guess, { device: thief.device }), 401, 'INVALID_CREDENTIALS');
      expect(await eventsOf(stack, person.id, 'not-me')).toEqual([{ methods: 'password' }]);
      expectRefusal(await call('account.notMe', { token }), 400, 'INVALID_TOKEN', 'Invalid or expired token');

      const reset = await mailedToken(stack, person.email, 'reset-password');
      const mail = await stack.waitForMail({ to: person.email, subject: 'Reset your password' });
      expect(mail.text).toContain('your former password no longer works');
      const change = { token: reset, email: person.email, password: NEW_PASSWORD };
      expect((await call('auth.resetPassword', change)).status).toBe(200);
      // The thief's device is unknown again, and its earlier report does not suppress a mail.
      const before = await reports(stack, person.email);
      const again = await open(call, { ...person, password: NEW_PASSWORD }, { device: thief.device });
      expect(await reports(stack, person.email)).toBe(before + 1);
      const later = await mailedToken(stack, person.email, 'not-me', before + 1);
      expect(later).not.toBe(token);
      expect((await call('account.notMe', { token: later })).status).toBe(200);
      expect(await isAlive(call, again.session)).toBe(false);
    });

    // checks: 69
    test('it removes what was added since the first login that its link covers, whenever it is opened', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      const older = await addIdentity(stack, person.id);
      await passDays(stack, person.id, 2);
      await open(call, person);
      const token = await mailedToken(stack, person.email, 'not-me');
      const attackers = await addIdentity(stack, person.id);
      await passDays(stack, person.id, 6);
      await open(call, person);
      expect(await mailedToken(stack, person.email, 'not-me', 2)).toBe(token);
      const later = await addIdentity(stack, person.id);
      await passDays(stack, person.id, 7 - 1 / 24);
      const reply = await call('account.notMe', { token });
      expect(reply).toMatchObject({ code: undefined, status: 200 });
      const left = await Promise.all([older, attackers, later].map((sub) => identitiesOf(stack, sub)));
      expect(left.map(({ length }) => length)).toEqual([1, 0, 0]);
      // Methods that stay are listed in the answer and in the mail.
      expect(reply.data.kept).toEqual([{ method: 'acme', addedAt: expect.any(Number) }]);
      expect(Math.abs(reply.data.kept[0].addedAt * 1000 - Date.now() + 15 * DAY_MS)).toBeLessThan(2 * HOUR_MS);
      const mail = await stack.waitForMail({ to: person.email, subject: 'Reset your password' });
      expect(mail.text).toContain('You can still log in through Acme. This was added earlier');
    });

    test('an app and a passkey from before stay, and are listed without the recovery codes of the app', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      await addPasskey(call, person.session, authenticatorFor(stack));
      const { secret } = await setUpApp(scenario(), person);
      await passDays(stack, person.id, 10);
      const pending = await firstStep(call, person);
      expect((await call('auth.secondFactor', { code: codeOf(secret) }, { pending })).code).toBeUndefined();
      const { data } = await call('account.notMe', { token: await mailedToken(stack, person.email, 'not-me') });
      expect(data.kept).toEqual(['passkey', 'totp'].map((method) => ({ method, addedAt: expect.any(Number) })));
      const { text } = await stack.waitForMail({ to: person.email, subject: 'Reset your password' });
      expect(text).toContain('You can still log in with a passkey and with codes from an authenticator app.');
    });

    test('a link covers logins of at most seven days before its last login', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      await open(call, person);
      const first = await addIdentity(stack, person.id);
      for (const login of [2, 3]) {
        await passDays(stack, person.id, 6);
        await open(call, person);
        await mailedToken(stack, person.email, 'not-me', login);
      }
      const token = await mailedToken(stack, person.email, 'not-me');
      const { data } = await call('account.notMe', { token });
      expect(await identitiesOf(stack, first)).toHaveLength(1);
      expect(data.kept).toEqual([{ method: 'acme', addedAt: expect.any(Number) }]);
    });

    test('it cancels a pending email change', async () => {
      const { call, stack } = scenario();
      const { token, thief, id } = await reported(scenario());
      const email = freshEmail();
      await call('account.changeEmail', { email }, { session: thief.session });
      await mailedToken(stack, email, 'confirm-email');
      const changes = () => stack.database('select id from email_changes where user_id = ?', [id]);
      expect(await changes()).toHaveLength(1);
      expect((await call('account.notMe', { token })).status).toBe(200);
      expect(await changes()).toEqual([]);
    });

    test('its reset mail is sent despite earlier requests by others, and invalidates their links', async () => {
      const { call, stack } = scenario();
      const { token, email } = await reported(scenario());
      await call('auth.forgotPassword', { email });
      await mailedToken(stack, email, 'reset-password');
      for (let i = 0; i < 12; i++) await call('auth.forgotPassword', { email });
      await mailsSettled(stack, email);
      const resets = async () => {
        const mails = (await stack.mailsTo(email)).filter(({ subject }) => subject.startsWith('Reset'));
        return mails.map(({ text }) => /reset-password\?token=([\w-]+)/.exec(text)?.[1] ?? '');
      };
      const before = await resets();
      expect((await call('account.notMe', { token })).status).toBe(200);
      await mailsSettled(stack, email);
      const [own, ...more] = (await resets()).filter((each) => !before.includes(each));
      expect([own, more]).toEqual([expect.stringMatching(/^[\w-]{43}$/), []]);
      const reset = (each: string) => call('auth.resetPassword', { token: each, email, password: NEW_PASSWORD });
      for (const each of before) expectRefusal(await reset(each), 400, 'INVALID_TOKEN');
      expect((await reset(own ?? '')).status).toBe(200);
    });

    test('the mail about an added login method has the link too, which removes it', async () => {
      const { call, stack } = scenario();
      const { id, email, session } = await loggedIn(scenario());
      await setUpApp(scenario(), { id, session });
      const { text } = await stack.waitForMail({ to: email, subject: 'now requires a code' });
      const token = /\/not-me\?token=([\w-]+)/.exec(text)?.[1];
      expect((await call('account.notMe', { token })).status).toBe(200);
      expect(await eventsOf(stack, id, 'not-me')).toEqual([{ methods: 'password,totp,recovery' }]);
      expect(await stack.database('select user_id from totps where user_id = ?', [id])).toEqual([]);
      expectRefusal(await call('account.notMe', { token }), 400, 'INVALID_TOKEN');
    });

    // checks: 74
    test('no mail contains the name of a passkey', async () => {
      const { call, stack } = scenario();
      const { email, session } = await loggedIn(scenario());
      const lure = 'www.accounts-help.com to check that';
      const { id } = await addPasskey(call, session, authenticatorFor(stack), lure);
      expect((await call('passkeys.remove', { id }, { session })).status).toBe(200);
      for (const subject of ['A new passkey', 'A passkey for']) {
        const { text, html } = await stack.waitForMail({ to: email, subject });
        for (const words of [text, html]) expect(words).not.toContain('accounts-help');
      }
    });

    test('the link of a used verification mail ends the sessions once, with a mail', async () => {
      const { call, stack } = scenario();
      const { browser, ...person } = await registered(scenario());
      const token = await mailedToken(stack, person.email, 'verify-email');
      const verify = () => call('auth.verifyEmail', { token }, { browser });
      expect((await verify()).status).toBe(200);
      const before = await logIn(call, person);
      expect((await call('account.notMe', { token })).status).toBe(200);
      expect(await isAlive(call, before)).toBe(false);
      const mail = await stack.waitForMail({ to: person.email, subject: 'on all devices' });
      expect(mail.text).toContain('The link works only once.');
      const after = await logIn(call, person);
      expect((await call('account.notMe', { token })).status).toBe(200);
      expect(await isAlive(call, after)).toBe(true);
      expect(await eventsOf(stack, person.id, 'sessions-ended')).toHaveLength(1);
      const mails = await stack.database("select id from outbox where kind = 'sessions-ended' and email = ?", [
        person.email,
      ]);
      expect(mails).toHaveLength(1);
      // The link still verifies.
      expect((await verify()).status).toBe(200);
    });

    test('only one of twenty concurrent uses of a link succeeds', async () => {
      const { call, stack } = scenario();
      const { token, email, id } = await reported(scenario());
      const replies = await Promise.all(Array.from({ length: 20 }, () => call('account.notMe', { token })));
      expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(400)]);
      expect(await eventsOf(stack, id, 'not-me')).toHaveLength(1);
      const resets = await stack.database("select id from outbox where kind = 'reset-password' and email = ?", [email]);
      expect(resets).toHaveLength(1);
    });

    // checks: 33
    test('a link works for seven days; a wrong one is refused like a used one, and counts', async () => {
      const { call, stack } = scenario();
      const { token, id, thief } = await reported(scenario());
      const [row] = await stack.database<{ expires_at: number }>(
        "select expires_at from one_time_tokens where user_id = ? and purpose = 'new-device'",
        [id],
      );
      expect(Math.abs(Number(row?.expires_at) - Date.now() - 7 * DAY_MS)).toBeLessThan(60_000);
      const expire = (expiry: number) =>
        stack.database("update one_time_tokens set expires_at = ? where user_id = ? and purpose = 'new-device'", [
          expiry,
          id,
        ]);
      await expire(Date.now() - 1000);
      expectRefusal(await call('account.notMe', { token }), 400, 'INVALID_TOKEN', 'Invalid or expired token');
      expect(await isAlive(call, thief.session)).toBe(true);
      await expire(Date.now() + 60_000);
      const address = clientAddress();
      const wrong = [token.toLowerCase(), 'A'.repeat(43), thief.session];
      for (let i = 0; i < 50; i++) {
        expectRefusal(await call('account.notMe', { token: wrong[i % 3] }, { address }), 400, 'INVALID_TOKEN');
      }
      expectRefusal(await call('account.notMe', { token: 'B'.repeat(43) }, { address }), 429, 'RATE_LIMITED');
      // Right ones do not count, and log nobody in.
      for (const [procedure, input] of [
        ['auth.verifyEmail', { token }],
        ['auth.resetPassword', { token, email: 'x@example.test', password: NEW_PASSWORD }],
      ] as const) {
        expectRefusal(await call(procedure, input), 400, 'INVALID_TOKEN');
      }
      expect((await call('account.notMe', { token }, { address })).status).toBe(200);
    });

    test('opening the page changes nothing', async () => {
      const { call, stack } = scenario();
      const { token, thief } = await reported(scenario());
      for (const method of ['GET', 'HEAD']) {
        expect((await fetch(`${stack.url}/not-me?token=${token}`, { method })).status).toBe(200);
      }
      expect(await isAlive(call, thief.session)).toBe(true);
      expect((await call('account.notMe', { token })).status).toBe(200);
    });

    test('a provider login marks the device too; the link unlinks its identity', async () => {
      const { call, stack } = scenario();
      const identity = identityClaims();
      const linked = async () => (await identitiesOf(stack, identity.sub)).length;
      const own = await logInThrough(stack, identity);
      expect(own.browser.cookies.get('auth_device')).toMatch(/^[\w-]{43}\.[\w-]{43}$/);
      await logInThrough(stack, identity, { browser: own.browser as Browser });
      expect(await reports(stack, identity.email)).toBe(0);
      // Long before: it goes because the login was one through it.
      await stack.database('update identities set created_at = ? where subject = ?', [
        Date.now() - 30 * DAY_MS,
        identity.sub,
      ]);
      const thief = await logInThrough(stack, identity);
      expect(await reports(stack, identity.email)).toBe(1);
      const token = await mailedToken(stack, identity.email, 'not-me');
      expect((await call('account.notMe', { token })).status).toBe(200);
      expect(await isAlive(call, thief.session ?? '')).toBe(false);
      expect(await linked()).toBe(0);
      const [user] = await usersWith(stack, identity.email);
      expect(await eventsOf(stack, user?.id ?? '', 'not-me')).toEqual([{ methods: 'acme' }]);
      // The owner gets back in by mail.
      const reset = await mailedToken(stack, identity.email, 'reset-password');
      const change = { token: reset, email: identity.email, password: NEW_PASSWORD };
      expect((await call('auth.resetPassword', change)).status).toBe(200);
      const person = { email: identity.email, password: NEW_PASSWORD, name: '' };
      expect(await isAlive(call, (await open(call, person)).session)).toBe(true);
    });

    test.each([
      ['from before the login stays', -DAY_MS, 1],
      ['added since the login goes', 1000, 0],
    ])('after a login by password, an identity %s', async (_, addedAfter, left) => {
      const { call, stack } = scenario();
      const { token, id } = await reported(scenario());
      const { sub } = identityClaims();
      await stack.database(
        `insert into identities (id, user_id, issuer, subject, provider, proven, browser, created_at)
         values (?, ?, ?, ?, 'acme', 1, null, ?)`,
        [crypto.randomUUID(), id, provider.url, sub, Date.now() + addedAfter],
      );
      expect((await call('account.notMe', { token })).status).toBe(200);
      expect(await identitiesOf(stack, sub)).toHaveLength(left);
    });

    test('a login with a failed transaction leaves no mail, event or session', async () => {
      const { call, stack } = scenario();
      const { id, session, ...person } = await loggedIn(scenario());
      const failing =
        stack.name === 'embedded'
          ? `create trigger sabotage before insert on sessions when new.device = 'Sabotage' begin select raise(abort, 'sabotage'); end`
          : `create trigger sabotage before insert on sessions for each row if new.device = 'Sabotage' then signal sqlstate '45000' set message_text = 'sabotage'; end if`;
      await stack.database(failing);
      try {
        const before = await eventsOf(stack, id, 'logged-in');
        const reply = await call('auth.login', person, { headers: { 'user-agent': 'Sabotage/1' } });
        expectRefusal(reply, 500, 'INTERNAL');
        expect(await reports(stack, person.email)).toBe(0);
        expect(await eventsOf(stack, id, 'logged-in')).toEqual(before);
        expect(await isAlive(call, session)).toBe(true);
      } finally {
        await stack.database(`drop trigger sabotage`);
      }
    });

    test('the activity records it, without the token', async () => {
      const { call } = scenario();
      const { token, session } = await reported(scenario());
      const { data } = await call('activity.list', undefined, { session });
      expect(data.data[0]).toMatchObject({ kind: 'logged-in', details: { method: 'password', device: 'new' } });
      expect(JSON.stringify(data)).not.toContain(token);
    });
  },
  { env: environmentFor(provider) },
);

onStack(
  'real',
  (stack) =>
    // checks: 21
    test('“This was not me” at one instance ends sessions at the other immediately, also of a concurrent login', async () => {
      const [here = '', there = ''] = stack().services.map(({ url }) => url);
      for (let round = 0; round < 20; round++) {
        const scenario = { stack: stack(), call: callerOf('rest', here) };
        const { token, thief, session, ...person } = await reported(scenario);
        const other = callerOf('rest', there);
        const [, late] = await Promise.all([
          scenario.call('account.notMe', { token }).then(({ status }) => expect(status).toBe(200)),
          other('auth.login', { email: person.email, password: person.password }, { device: thief.device }),
        ]);
        for (const ended of [session, thief.session, sessionIn(late)]) {
          if (ended) expect(await isAlive(other, ended)).toBe(false);
        }
      }
    }),
  { instances: 2 },
);
