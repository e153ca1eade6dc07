import { expect, test } from 'vitest';
import { freshEmail } from '../../rig/servers/address.ts';
import { until } from '../../rig/until.ts';
import type { Call, CallOptions, Reply } from '../rig/callers.ts';
import {
  administrator,
  deviceIn,
  eventsOf,
  everywhere,
  expectRefusal,
  loggedIn,
  mailedToken,
  PASSWORD,
  type Person,
  type Scenario,
  sessionIn,
  verified,
} from '../rig/scenario.ts';
import { codeOf, firstStep, forgetLastCode, withApp, wrongCode } from '../rig/totp-scenario.ts';

/** Wrong passwords for one account, each from its own address, and what its owner can still do. */
const OF_ACCOUNT = 3;
const OF_DEVICE = 2;
/** The shared allowance of an account's known devices and sessions, relative to that of one. */
const KNOWN_TIMES = 4;
const OF_KNOWN_DEVICES = KNOWN_TIMES * OF_DEVICE;
const OF_CODE = 3;
const OF_KNOWN_CODES = KNOWN_TIMES * OF_CODE;
const WRONG = 'Analytical-Engine-1844';
const NEW_PASSWORD = 'Difference-Engine-1822';

type Guess = { email: string };

const guess = (call: Call, { email }: Guess, options?: CallOptions) =>
  call('auth.login', { email, password: WRONG }, options);

/** One more wrong password than unknown devices may try; returns the last refusal. */
async function exhaust(call: Call, account: Guess): Promise<Reply> {
  for (let i = 0; i < OF_ACCOUNT; i++) expectRefusal(await guess(call, account), 401, 'INVALID_CREDENTIALS');
  const refused = await guess(call, account);
  expectLimited(refused, OF_ACCOUNT, 3600);
  return refused;
}

function expectLimited(reply: Reply, points: number, seconds: number): void {
  expectRefusal(reply, 429, 'RATE_LIMITED', `Too many attempts. Please retry after ${seconds / 60} minutes.`);
  expect(reply.headers.get('ratelimit-limit')).toBe(`${points}`);
  const retryAfter = Number(reply.headers.get('retry-after'));
  expect(retryAfter).toBeGreaterThan(0);
  expect(retryAfter).toBeLessThanOrEqual(seconds);
  expect(reply.setCookies).toEqual([]);
}

/** What a user or administrator does when another person may know the password. Returns the reply. */
const actsOfAnOwner: [string, (scenario: Scenario, user: { id: string }, own: CallOptions) => Promise<Reply>][] = [
  [
    'a change of the password',
    ({ call }, _, own) => call('account.changePassword', { currentPassword: PASSWORD, newPassword: NEW_PASSWORD }, own),
  ],
  ['a logout of all devices', ({ call }, _, own) => call('auth.logoutAll', undefined, own)],
  [
    'a new authenticator app',
    async ({ call }, _, own) => {
      const { secret } = (await call('totp.begin', undefined, own)).data;
      return call('totp.enable', { code: codeOf(secret) }, own);
    },
  ],
  [
    'an end of all sessions by an administrator',
    async (scenario, { id }) => {
      const { session } = await administrator(scenario);
      return scenario.call('users.endSessions', { id }, { session });
    },
  ],
];

async function open(call: Call, { email, password }: Pick<Person, 'email' | 'password'>, options?: CallOptions) {
  const reply = await call('auth.login', { email, password }, options);
  expect(reply).toMatchObject({ code: undefined, status: 200 });
  return { session: sessionIn(reply) ?? '', device: deviceIn(reply) ?? '' };
}

everywhere(
  (scenario) => {
    // checks: 13
    test('wrong passwords count per email, with and without an account, with the same answers', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      const [known, unknown] = [await exhaust(call, person), await exhaust(call, { email: freshEmail() })];
      const { status, message, code, details } = known;
      expect(unknown).toMatchObject({ status, message, code, details });
      expect([...unknown.headers.keys()]).toEqual([...known.headers.keys()]);
      // The right password is not checked either, not even to restore an account.
      const right = { email: person.email, password: PASSWORD };
      for (const procedure of ['auth.login', 'account.restore'])
        expectLimited(await call(procedure, right), OF_ACCOUNT, 3600);
      // Other accounts have their own limits.
      await loggedIn(scenario());
      const reasons = async () => (await eventsOf(stack, person.id, 'login-refused')).map(({ reason }) => reason);
      const isRecorded = async () => (await reasons()).includes('limited');
      await until(isRecorded, { what: 'the record of a refusal' });
    });

    test('spellings of an email count as one account', async () => {
      const { call } = scenario();
      const email = freshEmail();
      const spellings = [email, email.toUpperCase(), email.replace('example', 'Example')];
      for (const spelling of spellings) expect((await guess(call, { email: spelling })).status).toBe(401);
      for (const spelling of spellings) expectLimited(await guess(call, { email: spelling }), OF_ACCOUNT, 3600);
    });

    test('right passwords do not count', async () => {
      const { call } = scenario();
      const person = await loggedIn(scenario());
      const { device } = await open(call, person);
      for (let i = 0; i < OF_ACCOUNT + 1; i++) {
        await open(call, person);
        const { session } = await open(call, person, { device });
        expect((await call('auth.reauthenticate', { password: PASSWORD }, { session })).status).toBe(200);
      }
      await exhaust(call, person);
    });

    test('fifty concurrent guesses do not exceed the limit', async () => {
      const { call } = scenario();
      const person = await verified(scenario());
      const replies = await Promise.all(Array.from({ length: 50 }, () => guess(call, person)));
      expect(replies.map(({ status }) => status).sort()).toEqual([
        ...Array(OF_ACCOUNT).fill(401),
        ...Array(50 - OF_ACCOUNT).fill(429),
      ]);
    });

    test('a device that has logged in before has a limit of its own', async () => {
      const { call } = scenario();
      const person = await loggedIn(scenario());
      const { device } = await open(call, person);
      const other = await open(call, person);
      await exhaust(call, person);
      for (let i = 0; i < OF_DEVICE + 1; i++) await open(call, person, { device });
      for (let i = 0; i < OF_DEVICE; i++) {
        expectRefusal(await guess(call, person, { device }), 401, 'INVALID_CREDENTIALS');
      }
      expectLimited(await guess(call, person, { device }), OF_DEVICE, 900);
      expectLimited(await call('auth.login', { email: person.email, password: PASSWORD }, { device }), OF_DEVICE, 900);
      await open(call, person, other);
    });

    test('a session has a limit of its own for reauthentication and password changes', async () => {
      const { call } = scenario();
      const { session, ...person } = await loggedIn(scenario());
      const other = await open(call, person);
      await exhaust(call, person);
      const wrong = { password: WRONG };
      for (let i = 0; i < OF_DEVICE; i++) {
        expectRefusal(
          await call('auth.reauthenticate', wrong, other),
          401,
          'INVALID_CREDENTIALS',
          'The password is wrong',
        );
      }
      expectLimited(await call('auth.reauthenticate', wrong, other), OF_DEVICE, 900);
      const change = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD };
      expectLimited(await call('account.changePassword', change, other), OF_DEVICE, 900);
      expect((await call('auth.reauthenticate', { password: PASSWORD }, { session })).status).toBe(200);
      expect((await call('account.changePassword', change, { session })).status).toBe(200);
    });

    // checks: 13
    test('only the cookie of a device of this account is known', async () => {
      const { call } = scenario();
      const [ada, bob] = [await loggedIn(scenario()), await loggedIn(scenario())];
      const [one, other] = [await open(call, ada), await open(call, bob)];
      await exhaust(call, ada);
      const [[id, mark], [otherId, otherMark]] = [one.device.split('.'), other.device.split('.')];
      const cookies = [
        other.device,
        `${id}.${otherMark}`,
        `${otherId}.${mark}`,
        `${id}.${'A'.repeat(43)}`,
        `${id}`,
        `${id}.${ada.id}`,
        `${one.device}; auth_device=${other.device}`,
      ];
      const right = { email: ada.email, password: PASSWORD };
      for (const device of cookies) expectLimited(await call('auth.login', right, { device }), OF_ACCOUNT, 3600);
      // Beside the mark of another user it is known, as in a browser that both use.
      await open(call, ada, { device: `${one.device}.${otherMark}` });
    });

    test('the cookie of a known device does not work for other accounts', async () => {
      const { call } = scenario();
      const { device } = await open(call, await loggedIn(scenario()));
      for (const account of [await loggedIn(scenario()), { email: freshEmail() }]) {
        for (let i = 0; i < OF_ACCOUNT; i++) expect((await guess(call, account, { device })).status).toBe(401);
        expectLimited(await guess(call, account, { device }), OF_ACCOUNT, 3600);
      }
    });

    test('a reset makes all devices unknown except its own, which can log in', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      const { device } = await open(call, person);
      await exhaust(call, person);
      await call('auth.forgotPassword', { email: person.email });
      const token = await mailedToken(stack, person.email, 'reset-password');
      const reset = await call('auth.resetPassword', { token, email: person.email, password: NEW_PASSWORD });
      expect(reset.status).toBe(200);
      const right = { email: person.email, password: NEW_PASSWORD };
      expectLimited(await call('auth.login', right, { device }), OF_ACCOUNT, 3600);
      expect(sessionIn(reset)).toBeUndefined();
      await open(call, right, { device: deviceIn(reset) });
    });

    test.each(actsOfAnOwner)('%s makes all other devices unknown', async (title, act) => {
      const { call } = scenario();
      const { id, email } = await loggedIn(scenario());
      const person = { email, password: PASSWORD };
      const [own, other] = [await open(call, person), await open(call, person)];
      const reply = await act(scenario(), { id }, own);
      expect(reply).toMatchObject({ code: undefined, status: 200 });
      await exhaust(call, person);
      const isOfAdministrator = title.includes('administrator');
      const unknown = isOfAdministrator ? [own, other] : [own, other, {}];
      for (const { device } of unknown as { device?: string }[]) {
        expectLimited(await call('auth.login', person, { device }), OF_ACCOUNT, 3600);
      }
      expect(deviceIn(reply) === undefined).toBe(isOfAdministrator);
      if (isOfAdministrator) return;
      const password = title.includes('password') ? NEW_PASSWORD : PASSWORD;
      const { status } = await call('auth.login', { email, password }, { device: deviceIn(reply) });
      expect(status).toBe(title.includes('app') ? 403 : 200);
    });

    test('a change in a session on an unknown device does not make it known', async () => {
      const { call } = scenario();
      const { session } = await loggedIn(scenario());
      const change = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD };
      const reply = await call('account.changePassword', change, { session, device: 'x'.repeat(43) });
      expect([reply.status, deviceIn(reply)]).toEqual([200, undefined]);
    });

    // checks: 71
    test('all known devices and sessions of an account share four times the guesses of one', async () => {
      const { call } = scenario();
      const person = await loggedIn(scenario());
      const known = [];
      for (let i = 0; i < 2 * KNOWN_TIMES; i++) known.push(await open(call, person));
      const statuses = [];
      for (const [i, { device, session }] of known.entries()) {
        for (let j = 0; j < OF_DEVICE; j++) {
          const inSession = () => call('auth.reauthenticate', { password: WRONG }, { session });
          statuses.push((await (i % 2 ? inSession() : guess(call, person, { device }))).status);
        }
      }
      expect(statuses).toEqual([...Array(OF_KNOWN_DEVICES).fill(401), ...Array(OF_KNOWN_DEVICES).fill(429)]);
      // Unknown devices have their own limit.
      await open(call, person);
    });

    // checks: 71
    test('all known devices and sessions of a user share four times the codes of one', async () => {
      const { call, stack } = scenario();
      const { id, secret, ...person } = await withApp(scenario());
      const devices = [];
      for (let i = 0; i < 2 * KNOWN_TIMES; i++) {
        const pending = await firstStep(call, person);
        devices.push(deviceIn(await call('auth.secondFactor', { code: codeOf(secret) }, { pending })));
        await forgetLastCode(stack, id);
      }
      const statuses = [];
      for (const device of devices) {
        const pending = await firstStep(call, person);
        for (let j = 0; j < OF_CODE; j++) {
          const reply = await call('auth.secondFactor', { code: wrongCode(secret) }, { pending, device });
          statuses.push(reply.status);
        }
      }
      expect(statuses).toEqual([...Array(OF_KNOWN_CODES).fill(401), ...Array(OF_KNOWN_CODES).fill(429)]);
      // Unknown devices have their own limit.
      const pending = await firstStep(call, person);
      expect((await call('auth.secondFactor', { code: wrongCode(secret) }, { pending })).status).toBe(401);
    });

    test('“This was not me” makes all devices unknown', async () => {
      const { call, stack } = scenario();
      const person = await loggedIn(scenario());
      const { device } = await open(call, person);
      const token = await mailedToken(stack, person.email, 'not-me');
      await exhaust(call, person);
      expect((await guess(call, person, { device })).status).toBe(401);
      expect((await call('account.notMe', { token })).status).toBe(200);
      expectLimited(await guess(call, person, { device }), OF_ACCOUNT, 3600);
    });

    test('a reset before the first login also makes its device known', async () => {
      const { call, stack } = scenario();
      const { email } = await verified(scenario());
      await exhaust(call, { email });
      await call('auth.forgotPassword', { email });
      const token = await mailedToken(stack, email, 'reset-password');
      const reset = await call('auth.resetPassword', { token, email, password: NEW_PASSWORD });
      expect(reset.status).toBe(200);
      await open(call, { email, password: NEW_PASSWORD }, { device: deviceIn(reset) });
    });
  },
  { env: { LIMIT_ACCOUNT: `${OF_ACCOUNT}/3600`, LIMIT_DEVICE: `${OF_DEVICE}/900`, LIMIT_CODE: `${OF_CODE}/3600` } },
);
