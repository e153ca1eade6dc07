import { afterAll, expect, test } from 'vitest';
import type { Browser } from '../provider/browser.ts';
import { environmentFor, startHostileProvider } from '../provider/hostile.ts';
import { identitiesOf, loginsThrough, somebody, usersWith } from '../provider/login.ts';
import { clientAddress } from '../rig/address.ts';
import type { Stack } from '../rig/stack.ts';
import { type Call, type CallOptions, callerOf } from './callers.ts';
import {
  deviceIn,
  eventsOf,
  everywhere,
  expectRefusal,
  isAlive,
  loggedIn,
  mailedToken,
  mailsSettled,
  onStack,
  PASSWORD,
  type Person,
  registered,
  sessionIn,
  verified,
} from './scenario.ts';

/** What the cookie of a device tells, which logins are reported by mail, and what the link in that mail does. */
const provider = await startHostileProvider();
const logInThrough = loginsThrough(provider);
afterAll(() => provider.close());

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const NEW_PASSWORD = 'Difference-Engine-1822';
const DAY_MS = 24 * 60 * 60_000;

/** A login, with the cookies that it sets. */
async function open(call: Call, { email, password }: Person, options: CallOptions = {}) {
  const reply = await call('auth.login', { email, password }, options);
  expect(reply).toMatchObject({ code: undefined, status: 200 });
  return { session: sessionIn(reply) ?? '', device: deviceIn(reply) ?? '' };
}

/** How many mails about logins are queued, or sent, for an address: each is queued in the transaction of its login. */
const reports = async ({ database }: Stack, email: string) =>
  (await database("select id from outbox where kind = 'new-device' and email = ?", [email])).length;

/** A user whose first login is over, and the link of a mail about a second one, from elsewhere. */
async function reported({ call, stack }: { call: Call; stack: Stack }) {
  const person = await loggedIn({ call, stack });
  const thief = await open(call, person);
  return { ...person, thief, token: await mailedToken(stack, person.email, 'not-me') };
}

everywhere(
  (scenario) => {
    test('a login marks the device, in a cookie that names no user', async () => {
      const { call } = scenario();
      const person = await verified(scenario());
      const reply = await call('auth.login', person);
      const [device = ''] = reply.setCookies.filter((line) => line.startsWith('auth_device='));
      expect(device).toMatch(/^auth_device=[\w-]{43}\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=34560000$/);
      expect(device).not.toContain(person.id);
      expect(reply.setCookies).toHaveLength(2);
      // The same device keeps its id and its mark; refused logins set nothing.
      const again = await call('auth.login', person, { device: deviceIn(reply) });
      expect(deviceIn(again)).toBe(deviceIn(reply));
      const refused = await call('auth.login', { ...person, password: 'Wrong-1' }, { device: deviceIn(reply) });
      expect(refused.setCookies).toEqual([]);
    });

    test('neither the first login nor one on a known device is news; one from another device is', async () => {
      const { call, stack } = scenario();
      const person = await verified(scenario());
      const { device } = await open(call, person);
      await open(call, person, { device, headers: { 'user-agent': FIREFOX } });
      expect(await reports(stack, person.email)).toBe(0);
      const address = clientAddress();
      await open(call, person, { address, headers: { 'user-agent': FIREFOX } });
      const { subject, text } = await stack.waitForMail({ to: person.email, subject: 'New login' });
      expect(subject).toBe(`New login to ${new URL(stack.appUrl).host}`);
      expect(text).toContain(`from the address ${address}.`);
      const [, date = ''] = /Firefox on Linux, on (\d{4}-\d\d-\d\d \d\d:\d\d) UTC/.exec(text) ?? [];
      expect(Math.abs(Date.parse(`${date.replace(' ', 'T')}Z`) - Date.now())).toBeLessThan(90_000);
      expect(await eventsOf(stack, person.id, 'logged-in')).toEqual([
        { method: 'password' },
        { method: 'password' },
        { method: 'password', device: 'new' },
      ]);
    });

    test('an account from before these cookies is not alarmed by its next login, but by one from elsewhere after it', async () => {
      const { call, stack } = scenario();
      const { id, ...person } = await loggedIn(scenario());
      await stack.database('update users set device_epoch = null where id = ?', [id]);
      await open(call, person);
      expect(await reports(stack, person.email)).toBe(0);
      await open(call, person);
      expect(await reports(stack, person.email)).toBe(1);
    });

    test('the first login is no news either where a reset has removed what the account was asked for by', async () => {
      const { call, stack } = scenario();
      const { id, ...person } = await registered(scenario());
      await call('auth.forgotPassword', { email: person.email });
      const token = await mailedToken(stack, person.email, 'reset-password');
      expect((await call('auth.resetPassword', { token, email: person.email, password: NEW_PASSWORD })).status).toBe(
        200,
      );
      await open(call, { ...person, password: NEW_PASSWORD });
      expect(await reports(stack, person.email)).toBe(0);
      const [row] = await stack.database('select device_epoch from users where id = ?', [id]);
      expect(row).toEqual({ device_epoch: 0 });
    });

    test('of several first logins at once one is no news', async () => {
      const { call, stack } = scenario();
      const person = await verified(scenario());
      await Promise.all(Array.from({ length: 5 }, () => open(call, person)));
      expect(await reports(stack, person.email)).toBe(4);
    });

    test('a program without cookies is reported once a day for each address and kind of device', async () => {
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
      // As if the first of these had been a day ago. Events are never changed by the service; ids are in the order of time.
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

    test('a mark is good for one user and one device; of many users the last ten stay known', async () => {
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

      // One browser, several users: each is known there, and stays so while the others log in.
      const shared = await open(call, bob, { device: one.device });
      expect(await reports(stack, bob.email)).toBe((before[1] ?? 0) + 1);
      expect(shared.device.split('.')).toHaveLength(3);
      const both = await open(call, ada, { device: shared.device });
      const crowded = both.device + `.${'x'.repeat(43)}`.repeat(8);
      const kept = await open(call, bob, { device: crowded });
      expect(kept.device.split('.')).toHaveLength(11);
      expect(await reports(stack, ada.email)).toBe((before[0] ?? 0) + forged.length);
      expect(await reports(stack, bob.email)).toBe((before[1] ?? 0) + 1);
      const third = await open(call, await loggedIn(scenario()), { device: kept.device });
      expect(third.device.split('.')).toHaveLength(11);
    });

    test('mails about logins are bounded, and the link of every one that went out works', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      const sessions = [];
      for (let i = 0; i < 13; i++) sessions.push((await open(call, person)).session);
      await mailsSettled(stack, person.email);
      const mails = (await stack.mailsTo(person.email)).filter(({ subject }) => subject.startsWith('New login'));
      expect(mails).toHaveLength(10);
      const links = mails.map(({ text }) => text.match(/https?:\/\/\S+\/not-me\?token=\S+/)?.[0]);
      expect(new Set(links).size).toBe(1);
      const token = new URL(links[0] ?? '').searchParams.get('token');
      expect((await call('account.notMe', { token })).status).toBe(200);
      for (const session of sessions) expect(await isAlive(call, session)).toBe(false);
    });

    test('“this was not me” ends every session, removes the password and leads to a reset, once', async () => {
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
      // The device of the thief is no longer known, nor is the report of it an excuse.
      const before = await reports(stack, person.email);
      const again = await open(call, { ...person, password: NEW_PASSWORD }, { device: thief.device });
      expect(await reports(stack, person.email)).toBe(before + 1);
      const later = await mailedToken(stack, person.email, 'not-me', before + 1);
      expect(later).not.toBe(token);
      expect((await call('account.notMe', { token: later })).status).toBe(200);
      expect(await isAlive(call, again.session)).toBe(false);
    });

    test('of twenty who use its link at once one is let', async () => {
      const { call, stack } = scenario();
      const { token, email, id } = await reported(scenario());
      const replies = await Promise.all(Array.from({ length: 20 }, () => call('account.notMe', { token })));
      expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(400)]);
      expect(await eventsOf(stack, id, 'not-me')).toHaveLength(1);
      const resets = await stack.database("select id from outbox where kind = 'reset-password' and email = ?", [email]);
      expect(resets).toHaveLength(1);
    });

    test('a link is good for seven days; a wrong one is refused like a used one, and counted', async () => {
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
      // Right ones are not counted. It opens nothing else.
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

    test('a login through a provider marks the device too; the link unlinks what the login came by', async () => {
      const { call, stack } = scenario();
      const identity = somebody();
      const linked = async () => (await identitiesOf(stack, identity.sub)).length;
      const own = await logInThrough(stack, identity);
      expect(own.browser.cookies.get('auth_device')).toMatch(/^[\w-]{43}\.[\w-]{43}$/);
      await logInThrough(stack, identity, { browser: own.browser as Browser });
      expect(await reports(stack, identity.email)).toBe(0);
      const thief = await logInThrough(stack, identity);
      expect(await reports(stack, identity.email)).toBe(1);
      const token = await mailedToken(stack, identity.email, 'not-me');
      expect((await call('account.notMe', { token })).status).toBe(200);
      expect(await isAlive(call, thief.session ?? '')).toBe(false);
      expect(await linked()).toBe(0);
      const [user] = await usersWith(stack, identity.email);
      expect(await eventsOf(stack, user?.id ?? '', 'not-me')).toEqual([{ methods: 'acme' }]);
      // The way back is the inbox.
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
      const { sub } = somebody();
      await stack.database(
        `insert into identities (id, user_id, issuer, subject, provider, proven, browser, created_at)
         values (?, ?, ?, ?, 'acme', 1, null, ?)`,
        [crypto.randomUUID(), id, provider.url, sub, Date.now() + addedAfter],
      );
      expect((await call('account.notMe', { token })).status).toBe(200);
      expect(await identitiesOf(stack, sub)).toHaveLength(left);
    });

    test('a login whose transaction fails leaves neither mail nor event nor session', async () => {
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

    test('the activity tells of it too, without the token', async () => {
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
    test('what is disowned at one instance has ended at the other at once, also a login that runs beside it', async () => {
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
